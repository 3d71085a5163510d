"""Ownership of `DIR/.leadline/`, the only place of a target where anything is made or removed.

Every step works on open directory handles and follows no symlink, so a name that is swapped while
Leadline runs cannot lead a removal elsewhere. Whatever was not made here is never touched: the
claim is refused instead. A lock held for the life of the process keeps a second Leadline away, and
since the kernel drops it at any end, `kill -9` included, the next start may clean up safely.
"""

from __future__ import annotations

import atexit
import errno
import fcntl
import os
import re
import stat
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import msgspec

from leadline.errors import EngineFault, TargetRefused
from leadline.machine.stop import shielded

DIRECTORY = ".leadline"
MARKER = "OWNED-BY-LEADLINE"
LOCK = "lock"
DATA = "data.bin"
MARKER_VERSION = 1
_FILE = re.compile(
    r"(data|file|(raw|image)-[0-9]{1,4})\.bin\Z|\.?stream-(in|out)(\.[a-z0-9.-]{1,80})?\Z"
)
"""Files of a run directory: the engine's `data.bin`, those of a file test, and the stripes and
layouts of data sets (crates/kernels/src/output.rs names them)."""
_MOUNT = re.compile(r"mount-[0-9]{1,4}\Z")
"""Where a file test mounts, in the engine's own namespace only: an empty directory to everybody."""
_RUN = re.compile(r"run-[0-9a-f]{32}\Z")
_DATA_SET = re.compile(
    r"data-(specsfs97|web_server|db_tp|mail)-[1-9][0-9]{0,19}-(0|[1-9][0-9]{0,19})\Z"
)
"""Data sets of NFS loads (crates/engine/src/load/nfs), when a server exports this very directory.
They outlive a claim; what is in them is the affair of whoever removes them, through the server."""
_LOCK_TEXT = b"leadline process "
_OPEN_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 20
"""A release by another Leadline may pull the directory away between two steps; then again."""


class _Marker(msgspec.Struct, frozen=True):
    made_by: str
    version: int
    id: str


class _Vanished(Exception):
    """Another Leadline removed the directory while it was being claimed."""


class Claim:
    """A claimed target; `release` removes everything that Leadline made in it."""

    def __init__(self, directory: Path, own_fd: int, lock_fd: int, run: str) -> None:
        self.directory = directory
        self.run_directory = directory / DIRECTORY / run
        """Where the engine keeps `data.bin`, or a file test its files, images and mount points."""
        self._own_fd = own_fd
        self._lock_fd = lock_fd
        self._run = run
        self._process = os.getpid()

    def data_bytes(self) -> int:
        """Return the bytes the data file occupies now; 0 before the engine has made it."""
        try:
            found = os.stat(f"{self._run}/{DATA}", dir_fd=self._own_fd, follow_symlinks=False)
        except OSError:
            return 0
        return found.st_blocks * 512

    def release(self) -> None:
        """Remove the data file, the run directory, the marker and `.leadline` itself.

        A stop that arrives meanwhile waits until it is done. Calling it again does nothing.
        """
        with shielded():
            if self._own_fd < 0 or os.getpid() != self._process:  # a fork is not the owner
                return
            own_fd, lock_fd, self._own_fd = self._own_fd, self._lock_fd, -1
            try:
                _remove_run(own_fd, self._run)
                _remove_own(self.directory, own_fd)
            except FileNotFoundError:
                pass  # somebody removed .leadline by hand: there is nothing left to clean
            except OSError as error:
                raise EngineFault(
                    f"{self.run_directory} could not be removed ({error.strerror}); the next "
                    "start on this target tries again"
                ) from error
            finally:
                os.close(lock_fd)
                os.close(own_fd)


@contextmanager
def claim(directory: str | Path) -> Iterator[Claim]:
    """Own `directory/.leadline` until the block ends, in whatever way.

    Raises:
        TargetRefused: something there is not Leadline's, another Leadline is using it, or the
            file system refuses.

    """
    claimed = None
    try:
        with shielded():
            claimed = _claim(Path(directory))
            # For a signal between two steps that no `finally` covers (CPython issue 29988).
            atexit.register(claimed.release)
        yield claimed
    finally:
        if claimed is not None:
            claimed.release()
            atexit.unregister(claimed.release)


def _claim(directory: Path) -> Claim:
    try:
        for _ in range(_TRIES):
            try:
                return _try_claim(directory)
            except _Vanished:
                continue
    except OSError as error:
        raise TargetRefused(_why(directory, error)) from error
    raise TargetRefused(f"{directory}: other Leadlines keep coming and going there; try again")


