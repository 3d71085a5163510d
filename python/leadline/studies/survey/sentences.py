"""A survey in words: its noise, its findings, its answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from leadline.engine import MEASURE_SHARE
from leadline.record import Interval, Measurement, Status, Survey, Workload
from leadline.record.finding import Finding, Severity, drift_values
from leadline.record.findings import (
    LEVEL_FRAC,
    Gain,
    boundary_is_gradual,
    compare,
    ends,
    gain,
    told_drift,
)
from leadline.record.survey import Boundary, Curve, CurvePoint, Region
from leadline.record.wording import (
    FRACTION_ENDS,
    format_basis,
    format_bytes_ci,
    format_change,
    format_count,
    format_half_width,
    format_rate_ci,
    format_step,
    format_times,
    format_value,
    format_workload_at,
    join_words,
)
from leadline.stats import (
    DRIFT_FRAC_MIN,
    Noise,
    group_drift,
    group_step,
    own_error,
    pooled_noise,
    reading_interval,
)
from leadline.studies.hit_ratio import throughput
from leadline.studies.measurement.text import IDLE_GAIN_TOLD, idle_gain_at
from leadline.studies.survey.boundaries import SurveyReadings
from leadline.studies.survey.middle import RegionBounds
from leadline.units import format_bytes, format_percent, format_seconds

# Run-to-run noise of a survey, learned from the points measured more than once.
#
# A single run's own interval knows nothing of the difference between runs, which on storage is
# usually the larger part (LITERATURE: FAST'17). So every interval of a survey adds the spread seen
# between replicates, pooled over the region a point lies in, or over the whole survey where a
# region has too few.

BOUNDARY_ZONE = 1.15
"""Places within this factor of a boundary count as at the boundary."""

OWN_DEGREES_MIN = 3
"""Degrees of freedom from which a region's replicates are trusted alone."""


class NoiseModel:
    """Between-run noise by region, and the intervals that follow from it."""

    def __init__(self, readings: SurveyReadings, regions: Sequence[RegionBounds]) -> None:
        self._regions = regions
        groups = readings.replicates()
        movement = _movement(readings)
        every = max(_degrees(groups), 1)
        self._overall = _pool(groups, movement, 1.0)
        self._boundaries = [region.low_bytes for region in regions[1:]]
        inside = [_inside(groups, region, self._boundaries) for region in regions]
        self._degrees = [_degrees(own) for own in inside]
        self._own = [
            _pool(own, movement, degrees / every)
            for own, degrees in zip(inside, self._degrees, strict=True)
        ]

    def at(self, workload: Workload) -> Noise:
        """Noise of a workload, by the region that holds its unique_bytes."""
        if _at_boundary(workload.unique_bytes, self._boundaries):
            return self._overall
        for index, region in enumerate(self._regions):
            inside = region.low_bytes <= workload.unique_bytes <= region.high_bytes
            if inside and self._degrees[index] >= OWN_DEGREES_MIN:
                return self._own[index]
        return self._overall

    def interval(self, found: Sequence[Measurement]) -> Interval:
        """95% interval of the throughput behind readings of one workload."""
        if not found:
            return Interval(0.0, None, None, 0)
        return reading_interval(
            [throughput(point) for point in found],
            [own_error(point.result.throughput_mb_s) for point in found],
            self.at(found[0].workload),
        )


def _inside(
    groups: Sequence[Sequence[Measurement]], region: RegionBounds, boundaries: Sequence[int]
) -> list[Sequence[Measurement]]:
    return [
        group
        for group in groups
        if region.low_bytes <= group[0].workload.unique_bytes <= region.high_bytes
        and not _at_boundary(group[0].workload.unique_bytes, boundaries)
    ]


def _at_boundary(unique_bytes: int, boundaries: Sequence[int]) -> bool:
    """Whether a place is so near a boundary that its readings jump between two levels.

    Readings there differ by far more than those inside a region (CP94 §7: "performance is often
    unstable"); they would drown the region's own noise, and its noise would understate theirs.
    """
    return any(max(unique_bytes, b) <= BOUNDARY_ZONE * min(unique_bytes, b) for b in boundaries)


