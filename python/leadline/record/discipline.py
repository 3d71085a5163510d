"""Which writes wait until their bytes are on the device, as people and the wire spell it.

A discipline is what a program asks of the file cache for its writes: buffered, `O_DSYNC`, an
`fsync` each so many writes, or past the cache (METHODS section 4).
"""

from __future__ import annotations

NO_SYNC = "none"
"""No write waits for the device."""

FSYNC_EACH_MAX = 1_000_000
"""Most writes between two `fsync`s."""

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
            f"{text!r}: an issuer calls {name} after 1 to {FSYNC_EACH_MAX} writes; write for "
            f"example {name}=8"
        )
    raise ValueError(
        f"{text!r} is no way to wait for the device; write dsync, fsync, fsync=8, fdatasync=8, or "
        "none"
    )


def fsync_each(sync: str) -> int | None:
    """Writes of an issuer from one `fsync` or `fdatasync` to the next; None without any."""
    name, _, count = parse_sync(sync).partition("=")
    return int(count) if name in _CALLS else None


def say_discipline(sync: str, *, direct: bool) -> str:
    """Write `buffered`, `O_DSYNC`, `fsync each 8`, `direct`, or `direct, O_DSYNC`."""
    each = fsync_each(sync)
    call = parse_sync(sync).partition("=")[0]
    every = f"{call} each write" if each == 1 else f"{call} each {each}"
    waits = "O_DSYNC" if parse_sync(sync) == "dsync" else every if each is not None else None
    if waits is None:
        return "direct" if direct else "buffered"
    return f"direct, {waits}" if direct else waits
