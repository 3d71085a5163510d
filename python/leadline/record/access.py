"""How storage is reached: by which calls, by direct I/O or not, and which writes wait.

A write mode is what a program asks of the page cache for its writes: buffered, `O_DSYNC`, an
`fsync` each so many writes, or past the cache (METHODS section 4).
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from leadline.errors import WorkloadError
from leadline.record.study import StudyStart
from leadline.record.workload import declared, parse_share

NO_SYNC = "none"
"""No write waits for the device."""

FSYNC_EACH_MAX = 1_000_000
"""Most writes between two `fsync`s."""
COMPRESS_MAX = 10.0
"""Largest ratio to which data compress."""

_PLAIN = {"none": NO_SYNC, "buffered": NO_SYNC, "dsync": "dsync"}
_CALLS = ("fsync", "fdatasync")
"""The second leaves a file's times for later, which on a file that is overwritten is a journal's
commit less."""


def parse_sync(text: str) -> str:
    """Read `none`, `dsync`, `fsync`, `fsync=N` or `fdatasync=N`; return it in its one spelling.

    Raises:
        ValueError: anything else; the message says what to type instead.

    """
    given = text.strip().lower()
    if given in _PLAIN:
        return _PLAIN[given]
    if given in _CALLS:
        return f"{given}=1"
    name, _, count = given.partition("=")
    if name in _CALLS and count.isascii() and count.isdecimal():
        if 1 <= int(count) <= FSYNC_EACH_MAX:
            return f"{name}={int(count)}"
        raise ValueError(
            f"{text!r}: a worker calls {name} after 1 to {FSYNC_EACH_MAX} writes; write for "
            f"example {name}=8"
        )
    raise ValueError(
        f"{text!r} is no way to wait for the device; write dsync, fsync, fsync=8, fdatasync=8, or "
        "none"
    )


def parse_compress(text: str | float) -> float:
    """Read the ratio to which data compress.

    Raises:
        ValueError: it is no number, or out of range; the message says what to type instead.

    """
    try:
        ratio = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a ratio; write for example 2") from None
    if not 1 <= ratio <= COMPRESS_MAX:
        raise ValueError(f"data that compress to a ratio of {ratio:g}: it is 1 to {COMPRESS_MAX:g}")
    return ratio


def parse_dedup(text: str | float) -> float:
    """Read the share of data that are copies.

    Raises:
        ValueError: it is no share; the message says what to type instead.

    """
    share = parse_share(text) if isinstance(text, str) else text
    if not 0 <= share <= 1:
        raise ValueError(f"a share of {share:g} of the data: it is 0 to 1 (0% to 100%)")
    return share


def fsync_each(sync: str) -> int | None:
    """Writes of a worker from one `fsync` or `fdatasync` to the next; None without any."""
    name, _, count = parse_sync(sync).partition("=")
    return int(count) if name in _CALLS else None


def format_discipline(sync: str, *, direct: bool) -> str:
    """Write `buffered`, `O_DSYNC`, `fsync each 8`, `direct`, or `direct, O_DSYNC`."""
    each = fsync_each(sync)
    call = parse_sync(sync).partition("=")[0]
    every = f"{call} each write" if each == 1 else f"{call} each {each}"
    waits = "O_DSYNC" if parse_sync(sync) == "dsync" else every if each is not None else None
    if waits is None:
        return "direct" if direct else "buffered"
    return f"direct, {waits}" if direct else waits


class Waits(msgspec.Struct, frozen=True):
    """The wire's `backend.sync`."""

    kind: str
    each: int | UnsetType = UNSET
    data_only: bool | UnsetType = UNSET
    """`fdatasync`."""


class Content(msgspec.Struct, frozen=True):
    """The wire's `backend.content`."""

    compress: float
    dedup: float


