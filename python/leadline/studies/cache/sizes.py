"""How large the page cache is for reads or for writes: the boundary of a curve of one kind.

CP94 section 8 finds the cache on a curve of half reads, half writes; CP93 section 5 tells that
Sprite's cache is 20 MB for reads and 5 to 8 MB for writes. Curves of one kind alone show each.

Where reads were looked up in the page cache, its size for reads is what they found
(`studies.counted`, from which surveys have their boundary as well). Otherwise, and for writes, the
curve is the share of the bytes that reached the device where that can be seen (a miss ratio, which
other programs' use of the processor does not move), and else the throughput, as in the papers. Both
obey the model of `stats.hierarchy`: what misses pays more.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from leadline.record import CacheSize, Evidence, Interval, Measurement, WritePolicy
from leadline.record.findings import Comparison, compare
from leadline.record.wording import format_times
from leadline.stats import BoundaryFit, FittedBoundary, fit_boundaries
from leadline.studies.hit_ratio import (
    POINTS_MIN,
    CountedBoundary,
    boundary_by_lookups,
    device_write_bytes,
    disturbances,
    miss_readings,
    missed_frac,
    throughput,
    within_memory,
)
from leadline.units import format_bytes

Basis = Literal["misses", "throughput"]


@dataclass(frozen=True)
class KindCurve:
    """The readings of one kind of request over unique_bytes, and the boundaries they show."""

    points: tuple[Measurement, ...]
    basis: Basis
    """What the boundaries were fitted to."""
    fit: BoundaryFit | None
    """None when there are too few readings for any."""
    counted: CountedBoundary | None = None
    """What lookups say of reads."""

    @property
    def boundaries(self) -> tuple[FittedBoundary, ...]:
        """Boundaries by rising bytes."""
        return self.fit.boundaries if self.fit else ()

    @property
    def readings(self) -> list[tuple[float, float]]:
        """(unique_bytes, what the boundaries are fitted to), by unique_bytes.

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
    """Fit the boundaries of the readings of one kind that differ in nothing but unique_bytes.

    Args:
        points: measurements of any kind; the largest set of comparable ones is taken.
        read_frac: 1 for reads, 0 for writes.
        seed: of the intervals' bootstrap.
        fit: whether to look for boundaries at all.

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
    fitted = fit_boundaries(*zip(*curve.readings, strict=True), seed=seed)
    # What writes find in the cache is not what it holds of their dirty data.
    counted = boundary_by_lookups(chosen) if read_frac == 1.0 else None
    return replace(curve, fit=fitted, counted=counted)


def disturbed_points(curve: KindCurve) -> int:
    """Count the points that missed clearly more than a larger workload did."""
    return sum(disturbed for _, disturbed in _heard(curve))


def _heard(curve: KindCurve) -> list[tuple[float, bool]]:
    """(unique_bytes, whether the reading was disturbed); throughput alone does not tell."""
    if curve.basis == "misses":
        return disturbances(curve.points)
    return [(float(point.workload.unique_bytes), False) for point in curve.points]


def widened(boundary: FittedBoundary, curve: KindCurve) -> FittedBoundary:
    """Open a boundary's interval to the nearest undisturbed readings, where one is disturbed.

    Between those nothing was measured, however well the rest fits: the boundary lies anywhere
    there. Lookups tell the boundary from readings further on, so that one beside it opens nothing.
    """
    if curve.counted is not None:
        return boundary
    fitted = boundary.bytes
    heard = _heard(curve)
    clean = {place for place, disturbed in heard if not disturbed}
    below = max((place for place in clean if place <= fitted.value), default=None)
    above = min((place for place in clean if place > fitted.value), default=None)
    between = [place for place, _ in heard if (below or 0.0) < place < (above or float("inf"))]
    if not between:
        return boundary
    low = None if below is None or fitted.low is None else min(fitted.low, below)
    high = None if above is None or fitted.high is None else max(fitted.high, above)
    return replace(boundary, bytes=Interval(fitted.value, low, high, fitted.n))


def nearest_boundary(curve: KindCurve) -> FittedBoundary | None:
    """Return the boundary at which requests leave the nearest level that holds them."""
    if curve.counted is not None:
        return curve.counted.boundary
    return next(iter(curve.boundaries), None)


def size_of(boundary: FittedBoundary, memory_bytes: int | None) -> CacheSize:
    """Return the size at a boundary, also as a share of memory where that is known.

    No cache is larger than its memory: the size ends there.
    """
    size = within_memory(boundary.bytes, memory_bytes)
    return CacheSize(
        bytes=size, memory_frac=share_of_memory(size, memory_bytes), shape=boundary.shape
    )


def share_of_memory(size: Interval, memory_bytes: int | None) -> Interval | None:
    """Return a size as a share of memory, its interval with it; None when memory is unknown."""
    if not memory_bytes:
        return None
    low, high = (end and end / memory_bytes for end in (size.low, size.high))
    return Interval(size.value / memory_bytes, low, high, size.n)


# What a page cache does with writes, judged from outside (CP93 section 4.2).
#
# "All writes must go through to disk" makes a write-through cache, however long its write buffer;
# a write-back cache takes back a write that is written over in time. Three observations:
#
# bytes at the device     Asked were Y bytes of writes over U bytes of data; the device wrote X. At
#                         most U bytes can wait in any buffer, so at least Y - U - X were cancelled.
#                         That is a proof, whatever the buffer.
# writes against disk     The rate of writes that fit the cache over that of writes far beyond it:
#                         CP93 calls a cache write-back "because they perform writes at a
#                         speed faster than the disk system can sustain", and write-through "because
#                         their write performance matches disk speed".
# writes against reads    Both within the cache: alike where writes end in memory. It cannot tell by
#                         itself: writeback slows writes that are cancelled (CP93's HP 730, x4).
# the server's word       Of a server alone: an answer to an NFS WRITE says whether the data is on
#                         stable storage (RFC 1813 section 3.3.7). All of them: write-through, for
#                         the writes as they were asked for. None: it may cancel, and need not.

CANCELLED_MIN = 0.5
"""Share of the bytes shown to have been cancelled from which the cache is write-back."""
CANCELLED_MAX = 0.1
"""Share of the bytes missing at the device up to which the cache is write-through."""
FASTER_MIN = 2.0
"""Writes in the cache are faster than the disk sustains from this ratio on, interval and all."""
FASTER_MAX = 1.6
"""They match the disk up to this ratio: a smaller span alone shortens a disk's seeks as much."""
PROMISED_MIN = 0.999
"""A server writes through when it says so of this share of the WRITE calls in every run."""
ALIKE_MIN = 0.5
"""Writes are as fast as reads from this ratio on."""


