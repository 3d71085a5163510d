"""How large the file cache is for one kind of request: borders of a read-only or write-only curve.

CP94 section 8 finds the cache on a curve of half reads, half writes; CP93 section 5 tells that
Sprite's cache is 20 MB for reads and 5 to 8 MB for writes. Curves of one kind alone show each.

Where the device can be seen, the curve is the share of the bytes that reached it (a miss ratio,
which other programs' use of the processor does not move); otherwise it is the throughput, as in
the papers. Both obey the model of `stats.hierarchy`: what misses pays more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from leadline.record import CacheSize, Interval, Measurement
from leadline.stats import BorderFit, FittedBorder, fit_borders

EDGE = 1.15
"""Readings within this factor of a border belong to neither side of it."""
POINTS_MIN = 6
"""A border has three parameters of its own; fewer readings than this cannot show one."""


MISS_FLOOR = 0.1
"""Added to the share of misses before its logarithm is taken: what a flusher sends to the device
now and then, some hundredths, is not a level of its own."""

DISTURBED = 0.15
"""A share of misses this far above that of a larger workload is somebody else's doing."""

Basis = Literal["misses", "throughput"]


@dataclass(frozen=True)
class KindCurve:
    """The readings of one kind of request over unique_bytes, and the borders they show."""

    points: tuple[Measurement, ...]
    basis: Basis
    """What the borders were fitted to."""
    fit: BorderFit | None
    """None when there are too few readings for any."""

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
        points = sorted(self.points, key=lambda point: point.workload.unique_bytes)
        if self.basis == "throughput":
            return [(float(p.workload.unique_bytes), throughput(p)) for p in points]
        return [
            (float(point.workload.unique_bytes), 1.0 / (MISS_FLOOR + least))
            for point, least in zip(points, _least_missed(points), strict=True)
            if not _is_disturbed(point, least)
        ]


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
    return replace(curve, fit=fit_borders(*zip(*curve.readings, strict=True), seed=seed))


def missed_frac(point: Measurement) -> float | None:
    """Share of the bytes of a point of one kind that reached the device; None if it is unseen."""
    if point.workload.read_frac == 1.0:
        cached = point.result.cached_share
        return None if cached is None else 1.0 - cached
    wrote, asked = device_write_bytes(point), point.result.workload_bytes.write
    return None if wrote is None or asked == 0 else min(wrote / asked, 1.0)


def device_write_bytes(point: Measurement) -> int | None:
    """Bytes of this point's writes that reached the device; None where it cannot be seen.

    The device's own counter holds what everybody wrote, the process's what it made dirty: the
    lesser of the two, as for reads (docs/concepts/honesty.md).
    """
    device, own = point.result.device_bytes, point.result.provenance.process_bytes
    if device is None:
        return None
    return device.write if own is None else min(device.write, own.write)


def throughput(point: Measurement) -> float:
    """Throughput in MB/s; a stalled point counts as a byte, for logarithms."""
    return max(point.result.throughput_mb_s.value, 1e-6)


def _least_missed(points: Sequence[Measurement]) -> list[float]:
    """Share of misses of points by rising unique_bytes, none above that of a later one.

    More data cannot miss less: where a smaller workload missed a little more than a larger one,
    that is noise, and the larger one's share stands. Where it missed clearly more (`DISTURBED`),
    somebody else was there (a `sync`, another program's memory), and the point says nothing.
    """
    shares: list[float] = []
    least = 1.0
    for point in reversed(points):
        least = min(least, missed_frac(point) or 0.0)
        shares.append(least)
    return shares[::-1]


def _is_disturbed(point: Measurement, least: float) -> bool:
    return (missed_frac(point) or 0.0) > least + DISTURBED


def _disturbances(curve: KindCurve) -> list[tuple[float, bool]]:
    """(unique_bytes, whether it missed clearly more than a larger workload) by unique_bytes."""
    points = sorted(curve.points, key=lambda point: point.workload.unique_bytes)
    if curve.basis == "throughput":
        return [(float(point.workload.unique_bytes), False) for point in points]
    return [
        (float(point.workload.unique_bytes), _is_disturbed(point, least))
        for point, least in zip(points, _least_missed(points), strict=True)
    ]


def disturbed_points(curve: KindCurve) -> int:
    """Count the points that missed clearly more than a larger workload did."""
    return sum(disturbed for _, disturbed in _disturbances(curve))


def widened(border: FittedBorder, curve: KindCurve) -> FittedBorder:
    """Open a border's interval to the nearest undisturbed readings when one beside it is disturbed.

    Between those nothing was measured, however well the rest fits: the border lies anywhere there.
    """
    fitted = border.bytes
    heard = _disturbances(curve)
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
    return next(iter(curve.borders), None)


def size_of(border: FittedBorder, memory_bytes: int | None) -> CacheSize:
    """Return the size at a border, also as a share of memory where that is known."""
    return CacheSize(
        bytes=border.bytes,
        memory_frac=share_of_memory(border.bytes, memory_bytes),
        shape=border.shape,
    )


def share_of_memory(size: Interval, memory_bytes: int | None) -> Interval | None:
    """Return a size as a share of memory, its interval with it; None when memory is unknown."""
    if not memory_bytes:
        return None
    low, high = (end and end / memory_bytes for end in (size.low, size.high))
    return Interval(size.value / memory_bytes, low, high, size.n)
