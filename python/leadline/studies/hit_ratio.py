"""What was counted of the page cache over `unique_bytes`.

The one home of the curve from which a survey and a cache study read how much it holds.
Two counts tell it, and neither moves with what else the processors do, as throughput does:

* lookups: what reads at random places found in the page cache. The share found is the share of the
  data that is held, so that every reading past the boundary measures it (`stats.held`);
* fetched bytes, where nobody looks into the cache: bytes that the device delivered per byte read,
  read-ahead included. They show where misses begin, by a boundary's model (`stats.boundaries`).
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from leadline.record import Interval, Measurement
from leadline.stats import FittedBoundary, Lookups, fit_boundaries, held_bytes
from leadline.stats.cache_capacity import COMMON_SD

MISS_FLOOR = 0.1
"""Added to the share of misses before its logarithm is taken: what writeback sends to the device
now and then, some hundredths, is not a level of its own."""
DISTURBED = 0.15
"""A share of misses this far above that of a larger workload is somebody else's doing; so is this
part more than was fetched for it, where that is more than was asked for."""
POINTS_MIN = 6
"""A boundary has three parameters of its own; fewer places than this cannot show one."""
EDGE = 1.15
"""Readings within this factor of a boundary belong to neither side of it."""
LOOKUPS_MIN = 20
"""A point of fewer lookups at random places tells no share."""
TELLING = (2.0, 2.7, 3.7, 5.0)
"""Where a reading tells most of what is held, as factors of it: far enough past the boundary for
the pages of larger workloads to be few, near enough for many of the reads to hit."""

Counts = Literal["lookups", "device"]


@dataclass(frozen=True)
class CountedBoundary:
    """Where reads begin to miss the page cache."""

    boundary: FittedBoundary
    by: Counts


def counted_boundary(
    points: Sequence[Measurement], *, seed: int, memory_bytes: int | None = None
) -> CountedBoundary | None:
    """Find how much the page cache holds of reads by what was counted of them.

    Args:
        points: measurements that differ in nothing but unique_bytes.
        seed: of the interval's bootstrap, where one is needed.
        memory_bytes: memory that can hold page cache: no cache is larger.

    Returns:
        None where nothing was counted, or no end of the cache was seen. Direct requests pass it by.

    """
    if any(point.direct for point in points):
        return None
    usable = [point for point in points if point.result.admissible] or list(points)
    if _looked_up(usable):
        return boundary_by_lookups(usable, memory_bytes=memory_bytes)
    return _by_device(usable, seed, memory_bytes)


def boundary_by_lookups(
    points: Sequence[Measurement], *, memory_bytes: int | None = None
) -> CountedBoundary | None:
    """Find how much the page cache holds of reads by looking into it.

    Arguments as of `counted_boundary`; None where nobody looked, or no end of the cache was seen.
    """
    held = held_bytes([lookups for _, lookups in _looked_up(points)])
    if held is None:
        return None
    size = within_memory(held.bytes, memory_bytes)
    ratio = _time_ratio(points, size.value)
    if ratio is None:
        return None
    return CountedBoundary(FittedBoundary(size, "uniform", ratio, held.evidence_bic), "lookups")


def telling_place(points: Sequence[Measurement], high: float) -> float | None:
    """Return the unique_bytes, at most `high`, where one more reading tells most of what is held.

    None where enough were read, or other counts than lookups decide.
    """
    looked = _looked_up(points)
    held = held_bytes([lookups for _, lookups in looked])
    if held is None:
        return None
    size = held.bytes.value
    read = [
        each.unique_bytes
        for _, each in looked
        if TELLING[0] / EDGE <= each.unique_bytes / size <= TELLING[-1] * EDGE
    ]
    places = [size * factor for factor in TELLING if size * factor <= high]
    if len(read) >= len(TELLING) or not places:
        return None
    return max(places, key=lambda place: min((abs(math.log(place / x)) for x in read), default=1))


def always_held(points: Sequence[Measurement]) -> bool:
    """Whether reads were counted, and all of them came from the page cache at every point."""
    shares = [missed_frac(point) for point in points]
    return bool(shares) and all(share is not None and share < MISS_FLOOR for share in shares)


def missed_frac(point: Measurement) -> float | None:
    """Bytes that reached the device per byte asked; None if that is unseen.

    Of reads where there are any: of random ones, those that were not found in the page cache; with
    sequential ones among them, whatever was fetched, read-ahead too: more than 1 then.
    """
    if point.workload.read_frac == 0.0:
        wrote, asked = device_write_bytes(point), point.result.workload_bytes.write
        return None if wrote is None or asked == 0 else min(wrote / asked, 1.0)
    cached, asked = point.result.cached_share, point.result.workload_bytes.read
    if cached is None:
        return None
    moved = (point.result.device_bytes, point.result.provenance.process_bytes)
    fetched = [bytes_.read for bytes_ in moved if bytes_ is not None]
    if point.workload.seq_frac == 0.0 or not fetched or not asked:
        return 1.0 - cached
    return max(1.0 - cached, min(fetched) / asked)


def device_write_bytes(point: Measurement) -> int | None:
    """Bytes of this point's writes that reached the device; None where it cannot be seen.

    The device's own counter holds what everybody wrote, the process's what it made dirty: the
    lesser of the two, as for reads (docs/concepts/honesty.md).
    """
    device, own = point.result.device_bytes, point.result.provenance.process_bytes
    if device is None:
        return None
    return device.write if own is None else min(device.write, own.write)


def least_missed(points: Sequence[Measurement]) -> list[float]:
    """Share of misses of points by rising unique_bytes, none above that of a later one.

    More data cannot miss less: where a smaller workload missed a little more than a larger one,
    that is noise, and the larger one's share stands. Where it missed clearly more (`DISTURBED`),
    somebody else was there (a `sync`, another program's memory), and the point says nothing.
    """
    shares: list[float] = []
    least = math.inf
    for point in reversed(points):
        least = min(least, missed_frac(point) or 0.0)
        shares.append(least)
    return shares[::-1]


def disturbances(points: Sequence[Measurement]) -> list[tuple[float, bool]]:
    """(unique_bytes, whether it missed clearly more than a larger workload) by unique_bytes."""
    ordered = sorted(points, key=_unique_bytes)
    return [
        (_unique_bytes(point), _is_disturbed(point, least))
        for point, least in zip(ordered, least_missed(ordered), strict=True)
    ]


def miss_readings(points: Sequence[Measurement]) -> list[tuple[float, float]]:
    """(unique_bytes, the rate at which nothing but misses takes time) of undisturbed points."""
    ordered = sorted(points, key=_unique_bytes)
    return [
        (_unique_bytes(point), 1.0 / (MISS_FLOOR + least))
        for point, least in zip(ordered, least_missed(ordered), strict=True)
        if not _is_disturbed(point, least)
    ]


def throughput(point: Measurement) -> float:
    """Throughput in MB/s; a stalled point counts as a byte, for logarithms."""
    return max(point.result.throughput_mb_s.value, 1e-6)


def within_memory(size: Interval, memory_bytes: int | None) -> Interval:
    """Return a size of page cache that is no larger than the memory which holds it.

    A size beyond it was read too large: the low end comes down with the value, or a reading that is
    surely wrong would be surely right.
    """
    if not memory_bytes:
        return size
    factor = min(1.0, memory_bytes / size.value)
    low = None if size.low is None else size.low * factor
    high = None if size.high is None else min(size.high, memory_bytes)
    return Interval(min(size.value, memory_bytes), low, high, size.n)


def _by_device(
    points: Sequence[Measurement], seed: int, memory_bytes: int | None
) -> CountedBoundary | None:
    if not points or any(missed_frac(point) is None for point in points):
        return None
    readings = miss_readings(points)
    if len({place for place, _ in readings}) < POINTS_MIN:
        return None
    fitted = next(iter(fit_boundaries(*zip(*readings, strict=True), seed=seed).boundaries), None)
    if fitted is None:
        return None
    size = within_memory(_moving(fitted.bytes), memory_bytes)
    ratio = _time_ratio(points, size.value)
    if ratio is None:
        return None
    return CountedBoundary(replace(fitted, bytes=size, time_ratio=ratio), "device")


def _moving(size: Interval) -> Interval:
    """Return a size whose interval is no narrower than one that lookups tell.

    Bytes that were fetched for other reasons than misses are in the count, and the boundary's model
    knows of none: a fit that is better than this is so by chance.
    """
    moves = math.exp(1.96 * COMMON_SD)
    low, high = (size.value if end is None else end for end in (size.low, size.high))
    return Interval(size.value, min(low, size.value / moves), max(high, size.value * moves), size.n)


def _looked_up(points: Sequence[Measurement]) -> list[tuple[Measurement, Lookups]]:
    """Points with their lookups at random places; none where most points have too few."""
    looked = [
        (point, Lookups(_unique_bytes(point), share, count / (1 + (cv or 0.0) ** 2)))
        for point in points
        if (share := point.result.provenance.found_random_share) is not None
        and (count := point.result.provenance.probed_random) >= LOOKUPS_MIN
        for cv in (point.result.realised.size_cv,)
    ]
    return looked if 2 * len(looked) > len(points) else []


def _time_ratio(points: Sequence[Measurement], size: float) -> float | None:
    """Time per byte beyond a boundary over that before it; None where a side was not measured."""
    before = [throughput(point) for point in points if _unique_bytes(point) * EDGE <= size]
    beyond = [throughput(point) for point in points if _unique_bytes(point) >= size * EDGE]
    if not before or not beyond:
        return None
    return statistics.median(before) / statistics.median(beyond)


def _unique_bytes(point: Measurement) -> float:
    return float(point.workload.unique_bytes)


def _is_disturbed(point: Measurement, least: float) -> bool:
    return (missed_frac(point) or 0.0) > least + DISTURBED * max(1.0, least)