def _try_claim(directory: Path) -> Claim:
    shown = directory / DIRECTORY
    with ExitStack() as undo:
        target_fd = os.open(directory, _OPEN_DIRECTORY)
        undo.callback(os.close, target_fd)
        own_fd = _open_own(shown, target_fd)
        kept = ExitStack()
        undo.push(kept)
        kept.callback(os.close, own_fd)
        _refuse_foreign(shown, own_fd)
        try:
            lock_fd = _lock(shown, own_fd)
        except OSError:
            _rmdir(DIRECTORY, target_fd)  # only if it is empty, hence of no use to anybody
            raise
        kept.callback(os.close, lock_fd)
        _refuse_foreign(shown, own_fd)
        _sweep(own_fd)
        run = f"run-{uuid.uuid4().hex}"
        try:
            os.pwrite(lock_fd, _LOCK_TEXT + str(os.getpid()).encode(), 0)
            _write_marker(own_fd)
            os.mkdir(run, 0o700, dir_fd=own_fd)
        except OSError:
            _remove_own(directory, own_fd)
            raise
        kept.pop_all()
        return Claim(directory, own_fd, lock_fd, run)


def _open_own(shown: Path, target_fd: int) -> int:
    with suppress(FileExistsError):
        os.mkdir(DIRECTORY, 0o700, dir_fd=target_fd)
    try:
        own_fd = os.open(DIRECTORY, _OPEN_DIRECTORY, dir_fd=target_fd)
    except FileNotFoundError:
        raise _Vanished from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        found = os.stat(DIRECTORY, dir_fd=target_fd, follow_symlinks=False)
        what = "a symlink" if stat.S_ISLNK(found.st_mode) else "not a directory"
        raise TargetRefused(
            f"{shown} is {what}, and Leadline did not make it; move it away or give another "
            "directory"
        ) from None
    if (owner := os.fstat(own_fd).st_uid) != os.geteuid():
        os.close(own_fd)
        raise TargetRefused(
            f"{shown} belongs to another user (uid {owner}), whose data may be in it; give a "
            "directory of your own"
        )
    return own_fd


def _refuse_foreign(shown: Path, own_fd: int) -> None:
    """Refuse unless everything in the directory has a name, kind and content that we make."""
    names = os.listdir(own_fd)
    foreign = [name for name in sorted(names) if not _is_ours(own_fd, name)]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        raise TargetRefused(
            f"{shown / foreign[0]}{more} was not made by this Leadline, which therefore touches "
            "nothing there; move it away or give another directory"
        )
    # A kill between the first steps leaves no marker, but then no run directory either.
    if MARKER not in names and any(_RUN.match(name) or _DATA_SET.match(name) for name in names):
        raise TargetRefused(
            f"{shown} holds data directories but no {MARKER} file, so it is not certain that "
            "Leadline made them; look at it and remove it yourself"
        )


def _is_ours(own_fd: int, name: str) -> bool:
    try:
        found = os.stat(name, dir_fd=own_fd, follow_symlinks=False)
        if _RUN.match(name):
            return stat.S_ISDIR(found.st_mode) and _holds_only_data(own_fd, name)
        if _DATA_SET.match(name):
            return stat.S_ISDIR(found.st_mode)
        if not stat.S_ISREG(found.st_mode):
            return False
        if name == MARKER:
            return _is_marker(_read(own_fd, name))
        return name == LOCK and (not found.st_size or _read(own_fd, name).startswith(_LOCK_TEXT))
    except FileNotFoundError:
        return True  # another Leadline is just cleaning up; the lock decides


def _holds_only_data(own_fd: int, run: str) -> bool:
    run_fd = os.open(run, _OPEN_DIRECTORY, dir_fd=own_fd)
    try:
        # A handle, not a path, hence no pathlib.
        return all(_is_data(run_fd, name) for name in os.listdir(run_fd))  # noqa: PTH208
    finally:
        os.close(run_fd)


def _is_data(run_fd: int, name: str) -> bool:
    mode = os.stat(name, dir_fd=run_fd, follow_symlinks=False).st_mode
    if _FILE.match(name):
        return stat.S_ISREG(mode)
    if not _MOUNT.match(name) or not stat.S_ISDIR(mode):
        return False
    point_fd = os.open(name, _OPEN_DIRECTORY, dir_fd=run_fd)
    try:
        return not os.listdir(point_fd)  # noqa: PTH208 - what is in it is nobody's we know
    finally:
        os.close(point_fd)


def _is_marker(text: bytes) -> bool:
    if not text:  # killed between creating and writing it
        return True
    try:
        marker = msgspec.json.decode(text, type=_Marker)
    except msgspec.MsgspecError:
        return False
    return marker.made_by == "leadline" and marker.version <= MARKER_VERSION


