"""A store whose process is killed, or whose statement fails, at any step of any transaction.

A killed process leaves its files as they are at that moment: a copy of them is what the next one
finds. So nothing needs to be killed: the copy is taken, and the machine goes on with that.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import event

from leadline.store import Store, open_store

MOMENTS = ("begin", "before_cursor_execute", "after_cursor_execute", "commit")
"""Of SQLAlchemy's, each before the driver is asked, but for the third."""
FILES = ("", "-wal", "-shm")
NAME = "store.sqlite"


class Failed(Exception):
    """The disk, or the connection."""


class Steps:
    """Counts the moments of transactions; at one of them something happens."""

    def __init__(self, crash_at: int | None = None, fail_at: int | None = None) -> None:
        self.taken = 0
        self.crashed: Path | None = None
        """Where the copy is, once it was taken."""
        self.committed = False
        """Whether it was taken after a commit."""
        self._crash_at, self._fail_at = crash_at, fail_at
        self._commits = 0

    def take(self, path: Path, *, commits: bool) -> None:
        """Take a step, of the store with this file."""
        if self.taken == self._crash_at:
            self.crash(path)
        if self.taken == self._fail_at:
            self.taken += 1
            raise Failed
        self.taken += 1
        self._commits += commits

    def crash(self, path: Path) -> None:
        """Copy the files as they are."""
        copy = path.parent.with_name(f"{path.parent.name}+")
        copy.mkdir()
        for ending in FILES:
            if path.with_name(path.name + ending).exists():
                shutil.copyfile(path.with_name(path.name + ending), copy / (path.name + ending))
        self.crashed, self.committed = copy / path.name, self._commits > 0


@contextmanager
def stepping(store: Store, path: Path, steps: Steps) -> Iterator[None]:
    """Make the moments of a store's transactions steps, in the block."""
    engine: Any = vars(store)["_engine"]
    listeners = []
    for moment in MOMENTS:

        def happens(*_: object, moment: str = moment) -> None:
            steps.take(path, commits=moment == "commit")

        event.listen(engine, moment, happens)
        listeners.append((moment, happens))
    try:
        yield
    finally:
        for moment, happens in listeners:
            event.remove(engine, moment, happens)


def opened(path: Path) -> Store:
    """Open a store as the next process does."""
    return open_store(str(path))