class Backend(msgspec.Struct, frozen=True, kw_only=True):
    """The wire's `backend`."""

    name: str
    direct: bool = False
    sync: Waits | UnsetType = UNSET
    content: Content | UnsetType = UNSET


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How storage is reached; what has a title, for comparisons, is an option of commands."""

    backend: Annotated[
        str,
        Meta(
            title="Backend",
            description="How requests are issued: pread (the default on a directory), uring, or "
            "mmap.",
            extra={"metavar": "B"},
        ),
    ] = ""
    """Empty is the only or the plainest one of the target."""
    direct: Annotated[
        bool,
        Meta(title="By direct I/O (O_DIRECT)", description="Bypass the page cache (O_DIRECT)."),
    ] = False
    sync: Annotated[
        str,
        Meta(
            title="Writes that wait for the device",
            description="Which writes wait for the device: every one (O_DSYNC), or with an fsync "
            "after each, or each N, of a worker. Without it none does.",
            extra={"metavar": "dsync|fsync=N|fdatasync=N", "parse": parse_sync},
        ),
    ] = NO_SYNC
    """As `parse_sync` spells it."""
    compress: Annotated[
        float | None,
        Meta(
            title="Ratio to which data compress",
            description="Lay out and write data that compress to this ratio, 1 to 10; 1 is new "
            "random bytes in each request.  [default: random bytes, renewed in part]",
            extra={"metavar": "RATIO", "parse": parse_compress},
        ),
    ] = None
    dedup: Annotated[
        float,
        Meta(
            title="Share of data that are copies",
            description="Lay out and write this share of the data as copies of other data, for "
            "storage that removes duplicates.  [default: 0]",
            extra={"metavar": "SHARE", "parse": parse_dedup},
        ),
    ] = 0.0
    cache_limit_bytes: int | None = None
    """The engine runs in a memory cgroup of this size."""
    placement: str = "auto"
    """"auto" gives each worker a processor of its own while there are enough, "free" leaves that
    to the kernel."""

    def __post_init__(self) -> None:
        """Read what was given as text; reject what no access can be."""
        for name, (_, told) in ACCESS_OPTIONS.items():
            read = (told.extra or {}).get("parse")
            value = getattr(self, name)
            if read is None or value is None:
                continue
            try:
                msgspec.structs.force_setattr(self, name, read(value))
            except ValueError as error:
                raise WorkloadError(f"{name}: {error}") from error

    @property
    def discipline(self) -> str:
        """Which writes wait, and for what, as people call it; and any option beside that."""
        said = format_discipline(self.sync, direct=self.direct)
        return ", ".join([said, *self.beyond("backend", "direct", "sync")])

    def beyond(self, *known: str) -> list[str]:
        """Return the options that are not as usual, besides the known ones: `sync dsync`."""
        given = {name: getattr(self, name) for name in ACCESS_OPTIONS if name not in known}
        return [
            name if value is True else f"{name} {_plain(value)}"
            for name, value in given.items()
            if value != getattr(_USUAL, name)
        ]

    def over(self, other: Access) -> Access:
        """Return this access with the other's options where this one says nothing."""
        said = {
            name: getattr(other, name)
            for name in ACCESS_OPTIONS
            if getattr(self, name) == getattr(_USUAL, name)
        }
        return msgspec.structs.replace(self, **said)

    @property
    def fsync_each(self) -> int | None:
        """Writes of a worker from one `fsync` to the next; None without any."""
        return fsync_each(self.sync)

    @property
    def waits(self) -> bool:
        """Whether some write waits for the device."""
        return self.sync != NO_SYNC

    @property
    def fills(self) -> bool:
        """Whether data are of a stated content."""
        return self.compress is not None or self.dedup > 0

    @property
    def buffered(self) -> bool:
        """Whether writes go through the page cache and wait for no device."""
        return not self.direct and not self.waits

    @property
    def wire_backend(self) -> Backend:
        """Return the job's `backend`; `sync` is sent only when some write waits."""
        each = self.fsync_each
        data_only = True if self.sync.startswith("fdatasync") else UNSET
        waits = Waits("fsync", each, data_only) if each else Waits(parse_sync(self.sync))
        sync = waits if self.waits else UNSET
        content = Content(self.compress or 1.0, self.dedup) if self.fills else UNSET
        return Backend(name=self.backend, direct=self.direct, sync=sync, content=content)

    def stored_in(self, record: type[msgspec.Struct]) -> dict[str, Any]:
        """Return what a record keeps of it, by the record's own fields."""
        kept = record.__struct_fields__
        return {name: getattr(self, name) for name in self.__struct_fields__ if name in kept}

    @classmethod
    def kept_by(cls, record: msgspec.Struct) -> Access:
        """Return the access that a record's fields say; what it does not keep is the default."""
        kept = record.__struct_fields__
        return cls(
            **{name: getattr(record, name) for name in cls.__struct_fields__ if name in kept}
        )


class AccessKept(msgspec.Struct, frozen=True, kw_only=True):
    """What a record keeps of the access; a subclass may keep more of its fields."""

    backend: str = ""
    direct: bool = False
    """By direct I/O (O_DIRECT)."""
    sync: str = NO_SYNC
    """Which writes wait for the device, as `parse_sync` spells it."""
    compress: float | None = None
    dedup: float = 0.0

    @property
    def access(self) -> Access:
        """How the storage was reached."""
        return Access.kept_by(self)


class AccessStart(StudyStart, frozen=True, kw_only=True):
    """The start of a study whose points are all reached in one way.

    Its fields are those of `AccessKept`: no struct has two bases with fields.
    """

    backend: str
    direct: bool = False
    sync: str = NO_SYNC
    compress: float | None = None
    dedup: float = 0.0

    @property
    def access(self) -> Access:
        """How the storage was reached."""
        return Access.kept_by(self)

    @property
    def beyond(self) -> tuple[str, ...]:
        """How it was reached, as far as that is not as usual, the backend left out."""
        return tuple(self.access.beyond("backend"))


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


ACCESS_OPTIONS: dict[str, tuple[type, Any]] = declared(Access)
"""What a person can say of `Access`: of each its type, and how it is told."""
_USUAL = Access()