def _read(own_fd: int, name: str) -> bytes:
    file_fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=own_fd)
    try:
        return os.read(file_fd, 4096)
    finally:
        os.close(file_fd)


def _lock(shown: Path, own_fd: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        lock_fd = os.open(LOCK, flags, 0o600, dir_fd=own_fd)
    except FileNotFoundError:  # creating in a directory that was just removed
        raise _Vanished from None
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now = os.stat(LOCK, dir_fd=own_fd, follow_symlinks=False)
        if (now.st_dev, now.st_ino) != (os.fstat(lock_fd).st_dev, os.fstat(lock_fd).st_ino):
            raise _Vanished
        os.ftruncate(lock_fd, 0)
    except BlockingIOError:
        holder = os.pread(lock_fd, 64, 0).removeprefix(_LOCK_TEXT).decode("ascii", "replace")
        os.close(lock_fd)
        raise TargetRefused(
            f"{shown} is in use by another Leadline (process {holder or 'unknown'}), and two at "
            "once would measure each other; wait for it or give another directory"
        ) from None
    except FileNotFoundError:
        os.close(lock_fd)
        raise _Vanished from None
    except BaseException:
        os.close(lock_fd)
        raise
    return lock_fd


def _write_marker(own_fd: int) -> None:
    marker = _Marker(made_by="leadline", version=MARKER_VERSION, id=str(uuid.uuid4()))
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        marker_fd = os.open(MARKER, flags, 0o600, dir_fd=own_fd)
    except FileExistsError:
        return
    try:
        os.write(marker_fd, msgspec.json.encode(marker) + b"\n")
        os.fsync(marker_fd)
    finally:
        os.close(marker_fd)


def _sweep(own_fd: int) -> None:
    """Remove what a killed run left; the names were checked and the lock is held."""
    names = os.listdir(own_fd)
    for name in filter(_RUN.match, names):
        _remove_run(own_fd, name)
    # Without a marker a kill at this moment would leave data sets that nobody dares to take.
    if MARKER in names and not any(map(_DATA_SET.match, names)):
        os.unlink(MARKER, dir_fd=own_fd)


def _remove_run(own_fd: int, run: str) -> None:
    try:
        run_fd = os.open(run, _OPEN_DIRECTORY, dir_fd=own_fd)
    except FileNotFoundError:
        return
    try:
        for name in os.listdir(run_fd):  # noqa: PTH208 - a handle, not a path
            with suppress(FileNotFoundError):
                if _FILE.match(name):
                    os.unlink(name, dir_fd=run_fd)
                elif _MOUNT.match(name):
                    _rmdir(name, run_fd)
    finally:
        os.close(run_fd)
    _rmdir(run, own_fd)


def _remove_own(directory: Path, own_fd: int) -> None:
    # The lock goes last but one: until then nobody else may take the half-removed directory.
    kept = any(map(_DATA_SET.match, os.listdir(own_fd)))
    for name in (LOCK,) if kept else (MARKER, LOCK):
        with suppress(FileNotFoundError):
            os.unlink(name, dir_fd=own_fd)
    target_fd = os.open(directory, _OPEN_DIRECTORY)
    try:
        now = os.stat(DIRECTORY, dir_fd=target_fd, follow_symlinks=False)
        if (now.st_dev, now.st_ino) == (os.fstat(own_fd).st_dev, os.fstat(own_fd).st_ino):
            _rmdir(DIRECTORY, target_fd)
    finally:
        os.close(target_fd)


def _rmdir(name: str, parent_fd: int) -> None:
    try:
        os.rmdir(name, dir_fd=parent_fd)
    except OSError as error:
        # Something foreign appeared in it while we ran: it is not ours to remove.
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            raise


def _why(directory: Path, error: OSError) -> str:
    reasons = {
        errno.EROFS: "the file system is mounted read-only; give a directory on a writable one",
        errno.EACCES: "you may not write in it; give a directory of your own",
        errno.EPERM: "you may not write in it; give a directory of your own",
        errno.ENOSPC: "the file system is full; free some space or give another directory",
        errno.EDQUOT: "your quota is used up; free some space or give another directory",
        errno.ENOENT: "it does not exist any more; make it first",
        errno.ELOOP: "it is a symlink, and Leadline follows none; give the directory itself",
        errno.ENOTDIR: "it is not a directory",
    }
    reason = reasons.get(error.errno or 0, f"{error.strerror}; give another directory")
    return f"{directory} cannot be used: {reason}"
