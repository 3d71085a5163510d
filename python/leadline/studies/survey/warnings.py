"""What a reader must know before trusting a survey; each warning says what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leadline.engine import MEASURE_SHARE
from leadline.record import Measurement, Status, Survey
from leadline.record.finding import Finding, Severity
from leadline.record.wording import say_step
from leadline.stats import DRIFT_FRAC_MIN
from leadline.units import format_bytes, format_rate, format_seconds

FOREIGN_CPU_MAX = 0.25
_COUNTED = ("time_cap", "generator_bound", "level_shift", "stall")
"""A survey counts these over its points, but for the first: its intervals say what time bought."""
LENGTHENED_FROM = 2.0
"""A window of so many times a point's own was made longer: the next one tried is four times it."""
ENGINE_WARNING_SHARE = 0.05
"""A warning of the engine at fewer points than this share is left to the table of points."""


def survey_warnings(
    survey: Survey, points: Sequence[Measurement], *, contradicted: bool = False, doubt: str = ""
) -> tuple[str, ...]:
    """List the doubts about a survey, most important first.

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
        *survey.start.warnings,
        *_engine_warnings(points),
    ]
    return tuple(warning for warning in found if warning)


def _unfinished(survey: Survey, points: Sequence[Measurement]) -> str | None:
    planned = survey.start.plan.points
    if survey.status is Status.DONE:
        return None
    return (
        f"Stopped after {len(points)} of {planned} planned points; what is shown rests on those. "
        "The same command with --resume goes on."
    )


def _drift(survey: Survey) -> str | None:
    step = survey.drift_step
    if step is not None:
        return (
            f"The system {say_step(step)} (between "
            f"{format_seconds(step.after_s)} and {format_seconds(step.before_s)}), as when burst "
            "credits are spent or a processor gets hot: the repeated points before and after it "
            "differ. The points ran in random order, so the curves mix both speeds."
        )
    drift = survey.drift_frac
    if drift is None or not drift.excludes(0.0) or abs(drift.value) < DRIFT_FRAC_MIN:
        return None
    way = "slower" if drift.value < 0 else "faster"
    return (
        f"The system drifted: the repeated points became {abs(drift.value):.0%} {way} over the "
        f"survey (95 %: {drift.low:+.0%} to {drift.high:+.0%}). The points ran in random order, so "
        "the curves keep their shape, but absolute numbers depend on when they were taken."
    )


def _contradicted(survey: Survey) -> str:
    borders = "border" if len(survey.borders) == 1 else f"{len(survey.borders)} borders"
    return (
        f"The {borders} found at first did not show again: the points measured later at the middle "
        "of each region lie too near each other. What made the difference has changed since, or "
        "was chance; survey again before relying on the levels."
    )


def _not_admissible(points: Sequence[Measurement]) -> str | None:
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
    return f"{len(bad)} of {len(points)} points are not admissible and carry no curve: {common}."


def _generator_bound(points: Sequence[Measurement]) -> str | None:
    bound = [p for p in points if p.result.generator is not None and p.result.generator.bound]
    if not bound:
        return None
    return (
        f"generator-bound: {len(bound)} of {len(points)} points are within 20 % of what Leadline "
        "itself reaches on this machine; there the storage may be faster than shown."
    )


def _level_shifts(points: Sequence[Measurement]) -> str | None:
    shifted = [point for point in points if len(point.result.levels) > 1]
    if not shifted:
        return None
    worst = max(shifted, key=_contrast)
    first, last = worst.result.levels[0], worst.result.levels[-1]
    return (
        f"level shift: the rate changed within {len(shifted)} of {len(points)} points, most at "
        f"point {worst.order + 1}: {format_rate(first.throughput_mb_s)} at first, "
        f"{format_rate(last.throughput_mb_s)} at the end. Their means describe neither rate; a "
        "longer --budget or --precondition lets a point settle."
    )


def _contrast(point: Measurement) -> float:
    rates = [level.throughput_mb_s for level in point.result.levels]
    return max(rates) / max(min(rates), 1e-9)


def _stalls(points: Sequence[Measurement]) -> str | None:
    stalled = [point for point in points if point.result.stalls]
    if not stalled:
        return None
    longest = max((s for p in stalled for s in p.result.stalls), key=lambda stall: stall.seconds)
    own = sum(any(stall.generator for stall in point.result.stalls) for point in stalled)
    text = (
        f"stall: nothing completed for a while at {len(stalled)} of {len(points)} points, for "
        f"{format_seconds(longest.seconds)} at the longest"
    )
    return f"{text}; at {own} of them Leadline itself did not run." if own else f"{text}."


def _lengthened(survey: Survey, points: Sequence[Measurement]) -> str | None:
    """Say which points had to wait longer for their first request, and what that took."""
    own_s = MEASURE_SHARE * survey.start.plan.point_s
    longer = [p for p in points if p.result.wall_s > LENGTHENED_FROM * own_s]
    if not longer:
        return None
    ends = {p.order: p.clock_s + p.result.total_s for p in points}
    took_s = sum(ends[p.order] - ends.get(p.order - 1, 0.0) for p in longer)
    return (
        f"lengthened: {len(longer)} of {len(points)} points saw no request end in the "
        f"{format_seconds(own_s)} that each had, and were measured for longer; that took "
        f"{format_seconds(took_s)} of the budget. A longer --budget gives every point its time."
    )


def _unsettled(survey: Survey) -> str | None:
    if survey.settled:
        return None
    if survey.start.focal_mode == "75%":
        return (
            "The focal vector had not settled when its search ended; the sentence on it says how "
            "far it came. A larger --budget gives the search more points."
        )
    return (
        "The focal vector had not settled at the step limit: the curves' own half-way points lie "
        "more than a factor of three from the focal values used."
    )


def _foreign_load(points: Sequence[Measurement]) -> str | None:
    busy = [p for p in points if (p.result.foreign_cpu or 0.0) > FOREIGN_CPU_MAX]
    if not busy:
        return None
    return (
        f"Other programs used more than {FOREIGN_CPU_MAX:.0%} of a processor during {len(busy)} of "
        f"{len(points)} points; on an idle machine the numbers may be better. Predictions count "
        "those less that had more of such company than the others."
    )


def _no_border(survey: Survey) -> str | None:
    if survey.borders or survey.start.focal_mode == "75%" or survey.status is not Status.DONE:
        return None
    high = format_bytes(survey.start.plan.unique_bytes_max)
    return (
        f"No border was found up to {high}: either there is one level only, or the next one begins "
        "beyond the data that was allowed (--max-bytes)."
    )


def _engine_warnings(points: Sequence[Measurement]) -> list[str]:
    """Fold findings that differ only in their values into one, with an example."""
    found = _alike(
        found
        for point in points
        for found in point.result.findings
        if found.severity is not Severity.INVALID and found.code not in _COUNTED
    )
    return [
        f"{len(alike)} of {len(points)} points: {alike[0]}"
        for alike in found
        if len(alike) > len(points) * ENGINE_WARNING_SHARE
    ]


def _alike(findings: Iterable[Finding]) -> list[list[Finding]]:
    """Group findings that differ only in their values, the largest group first."""
    groups: dict[tuple[str, frozenset[str]], list[Finding]] = {}
    for found in findings:
        groups.setdefault((found.code, frozenset(found.values)), []).append(found)
    return sorted(groups.values(), key=len, reverse=True)
