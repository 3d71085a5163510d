"""Files of Leadline's in a target: opened, made and removed beneath a directory's handle.

Whoever owns a directory can rename what lies in it at any moment, and put a tree of his own in its
place; a path then leads where he likes. A handle stays with the directory it was opened on. Below
it every name is one component, no symlink is followed, and what is opened is looked at before it is
used: a regular file, this user's own, without a second name. Nothing is emptied or written before
that. The engine keeps the same rules (crates/base/src/beneath.rs), on the handles of claimed
directories that it inherits.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType, TracebackType

from leadline.errors import TargetRefused

_ALWAYS = os.O_NOFOLLOW | os.O_CLOEXEC
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | _ALWAYS
_ON_THE_WAY = os.O_PATH | os.O_DIRECTORY | _ALWAYS
_WITHOUT_WAITING = os.O_NONBLOCK | os.O_NOCTTY
"""A pipe put in a file's place would make an opening wait for its other end."""


class Folder:
    """An open directory. Closing it twice does nothing."""

    def __init__(self, fd: int, shown: Path) -> None:
        self._fd = fd
        self.shown = shown
        """Its path when it was opened, for messages and nothing else."""

    @property
    def fd(self) -> int:
        """The handle; OSError when it was let go, for -1 means the working directory to some."""
        if self._fd < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF), str(self.shown))
        return self._fd

    def __enter__(self) -> Folder:
        """Return itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Let go of the handle."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            os.close(fd)

    def is_the_one(self, name: str, parent: Folder) -> bool:
        """Tell whether `name` in another directory is this very directory."""
        found = parent.look(name)
        return found is not None and os.path.samestat(found, os.fstat(self.fd))

    def names(self) -> list[str]:
        """Return what is in it; nothing when it was removed.

        It is opened again for that: btrfs lists what was there when a directory was opened.
        """
        try:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        except FileNotFoundError:
            return []
        try:
            return os.listdir(fd)  # noqa: PTH208 - a handle, not a path
        finally:
            os.close(fd)

    def look(self, name: str) -> os.stat_result | None:
        """Return what has a name, itself and not what it may link to; None when nothing has it."""
        try:
            return os.stat(_one(name), dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def below(self, name: str) -> Folder:
        """Open a directory in it."""
        return Folder(os.open(_one(name), _DIRECTORY, dir_fd=self.fd), self.shown / name)

    def make_folder(self, name: str) -> None:
        """Make a directory for this user alone."""
        os.mkdir(_one(name), 0o700, dir_fd=self.fd)

    def remove_folder(self, name: str) -> None:
        """Remove an empty directory; one in which something foreign appeared is left alone."""
        try:
            os.rmdir(_one(name), dir_fd=self.fd)
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
                raise

    def open_file(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Open a file of ours; whoever gets the handle closes it.

        Raises:
            FileNotFoundError: there is none, or it was removed as it was opened.
            TargetRefused: it is no regular file, another user's, or has a second name.

        """
        fd = os.open(_one(name), flags | _WITHOUT_WAITING | _ALWAYS, dir_fd=self.fd)
        try:
            found = os.fstat(fd)
            if not found.st_nlink:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
            if why := why_not_ours(found):
                raise TargetRefused(
                    f"{self.shown / name} {why}: Leadline did not make it and leaves it alone; "
                    "move it away or give another directory"
                )
            os.set_blocking(fd, True)
        except BaseException:
            os.close(fd)
            raise
        return fd

    def make_file(self, name: str) -> int:
        """Make a file for this user alone and open it for reading and writing.

        Raises:
            FileExistsError: anything has the name.

        """
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | _ALWAYS
        return os.open(_one(name), flags, 0o600, dir_fd=self.fd)

    def make_or_open_file(self, name: str) -> int:
        """Open a file of ours for reading and writing; it is made when nothing has the name."""
        with suppress(FileExistsError):
            return self.make_file(name)
        return self.open_file(name, os.O_RDWR)

    def remove_file(self, name: str) -> None:
        """Remove a name, if anything but a directory has it: a link goes, not what it links to."""
        with suppress(FileNotFoundError):
            os.unlink(_one(name), dir_fd=self.fd)


