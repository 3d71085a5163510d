"""Where I/O goes, as people spell it: `DIR`, `sim:NAME`, `sim:FILE.toml`, `null:`, `nfs://…`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, ClassVar

import msgspec

from leadline.engine.targets.nfs_address import NfsAddress
from leadline.engine.targets.profiles import load_profile
from leadline.errors import CacheLimitRefused, TargetRefused
from leadline.machine.mounts import is_in_memory, mount_of

NO_STORAGE = frozenset(
    {
        *("proc", "sysfs", "cgroup", "cgroup2", "devpts", "debugfs", "tracefs", "securityfs"),
        *("bpf", "pstore", "efivarfs", "configfs", "mqueue", "binfmt_misc", "autofs", "nsfs"),
    }
)
"""File systems whose files are no stored data."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_SPELLINGS = "a target is a directory, sim:NAME, sim:FILE.toml, nfs://HOST/PATH or null:"


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """A target that was looked at and found usable; nothing is created in it yet.

    What it can do it says itself; nobody else asks which of the four it is.
    """

    backends: ClassVar[tuple[str, ...]] = ()
    """Ways to issue requests; the first is the default."""
    has_files: ClassVar[bool] = False
    """Whether its data lie in files of this machine: it takes fio, plain files, preconditioning."""
    has_device: ClassVar[bool] = True
    """Whether something stores the data, and writes can be made to wait for it."""
    virtual_time: ClassVar[bool] = False
    """Whether its clock is virtual, so that time costs nothing."""

    text: str
    """A directory's path, or the scheme and name of another target: what finds it again from any
    working directory, but for a simulated system's file, whose contents are in `profile`."""
    path: str | None = None
    """Absolute path without symlinks, of a directory."""
    nfs: NfsAddress | None = None
    """Where it is, of a server's directory."""
    profile: dict[str, Any] | None = None
    """The system, of a simulated one."""

    @property
    def name(self) -> str:
        """A name for the system when nobody gave one."""
        return self.text.rstrip(":")

    def require_direct(self) -> None:
        """Look whether requests can use direct I/O.

        Raises:
            TargetRefused: they cannot.

        """
        raise TargetRefused(f"--direct uses direct I/O, and {self.text} has no file: leave it out")

    def require_own_cache(self) -> None:
        """Look whether memory of this machine is its page cache, which could be capped.

        Raises:
            CacheLimitRefused: it is not.

        """

    @staticmethod
    def parse(text: str) -> Target:
        """Read a target and look whether it can be used.

        Raises:
            TargetRefused: what is wrong, why, and what to type instead.

        """
        spelled = text.strip()
        if not spelled:
            raise TargetRefused(f"the target is empty; {_SPELLINGS}")
        if "\0" in spelled:
            raise TargetRefused(f"{spelled!r} holds a NUL byte, which no path can; {_SPELLINGS}")
        _require_text(spelled)
        scheme = _SCHEME.match(spelled)
        if scheme:
            return _with_scheme(scheme[1].lower(), spelled[scheme.end() :], spelled)
        path = _require_text(str(_usable_directory(spelled)))
        return Directory(text=path, path=path)


class Directory(Target, frozen=True, kw_only=True):
    """A directory of a local file system, or of one that the kernel mounted."""

    backends = ("pread", "uring", "mmap")
    has_files = True

    path: str

    @property
    def name(self) -> str:
        """The host's and the path's."""
        host = os.uname().nodename.partition(".")[0] or "host"
        return f"{host}{self.path}".rstrip("/").replace("/", "-")

    def require_direct(self) -> None:
        """Whether the file system takes O_DIRECT the engine finds out."""

    def require_own_cache(self) -> None:
        """Files that are memory have no cache before them."""
        if is_in_memory(self.path):
            raise CacheLimitRefused(
                f"--cache-limit caps the page cache, and {self.text} has none: its file system is "
                "memory itself, and a cap would end the engine. Leave --cache-limit out"
            )


