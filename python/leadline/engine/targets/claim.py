"""Ownership of `DIR/.leadline/`, the only place of a target where anything is made or removed.

Every step works on open directory handles and follows no symlink (`beneath`), so a name that is
swapped while Leadline runs cannot lead a write or a removal elsewhere; the engine inherits the
handle of the run's own directory. Whatever was not made here is never touched: the claim is refused
instead. A lock held for the life of the process keeps a second Leadline away, and
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

from leadline.engine.targets.dirfd import (
    Folder,
    forget_claimed,
    note_claimed,
    open_directory,
    why_not_ours,
)
from leadline.errors import EngineFault, TargetRefused
from leadline.inputs import UNREADABLE_JSON
from leadline.machine.stop import shielded

DIRECTORY = ".leadline"
MARKER = "OWNED-BY-LEADLINE"
LOCK = "lock"
DATA = "data.bin"
MARKER_VERSION = 1
_FILE = re.compile(
    r"(data|file|(raw|image)-[0-9]{1,4}|replay-[0-9]{1,6})\.bin\Z|\.?stream-(in|out)(\.[a-z0-9.-]{1,80})?\Z"
)
"""Files of a run directory: the engine's `data.bin`, those of a file test and of a replay, and the
stripes and layouts of data sets (crates/kernels/src/output.rs names them)."""
_MOUNT = re.compile(r"mount-[0-9]{1,4}\Z")
"""Where a file test mounts, in the engine's own namespace only: an empty directory to everybody."""
_RUN = re.compile(r"run-[0-9a-f]{32}\Z")
EXPORT = "export"
"""What a server of our own exports: a directory of its owner in which nobody else comes."""
_DATA_SET = re.compile(
    r"data-(specsfs97|web_server|db_tp|mail)-[1-9][0-9]{0,19}-(0|[1-9][0-9]{0,19})\Z|export\Z"
)
"""Data sets of NFS loads (crates/engine/src/load/nfs), when a server exports this very directory,
and `EXPORT`, in which ours keep them. They outlive a claim; what is in them is the affair of
whoever removes them, through the server."""
_LOCK_TEXT = b"leadline process "
_TRIES = 20
"""A release by another Leadline may pull the directory away between two steps; then again."""
_REASONS = {
    errno.EROFS: "the file system is mounted read-only; give a directory on a writable one",
    errno.EACCES: "you may not write in it; give a directory of your own",
    errno.EPERM: "you may not write in it; give a directory of your own",
    errno.ENOSPC: "the file system is full; free some space or give another directory",
    errno.EDQUOT: "your quota is used up; free some space or give another directory",
    errno.ENOENT: "it does not exist any more; make it first",
    errno.ELOOP: "it is a symlink, or one appeared on the way to it; Leadline follows those on "
    "the way once, when it starts, and none later: give the directory itself",
    errno.ENOTDIR: "it is not a directory",
}


class _Marker(msgspec.Struct, frozen=True):
    made_by: str
    version: int
    id: str


class _Vanished(Exception):
    """Another Leadline removed the directory while it was being claimed."""


class _Held:
    """The open handles of a claim, from the target's directory down to the run's own."""

    def __init__(self, target: Folder, own: Folder, run: Folder, lock_fd: int) -> None:
        self.target = target
        self.own = own
        self.run = run
        self.lock_fd = lock_fd

    def close(self) -> None:
        with suppress(OSError):  # of a file system that is gone; the handle is let go all the same
            os.close(self.lock_fd)
        for folder in (self.run, self.own, self.target):
            folder.close()