_claimed: dict[Path, Folder] = {}


def claimed() -> Mapping[Path, Folder]:
    """Return the directories that this process claims now, by their paths."""
    return MappingProxyType(_claimed)


def note_claimed(path: Path, folder: Folder) -> None:
    """From now on `path` means this directory, whatever has its name."""
    _claimed[path] = folder


def forget_claimed(path: Path) -> None:
    """Nothing is claimed at `path` any more."""
    _claimed.pop(path, None)


def resolved(path: str | Path) -> Path:
    """Return the path of a directory that a person named, without the links on the way to it.

    This is done once, when Leadline starts. A link at the end stays, and is refused when opened.
    """
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - the last part is not followed
    return Path(os.path.realpath(whole.parent)) / whole.name


def open_directory(path: str | Path) -> Folder:
    """Open a directory whose path was resolved; no link in it is followed.

    Raises:
        OSError: why not; ELOOP for a link, on the way or at the end.

    """
    real = Path(os.path.abspath(path))  # noqa: PTH100 - follows no link
    fd = os.open("/", _ON_THE_WAY)
    try:
        for part in real.parts[1:]:
            nearer = _step(part, fd, real)
            os.close(fd)
            fd = nearer
        return Folder(os.open(".", _DIRECTORY, dir_fd=fd), real)
    finally:
        os.close(fd)


def facts_of(path: str | Path) -> os.stat_result | None:
    """Return what is at a path; in a claimed directory, and of it, what its handle leads to.

    None when there is nothing, or a link that leads nowhere.
    """
    whole = Path(path)
    if whole in _claimed:
        return os.fstat(_claimed[whole].fd)
    if whole.parent in _claimed:
        return _claimed[whole.parent].look(whole.name)
    try:
        return whole.stat()
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):
            return None
        raise


def open_input(path: str | Path) -> int:
    """Open a person's file for reading, wherever the path leads; in a claimed directory it is ours.

    Raises:
        OSError: why not.
        TargetRefused: it is no plain file.

    """
    whole = Path(path)
    folder = _claimed.get(whole.parent)
    if folder is not None:
        return folder.open_file(whole.name)
    fd = os.open(whole, os.O_RDONLY | os.O_CLOEXEC | _WITHOUT_WAITING)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise TargetRefused(f"{whole} is no plain file; copy its data into one first")
        os.set_blocking(fd, True)
    except BaseException:
        os.close(fd)
        raise
    return fd


def drop_cached(folder: Folder) -> None:
    """Bring every file below a directory to the disk and out of the page cache."""
    for _, _, names, at in os.fwalk(".", dir_fd=folder.fd):
        for name in names:
            fd = os.open(name, os.O_RDONLY | _WITHOUT_WAITING | _ALWAYS, dir_fd=at)
            try:
                if stat.S_ISREG(os.fstat(fd).st_mode):
                    os.fsync(fd)
                    os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
            finally:
                os.close(fd)


def why_not_ours(found: os.stat_result) -> str | None:
    """Return why this is no file that Leadline made; None when it may be."""
    if not stat.S_ISREG(found.st_mode):
        return "is no regular file"
    if found.st_uid != os.geteuid():
        return f"belongs to another user (uid {found.st_uid})"
    if found.st_nlink > 1:
        return "has a second name elsewhere (a hard link), so that it may be anybody's file"
    return None


def _step(part: str, fd: int, real: Path) -> int:
    try:
        return os.open(part, _ON_THE_WAY, dir_fd=fd)
    except NotADirectoryError:
        found = os.stat(part, dir_fd=fd, follow_symlinks=False)
        if stat.S_ISLNK(found.st_mode):
            raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(real)) from None
        raise


def _one(name: str) -> str:
    """One name, and no way to anywhere else."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), name)
    return name