class NfsExport(Target, frozen=True, kw_only=True):
    """A directory that an NFS server exports, reached by Leadline's own client."""

    backends = ("nfs",)

    nfs: NfsAddress

    @property
    def name(self) -> str:
        """The server's and the path's."""
        return self.nfs.name

    def require_direct(self) -> None:
        """The client keeps nothing."""
        raise TargetRefused(
            f"--direct uses direct I/O, and the client of {self.text} has none; the "
            "server's cannot be passed by from here: leave it out"
        )

    def require_own_cache(self) -> None:
        """The cache is the server's."""
        raise CacheLimitRefused(
            "--cache-limit caps this machine's memory, and the client here keeps no page cache: "
            "the cache is the server's, cap it there"
        )


class Simulated(Target, frozen=True, kw_only=True):
    """A simulated system: a law or a machine of parts, in virtual time."""

    backends = ("simulated",)
    virtual_time = True

    @property
    def name(self) -> str:
        """The profile's."""
        return Path(self.text.removeprefix("sim:")).stem

    def require_own_cache(self) -> None:
        """Its cache is a part of the profile."""
        raise CacheLimitRefused(
            "--cache-limit caps real memory; a simulated system has the cache its profile says: "
            "change it there"
        )


class Null(Target, frozen=True, kw_only=True):
    """Nothing: measures Leadline itself."""

    backends = ("null",)
    has_device = False


def _with_scheme(scheme: str, rest: str, spelled: str) -> Target:
    if scheme == "sim":
        return Simulated(text=f"sim:{rest}", profile=load_profile(rest))
    if scheme == "null":
        if rest:
            raise TargetRefused(f"null: takes nothing after the colon, {rest!r} is too much")
        return Null(text="null:")
    if scheme == "nfs":
        address = NfsAddress.parse(spelled)
        return NfsExport(text=address.text, nfs=address)
    raise TargetRefused(
        f"{spelled!r} has the unknown scheme {scheme}:; {_SPELLINGS}; "
        f"a directory of that name is written ./{spelled}"
    )


def _require_text(path: str) -> str:
    """Return a path; refuse one that is no text, which no record of it could hold."""
    try:
        path.encode()
    except UnicodeEncodeError:
        raise TargetRefused(
            f"{path!r} is no text in UTF-8, and results say as text where they were measured; "
            "rename the directory, or mount it under another name (mount --bind)"
        ) from None
    return path


def _usable_directory(spelled: str) -> Path:
    try:
        path = Path(os.path.abspath(Path(spelled).expanduser()))  # noqa: PTH100 - follows no link
    except RuntimeError:
        raise TargetRefused(f"{spelled}: there is no such user; write the path in full") from None
    if path.is_relative_to("/dev") and not path.is_dir():
        raise TargetRefused(
            f"{spelled}: raw devices are not in this version; give a directory on a file system "
            "of that device"
        )
    try:
        if path.is_symlink():
            raise TargetRefused(
                f"{spelled} is a symlink to {path.resolve()}: Leadline follows links on the way "
                "to a directory, once, when it starts, and none at its end or below it, so that "
                f"nothing is written elsewhere than said; if you mean it, type {path.resolve()}"
            )
        path = path.resolve(strict=True)
    except FileNotFoundError:
        raise TargetRefused(f"{spelled} does not exist; make it first: mkdir {spelled}") from None
    except (OSError, RuntimeError) as error:
        raise TargetRefused(f"{spelled} cannot be reached: {error}") from error
    if not path.is_dir():
        raise TargetRefused(
            f"{spelled} is a file, not a directory; Leadline makes its own data file: "
            f"give a directory such as {path.parent}"
        )
    mount = mount_of(path)
    if mount is not None and mount.type in NO_STORAGE:
        raise TargetRefused(
            f"{spelled} is on {mount.type}, a file system of the kernel that stores no data; give "
            "a directory on a disk, for example one in your home"
        )
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        raise TargetRefused(
            f"{spelled} is on a file system mounted read-only; Leadline must write its data "
            "file: give a directory on a writable one"
        )
    if not os.access(path, os.W_OK | os.X_OK, effective_ids=True):
        raise TargetRefused(
            f"{spelled}: you may not write in this directory; give one of your own, or change its "
            "permissions"
        )
    return path
