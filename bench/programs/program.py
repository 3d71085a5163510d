"""What a program is to the bench."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

MIB = 2**20


class Unavailable(Exception):
    """A program that this machine does not have; says what to install."""


@dataclass(frozen=True)
class Program:
    """A program with its data."""

    name: str
    prepare: Callable[[Path], None]
    """Makes its data in a folder; raises `Unavailable`."""
    script: str
    """What `sh` runs in that folder."""
    clean: Callable[[Path], None] = lambda _folder: None
    """Removes what a run leaves."""

    def ready(self, folder: Path) -> None:
        """Make every run begin alike: nothing left over, none of the data in the page cache."""
        self.clean(folder)
        evict(folder)


def evict(folder: Path) -> None:
    """Write back and drop what the page cache holds of a folder's files."""
    os.sync()
    for path in folder.rglob("*"):
        if path.is_file() and not path.is_symlink():
            file = os.open(path, os.O_RDONLY)
            try:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(file)
