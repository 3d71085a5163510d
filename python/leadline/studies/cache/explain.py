"""From a study's start and points to its answer: pure, so that a stored study explains itself."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import CacheStart, CacheStudy, Curve, CurvePoint, Measurement, Status
from leadline.record.wording import say_count
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
        warnings=_warnings(start, points, complete=complete),
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


def _warnings(
    start: CacheStart, points: Sequence[Measurement], *, complete: bool
) -> tuple[str, ...]:
    told = []
    if not complete:
        told.append(
            f"Stopped after {len(points)} of {start.plan.points} planned points; what is shown "
            "rests on those. The same command with --resume goes on."
        )
    bad = [point for point in points if not point.result.admissible]
    if bad:
        reasons = sorted({reason for point in bad for reason in point.result.reasons})
        told.append(
            f"{len(bad)} of {len(points)} points are not admissible and carry nothing: "
            f"{'; '.join(reasons[:3])}."
        )
    told += _moved(points) + _disturbed(start, points)
    busy = [point for point in points if (point.result.foreign_cpu or 0) > FOREIGN_CPU_MAX]
    if busy:
        told.append(
            f"Other programs used more than {FOREIGN_CPU_MAX:.0%} of a processor during "
            f"{len(busy)} of {say_count(len(points), 'point')}."
        )
    return (*told, *start.warnings)


def _disturbed(start: CacheStart, points: Sequence[Measurement]) -> list[str]:
    """Points at which something else emptied or wrote out the cache."""
    curves = {
        name: kind_curve(points, kind, seed=start.seed, fit=False)
        for name, kind in (("reads", READS), ("writes", WRITES))
    }
    return [
        f"{count} of {say_count(len(curve.points), 'point')} of {name} reached the device "
        "more than larger workloads did: meanwhile something else wrote the cache out or took it "
        "(a sync, other programs' memory, changed dirty limits). The size is right only where "
        "undisturbed points surround it; measure again on an idle machine."
        for name, curve in curves.items()
        if (count := disturbed_points(curve))
    ]


def _moved(points: Sequence[Measurement]) -> list[str]:
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
    way = "slower" if drift.value < 0 else "faster"
    told = (
        f"The system became {abs(drift.value):.0%} {way} while it was measured (95 %: "
        f"{drift.low:+.0%} to {drift.high:+.0%}); the points ran in mixed order, so sizes keep."
    )
    return [told]