@dataclass(frozen=True)
class WriteTally:
    """Bytes of writes that fitted the cache, summed over measurements."""

    asked_bytes: int
    device_bytes: int
    waiting_bytes_max: int
    """Most that a buffer could have held back: the data touched."""
    n: int

    @property
    def cancelled_frac(self) -> Interval:
        """Share of the bytes that never reached the device: seen, and at least."""
        seen = 1 - self.device_bytes / self.asked_bytes
        least = seen - self.waiting_bytes_max / self.asked_bytes
        return Interval(seen, max(least, -1.0), min(max(seen, least), 1.0), self.n)


@dataclass(frozen=True)
class Rates:
    """Throughput of one request size within the cache and beyond it, in MB/s."""

    read: Interval | None = None
    write: Interval | None = None
    disk_read: Interval | None = None
    disk_write: Interval | None = None


def tally(points: Sequence[Measurement]) -> WriteTally | None:
    """Add up the writes of these measurements; None where the device cannot be seen."""
    seen = [
        (point.result.workload_bytes.write, wrote, point)
        for point in points
        if (wrote := device_write_bytes(point)) is not None and point.result.workload_bytes.write
    ]
    if not seen:
        return None
    return WriteTally(
        asked_bytes=sum(asked for asked, _, _ in seen),
        device_bytes=sum(wrote for _, wrote, _ in seen),
        waiting_bytes_max=sum(point.workload.unique_bytes for _, _, point in seen),
        n=len(seen),
    )


def promised(points: Sequence[Measurement]) -> Interval | None:
    """Share of WRITE calls that a server said were on stable storage; None without a server."""
    shares = [
        point.result.network.stable_share
        for point in points
        if point.result.network is not None and point.result.network.stable_share is not None
    ]
    return (
        Interval(sum(shares) / len(shares), min(shares), max(shares), len(shares))
        if shares
        else None
    )


