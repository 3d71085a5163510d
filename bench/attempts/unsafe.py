"""Targets that must be refused, or used without a trace; everything around them is compared."""

from __future__ import annotations

import hashlib
import os
import socket
import stat
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from attacker import NOBODY, become_nobody
from attempts.disks import unmount, why_no_mounts
from attempts.kinds import POINT_S
from attempts.outcome import Asked, Attempt
from attempts.scene import Scene, ended, scene

FAMILY = "unsafe targets"
HURRIED = ("survey", "cache")
RUN = "run-" + "0" * 32
MARKED = '{"made_by":"leadline","version":1,"id":"x"}\n'
SYSTEM = ("/", "/etc", "/dev", "/proc", "/sys")
COMMANDS = {
    "measure": [
        *("--workload", "unique_bytes=1MiB,size_mean=4KiB"),
        *("--seconds", "0.1", "--runs", "1"),
    ],
    "survey": ["--budget", "60s"],
    "cache": ["--budget", "60s"],
    "files": ["--filesystems", "existing", "--file-size", "1MiB", "--runs", "2"],
    "stream scale": ["--size", "2MiB", "--memory", "64MiB", "--repeat", "1"],
}
Lay = Callable[[Path], object]


@dataclass(frozen=True)
class Target:
    """Something to name as a target; the place is a directory of the scene."""

    name: str
    lay: Lay = lambda _: None
    """Put what makes it unsafe into the place, and return what to call instead of the place."""
    codes: tuple[int, ...] = (5,)
    as_user: bool = False


def _link(place: Path, *, to: str) -> Path:
    (place / "other").mkdir()
    (place / "file").write_text("precious")
    (place / "link").symlink_to(place / to)
    return place / "link"


def _own(place: Path, name: str, text: str = "precious", *, marked: bool = True) -> None:
    path = place / ".leadline" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    if marked and not (place / ".leadline" / "OWNED-BY-LEADLINE").exists():
        (place / ".leadline" / "OWNED-BY-LEADLINE").write_text(MARKED)


def _second_name(place: Path, name: str, text: str = "") -> None:
    (place / "precious").write_text(text)
    path = place / ".leadline" / name
    path.parent.mkdir(parents=True)
    path.hardlink_to(place / "precious")
    if not (place / ".leadline" / "OWNED-BY-LEADLINE").exists():
        (place / ".leadline" / "OWNED-BY-LEADLINE").write_text(MARKED)


def _linked(place: Path, name: str) -> None:
    (place / "precious").write_text("")
    path = place / ".leadline" / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.symlink_to(place / "precious")


def _of_another(place: Path) -> None:
    (place / ".leadline").mkdir()
    os.chown(place / ".leadline", NOBODY, NOBODY)


def _pipe(place: Path) -> Path:
    os.mkfifo(place / "pipe")
    return place / "pipe"


def _socket(place: Path) -> Path:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(place / "socket"))
    return place / "socket"


def _file(place: Path) -> Path:
    (place / "file").write_text("precious")
    return place / "file"


def _read_only(place: Path) -> None:
    (place / "precious").write_text("precious")
    for words in (["--bind"], ["-o", "remount,bind,ro"]):
        subprocess.run(["mount", *words, str(place), str(place)], check=True)


def _not_text(place: Path) -> str:
    path = os.fsencode(place) + b"/d\xff"
    os.mkdir(path)  # noqa: PTH102 - its name is bytes
    return os.fsdecode(path)


def _named(place: Path, *, name: str) -> Path:
    (place / name).mkdir()
    return place / name


def _elsewhere(_: Path, *, at: str) -> str:
    return at


