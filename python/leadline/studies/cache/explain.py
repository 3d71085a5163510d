"""From measurements of one system to its page cache: sizes, policy and the evidence for it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from leadline.record import (
    CacheSize,
    CacheStart,
    CacheStudy,
    Curve,
    CurvePoint,
    FileCache,
    Interval,
    Measurement,
    Region,
    Status,
    Survey,
    WritePolicy,
)
from leadline.record.finding import Finding, drift_values
from leadline.record.findings import compare
from leadline.record.wording import format_bytes_ci, format_share, format_times
from leadline.stats import (
    DRIFT_FRAC_MIN,
    FittedBoundary,
    Noise,
    group_drift,
    own_error,
    pooled_noise,
    reading_interval,
)
from leadline.studies.cache.plan import READS, WRITES
from leadline.studies.cache.sizes import (
    KindCurve,
    Rates,
    disturbed_points,
    judge,
    kind_curve,
    nearest_boundary,
    promised,
    share_of_memory,
    size_of,
    tally,
    widened,
)
from leadline.studies.hit_ratio import EDGE, always_held, throughput
from leadline.studies.memory import memory_bytes_of
from leadline.units import format_bytes


def find_file_cache(
    points: Sequence[Measurement], *, memory_bytes: int | None, seed: int
) -> FileCache:
    """Find the page cache in measurements of one system.

    Sizes come from points of reads alone and of writes alone over unique_bytes; rates from places
    where both were measured. Whatever else is among `points` is left alone.

    Args:
        points: measurements of one system under one write mode.
        memory_bytes: memory that could hold page cache, when it is known.
        seed: of the intervals' bootstrap.

    """
    reads, writes = (kind_curve(points, frac, seed=seed) for frac in (1.0, 0.0))
    read_end, write_end = nearest_boundary(reads), nearest_boundary(writes)
    inside, outside = rate_places(reads, writes, read_end, write_end)
    noise = noise_of((*reads.points, *writes.points))
    rates = _rates(reads, writes, inside, outside, noise)
    fitting = [point for point in writes.points if point.workload.unique_bytes <= (inside or 0)]
    policy, evidence = judge(
        rates,
        tally(fitting),
        beyond=read_end is not None or bool(write_end),
        word=promised(writes.points),
    )
    found = FileCache(
        reads=_read_size(reads, read_end, memory_bytes),
        writes=_write_size(writes, write_end, policy, memory_bytes),
        policy=policy,
        evidence=evidence,
        size_mean=reads.points[0].workload.size_mean if reads.points else None,
        inside_bytes=inside,
        outside_bytes=outside,
        read_mb_s=rates.read,
        write_mb_s=rates.write,
        disk_read_mb_s=rates.disk_read,
        disk_write_mb_s=rates.disk_write,
        memory_bytes=memory_bytes,
    )
    return sentences(found)


def noise_of(points: Sequence[Measurement]) -> Noise:
    """Run-to-run noise of these points, from those that measured one and the same workload."""
    groups: dict[object, list[float]] = {}
    for point in points:
        if point.result.admissible:
            groups.setdefault(point.workload, []).append(throughput(point))
    return pooled_noise([group for group in groups.values() if len(group) > 1])


def pooled(points: Sequence[Measurement], noise: Noise) -> Interval:
    """Throughput behind the readings of one workload, in MB/s, with a 95% interval."""
    return reading_interval(
        [throughput(point) for point in points],
        [own_error(point.result.throughput_mb_s) for point in points],
        noise,
    )


def rate_places(
    reads: KindCurve,
    writes: KindCurve,
    read_end: FittedBoundary | None,
    write_end: FittedBoundary | None,
) -> tuple[int | None, int | None]:
    """Choose the unique_bytes within the cache, and beyond it, at which rates are compared.

    Both kinds were measured there, as often as anywhere; "beyond" is twice the last boundary that
    any kind has. Without a boundary they are the ends of what was measured.
    """
    common = {p.workload.unique_bytes for p in reads.points} & {
        p.workload.unique_bytes for p in writes.points
    }
    if not common:
        return None, None
    ends = [end.bytes.value for end in (read_end, write_end) if end is not None]
    if not ends:
        return min(common), max(common) if len(common) > 1 else None
    last = max((b.bytes.value for b in (*reads.boundaries, *writes.boundaries)), default=0.0)
    inside = _most_read(reads, (u for u in common if u * EDGE <= min(ends)))
    outside = _most_read(reads, (u for u in common if u >= 2 * last and u != inside))
    return inside, outside


def _most_read(curve: KindCurve, places: Iterable[int]) -> int | None:
    """Return the place with the most readings; the larger of two with as many."""
    counts = dict.fromkeys(places, 0)
    for point in curve.points:
        if point.workload.unique_bytes in counts:
            counts[point.workload.unique_bytes] += 1
    return max(counts, key=lambda place: (counts[place], place), default=None)


def _rates(
    reads: KindCurve, writes: KindCurve, inside: int | None, outside: int | None, noise: Noise
) -> Rates:
    def at(curve: KindCurve, place: int | None) -> Interval | None:
        found = [point for point in curve.points if point.workload.unique_bytes == place]
        return pooled(found, noise) if found else None

    return Rates(
        read=at(reads, inside),
        write=at(writes, inside),
        disk_read=at(reads, outside),
        disk_write=at(writes, outside),
    )


def _read_size(
    curve: KindCurve, boundary: FittedBoundary | None, memory_bytes: int | None
) -> CacheSize:
    if boundary is None:
        return _none(_no_boundary(curve, "reads"))
    return size_of(widened(boundary, curve), memory_bytes)


def _write_size(
    curve: KindCurve, boundary: FittedBoundary | None, policy: WritePolicy, memory_bytes: int | None
) -> CacheSize:
    if policy is WritePolicy.THROUGH:
        return _none("none absorbed: write-through")
    if boundary is None:
        return _none(_no_boundary(curve, "writes"))
    return size_of(widened(boundary, curve), memory_bytes)


def _no_boundary(curve: KindCurve, kind: str) -> str:
    if curve.fit is None:
        return f"too few points of {kind} alone"
    most = format_bytes(max(point.workload.unique_bytes for point in curve.points))
    return f"no boundary found up to {most} of {kind} alone"


def _none(reason: str) -> CacheSize:
    return CacheSize(bytes=None, memory_frac=None, reason=reason)


# What a survey, made for another purpose, says of the page cache.
#
# Its curve over unique_bytes mixes reads and writes, so that one boundary cannot tell them apart;
# only a level whose reads stay in memory while its writes go to the device shows two sizes (Sprite,
# CP94 section 8.1.2). The write policy is judged from the curves over read_frac, as CP93 does in
# Fig. 5.

HELD_MIN = 0.9
"""A level holds what comes from it, or ends in it, to more than this share."""


def find_in_survey(survey: Survey, points: Sequence[Measurement]) -> FileCache:
    """Find the page cache in a survey, finished or not; pure.

    Args:
        survey: the explained survey.
        points: its points.

    """
    start = survey.start
    memory_bytes = memory_bytes_of(start.cache_limit_bytes, start.facts, start.system_profile)
    first, last = (survey.regions[0], survey.regions[-1]) if survey.regions else (None, None)
    beyond = first is not last
    rates = Rates(
        read=_mix(survey, first, 1.0),
        write=_mix(survey, first, 0.0),
        disk_read=_mix(survey, last, 1.0) if beyond else None,
        disk_write=_mix(survey, last, 0.0) if beyond else None,
    )
    end = survey.boundaries[0].bytes.value / EDGE if survey.boundaries else 0.0
    policy, evidence = judge(
        rates,
        tally([p for p in points if p.workload.unique_bytes <= end]),
        beyond=beyond,
        word=promised(points),
    )
    reads, writes = _sizes(survey, points, policy, memory_bytes)
    found = FileCache(
        reads=reads,
        writes=writes,
        policy=policy,
        evidence=evidence,
        size_mean=first.focal.size_mean if first else None,
        inside_bytes=first.focal.unique_bytes if first else None,
        outside_bytes=last.focal.unique_bytes if last and beyond else None,
        read_mb_s=rates.read,
        write_mb_s=rates.write,
        disk_read_mb_s=rates.disk_read,
        disk_write_mb_s=rates.disk_write,
        memory_bytes=memory_bytes,
    )
    return sentences(found)


def _mix(survey: Survey, region: Region | None, read_frac: float) -> Interval | None:
    """Throughput of one end of the curve over read_frac at a region's focal point."""
    if region is None:
        return None
    family = next((item for item in survey.families if item.region == region.index), None)
    curve: Curve | None = family.curve("read_frac") if family else None
    found = [point for point in curve.points if point.x == read_frac] if curve else []
    return found[0].throughput_mb_s if found else None