class Claim:
    """A claimed target; `release` removes everything that Leadline made in it."""

    def __init__(self, held: _Held) -> None:
        self.directory = held.target.shown
        self.run_directory = held.run.shown
        """Where the engine keeps `data.bin`, or a file test its files, images and mount points.
        For messages, and for jobs, whose engine takes it by its handle."""
        self.folder = held.run
        """The same, open: by this whatever is in it is opened and removed."""
        self._held: _Held | None = held
        self._process = os.getpid()
        note_claimed(self.run_directory, self.folder)

    def data_bytes(self) -> int:
        """Return the bytes the data file occupies now; 0 before the engine has made it."""
        try:
            found = self.folder.look(DATA)
        except OSError:
            return 0
        return 0 if found is None else found.st_blocks * 512

    def export_folder(self, owner: int) -> Path:
        """Return `.leadline/export`, made if it is not there; only root and `owner` enter it."""
        if self._held is None:
            raise EngineFault("an export needs a claim that is held")
        own = self._held.own
        with usable(own.shown), suppress(FileExistsError):
            own.make_folder(EXPORT)
        with own.below(EXPORT) as folder:
            os.fchown(folder.fd, owner, owner)
            os.fchmod(folder.fd, 0o700)
            return folder.shown

    def release(self) -> None:
        """Remove the data file, the run directory, the marker and `.leadline` itself.

        A stop that arrives meanwhile waits until it is done. Calling it again does nothing.
        """
        with shielded():
            if self._held is None or os.getpid() != self._process:  # a fork is not the owner
                return
            held, self._held = self._held, None
            forget_claimed(self.run_directory)
            try:
                _empty_run(held.run)
                held.own.remove_folder(self.run_directory.name)
                _remove_own(held.target, held.own)
            except FileNotFoundError:
                pass  # somebody removed .leadline by hand: there is nothing left to clean
            except OSError as error:
                raise EngineFault(
                    f"{self.run_directory} could not be removed ({error.strerror}); the next "
                    "start on this target tries again"
                ) from error
            finally:
                held.close()


