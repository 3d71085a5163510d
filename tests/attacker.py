"""An unprivileged user who owns the target's directory, and what he puts in the place of things."""

from __future__ import annotations

import os
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.engine.targets.claim import DIRECTORY

NOBODY = 65534
MIB = 1 << 20
PRECIOUS = b"precious" * (MIB // 8)
"""As long as the files that are asked for, so that they could be taken for ready."""
OURS = ("data.bin", "file.bin", "raw-0.bin", "stream-in", "stream-in.layout")
"""Names that Leadline gives its files."""


class Arena:
    """`home` is the attacker's, with the target in it; `victim` is root's."""

    def __init__(self, base: Path) -> None:
        self.home, self.victim = base / "home", base / "victim"
        self.place, self.moved = self.home / "place", self.home / "place" / "moved"
        for folder in (self.home, self.place):
            folder.mkdir()
            os.chown(folder, NOBODY, NOBODY)
        self.victim.mkdir()
        for name in OURS:
            (self.victim / name).write_bytes(PRECIOUS)
        self.before = self.facts()

    def facts(self) -> dict[str, tuple[int, int, bytes]]:
        """What root has: owner, permissions and content by name."""
        found = {}
        for path in sorted(self.victim.rglob("*")):
            facts = path.lstat()
            found[path.name] = (facts.st_uid, facts.st_mode, path.read_bytes())
        return found

    def run(self) -> str:
        """The run's name, which leaks as the backing file of a loop device, for one."""
        (run,) = (self.place / DIRECTORY).glob("run-*")
        return run.name

    def left(self) -> list[str]:
        """What is left in the directory that was claimed and then moved."""
        return sorted(path.name for path in self.moved.rglob("*"))


@contextmanager
def arena_below_tmp() -> Iterator[Arena]:
    """An arena until the block ends; nobody but root gets into pytest's own directories."""
    with tempfile.TemporaryDirectory(prefix="leadline-attack-") as text:
        Path(text).chmod(0o755)
        yield Arena(Path(text))


def become_nobody() -> None:
    """Drop every privilege of this process, for good."""
    os.setgroups([])
    os.setresgid(NOBODY, NOBODY, NOBODY)
    os.setresuid(NOBODY, NOBODY, NOBODY)


def as_nobody(act: Callable[[], None]) -> None:
    """Do something as the attacker, in a process of his own."""
    child = os.fork()
    if not child:
        code = 1
        try:
            become_nobody()
            act()
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0, "the attack itself failed"


@contextmanager
def attacker(act: Callable[[], None]) -> Iterator[None]:
    """Something that the attacker does until the block ends."""
    child = os.fork()
    if not child:
        try:
            become_nobody()
            act()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


Lay = Callable[[Arena, Path], None]


def lay_links(arena: Arena, run: Path) -> None:
    """Files in a run directory of his own that are links to root's."""
    run.mkdir()
    for name in ("data.bin", "file.bin", "stream-in"):
        (run / name).symlink_to(arena.victim / name)


def lay_linked_run(arena: Arena, run: Path) -> None:
    """A run directory that is a link to root's, where root's own files have the names."""
    run.symlink_to(arena.victim)


def lay_pipes(_: Arena, run: Path) -> None:
    """Pipes that nobody else opens."""
    run.mkdir()
    for name in OURS:
        os.mkfifo(run / name)


LAYS = [lay_links, lay_linked_run, lay_pipes]


def swap(arena: Arena, lay: Lay) -> None:
    """Put the attacker's tree in the place of what was claimed."""
    run = arena.run()

    def act() -> None:
        (arena.place / DIRECTORY).rename(arena.moved)
        (arena.place / DIRECTORY).mkdir()
        lay(arena, arena.place / DIRECTORY / run)

    as_nobody(act)
