"""One trial at a time on a machine, whoever runs it: a lock that every process here can see."""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from leadline.errors import TargetRefused

_RUN_LOCK = Path("/run/lock")
_NAME = "leadline-machine"
WAITING = "another trial runs on this machine, and two at once would measure each other; waiting"


@contextmanager
def machine_locked(tell: Callable[[str], None], folder: Path | None = None) -> Iterator[None]:
    """Have this machine for oneself, waiting for others; the kernel ends the lock at any end.

    Args:
        tell: is told once, before it waits.
        folder: where the lock lies; None for the machine's own place for locks.

    Raises:
        TargetRefused: no file can be locked there.

    """
    path = (folder or _place()) / _NAME
    lock = _lock(path, tell)
    try:
        yield
    finally:
        # Still locked: whoever waits sees that the file is gone and opens the next one.
        with suppress(OSError):  # another user's, in a sticky directory
            path.unlink()
        os.close(lock)


def _place() -> Path:
    return _RUN_LOCK if os.access(_RUN_LOCK, os.W_OK) else Path(tempfile.gettempdir())


def _lock(path: Path, tell: Callable[[str], None]) -> int:
    told = False
    while True:
        lock = _open(path)
        try:
            if not _try(lock):
                if not told:
                    tell(WAITING)
                    told = True
                fcntl.flock(lock, fcntl.LOCK_EX)
            if _is_there(lock, path):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _open(path: Path) -> int:
    """Open it for reading, which is enough for a lock: it may be another user's."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with suppress(FileNotFoundError):
            return os.open(path, flags)
        return os.open(path, flags | os.O_CREAT, 0o644)
    except OSError as error:
        raise TargetRefused(
            f"this machine cannot be locked for a trial: {path}: {error.strerror}; remove it"
        ) from error


def hold_file(path: Path) -> IO[bytes] | None:
    """Hold a file, made if it is missing, until it is closed; None while another process does."""
    held = path.open("ab")
    if not _try(held.fileno()):
        held.close()
        return None
    return held


def _try(lock: int) -> bool:
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_there(lock: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(lock), path.stat(follow_symlinks=False))
    except FileNotFoundError:
        return False
