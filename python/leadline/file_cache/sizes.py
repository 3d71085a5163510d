"""How large the file cache is for one kind of request: borders of a read-only or write-only curve.

CP94 section 8 finds the cache on a curve of half reads, half writes; CP93 section 5 tells that
Sprite's cache is 20 MB for reads and 5 to 8 MB for writes. Curves of one kind alone show each.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.record import CacheSize, Interval, Measurement
from leadline.stats import BorderFit, FittedBorder, fit_borders

CACHED_SHARE_MIN = 0.9
"""Reads before a border come from the file cache to more than this share, or it is not its."""
EDGE = 1.15
"""Readings within this factor of a border belong to neither side of it."""
POINTS_MIN = 6
"""A border has three parameters of its own; fewer readings than this cannot show one."""


@dataclass(frozen=True)
class KindCurve:
    """The readings of one kind of request over unique_bytes, and the borders they show."""

    points: tuple[Measurement, ...]
    fit: BorderFit | None
    """None when there are too few readings for any."""

    @property
    def borders(self) -> tuple[FittedBorder, ...]:
        """Borders by rising bytes."""
        return self.fit.borders if self.fit else ()

    @property
    def unique_bytes_max(self) -> int:
        """Most bytes touched; 0 without readings."""
        return max((point.workload.unique_bytes for point in self.points), default=0)


def kind_curve(
    points: Sequence[Measurement], read_frac: float, *, seed: int, fit: bool = True
) -> KindCurve:
    """Fit the borders of the readings of one kind that differ in nothing but unique_bytes.

    Args:
        points: measurements of any kind; the largest set of comparable ones is taken.
        read_frac: 1 for reads, 0 for writes.
        seed: of the intervals' bootstrap.
        fit: whether to look for borders at all.

    """
    sets: dict[object, list[Measurement]] = {}
    for point in points:
        if point.workload.read_frac == read_frac and point.result.admissible:
            sets.setdefault(point.workload.with_value("unique_bytes", 512), []).append(point)
    chosen = max(sets.values(), key=len, default=[])
    places = {point.workload.unique_bytes for point in chosen}
    if not fit or len(places) < POINTS_MIN:
        return KindCurve(tuple(chosen), None)
    found = fit_borders(
        [float(point.workload.unique_bytes) for point in chosen],
        [max(point.result.throughput_mb_s.value, 1e-6) for point in chosen],
        seed=seed,
    )
    return KindCurve(tuple(chosen), found)


def read_border(curve: KindCurve) -> FittedBorder | None:
    """Return the border at which reads leave the file cache.

    Where the device's counters are known, it is the last one whose reads came from the cache; a
    level below it (a controller's cache) has borders too. Otherwise it is the first.
    """
    held = None
    low = 0.0
    for border in curve.borders:
        shares = [
            point.result.cached_share
            for point in curve.points
            if low * EDGE < point.workload.unique_bytes <= border.bytes.value / EDGE
            and point.result.cached_share is not None
        ]
        if not shares or statistics.median(shares) <= CACHED_SHARE_MIN:
            break
        held, low = border, border.bytes.value
    return held or next(iter(curve.borders), None)


def write_border(curve: KindCurve) -> FittedBorder | None:
    """Return the border at which writes leave the nearest level that holds them."""
    return next(iter(curve.borders), None)


def size_of(border: FittedBorder, memory_bytes: int | None, *, apart: bool = True) -> CacheSize:
    """Return the size at a border, also as a share of memory where that is known."""
    return CacheSize(
        bytes=border.bytes,
        memory_frac=share_of_memory(border.bytes, memory_bytes),
        shape=border.shape,
        apart=apart,
    )


def share_of_memory(size: Interval, memory_bytes: int | None) -> Interval | None:
    """Return a size as a share of memory, its interval with it; None when memory is unknown."""
    if not memory_bytes:
        return None
    low, high = (end and end / memory_bytes for end in (size.low, size.high))
    return Interval(size.value / memory_bytes, low, high, size.n)
