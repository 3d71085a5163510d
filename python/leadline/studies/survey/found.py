"""What a reader must know before trusting a survey."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leadline.engine import MEASURE_SHARE
from leadline.record import Measurement, Status, Survey
from leadline.record.finding import Finding, Severity, drift_values
from leadline.stats import DRIFT_FRAC_MIN

FOREIGN_CPU_MAX = 0.25
_COUNTED = ("time_cap", "generator_bound", "level_shift", "stall")
"""A survey counts these over its points, but for the first: its intervals say what time bought."""
LENGTHENED_FROM = 2.0
"""A window of so many times a point's own was made longer: the next one tried is four times it."""
ENGINE_WARNING_SHARE = 0.05
"""A warning of the engine at fewer points than this share is left to the table of points."""


def survey_findings(
    survey: Survey,
    points: Sequence[Measurement],
    *,
    contradicted: bool = False,
    doubt: Finding | None = None,
) -> tuple[Finding, ...]:
    """List what was found about a survey, most important first.

    `contradicted`: the focal points, measured after the borders, no longer show as many.
    `doubt`: where what was counted and the throughput place a border differently.
    """
    found = [
        _unfinished(survey, points),
        _drift(survey),
        _contradicted(survey) if contradicted else None,
        doubt,
        _not_admissible(points),
        _generator_bound(points),
        _level_shifts(points),
        _stalls(points),
        _lengthened(survey, points),
        _unsettled(survey),
        _foreign_load(points),
        _no_border(survey),
        *survey.start.findings,
        *_of_the_engine(points),
    ]
    return tuple(each for each in found if each is not None)


def _unfinished(survey: Survey, points: Sequence[Measurement]) -> Finding | None:
    if survey.status is Status.DONE:
        return None
    return Finding.of("stopped", points=len(points), planned=survey.start.plan.points)


def _drift(survey: Survey) -> Finding | None:
    step, drift = survey.drift_step, survey.drift_frac
    if step is not None:
        change = step.change_frac
        way = "fell_frac" if change.value < 0 else "rose_frac"
        values = {way: abs(change.value), "after_s": step.after_s, "before_s": step.before_s}
        values["at_s"] = step.at_s if step.at_s < 60 else 60.0 * round(step.at_s / 60)
        if change.low is not None and change.high is not None:
            ends = sorted((abs(change.low), abs(change.high)))
            values |= dict(zip(("low_frac", "high_frac"), ends, strict=True))
        return Finding.of("step", **values)
    if drift is None or not drift.excludes(0.0) or abs(drift.value) < DRIFT_FRAC_MIN:
        return None
    return Finding.of("drift", **drift_values(drift))


def _contradicted(survey: Survey) -> Finding:
    borders = len(survey.borders)
    return Finding.of("borders_gone", **({} if borders == 1 else {"borders": borders}))


def _not_admissible(points: Sequence[Measurement]) -> Finding | None:
    bad = [point for point in points if not point.result.admissible]
    if not bad:
        return None
    alike = _alike(
        found
        for point in bad
        for found in point.result.findings
        if found.severity is Severity.INVALID
    )
    common = "; ".join(f"{found[0]} ({len(found)})" for found in alike[:3])
    counts = {"inadmissible": len(bad), "points": len(points)}
    return Finding.of("points_inadmissible", **counts, for_curves=common)


def _generator_bound(points: Sequence[Measurement]) -> Finding | None:
    bound = sum(p.result.generator is not None and p.result.generator.bound for p in points)
    if not bound:
        return None
    return Finding.of("points_generator_bound", bound=bound, points=len(points))


def _level_shifts(points: Sequence[Measurement]) -> Finding | None:
    shifted = [point for point in points if len(point.result.levels) > 1]
    if not shifted:
        return None
    worst = max(shifted, key=_contrast)
    return Finding.of(
        "points_shifted",
        shifted=len(shifted),
        points=len(points),
        worst=worst.order + 1,
        first_mb_s=worst.result.levels[0].throughput_mb_s,
        last_mb_s=worst.result.levels[-1].throughput_mb_s,
    )


def _contrast(point: Measurement) -> float:
    rates = [level.throughput_mb_s for level in point.result.levels]
    return max(rates) / max(min(rates), 1e-9)


def _stalls(points: Sequence[Measurement]) -> Finding | None:
    stalled = [point for point in points if point.result.stalls]
    if not stalled:
        return None
    longest = max((s for p in stalled for s in p.result.stalls), key=lambda stall: stall.seconds)
    own = sum(any(stall.generator for stall in point.result.stalls) for point in stalled)
    return Finding.of(
        "points_stalled",
        stalled=len(stalled),
        points=len(points),
        longest_s=longest.seconds,
        **({"own": own} if own else {}),
    )


def _lengthened(survey: Survey, points: Sequence[Measurement]) -> Finding | None:
    """Say which points had to wait longer for their first request, and what that took."""
    own_s = MEASURE_SHARE * survey.start.plan.point_s
    longer = [p for p in points if p.result.wall_s > LENGTHENED_FROM * own_s]
    if not longer:
        return None
    ends = {p.order: p.clock_s + p.result.total_s for p in points}
    took_s = sum(ends[p.order] - ends.get(p.order - 1, 0.0) for p in longer)
    counts = {"longer": len(longer), "points": len(points)}
    return Finding.of("points_lengthened", **counts, own_s=own_s, took_s=took_s)


def _unsettled(survey: Survey) -> Finding | None:
    if survey.settled:
        return None
    return Finding.of("search_unsettled" if survey.start.focal_mode == "75%" else "focal_unsettled")


def _foreign_load(points: Sequence[Measurement]) -> Finding | None:
    busy = sum((p.result.foreign_cpu or 0.0) > FOREIGN_CPU_MAX for p in points)
    if not busy:
        return None
    counts = {"busy": busy, "points": len(points)}
    return Finding.of("points_foreign_load", foreign_frac=FOREIGN_CPU_MAX, **counts)


def _no_border(survey: Survey) -> Finding | None:
    if survey.borders or survey.start.focal_mode == "75%" or survey.status is not Status.DONE:
        return None
    return Finding.of("no_border", max_bytes=survey.start.plan.unique_bytes_max)


def _of_the_engine(points: Sequence[Measurement]) -> list[Finding]:
    """Fold findings that differ only in their values into one, with an example."""
    found = _alike(
        found
        for point in points
        for found in point.result.findings
        if found.severity is not Severity.INVALID and found.code not in _COUNTED
    )
    return [
        Finding("points_found", alike[0].severity, _example(alike, points))
        for alike in found
        if len(alike) > len(points) * ENGINE_WARNING_SHARE
    ]


def _example(alike: Sequence[Finding], points: Sequence[Measurement]) -> dict[str, int | str]:
    counts = {"found": len(alike), "points": len(points)}
    return {**counts, "code": alike[0].code, "example": str(alike[0])}


def _alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings that differ only in their values, the largest group first."""
    groups: dict[tuple[str, frozenset[str]], list[Finding]] = {}
    for found in findings:
        groups.setdefault((found.code, frozenset(found.values)), []).append(found)
    return sorted(groups.values(), key=len, reverse=True)