TARGETS = (
    *(Target(at, partial(_elsewhere, at=at), codes=(0, 5)) for at in SYSTEM),
    *(Target(f"{at}, as a user", partial(_elsewhere, at=at), as_user=True) for at in SYSTEM),
    Target("a character device", partial(_elsewhere, at="/dev/null")),
    Target("a block device", partial(_elsewhere, at="/dev/loop0")),
    Target("nothing", partial(_elsewhere, at="")),
    Target("a missing directory", lambda place: place / "missing"),
    Target("a name of 5000 letters", lambda place: place / ("x" * 5000)),
    Target("a name that is no text", _not_text),
    Target("a link to a directory", partial(_link, to="other")),
    Target("a link to a file", partial(_link, to="file")),
    Target("a link to itself", partial(_link, to="link")),
    Target("a file", _file),
    Target("a pipe", _pipe),
    Target("a socket", _socket),
    Target("mounted read-only", _read_only),
    Target("root's directory, as a user", as_user=True),
    Target("a user's directory", lambda place: os.chown(place, NOBODY, NOBODY), codes=(0,)),
    Target("a name like an option", partial(_named, name="--help me"), codes=(0,)),
    Target("a name with escapes", partial(_named, name="\x1b[31m[b]\nx"), codes=(0,)),
    Target("its .leadline is a link", partial(_linked, name="")),
    Target("its .leadline is a file", lambda place: (place / ".leadline").write_text("precious")),
    Target("its .leadline is another's", _of_another),
    Target("its .leadline holds a thesis", partial(_own, name="thesis.tex")),
    Target("its .leadline has no marker", partial(_own, name=f"{RUN}/data.bin", marked=False)),
    Target("a foreign lock", partial(_own, name="lock", text="my own lock")),
    Target("a foreign marker", partial(_own, name="OWNED-BY-LEADLINE", text="notes")),
    Target("a foreign file among data", partial(_own, name=f"{RUN}/thesis.tex")),
    Target("a hard-linked lock", partial(_second_name, name="lock")),
    Target("a hard-linked marker", partial(_second_name, name="OWNED-BY-LEADLINE", text=MARKED)),
    Target("hard-linked data", partial(_second_name, name=f"{RUN}/data.bin", text="precious")),
    Target("a linked lock", partial(_linked, name="lock")),
    Target("a linked marker", partial(_linked, name="OWNED-BY-LEADLINE")),
    Target("linked data", partial(_linked, name=f"{RUN}/data.bin")),
)


def attempts(asked: Asked) -> Iterator[Attempt]:
    """Name every unsafe target to every command that takes one."""
    for target in TARGETS[::3] if asked.short else TARGETS:
        if (target.as_user or target.lay is _read_only) and (why := why_no_mounts()):
            yield Attempt(FAMILY, target.name, asked.seed, untried=why)
            continue
        # A system's own directories are used once, for a file of a mebibyte.
        once = asked.short or target.name in SYSTEM
        for command in list(COMMANDS)[:1] if once else COMMANDS:
            yield _named_to(command, target, asked.seed)


def _named_to(command: str, target: Target, seed: int) -> Attempt:
    attempt = Attempt(FAMILY, command, seed, target.name)
    with scene() as place:
        (place.target / "beside").write_text("precious")
        at = target.lay(place.target)
        spelled = str(place.target if at is None or isinstance(at, int) else at)
        before = around(place, spelled)
        if target.as_user:
            os.chown(place.temporary, NOBODY, NOBODY)
            os.chown(place.base, NOBODY, NOBODY)
        steer = become_nobody if target.as_user else None
        words = [*command.split(), *COMMANDS[command], "--", spelled]
        with place.start(*words, point_s=POINT_S * (command in HURRIED), steer=steer) as child:
            done = ended(child)
        attempt.expect_code(done.code, *target.codes, said=done.said)
        changed = before.items() ^ around(place, spelled).items()
        attempt.lost += sorted({f"{path} is not as it was" for path, _ in changed})
        attempt.left += [found for found in place.wait_gone() if not found.startswith("mount ")]
        unmount(place.target)
    return attempt


def around(place: Scene, spelled: str) -> dict[str, tuple[object, ...]]:
    """Return what lies in and beside a target, with a checksum of every file."""
    found = {str(path): _facts(path) for path in place.target.rglob("*")}
    if spelled in SYSTEM:
        whole = Path(spelled).rglob("*") if spelled == "/etc" else Path(spelled).iterdir()
        found |= {str(path): _facts(path, read=spelled == "/etc") for path in whole if _ours(path)}
    return found


def _ours(path: Path) -> bool:
    """Whether a system's entry is one that does not come and go by itself."""
    return not (path.name.isdigit() or path.is_relative_to("/dev/loop"))


def _facts(path: Path, *, read: bool = True) -> tuple[object, ...]:
    facts = path.lstat()
    content: object = None
    if stat.S_ISREG(facts.st_mode) and read:
        with suppress(OSError):
            content = hashlib.sha256(path.read_bytes()).hexdigest()
    elif stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)  # noqa: PTH115 - it may be no text
    return facts.st_mode, facts.st_uid, facts.st_gid, facts.st_nlink * read, content
