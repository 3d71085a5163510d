"""From a study's start and points to its answer: pure, so that a stored study explains itself."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import CacheStart, CacheStudy, Curve, CurvePoint, Measurement, Status
from leadline.record.finding import Finding, drift_values
from leadline.stats import DRIFT_FRAC_MIN, Noise, group_drift
from leadline.studies.cache.find import find_file_cache, noise_of, pooled
from leadline.studies.cache.questions import READS, WRITES
from leadline.studies.cache.sizes import disturbed_points, kind_curve

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
