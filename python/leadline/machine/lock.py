"""One trial at a time on a machine, whoever runs it: a lock that every process here can see.

Every user may take it, for trials of two users measure each other as well as those of one. So every
user could keep it, too, or take it again and again. Against another user who does, an ordinary user
can only be told who it is. Root waits for others `FOREIGN_S` in all and no longer: then it puts a
lock of its own in that one's place, says so, and waits `_AGAIN_S` for that user from then on.
Whoever lost the machine so is told at his end, because two trials ran at once (decision 16).
"""

from __future__ import annotations

import fcntl
import os
import pwd
import secrets
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

import msgspec

from leadline.errors import TargetRefused
from leadline.units import format_seconds

_RUN_LOCK = Path("/run/lock")
_NAME = "leadline-machine"
TIMEOUT_S = 7200.0
"""Longer than trials last."""
FOREIGN_S = 600.0
"""How long root waits for other users: longer than a trial of the usual length."""
_AGAIN_S = 2.0
"""The same of users for whom this process has waited so long before."""
_LOOK_S = 0.1
WAITING = "another trial runs on this machine, and two at once would measure each other; waiting"
LOST = (
    "warning: another process took this machine's lock away while the trial ran; another trial may "
    "have run beside it, so measure again what matters"
)
_WAITED_FOR: set[int | None] = set()
"""Users for whom this process, root's, has waited `FOREIGN_S`; None for one who is not seen."""


class _Holder(msgspec.Struct, frozen=True):
    """A process that has the lock."""

    pid: int
    uid: int | None
    """Who started it, whatever it became since (a setuid program is root's); None when unseen."""

    def __str__(self) -> str:
        """Return it as a message names it."""
        return f"process {self.pid}" + ("" if self.uid is None else f" of user {_user(self.uid)}")


@contextmanager
def machine_locked(
    tell: Callable[[str], None],
    folder: Path | None = None,
    *,
    timeout_s: float = TIMEOUT_S,
    foreign_s: float = FOREIGN_S,
) -> Iterator[None]:
    """Have this machine for oneself, waiting for others; the kernel ends the lock at any end.

    Args:
        tell: is told once, before it waits; by root, when it waits no longer; and at the end, when
            the lock was taken away meanwhile.
        folder: where the lock lies; None for the machine's own place for locks.
        timeout_s: how long it waits; a process that never ends would keep everybody out.
        foreign_s: how long root waits for other users.

    Raises:
        TargetRefused: no file can be locked there, or somebody keeps it.

    """
    path = (folder or _place()) / _NAME
    lock = _Wait(path, tell, timeout_s, foreign_s).lock()
    try:
        yield
    finally:
        # Still locked: whoever waits sees that the file is gone and opens the next one.
        if _is_there(lock, path):
            with suppress(OSError):  # another user's, in a sticky directory
                path.unlink()
        else:
            tell(LOST)
        os.close(lock)


def _place() -> Path:
    return _RUN_LOCK if os.access(_RUN_LOCK, os.W_OK) else Path(tempfile.gettempdir())


class _Wait:
    """One wait for the lock."""

    def __init__(
        self, path: Path, tell: Callable[[str], None], timeout_s: float, foreign_s: float
    ) -> None:
        self._path = path
        self._tell = tell
        self._timeout_s = timeout_s
        self._foreign_s = foreign_s
        self._end_s = time.monotonic() + timeout_s
        self._waited_s = 0.0
        """For other users, whoever they were."""
        self._told = False

    def lock(self) -> int:
        """Return the locked file's handle."""
        while True:
            lock = self._open()
            if lock is None:
                return _take(self._path)
            try:
                if self._wait(lock) and _is_there(lock, self._path):
                    return lock
            except _Foreign:
                os.close(lock)
                return _take(self._path)
            except BaseException:
                os.close(lock)
                raise
            os.close(lock)

    def _open(self) -> int | None:
        """Open it; None where it is no file and root puts one there."""
        try:
            return _open(self._path)
        except TargetRefused:
            if os.geteuid() != 0:
                raise
            self._tell(f"warning: {self._path} was no file that can be locked; it is replaced")
            return None

    def _wait(self, lock: int) -> bool:
        """Wait until it is locked; False when another file is in its place by then."""
        while not _try(lock):
            if not self._told:
                self._tell(WAITING)
                self._told = True
            holders = _holders(os.fstat(lock))
            if not holders and _try(lock):
                return True
            if os.geteuid() == 0 and all(each.uid != 0 for each in holders):
                self._wait_for_others(holders)
            if time.monotonic() >= self._end_s:
                raise TargetRefused(_kept(holders, self._path, self._timeout_s))
            time.sleep(_LOOK_S)
            if not _is_there(lock, self._path):
                return False
        return True

    def _wait_for_others(self, holders: list[_Holder]) -> None:
        uids = {each.uid for each in holders} or {None}
        again = uids <= _WAITED_FOR
        most_s = min(self._foreign_s, _AGAIN_S) if again else self._foreign_s
        if self._waited_s < most_s:
            self._waited_s += _LOOK_S
            return
        _WAITED_FOR.update(uids)
        self._tell(
            f"warning: {_named(holders)} kept {self._path} longer than the "
            f"{format_seconds(most_s)} for which root waits for others; it is taken, and what runs "
            "there may disturb this trial"
        )
        raise _Foreign