@dataclass(frozen=True)
class _Movement:
    """What the whole system moved while it was measured."""

    ln_since_start: Callable[[float], float]
    """Change of ln throughput by time."""
    parameters: int
    """How many numbers of it were fitted to the replicates."""


def _movement(readings: SurveyReadings) -> _Movement:
    """The step or the drift that the replicates show, if any.

    What the whole system moved between two readings is not noise: it is reported by itself, and
    counting it again would widen every interval beyond what it states.
    """
    times, rates = readings.replicate_series()
    step = group_step(times, rates)
    if step is not None:
        fallen = math.log1p(step.change_frac.value)
        return _Movement(lambda clock_s: fallen if clock_s >= step.before_s else 0.0, 2)
    change = group_drift(times, rates)
    if change is None or not change.excludes(0.0):
        return _Movement(lambda _: 0.0, 0)
    every = [time for group in times for time in group]
    slope_per_s = math.log1p(change.value) / (max(every) - min(every))
    return _Movement(lambda clock_s: slope_per_s * clock_s, 1)


def _degrees(groups: Sequence[Sequence[Measurement]]) -> int:
    return sum(len(group) - 1 for group in groups)


def _pool(groups: Sequence[Sequence[Measurement]], movement: _Movement, share: float) -> Noise:
    """Pool what is left of the readings without the movement, whose fit took its share of them."""
    return pooled_noise(
        [
            [throughput(p) * math.exp(-movement.ln_since_start(p.clock_s)) for p in group]
            for group in groups
        ],
        movement.parameters * share,
    )


# What a reader must know before trusting a survey.

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

    `contradicted`: the focal points, measured after the boundaries, no longer show as many.
    `doubt`: where what was counted and the throughput place a boundary differently.
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
        _foreign_load(survey, points),
        _no_boundary(survey),
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
    boundaries = len(survey.boundaries)
    return Finding.of("boundaries_gone", **({} if boundaries == 1 else {"boundaries": boundaries}))


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
    rates = {
        point.order: [level.throughput_mb_s for level in point.result.levels] for point in shifted
    }
    worst = max(rates, key=lambda order: max(rates[order]) / max(min(rates[order]), 1e-9))
    return Finding.of(
        "points_shifted",
        shifted=len(shifted),
        points=len(points),
        worst=worst + 1,
        low_mb_s=min(rates[worst]),
        high_mb_s=max(rates[worst]),
    )


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


def _foreign_load(survey: Survey, points: Sequence[Measurement]) -> Finding | None:
    busy = sum((p.result.foreign_cpu or 0.0) > FOREIGN_CPU_MAX for p in points)
    if not busy:
        return None
    values: dict[str, int | float | str] = {"busy": busy, "points": len(points)}
    processors = survey.start.facts.get("cpu_count")
    idle = {r.name: idle_gain_at(r.focal, points, processors) or 1.0 for r in survey.regions}
    slowed = max(survey.regions, key=lambda region: idle[region.name], default=None)
    if slowed is not None and idle[slowed.name] >= IDLE_GAIN_TOLD:
        rate = slowed.throughput_mb_s.value
        values |= {
            "level": slowed.name,
            "measured_mb_s": rate,
            "idle_mb_s": idle[slowed.name] * rate,
        }
    return Finding.of("points_foreign_load", foreign_frac=FOREIGN_CPU_MAX, **values)


def _no_boundary(survey: Survey) -> Finding | None:
    if survey.boundaries or survey.start.focal_mode == "75%" or survey.status is not Status.DONE:
        return None
    return Finding.of("no_boundary", max_bytes=survey.start.plan.unique_bytes_max)


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


