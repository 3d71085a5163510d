"""Numbered places for servers with a network of their own, held by locks that end with the holder.

A number decides names and addresses: namespace, link, 10.213.NUMBER.0/30, a directory below /run.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO

from leadline.errors import TargetRefused
from leadline.machine.lock import hold_file

SLOTS = Path("/run/leadline-nfs")
SLOTS_MAX = 250


def free_slot() -> tuple[int, IO[bytes]]:
    """Return the first number that nobody holds, with the file that holds it.

    Raises:
        TargetRefused: all are held.

    """
    SLOTS.mkdir(exist_ok=True)
    for number in range(1, SLOTS_MAX):
        lock = _hold(number)
        if lock is not None:
            return number, lock
    raise TargetRefused(f"all {SLOTS_MAX} places for servers in {SLOTS} are held; stop some")


def left_slots() -> Iterator[int]:
    """Numbers that nobody holds any more but whose directories are still there, held meanwhile."""
    for folder in SLOTS.iterdir():
        if folder.is_dir() and (lock := _hold(int(folder.name))) is not None:
            with lock:
                yield int(folder.name)


def _hold(number: int) -> IO[bytes] | None:
    return hold_file(SLOTS / f"{number}.lock")