def _sizes(
    survey: Survey, points: Sequence[Measurement], policy: WritePolicy, memory_bytes: int | None
) -> tuple[CacheSize, CacheSize]:
    def size(index: int, *, apart: bool) -> CacheSize:
        boundary = survey.boundaries[index]
        share = share_of_memory(boundary.bytes, memory_bytes)
        return CacheSize(bytes=boundary.bytes, memory_frac=share, shape=boundary.shape, apart=apart)

    reason = _no_size(survey, points, memory_bytes)
    if reason:
        none = CacheSize(bytes=None, memory_frac=None, reason=reason)
        return none, none
    reads = _last_holding_reads(survey)
    if policy is WritePolicy.THROUGH:
        reason = "none absorbed: write-through"
        through = CacheSize(bytes=None, memory_frac=None, reason=reason)
        return size(reads, apart=True), through
    writes = _last_holding_writes(survey, points)
    if writes is not None and writes != reads:
        return size(reads, apart=True), size(writes, apart=True)
    if policy is WritePolicy.CANCELLING:
        return size(reads, apart=False), size(reads, apart=False)
    reason = "reads and writes were only seen mixed"
    return size(reads, apart=False), CacheSize(bytes=None, memory_frac=None, reason=reason)


def _no_size(survey: Survey, points: Sequence[Measurement], memory_bytes: int | None) -> str:
    """Say why no boundary of this survey is the page cache's end; empty where one is."""
    if not survey.boundaries:
        return "this survey found no boundary"
    if any(boundary.basis == "counted" for boundary in survey.boundaries):
        return ""
    along = [p for p in points if p.workload.read_frac > 0.0 and p.result.admissible]
    if survey.start.access.buffered and always_held(along):
        most = format_bytes(max(point.workload.unique_bytes for point in along))
        return f"no read left it up to {most}"
    boundary = survey.boundaries[_last_holding_reads(survey)].bytes.value
    if memory_bytes is not None and boundary > memory_bytes:
        return (
            f"the boundary found at {format_bytes(boundary)} lies beyond the memory of "
            f"{format_bytes(memory_bytes)}, so that it is not the page cache's"
        )
    return ""