def judge(
    rates: Rates, moved: WriteTally | None, *, beyond: bool, word: Interval | None = None
) -> tuple[WritePolicy, tuple[Evidence, ...]]:
    """Name the policy from the evidence, and return the evidence.

    Args:
        rates: within the cache and beyond it.
        moved: the bytes of the writes within the cache; None where the device cannot be seen.
        beyond: whether a boundary was found, so that what lies beyond it is no longer the cache.
        word: what a server `promised`; None without a server.

    """
    evidence = (
        _bytes(moved),
        _against_disk(rates, beyond=beyond),
        _against_reads(rates),
        *((_word(word),) if word is not None else ()),
    )
    decisive = {item.says for item in evidence} - {WritePolicy.UNKNOWN}
    policy = decisive.pop() if len(decisive) == 1 else WritePolicy.UNKNOWN
    return policy, evidence


def _not_measured(name: str, why: str) -> Evidence:
    return Evidence(name=name, says=WritePolicy.UNKNOWN, value=None, sentence=f"n.m.: {why}")


def _bytes(moved: WriteTally | None) -> Evidence:
    name = "bytes at the device"
    if moved is None:
        return _not_measured(name, "the bytes that the device wrote cannot be seen from here")
    share = moved.cancelled_frac
    text = (
        f"{format_bytes(moved.asked_bytes)} overwritten within the cache, "
        f"{format_bytes(moved.device_bytes)} reached the device, at most "
        f"{format_bytes(moved.waiting_bytes_max)} could be dirty"
    )
    least = share.low or 0.0
    if least >= CANCELLED_MIN:
        cancelled = f"at least {math.floor(100 * least)}% absorbed"
        says, why = WritePolicy.CANCELLING, cancelled
    elif share.value <= CANCELLED_MAX:
        says, why = WritePolicy.THROUGH, "none absorbed"
    else:
        says, why = WritePolicy.UNKNOWN, "too little was written to decide"
    return Evidence(name=name, says=says, value=share, sentence=f"{text}: {why}")


def _against_disk(rates: Rates, *, beyond: bool) -> Evidence:
    name = "writes against the disk"
    found = _ratio(rates.write, rates.disk_write)
    if found is None or not beyond:
        return _not_measured(
            name,
            "no boundary was found, so the disk's own rate is not known apart"
            if found is not None
            else "writes were not measured on both sides of the boundary",
        )
    text = f"cached writes over writes beyond the cache: {format_times(found)}"
    value = _interval(found, rates.write)
    if found.low is not None and found.low >= FASTER_MIN:
        says, why = WritePolicy.CANCELLING, "faster than the disk can sustain"
    elif found.high is not None and found.high <= FASTER_MAX:
        says, why = WritePolicy.THROUGH, "the speed of the disk"
    else:
        says, why = WritePolicy.UNKNOWN, "not significantly faster than the disk"
    return Evidence(name=name, says=says, value=value, sentence=f"{text}: {why}")


def _against_reads(rates: Rates) -> Evidence:
    name = "writes against reads"
    found = _ratio(rates.write, rates.read)
    if found is None:
        return _not_measured(name, "reads and writes were not both measured within the cache")
    text = f"cached writes over cached reads: {format_times(found)}"
    if found.slower:
        text = f"cached reads over cached writes: {format_times(found.inverse())}"
    alike = found.low is not None and found.low >= ALIKE_MIN
    why = "alike, as where both end in memory" if alike else "as a disk or writeback slows them"
    return Evidence(
        name=name,
        says=WritePolicy.UNKNOWN,
        value=_interval(found, rates.write),
        sentence=f"{text}: {why}; it cannot decide alone",
    )


def _word(share: Interval) -> Evidence:
    name = "the server's word"
    if share.low is not None and share.low >= PROMISED_MIN:
        return Evidence(
            name=name,
            says=WritePolicy.THROUGH,
            value=share,
            sentence="the server said of every WRITE that it was on stable storage when it "
            "answered",
        )
    return Evidence(
        name=name,
        says=WritePolicy.UNKNOWN,
        value=share,
        sentence=f"the server said of {100 * share.value:.0f}% of the WRITEs that they were on "
        "stable storage when it answered, and may keep the others in memory; it need not",
    )


def _ratio(above: Interval | None, below: Interval | None) -> Comparison | None:
    return compare(above, below) if above is not None and below is not None else None


def _interval(found: Comparison, of: Interval | None) -> Interval:
    return Interval(found.ratio, found.low, found.high, of.n if of else 0)
