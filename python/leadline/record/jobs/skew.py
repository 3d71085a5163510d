"""Sizes that occur as often as is said, and places that are asked for more often than others."""

from __future__ import annotations

import itertools
import math

import msgspec

from leadline.errors import WorkloadError
from leadline.record.jobs.streams import STREAMS_MAX, SizeShare
from leadline.units import parse_bytes

THETA_MAX = 10.0
"""Largest exponent of a Zipf law."""
ZONES_MAX = 64
"""Most zones."""
ZONE_SHARE_MIN = 1e-9
_GRANULE_BYTES = 512
_SUM_MARGIN = 1e-6
_WEIGHT_MIN, _WEIGHT_MAX = 1e-9, 1e9
NAMED_SIZES = ("normal", "fixed", "exponential", "lognormal")


class Histogram(msgspec.Struct, frozen=True):
    """These sizes and no others, each as often as its weight says."""

    histogram: tuple[SizeShare, ...]

    def __post_init__(self) -> None:
        """Reject what the wire would (crates/wire/src/job/streams.rs)."""
        if not 1 <= len(self.histogram) <= STREAMS_MAX:
            raise WorkloadError(f"a histogram has 1 to {STREAMS_MAX} sizes")
        for size in self.histogram:
            if size.bytes < _GRANULE_BYTES or size.bytes % _GRANULE_BYTES:
                raise WorkloadError(
                    f"a histogram's size is {size.bytes} bytes, it must be a multiple of "
                    f"{_GRANULE_BYTES}"
                )
            if not _WEIGHT_MIN <= size.weight <= _WEIGHT_MAX:
                raise WorkloadError(
                    f"a size's share is {size.weight:g}, it must be between {_WEIGHT_MIN:g} and "
                    f"{_WEIGHT_MAX:g}"
                )

    @property
    def mean_bytes(self) -> float:
        """Mean size in bytes."""
        total = math.fsum(size.weight for size in self.histogram)
        return math.fsum(size.bytes * size.weight for size in self.histogram) / total

    def __str__(self) -> str:
        """Write it as it is typed: `4096/60:65536/40`."""
        return ":".join(f"{size.bytes}/{size.weight:.12g}" for size in self.histogram)


class Zipf(msgspec.Struct, frozen=True, tag_field="kind", tag="zipf"):
    """The block of rank r is asked for in proportion to 1 / r^theta (crates/engine, spread.rs)."""

    theta: float

    def __post_init__(self) -> None:
        """Reject an exponent beyond the wire's."""
        if not 0 <= self.theta <= THETA_MAX:
            raise WorkloadError(f"{self}: its exponent must be between 0 and {THETA_MAX:g}")

    def __str__(self) -> str:
        """Write it as it is typed."""
        return f"zipf:{self.theta:.12g}"


class Zone(msgspec.Struct, frozen=True):
    """A part of the data: its share of the requests and of the bytes."""

    access_frac: float
    size_frac: float


class Zoned(msgspec.Struct, frozen=True, tag_field="kind", tag="zoned"):
    """Zones one after the other from byte 0; within one all places are alike."""

    zones: tuple[Zone, ...]

    def __post_init__(self) -> None:
        """Reject zones that are not all of the data and of the requests."""
        if not 1 <= len(self.zones) <= ZONES_MAX:
            raise WorkloadError(f"{len(self.zones)} zones of access; it must have 1 to {ZONES_MAX}")
        shares = [(zone.access_frac, zone.size_frac) for zone in self.zones]
        if not all(ZONE_SHARE_MIN <= share <= 1 for share in itertools.chain(*shares)):
            raise WorkloadError(f"{self}: each share must be above 0 and at most 100")
        for of, each in zip(("requests", "data"), zip(*shares, strict=True), strict=True):
            if abs(math.fsum(each) - 1) > _SUM_MARGIN:
                raise WorkloadError(
                    f"{self}: its shares of the {of} add up to "
                    f"{100 * math.fsum(each):.6g}, they must be 100"
                )

    def __str__(self) -> str:
        """Write it as it is typed, in percent."""
        return "zoned:" + ":".join(
            f"{100 * zone.access_frac:.12g}/{100 * zone.size_frac:.12g}" for zone in self.zones
        )


Places = Zipf | Zoned | msgspec.UnsetType
"""Where random requests go; unset, each place is as likely as any other."""


def read_size_dist(text: str) -> str | Histogram:
    """Read `normal`, `exponential`, …, or sizes with their shares: `4k/60:64k/40`.

    Raises:
        ValueError: neither; the message shows the spelling.

    """
    if text in NAMED_SIZES:
        return text
    if "/" not in text:
        names = ", ".join(NAMED_SIZES)
        raise ValueError(
            f"{text!r} is none of {names}, nor sizes with shares like 4KiB/60:64KiB/40"
        )
    return Histogram(
        tuple(
            SizeShare(parse_bytes(size), weight)
            for size, weight in _pairs(text, "a size and its share, like 4KiB/60")
        )
    )


def read_access(text: str) -> Places:
    """Read `uniform`, `zipf:1.1` or `zoned:60/10:30/20:10/70`.

    Raises:
        ValueError: none of them; the message shows the spelling.

    """
    kind, _, rest = text.partition(":")
    if text == "uniform":
        return msgspec.UNSET
    if kind == "zipf":
        return Zipf(_number(rest, "zipf:1.1"))
    if kind == "zoned":
        said = "a share of the requests and one of the data in percent, like 60/10"
        parts = _pairs(rest, said)
        return Zoned(tuple(Zone(_number(hot, "60/10") / 100, share / 100) for hot, share in parts))
    raise ValueError(
        f"{text!r} is none of uniform, zipf:THETA (zipf:1.1) and zoned:REQUESTS/DATA:… in percent "
        "(zoned:60/10:30/20:10/70)"
    )


def _pairs(text: str, said: str) -> list[tuple[str, float]]:
    pairs = [part.partition("/") for part in text.split(":")]
    if not all(first and second for first, _, second in pairs):
        raise ValueError(f"{text!r}: each part is {said}")
    return [(first, _number(second, said)) for first, _, second in pairs]


def _number(text: str, said: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a number; write for example {said}") from None
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not a number; write for example {said}")
    return number
