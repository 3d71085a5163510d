"""Bad input gets one clear message, the exit code of DESIGN.md, and no traceback."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import leadline
from places import ROOT

GOOD_PROFILE = (ROOT / "python/leadline/profiles/two-level.toml").read_text(encoding="utf-8")
WORKLOAD = "unique_bytes=8MiB,size_mean=32KiB"
OF_TARGETS = ("no-such-system", "gopher", "target", "/no/such/directory", "nfs", "/dev/vda")
"""What is wrong is a target, or what it can do, and not the words."""


def refused(*arguments: str, store: Path, said: str, code: int = 2) -> None:
    """The command must end with `code` and say `said` in one message without a traceback."""
    done = leadline(*arguments, store=store)
    assert done.returncode == code, done.stderr
    assert said.lower() in done.stderr.lower(), done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert len(done.stderr.strip().splitlines()) <= 6, done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["survey", "sim:no-such-system"], "no-such-system"),
        (["survey", "gopher:there"], "gopher"),
        (["survey", ""], "target"),
        (["survey", "/no/such/directory"], "/no/such/directory"),
        (["survey", "nfs://host/export"], "nfs"),
        (["survey", "/dev/vda"], "/dev/vda"),
        (["survey", "sim:two-level", "--budget", "0"], "budget"),
        (["survey", "sim:two-level", "--budget", "soon"], "soon"),
        (["survey", "sim:two-level", "--budget", "-5m"], "-5m"),
        (["survey", "sim:two-level", "--focal", "top"], "middle or 75%"),
        (["survey", "sim:two-level", "--seed", "-1"], "seed"),
        (["survey", "sim:two-level", "--accuracy", "7"], "accuracy"),
        (["survey", "sim:two-level", "--resume"], "no unfinished survey"),
        (["survey", "sim:two-level", "--backend", "punchcard"], "punchcard"),
        (["measure", "null:", "--workload", "unique_bytes=lots,size_mean=4k"], "lots"),
        (["predict", "nobody", "--workload", "unique_bytes=1M"], "size_mean missing"),
        (["measure", "null:", "quick"], "'quick' is not key=value"),
        (["measure", "null:", "--workload", WORKLOAD + ",speed=9"], "speed"),
        (["measure", "null:", "--workload", WORKLOAD + ",read_frac=1.5"], "read_frac"),
        (["measure", "null:", "--workload", WORKLOAD + ",process_num=0"], "process_num"),
        (["report", "nobody"], "nobody"),
        (["show", "nobody"], "nobody"),
        (["export", "nobody", "--format", "csv"], "nobody"),
        (["sound", "sim:two-level"], "sound"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_the_command_says_what_is_wrong(arguments: list[str], said: str, tmp_path: Path) -> None:
    code = 5 if said in OF_TARGETS else 2
    refused(*arguments, store=tmp_path / "store.sqlite", said=said, code=code)


@pytest.mark.parametrize(
    ("line", "instead", "said"),
    [
        ("[device]", "[gadget]", "gadget"),
        ("capacity_bytes", "capacity_elephants", "capacity_elephants"),
        ("read_mb_s = ", "read_mb_s = -", "read_mb_s"),
        ("[device]", "[device", "line"),
    ],
)
def test_a_bad_profile_names_the_field(line: str, instead: str, said: str, tmp_path: Path) -> None:
    assert line in GOOD_PROFILE
    path = tmp_path / "mine.toml"
    path.write_text(GOOD_PROFILE.replace(line, instead, 1), encoding="utf-8")
    refused("survey", f"sim:{path}", store=tmp_path / "store.sqlite", said=said, code=5)


def test_a_file_is_not_a_directory(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("precious", encoding="utf-8")
    refused("survey", str(file), store=tmp_path / "store.sqlite", said="not a directory", code=5)
    assert file.read_text(encoding="utf-8") == "precious"


def test_a_symlink_into_somewhere_else_is_refused(tmp_path: Path) -> None:
    elsewhere, target = tmp_path / "elsewhere", tmp_path / "target"
    elsewhere.mkdir()
    target.mkdir()
    (elsewhere / "precious").write_text("data", encoding="utf-8")
    (target / ".leadline").symlink_to(elsewhere)
    refused("survey", str(target), store=tmp_path / "store.sqlite", said="symlink", code=5)
    assert (elsewhere / "precious").read_text(encoding="utf-8") == "data"


def test_a_file_leadline_did_not_make_is_refused_and_kept(tmp_path: Path) -> None:
    own = tmp_path / "target" / ".leadline"
    own.mkdir(parents=True)
    (own / "thesis.tex").write_text("years of work", encoding="utf-8")
    refused("survey", str(own.parent), store=tmp_path / "store.sqlite", said=".leadline", code=5)
    assert (own / "thesis.tex").read_text(encoding="utf-8") == "years of work"


def test_a_corrupt_store_is_named_and_left_alone(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    store.write_bytes(b"this is no database at all, but somebody's notes\n" * 50)
    before = store.read_bytes()
    refused("systems", store=store, said=str(store))
    assert store.read_bytes() == before


@pytest.fixture
def mounted(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A small tmpfs with the mount options the test asks for."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs needs root")
    place = tmp_path / "mounted"
    place.mkdir()
    options = ["mount", "-t", "tmpfs", "-o", request.param, "leadline-test", str(place)]
    made = subprocess.run(options, capture_output=True, text=True, check=False)
    if made.returncode:
        pytest.skip(f"this machine does not mount a tmpfs: {made.stderr.strip()}")
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.mark.parametrize("mounted", ["size=8m,ro"], indirect=True)
def test_a_read_only_file_system_is_refused(mounted: Path, tmp_path: Path) -> None:
    refused("survey", str(mounted), store=tmp_path / "store.sqlite", said="read-only", code=5)


@pytest.mark.parametrize("mounted", ["size=64m"], indirect=True)
def test_a_full_disk_is_refused_before_anything_is_written(mounted: Path, tmp_path: Path) -> None:
    (mounted / "filler").write_bytes(b"x" * (60 << 20))
    refused("survey", str(mounted), store=tmp_path / "store.sqlite", said="free", code=5)
    assert sorted(item.name for item in mounted.iterdir()) == ["filler"]


def test_a_cache_limit_too_small_to_run_in_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    refused(
        "survey",
        str(target),
        "--cache-limit",
        "1MiB",
        store=tmp_path / "s.sqlite",
        said="cache-limit",
        code=5,
    )
    assert not list(target.iterdir())