@contextmanager
def claim(directory: str | Path) -> Iterator[Claim]:
    """Own `directory/.leadline` until the block ends, in whatever way.

    The path was resolved before (`Target.parse`, `resolved`): a link in it was put there since.

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
    with usable(directory):
        for _ in range(_TRIES):
            with suppress(_Vanished):
                return _try_claim(directory)
    raise TargetRefused(f"{directory}: other Leadlines keep coming and going there; try again")


def _try_claim(directory: Path) -> Claim:
    with ExitStack() as undo:
        target = undo.enter_context(open_directory(directory))
        shown = target.shown / DIRECTORY
        own = undo.enter_context(_open_own(shown, target))
        _refuse_foreign(shown, own)
        try:
            lock_fd = _lock(shown, own)
        except OSError:
            target.remove_folder(DIRECTORY)  # only if it is empty, hence of no use to anybody
            raise
        undo.callback(os.close, lock_fd)
        _refuse_foreign(shown, own)
        _sweep(own)
        name = f"run-{uuid.uuid4().hex}"
        try:
            os.pwrite(lock_fd, _LOCK_TEXT + str(os.getpid()).encode(), 0)
            _write_marker(own)
            own.make_folder(name)
            run = own.below(name)
        except OSError:
            _remove_own(target, own)
            raise
        undo.pop_all()
        return Claim(_Held(target, own, run, lock_fd))


def _open_own(shown: Path, target: Folder) -> Folder:
    with suppress(FileExistsError):
        target.make_folder(DIRECTORY)
    try:
        own = target.below(DIRECTORY)
    except FileNotFoundError:
        raise _Vanished from None
    except OSError as error:
        if error.errno not in (errno.ENOTDIR, errno.ELOOP):
            raise
        found = target.look(DIRECTORY)
        link = found is not None and stat.S_ISLNK(found.st_mode)
        raise TargetRefused(
            f"{shown} is {'a symlink' if link else 'not a directory'}, and Leadline did not make "
            "it; move it away or give another directory"
        ) from None
    if (owner := os.fstat(own.fd).st_uid) != os.geteuid():
        own.close()
        raise TargetRefused(
            f"{shown} belongs to another user (uid {owner}), whose data may be in it; give a "
            "directory of your own"
        )
    return own


def _refuse_foreign(shown: Path, own: Folder) -> None:
    """Refuse unless everything in the directory has a name, kind and content that we make."""
    names = own.names()
    foreign = [(name, why) for name in sorted(names) if (why := _why_foreign(own, name))]
    if foreign:
        more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
        name, why = foreign[0]
        raise TargetRefused(
            f"{shown / name}{more} {why}, which therefore touches nothing there; move it away or "
            "give another directory"
        )
    # A kill between the first steps leaves no marker, but then no run directory either.
    if MARKER not in names and any(_RUN.match(name) or _DATA_SET.match(name) for name in names):
        raise TargetRefused(
            f"{shown} holds data directories but no {MARKER} file, so it is not certain that "
            "Leadline made them; look at it and remove it yourself"
        )


_FOREIGN = "was not made by this Leadline"


def _why_foreign(own: Folder, name: str) -> str | None:
    """Return what is foreign about a name in `.leadline`; None when it is ours or just gone."""
    found = own.look(name)
    try:
        if found is None:
            raise FileNotFoundError
        if stat.S_ISDIR(found.st_mode):
            if _RUN.match(name):
                return _why_foreign_run(own, name)
            return None if _DATA_SET.match(name) else _FOREIGN
        if name not in (MARKER, LOCK) or not stat.S_ISREG(found.st_mode):
            return _FOREIGN
        if why := why_not_ours(found):
            return f"{why}: it {_FOREIGN}"
        return None if _has_our_content(own, name) else _FOREIGN
    except FileNotFoundError:
        return None  # another Leadline is just cleaning up; the lock decides


def _has_our_content(own: Folder, name: str) -> bool:
    fd = own.open_file(name)
    try:
        text = os.read(fd, 4096)
    finally:
        os.close(fd)
    return _is_marker(text) if name == MARKER else not text or text.startswith(_LOCK_TEXT)


def _why_foreign_run(own: Folder, name: str) -> str | None:
    with own.below(name) as run:
        return next((why for each in run.names() if (why := _why_foreign_data(run, each))), None)


def _why_foreign_data(run: Folder, name: str) -> str | None:
    found = run.look(name)
    if found is None:
        raise FileNotFoundError
    if _FILE.match(name):
        if not stat.S_ISREG(found.st_mode):
            return _FOREIGN
        why = why_not_ours(found)
        return f"holds {name}, which {why}: it {_FOREIGN}" if why else None
    if not _MOUNT.match(name) or not stat.S_ISDIR(found.st_mode):
        return _FOREIGN
    with run.below(name) as point:  # what is in it is nobody's we know
        return _FOREIGN if point.names() else None


def _is_marker(text: bytes) -> bool:
    if not text:  # killed between creating and writing it
        return True
    try:
        marker = msgspec.json.decode(text, type=_Marker)
    except UNREADABLE_JSON:
        return False
    return marker.made_by == "leadline" and marker.version <= MARKER_VERSION


def _lock(shown: Path, own: Folder) -> int:
    try:
        # Looked at before a byte of it is written: a second name may be anybody's file.
        lock_fd = own.make_or_open_file(LOCK)
    except FileNotFoundError:  # it, or the directory, was just removed
        raise _Vanished from None
    try:
        fcntl.flock(lock_fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        now = own.look(LOCK)
        if now is None or not os.path.samestat(now, os.fstat(lock_fd)):
            raise _Vanished
        os.ftruncate(lock_fd, 0)
    except BlockingIOError:
        holder = os.pread(lock_fd, 64, 0).removeprefix(_LOCK_TEXT).decode("ascii", "replace")
        os.close(lock_fd)
        raise TargetRefused(
            f"{shown} is in use by another Leadline (process {holder or 'unknown'}), and two at "
            "once would measure each other; wait for it or give another directory"
        ) from None
    except BaseException:
        os.close(lock_fd)
        raise
    return lock_fd


def _write_marker(own: Folder) -> None:
    marker = _Marker(made_by="leadline", version=MARKER_VERSION, id=str(uuid.uuid4()))
    try:
        marker_fd = own.make_file(MARKER)
    except FileExistsError:
        return
    try:
        os.write(marker_fd, msgspec.json.encode(marker) + b"\n")
        os.fsync(marker_fd)
    finally:
        os.close(marker_fd)


def _sweep(own: Folder) -> None:
    """Remove what a killed run left; the names were checked and the lock is held."""
    names = own.names()
    for name in filter(_RUN.match, names):
        with suppress(FileNotFoundError), own.below(name) as run:
            _empty_run(run)
        own.remove_folder(name)
    # Without a marker a kill at this moment would leave data sets that nobody dares to take.
    if MARKER in names and not any(map(_DATA_SET.match, names)):
        own.remove_file(MARKER)


def _empty_run(run: Folder) -> None:
    for name in run.names():
        if _FILE.match(name):
            run.remove_file(name)
        elif _MOUNT.match(name):
            run.remove_folder(name)


def _remove_own(target: Folder, own: Folder) -> None:
    # The lock goes last but one: until then nobody else may take the half-removed directory.
    own.remove_folder(EXPORT)  # only if it is empty
    # A run directory in which something foreign appeared stays too, for somebody to look at.
    kept = any(_DATA_SET.match(name) or _RUN.match(name) for name in own.names())
    for name in (LOCK,) if kept else (MARKER, LOCK):
        own.remove_file(name)
    if own.is_the_one(DIRECTORY, target):
        target.remove_folder(DIRECTORY)


@contextmanager
def usable(directory: Path) -> Iterator[None]:
    """Refuse a directory in which something cannot be done, and say what to do about it.

    Raises:
        TargetRefused: the block ended with an OSError.

    """
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, f"{error.strerror}; give another directory")
        raise TargetRefused(f"{directory} cannot be used: {reason}") from error