# The answer in five lines, from a finished (or stopped) survey's record alone.
#
# Each number carries its 95% interval; a difference that the intervals cannot show is said to be
# "no significant difference", never rounded into a finding. One line each: levels, fastest and
# slowest workloads, request size, concurrency (with reads and sequence where they matter),
# accuracy.


def sentences(survey: Survey) -> tuple[str, ...]:
    """Answer in five lines; pure, so the same record always reads the same."""
    return (
        _levels(survey),
        _fastest_and_slowest(survey),
        _scaling(survey, "size_mean", "Request size"),
        _concurrency(survey),
        _accuracy(survey),
    )


def _levels(survey: Survey) -> str:
    regions, curve = survey.regions, survey.unique_bytes_curve
    if not regions:
        return "Levels: inconclusive, the survey stopped before any level was measured."
    cap = survey.start.cache_limit_bytes
    capped = f"; page cache capped at {format_bytes(cap)}" if cap else ""
    if len(regions) == 1:
        return f"{_one_level(regions[0], curve)}{capped}."
    bases = {boundary.basis for boundary in survey.boundaries}
    ends = "; ".join(
        f"{region.name}: {_end(boundary, named=len(bases) > 1)}"
        for region, boundary in zip(regions, survey.boundaries, strict=False)
    )
    ends = ends[:1].upper() + ends[1:]
    basis = f"; from {format_basis(bases.pop())}" if len(bases) == 1 else ""
    gradual = boundary_is_gradual(survey.boundaries[-1])
    last = regions[-1].name
    beyond = f"gradual transition to {last}" if gradual else f"{last} beyond"
    return f"{ends}; {beyond} ({len(regions)} levels{basis}{capped})."


def _end(boundary: Boundary, *, named: bool) -> str:
    return format_bytes_ci(boundary.bytes, level=True) + (
        f" from {format_basis(boundary.basis)}" * named
    )


def _one_level(region: Region, curve: Curve) -> str:
    span = f"no boundary from {format_bytes(region.low_bytes)} to {format_bytes(region.high_bytes)}"
    fall = ends(curve)
    if fall is not None and fall.slower and fall.ratio < 0.8:
        return (
            f"One level, {region.name}, smooth slope: {span}; smallest working set "
            f"{format_times(fall.inverse())} as fast as the largest"
        )
    return f"One level, {region.name}: {span}"


def _fastest_and_slowest(survey: Survey) -> str:
    regions = {region.index: region for region in survey.regions}
    found = [
        (point, curve, regions[curve.region])
        for family in survey.families
        for curve in family.curves
        for point in curve.points
        if curve.region is not None and curve.region in regions
    ]
    found += [
        (point, survey.unique_bytes_curve, region)
        for point in survey.unique_bytes_curve.points
        for region in survey.regions
        if region.low_bytes <= point.x <= region.high_bytes
    ]
    if not found:
        return "Fastest and slowest: inconclusive, too little was measured."
    best = max(found, key=lambda entry: entry[0].throughput_mb_s.value)
    worst = min(found, key=lambda entry: entry[0].throughput_mb_s.value)
    # Both ends were picked from all the points, so every pair was a candidate.
    pairs = len(found) * (len(found) - 1) // 2
    apart = compare(best[0].throughput_mb_s, worst[0].throughput_mb_s, candidates=pairs)
    if not apart.shown:
        return f"Fastest and slowest: no significant difference among {len(found)} workloads."
    return f"Fastest: {_entry(best)}; slowest: {_entry(worst)}."


def _entry(entry: tuple[CurvePoint, Curve, Region]) -> str:
    point, curve, region = entry
    what = format_workload_at(curve.parameter, point.x)
    return f"{format_rate_ci(point.throughput_mb_s)}, {what}, {region.name}"


def _curves(survey: Survey, parameter: str) -> list[tuple[Region, Curve | None]]:
    families = {family.region: family for family in survey.families}
    return [
        (region, families[region.index].curve(parameter) if region.index in families else None)
        for region in survey.regions
    ]


