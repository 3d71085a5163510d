"""One trial at a time on a machine, whoever runs it: a lock that every process here can see."""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

from leadline.errors import TargetRefused
from leadline.units import format_seconds

_RUN_LOCK = Path("/run/lock")
_NAME = "leadline-machine"
PATIENCE_S = 7200.0
"""Longer than trials last."""
_LOOK_S = 0.1
WAITING = "another trial runs on this machine, and two at once would measure each other; waiting"


@contextmanager
def machine_locked(
    tell: Callable[[str], None], folder: Path | None = None, *, patience_s: float = PATIENCE_S
) -> Iterator[None]:
    """Have this machine for oneself, waiting for others; the kernel ends the lock at any end.

    Args:
        tell: is told once, before it waits.
        folder: where the lock lies; None for the machine's own place for locks.

        patience_s: how long it waits; a process that never ends would keep everybody out.

    Raises:
        TargetRefused: no file can be locked there, or somebody keeps it.

    """
    path = (folder or _place()) / _NAME
    lock = _lock(path, tell, patience_s)
    try:
        yield
    finally:
        # Still locked: whoever waits sees that the file is gone and opens the next one.
        with suppress(OSError):  # another user's, in a sticky directory
            path.unlink()
        os.close(lock)


def _place() -> Path:
    return _RUN_LOCK if os.access(_RUN_LOCK, os.W_OK) else Path(tempfile.gettempdir())


def _lock(path: Path, tell: Callable[[str], None], patience_s: float) -> int:
    told, end_s = False, time.monotonic() + patience_s
    while True:
        lock = _open(path)
        try:
            while not _try(lock):
                if not told:
                    tell(WAITING)
                    told = True
                if time.monotonic() >= end_s:
                    raise TargetRefused(_kept(lock, path, patience_s))
                time.sleep(_LOOK_S)
            if _is_there(lock, path):
                return lock
        except BaseException:
            os.close(lock)
            raise
        os.close(lock)


def _kept(lock: int, path: Path, patience_s: float) -> str:
    holders = ", ".join(map(str, _holders(os.fstat(lock)))) or "not seen from here"
    return (
        f"{path} was locked by somebody else for {format_seconds(patience_s)} (process {holders}), "
        "and two trials at once would measure each other; end that process, or as root remove the "
        "file, and start again"
    )


def _holders(file: os.stat_result) -> list[int]:
    """Return the processes that hold a file's lock (proc(5), /proc/locks)."""
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found = [words for words in map(str.split, lines) if place in words and "->" not in words]
    return [int(words[4]) for words in found if words[1] == "FLOCK"]


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