class _Foreign(Exception):
    """Root has waited for others long enough."""


def _take(path: Path) -> int:
    """Put a lock of root's own in the place of whatever is there, locked before anybody sees it."""
    own = path.with_name(f"{_NAME}.{secrets.token_hex(8)}")
    _remove_left(path)
    try:
        # Nobody else opens it before it is locked.
        lock = os.open(own, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(lock, 0o644)
            if path.is_dir() and not path.is_symlink():
                path.rename(path.with_name(f"{_NAME}.found.{secrets.token_hex(8)}"))
            own.rename(path)
        except BaseException:
            own.unlink(missing_ok=True)
            os.close(lock)
            raise
    except OSError as error:
        raise _no_lock(path, error) from error
    return lock


_LEFT_S = 60.0
"""How old what is left must be: another root may be between the same two steps now."""


def _remove_left(path: Path) -> None:
    """Remove what a root that was killed between two steps of `_take` has left: nobody holds it."""
    for left in path.parent.glob(f"{_NAME}.{'[0-9a-f]' * 16}"):
        with suppress(OSError):
            found = os.open(left, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if time.time() - os.fstat(found).st_mtime > _LEFT_S:
                    left.unlink()
            finally:
                os.close(found)


def _kept(holders: list[_Holder], path: Path, timeout_s: float) -> str:
    return (
        f"{path} was locked by another process for {format_seconds(timeout_s)} "
        f"({_named(holders)}), and two trials at once would measure each other; end that process, "
        "or as root remove the file, and start again"
    )


def _named(holders: list[_Holder]) -> str:
    return ", ".join(map(str, holders)) or "a process that is not seen from here"


def _user(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _holders(file: os.stat_result) -> list[_Holder]:
    """Return the processes that hold a file's lock (proc(5), /proc/locks)."""
    place = f"{os.major(file.st_dev):02x}:{os.minor(file.st_dev):02x}:{file.st_ino}"
    try:
        lines = Path("/proc/locks").read_text(encoding="ascii").splitlines()
    except OSError:
        return []
    found = [words for words in map(str.split, lines) if place in words and "->" not in words]
    pids = [int(words[4]) for words in found if words[1] == "FLOCK"]
    return [_Holder(pid, _real_user(pid)) for pid in pids]


def _real_user(pid: int) -> int | None:
    """Return who started a process (proc(5), the first number of `Uid:`)."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
            if line.startswith("Uid:"):
                return int(line.split()[1])
    return None


def _open(path: Path) -> int:
    """Open it for reading, which is enough for a lock: it may be another user's."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        with suppress(FileNotFoundError):
            return _plain(os.open(path, flags))
        return _plain(os.open(path, flags | os.O_CREAT, 0o644))
    except OSError as error:
        raise _no_lock(path, error) from error


def _plain(lock: int) -> int:
    """Return the handle of a plain file: a pipe in its place could be locked, and never removed."""
    if stat.S_ISREG(os.fstat(lock).st_mode):
        return lock
    os.close(lock)
    raise OSError(0, "it is no plain file")


def _no_lock(path: Path, error: OSError) -> TargetRefused:
    return TargetRefused(
        f"this machine cannot be locked for a trial: {path}: {error.strerror}; remove it"
    )


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
