"""How large the file cache is for one kind of request: borders of a read-only or write-only curve.

CP94 section 8 finds the cache on a curve of half reads, half writes; CP93 section 5 tells that
Sprite's cache is 20 MB for reads and 5 to 8 MB for writes. Curves of one kind alone show each.

Where reads were looked up in the file cache, its size for reads is what they found
(`studies.counted`, from which surveys have their border as well). Otherwise, and for writes, the
curve is the share of the bytes that reached the device where that can be seen (a miss ratio, which
other programs' use of the processor does not move), and else the throughput, as in the papers. Both
obey the model of `stats.hierarchy`: what misses pays more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from leadline.record import CacheSize, Interval, Measurement
from leadline.stats import BorderFit, FittedBorder, fit_borders
from leadline.studies.counted import (
    POINTS_MIN,
    CountedBorder,
    border_by_lookups,
    disturbances,
    miss_readings,
    missed_frac,
    throughput,
    within_memory,
)

Basis = Literal["misses", "throughput"]


@dataclass(frozen=True)
class KindCurve:
    """The readings of one kind of request over unique_bytes, and the borders they show."""

    points: tuple[Measurement, ...]
    basis: Basis
    """What the borders were fitted to."""
    fit: BorderFit | None
    """None when there are too few readings for any."""
    counted: CountedBorder | None = None
    """What lookups say of reads."""

    @property
    def borders(self) -> tuple[FittedBorder, ...]:
        """Borders by rising bytes."""
        return self.fit.borders if self.fit else ()

    @property
    def readings(self) -> list[tuple[float, float]]:
        """(unique_bytes, what the borders are fitted to), by unique_bytes.

        Throughputs of every point; or rates at which nothing but misses takes time, of the points
        that were not disturbed.
        """
        if self.basis == "misses":
            return miss_readings(self.points)
        points = sorted(self.points, key=lambda point: point.workload.unique_bytes)
        return [(float(p.workload.unique_bytes), throughput(p)) for p in points]


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
    seen = bool(chosen) and all(missed_frac(point) is not None for point in chosen)
    curve = KindCurve(tuple(chosen), "misses" if seen else "throughput", None)
    if not fit or len({place for place, _ in curve.readings}) < POINTS_MIN:
        return curve
    fitted = fit_borders(*zip(*curve.readings, strict=True), seed=seed)
    # What writes find in the cache is not what it holds of their dirty data.
    counted = border_by_lookups(chosen) if read_frac == 1.0 else None
    return replace(curve, fit=fitted, counted=counted)


def disturbed_points(curve: KindCurve) -> int:
    """Count the points that missed clearly more than a larger workload did."""
    return sum(disturbed for _, disturbed in _heard(curve))


def _heard(curve: KindCurve) -> list[tuple[float, bool]]:
    """(unique_bytes, whether the reading was disturbed); throughput alone does not tell."""
    if curve.basis == "misses":
        return disturbances(curve.points)
    return [(float(point.workload.unique_bytes), False) for point in curve.points]


def widened(border: FittedBorder, curve: KindCurve) -> FittedBorder:
    """Open a border's interval to the nearest undisturbed readings when one beside it is disturbed.

    Between those nothing was measured, however well the rest fits: the border lies anywhere there.
    Lookups tell the border from readings further on, so that one beside it opens nothing.
    """
    if curve.counted is not None:
        return border
    fitted = border.bytes
    heard = _heard(curve)
    clean = {place for place, disturbed in heard if not disturbed}
    below = max((place for place in clean if place <= fitted.value), default=None)
    above = min((place for place in clean if place > fitted.value), default=None)
    between = [place for place, _ in heard if (below or 0.0) < place < (above or float("inf"))]
    if not between:
        return border
    low = None if below is None or fitted.low is None else min(fitted.low, below)
    high = None if above is None or fitted.high is None else max(fitted.high, above)
    return replace(border, bytes=Interval(fitted.value, low, high, fitted.n))


def nearest_border(curve: KindCurve) -> FittedBorder | None:
    """Return the border at which requests leave the nearest level that holds them."""
    if curve.counted is not None:
        return curve.counted.border
    return next(iter(curve.borders), None)


def size_of(border: FittedBorder, memory_bytes: int | None) -> CacheSize:
    """Return the size at a border, also as a share of memory where that is known.

    No cache is larger than its memory: the size ends there.
    """
    size = within_memory(border.bytes, memory_bytes)
    return CacheSize(
        bytes=size, memory_frac=share_of_memory(size, memory_bytes), shape=border.shape
    )


def share_of_memory(size: Interval, memory_bytes: int | None) -> Interval | None:
    """Return a size as a share of memory, its interval with it; None when memory is unknown."""
    if not memory_bytes:
        return None
    low, high = (end and end / memory_bytes for end in (size.low, size.high))
    return Interval(size.value / memory_bytes, low, high, size.n)