def _last_holding_reads(survey: Survey) -> int:
    """Index of the last region, but for the slowest, whose reads come from the page cache."""
    counted = [i for i, boundary in enumerate(survey.boundaries) if boundary.basis == "counted"]
    if counted:
        return counted[0]
    held = [r.index for r in survey.regions if (r.cached_share or 0.0) > HELD_MIN]
    return min(max(held, default=0), len(survey.boundaries) - 1)


def _last_holding_writes(survey: Survey, points: Sequence[Measurement]) -> int | None:
    """Index of the last region, from the first on, whose writes mostly stay off the device.

    None where the device cannot be seen, or where not even the first region holds them.
    """
    last = None
    for region in survey.regions[: len(survey.boundaries)]:
        inside = [
            point
            for point in points
            if region.low_bytes * EDGE <= point.workload.unique_bytes <= region.high_bytes / EDGE
        ]
        moved = tally(inside)
        if moved is None or moved.device_bytes > (1 - HELD_MIN) * moved.asked_bytes:
            break
        last = region.index
    return last


# What was found of a page cache, in plain sentences.

ONE_SIZE = 1.25
"""Sizes within this factor are one cache's, as profiles count boundaries; a dirty page needs a
little more room than a clean one."""


def sentences(found: FileCache) -> FileCache:
    """Return the findings in words; pure, so the same findings always read the same."""
    return msgspec.structs.replace(found, sentences=(_format_sizes(found), _policy(found)))


def _format_sizes(found: FileCache) -> str:
    reads, writes = found.reads, found.writes
    if reads.bytes is None and writes.bytes is None:
        return f"Page cache: size unknown. Reads: {reads.reason}; writes: {writes.reason}."
    if not reads.apart and reads.bytes is not None:
        return f"Page cache, reads and writes mixed: {_size(reads)}; `leadline cache` has each."
    one = _size(reads) if reads.bytes is not None else reads.reason
    other = _size(writes) if writes.bytes is not None else writes.reason
    return f"Page cache, reads: {one}. Writes: {other}.{_two_sizes(found)}"


def _size(size: CacheSize) -> str:
    assert size.bytes is not None  # noqa: S101 - callers looked
    text = format_bytes_ci(size.bytes, level=True)
    return f"{text}; {format_share(size.memory_frac)} of memory" if size.memory_frac else text


def _two_sizes(found: FileCache) -> str:
    """Say that the sizes differ only where their intervals show it."""
    reads, writes = found.reads.bytes, found.writes.bytes
    if reads is None or writes is None:
        return ""
    ratio = compare(reads, writes)
    if not ratio.shown:
        return " No significant difference."
    alike = "; alike" if max(ratio.ratio, 1 / ratio.ratio) < ONE_SIZE else ""
    return f" Reads over writes: {format_times(ratio)}{alike}."