def _scaling(survey: Survey, parameter: str, title: str) -> str:
    curves = _curves(survey, parameter)
    if not curves:
        return f"{title}: not measured."
    texts = [(region, _gain_text(gain(curve), parameter)) for region, curve in curves]
    return f"{title}: {_by_level(texts)}."


def _by_level(texts: list[tuple[Region, str]]) -> str:
    """Say each text once, after every level it holds for."""
    levels: dict[str, list[str]] = {}
    for region, text in texts:
        levels.setdefault(text, []).append(region.name)
    return "; ".join(f"{join_words(names)} {text}" for text, names in levels.items())


def _gain_text(found: Gain | None, parameter: str) -> str:
    if found is None:
        return "not measured"
    last = format_value(parameter, found.last.x)
    if not (found.to_best.faster and found.best.x > found.first.x):
        span = _span(parameter, found.first.x, found.last.x)
        return f"no significant gain from {span}{_falls(found, last)}"
    span = _span(parameter, found.first.x, found.best.x)
    text = f"{format_times(found.to_best)} from {span}"
    if found.rising:
        return f"{text}, still rising"
    if found.level_x < found.last.x:
        text += f", level from {format_value(parameter, found.level_x)}"
    return text + _falls(found, last)


def _falls(found: Gain, last: str) -> str:
    if not (found.to_last.slower and found.to_last.ratio < LEVEL_FRAC):
        return ""
    return f", {format_times(found.to_last)} of the best at {last}"


def _span(parameter: str, low: float, high: float) -> str:
    words = " processes" if parameter == "process_num" else ""
    return f"{format_value(parameter, low)} to {format_value(parameter, high)}{words}"


def _concurrency(survey: Survey) -> str:
    mixes = [_mix(survey, parameter, words) for parameter, words in FRACTION_ENDS.items()]
    return " ".join([_scaling(survey, "process_num", "Concurrency"), *filter(None, mixes)])


def _mix(survey: Survey, parameter: str, words: tuple[str, str]) -> str:
    """Compare the two ends of a mix in every region that has them."""
    told: list[str] = []
    alike: list[str] = []
    for region, curve in _curves(survey, parameter):
        comparison = ends(curve) if _spans_the_mix(curve) else None
        if comparison is None:
            continue
        if comparison.shown:
            told.append(f"{region.name} {format_times(comparison)}")
        else:
            alike.append(region.name)
    if alike:
        told.append(f"{join_words(alike)} no significant difference")
    return f"{words[0].capitalize()} over {words[1]}: {'; '.join(told)}." if told else ""


def _spans_the_mix(curve: Curve | None) -> bool:
    xs = {point.x for point in curve.points} if curve else set()
    return {0.0, 1.0} <= xs


def _accuracy(survey: Survey) -> str:
    parts = [f"{format_count(survey.points, 'point')} in {format_seconds(survey.wall_s)}"]
    if survey.accuracy_frac is None:
        parts.append("too few readings for the width of the intervals")
    else:
        width = format_half_width(survey.accuracy_frac)
        parts.append(f"median 95% CI half-width {width}")
    if survey.noise_frac:
        noise = [f"{format_percent(frac)} ({name})" for name, frac in survey.noise_frac.items()]
        parts.append(f"run-to-run CV {join_words(noise)}")
    parts.append(_format_drift(survey))
    if survey.status is not Status.DONE:
        planned = survey.start.plan.points
        parts.append(f"stopped early, after {survey.points} of {planned} planned points")
    if not survey.settled:
        parts.append("focal points not settled")
    return f"Accuracy: {'; '.join(parts)}."


def _format_drift(survey: Survey) -> str:
    if survey.drift_step is not None:
        return f"the system {format_step(survey.drift_step)}"
    drift = told_drift(survey.drift_frac)
    if drift is None or drift.low is None or drift.high is None:
        return "drift unknown"
    said = "no significant drift" if drift.covers(0.0) else "drift"
    return f"{said}: {format_change(drift)}"
