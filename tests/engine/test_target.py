"""Targets as people type them: what is taken, and what each refusal says."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import msgspec
import pytest

from leadline.engine import Directory, NfsExport, Null, Target, TargetRefused
from leadline.engine.targets import profiles


def test_a_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for text in (str(tmp_path), ".", f"{tmp_path}/", " . "):
        target = Target.parse(text)
        assert isinstance(target, Directory)
        assert target.path == str(tmp_path.resolve())
        assert target.text == target.path, "what is stored finds it from any directory"
    assert list(tmp_path.iterdir()) == [], "parsing makes nothing"


def test_a_directory_behind_a_symlinked_parent(tmp_path: Path) -> None:
    (tmp_path / "real/inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    target = Target.parse(f"{tmp_path}/link/inner")
    assert target.path == target.text == str(tmp_path / "real/inner"), "resolved once, and said"


def test_nothing() -> None:
    target = Target.parse("null:")
    assert isinstance(target, Null)
    assert (target.path, target.name) == (None, "null")


def test_a_directory_of_a_server() -> None:
    target = Target.parse("nfs://server:2050/exp/a%20b/?mountport=13050&version=3")
    assert isinstance(target, NfsExport)
    assert msgspec.to_builtins(target.nfs) == {
        "host": "server",
        "port": 2050,
        "mount_port": 13050,
        "path": "/exp/a b",
    }
    assert target.text == "nfs://server:2050/exp/a%20b?mountport=13050"
    assert Target.parse(target.text) == target, "what is stored finds it again"
    assert target.name == "server-exp-a b"
    bare = Target.parse("nfs://[::1]/")
    assert (bare.text, bare.nfs and bare.nfs.host) == ("nfs://[::1]/", "::1")
    assert Target.parse("nfs://h/x?nfsport=99").text == "nfs://h:99/x"


def make_tree(place: Path) -> None:
    (place / "file").write_text("mine")
    (place / "real").mkdir()
    (place / "link").symlink_to("real")
    (place / "loop").symlink_to("loop")
    (place / "broken.toml").write_text('name = "x"\n[disk\n')
    (place / "latin.toml").write_bytes(b'name = "\xe9"\n')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the target is empty; a target is a directory, sim:NAME"),
        ("  ", "empty"),
        ("foo:bar", "unknown scheme foo:.*a directory of that name is written ./foo:bar"),
        ("C:/data", "unknown scheme c:"),
        ("nfs://", "the host is missing"),
        ("nfs:host/export", "the host is missing"),
        ("nfs://host", "an NFS target is nfs://HOST"),
        ("nfs://me@host/x", "not a plain name"),
        ("nfs://host:99999/x", "out of range"),
        ("nfs://host/x/../y", "goes through . or .."),
        ("nfs://host/x?version=4", "version 3 of NFS only"),
        ("nfs://host/x?tls=1", "'tls' is no option"),
        ("nfs://host/x?mountport=a", "mountport=a is no port"),
        ("/dev/vda", "raw devices are not in this version; give a directory"),
        ("/dev/nosuch", "raw devices are not in this version"),
        ("null:x", "nothing after the colon"),
        ("{place}/missing", "does not exist; make it first: mkdir .*missing"),
        ("{place}/file", "is a file, not a directory.*give a directory such as {place}"),
        ("{place}/file/x", "cannot be reached|does not exist"),
        (
            "{place}/link",
            "is a symlink to {place}/real: Leadline follows links on the way .*type {place}/real",
        ),
        ("{place}/link/", "is a symlink"),
        ("{place}/loop", "symlink|cannot be reached"),
        ("a\0b", "NUL"),
        ("x" * 5000, "cannot be reached"),
        ("~nosuchuser/x", "no such user"),
        ("sim:", "sim: needs a name"),
        ("sim:nosuch.toml", "there is no file nosuch.toml"),
        ("sim:{place}", "there is no simulated system called"),
        ("sim:{place}/broken.toml", r"not valid TOML: .*line 2"),
        ("sim:{place}/latin.toml", "not text in UTF-8"),
    ],
)
def test_refusals(tmp_path: Path, text: str, message: str) -> None:
    make_tree(tmp_path)
    with pytest.raises(TargetRefused, match=message.replace("{place}", str(tmp_path))) as refused:
        Target.parse(text.replace("{place}", str(tmp_path)))
    assert refused.value.exit_code == 5
    assert "\n" not in str(refused.value)


def test_an_unknown_system_names_the_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "profile_names", lambda: ("three-level", "two-level"))
    with pytest.raises(TargetRefused) as refused:
        Target.parse("sim:tow-level")
    assert "did you mean sim:two-level?" in str(refused.value)
    assert "three-level, two-level" in str(refused.value)


def test_a_read_only_file_system(tmp_path: Path) -> None:
    place = tmp_path / "read-only"
    place.mkdir()
    bound = subprocess.run(
        ["mount", "--bind", "-o", "ro", str(tmp_path), str(place)], capture_output=True, check=False
    )
    if bound.returncode:
        pytest.skip(f"no read-only bind mount here: {bound.stderr.decode().strip()}")
    try:
        with pytest.raises(TargetRefused, match=r"mounted read-only.*writable"):
            Target.parse(str(place))
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_directory_of_somebody_else() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become somebody else")
    with tempfile.TemporaryDirectory() as text:
        place = Path(text)
        place.chmod(0o755)
        # Permission bits do not bind root, so an ordinary user looks at it.
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            said = "accepted"
            try:
                os.setresuid(65534, 65534, 65534)
                Target.parse(text)
            except BaseException as error:
                said = f"{type(error).__name__}: {error}"
            os.write(writer, said.encode())
            os._exit(0)
        os.waitpid(child, 0)
        os.close(writer)
        with os.fdopen(reader) as answers:
            answer = answers.read()
    assert answer.startswith("TargetRefused: ")
    assert "you may not write in this directory" in answer