def _policy(found: FileCache) -> str:
    proof = [item.sentence for item in found.evidence if item.says is found.policy]
    if found.policy is WritePolicy.UNKNOWN:
        seen = "; ".join(item.sentence for item in found.evidence)
        return f"Write policy: inconclusive: {seen}."
    absorbs = ", absorbs overwrites" if found.policy is WritePolicy.CANCELLING else ""
    return f"Write policy: {found.policy.value}{absorbs}: {'; '.join(proof)}."


# From a study's start and points to its answer: pure, so that a stored study explains itself.

FOREIGN_CPU_MAX = 0.25
"""As in a survey: above it other programs took more than a quarter of a processor."""


def explain_study(start: CacheStart, points: Sequence[Measurement]) -> CacheStudy:
    """Derive the answer from the start record and the points, finished or not."""
    complete = len(points) >= start.plan.points
    noise = noise_of(points)
    last = points[-1] if points else None
    return CacheStudy(
        start=start,
        status=Status.DONE if complete else Status.STOPPED,
        wall_s=last.clock_s + last.result.total_s if last else 0,
        points=len(points),
        cache=find_file_cache(points, memory_bytes=start.memory_bytes, seed=start.seed),
        curves=tuple(
            curve
            for kind in (READS, WRITES)
            if (curve := _curve(points, kind, start.seed, noise)) is not None
        ),
        noise_frac=noise.sd_frac,
        findings=_findings(start, points, complete=complete),
    )


def _curve(points: Sequence[Measurement], kind: float, seed: int, noise: Noise) -> Curve | None:
    at: dict[int, list[Measurement]] = {}
    for point in kind_curve(points, kind, seed=seed, fit=False).points:
        at.setdefault(point.workload.unique_bytes, []).append(point)
    if not at:
        return None
    return Curve(
        parameter="unique_bytes",
        region=None,
        points=tuple(
            CurvePoint(
                x=float(x),
                throughput_mb_s=pooled(found, noise),
                readings_mb_s=tuple(p.result.throughput_mb_s.value for p in found),
                point_ids=tuple(p.point_id for p in found),
            )
            for x, found in sorted(at.items())
        ),
        focal=next(iter(at.values()))[0].workload,
        good_low=None,
        good_high=None,
    )


def _findings(
    start: CacheStart, points: Sequence[Measurement], *, complete: bool
) -> tuple[Finding, ...]:
    found = []
    if not complete:
        found.append(Finding.of("stopped", points=len(points), planned=start.plan.points))
    bad = [point for point in points if not point.result.admissible]
    if bad:
        reasons = sorted({reason for point in bad for reason in point.result.reasons})
        counts = {"inadmissible": len(bad), "points": len(points)}
        said = "; ".join(reasons[:3])
        found.append(Finding.of("points_inadmissible", **counts, for_sizes=said))
    found += _moved(points) + _disturbed(start, points)
    busy = sum((point.result.foreign_cpu or 0) > FOREIGN_CPU_MAX for point in points)
    if busy:
        counts = {"busy": busy, "points": len(points)}
        found.append(Finding.of("foreign_load", foreign_frac=FOREIGN_CPU_MAX, **counts))
    return (*found, *start.findings)


def _disturbed(start: CacheStart, points: Sequence[Measurement]) -> list[Finding]:
    """Points at which something else emptied or wrote out the cache."""
    curves = {
        name: kind_curve(points, kind, seed=start.seed, fit=False)
        for name, kind in (("reads", READS), ("writes", WRITES))
    }
    return [
        Finding.of("cache_disturbed", disturbed=count, points=len(curve.points), kind=name)
        for name, curve in curves.items()
        if (count := disturbed_points(curve))
    ]


def _moved(points: Sequence[Measurement]) -> list[Finding]:
    groups: dict[object, list[Measurement]] = {}
    for point in points:
        if point.result.admissible:
            groups.setdefault(point.workload, []).append(point)
    again = [group for group in groups.values() if len(group) > 1]
    if not again:
        return []
    drift = group_drift(
        [[point.clock_s for point in group] for group in again],
        [[max(p.result.throughput_mb_s.value, 1e-6) for p in group] for group in again],
    )
    if drift is None or not drift.excludes(0.0) or abs(drift.value) < DRIFT_FRAC_MIN:
        return []
    return [Finding.of("drift_of_sizes", **drift_values(drift))]
