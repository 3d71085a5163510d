"""Predictions held against what was measured (CP94 §9, Figs. 12-15 and 24). Pure.

The measured value of a workload is the geometric mean of its two readings. An error is the
absolute value of prediction / measured - 1. The inherent error is that of the first reading as a
prediction of the second (CP94 Fig. 15), so a perfect model, judged by a mean of two, has an
amplification of about a half, not of one: the noise of that mean is half as large (in standard
deviations) as that of a difference of two readings.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from leadline.models.ranges import Ranges
from leadline.record import (
    PARAMETERS,
    BinError,
    Covered,
    FocalDrift,
    Forecast,
    Interval,
    Measurement,
    ModelScore,
    ParameterError,
    PlaceError,
    Prediction,
    Survey,
    ValidatedWorkload,
    ValidationStart,
    Workload,
)
from leadline.record.finding import Finding
from leadline.record.findings import compare
from leadline.stats import Noise, group_drift, own_error, pooled_noise, reading_interval
from leadline.stats.intervals import student_cdf, student_t
from leadline.studies.validation.plan import (
    ANCHORS,
    ORTHOGONAL,
    PASSES,
    SINGLES,
    Space,
    drawn_workloads,
    grid_axes,
    grid_workloads,
)

CONFIDENCES = (0.5, 0.9, 0.95)
SCORED_MIN = 4
"""A median of fewer workloads is not reported."""
BOUNDARY_PLACE = "region boundary"
SURVEY_MEDIAN = "survey median"


@dataclass(frozen=True)
class Contestant:
    """What is scored: a value per drawn workload, and predictions where there are intervals."""

    name: str
    kind: Literal["model", "orthogonal", "single"]
    readings: int
    mb_s: tuple[float, ...]
    predictions: tuple[Prediction, ...] = ()


def contestants(
    start: ValidationStart,
    survey_points: Sequence[Measurement],
    predictions: Mapping[str, Sequence[Prediction]],
    points: Sequence[Measurement],
) -> tuple[Contestant, ...]:
    """Return models, then orthogonal samples that were measured whole, then single numbers.

    `predictions` are of the drawn workloads, in their order, by the name of the model.
    """
    drawn = drawn_workloads(start)
    found = [
        Contestant(
            name,
            "model",
            len(survey_points),
            tuple(item.throughput_mb_s.value for item in said),
            tuple(said),
        )
        for name, said in predictions.items()
    ]
    space = Space(start.ranges)
    grid = means(point for point in points if point.stage == ORTHOGONAL)
    for levels in start.plan.grids:
        values = interpolate(space, levels, grid, drawn)
        if values is not None:
            # Levels may fall on one value of a parameter; that costs a single point.
            size = len(set(grid_workloads(space, levels)))
            found.append(Contestant(_grid_name(size), "orthogonal", size, tuple(values)))
    single = means(point for point in points if point.stage == SINGLES)
    for item in start.singles:
        if item.workload in single:
            value = single[item.workload]
            found.append(Contestant(item.name, "single", len(PASSES), (value,) * len(drawn)))
    surveyed = [p.result.throughput_mb_s.value for p in survey_points if p.result.admissible]
    if surveyed:
        middle = statistics.median(surveyed)
        found.append(Contestant(SURVEY_MEDIAN, "single", len(surveyed), (middle,) * len(drawn)))
    return tuple(found)


def rivals_left_out(start: ValidationStart, points: Sequence[Measurement]) -> tuple[Finding, ...]:
    """Name every rival whose readings were taken and do not do, and say why.

    A grid with a hole cannot be interpolated; a single number needs one reading.
    """
    space, found = Space(start.ranges), []
    grids = [set(grid_workloads(space, levels)) for levels in start.plan.grids]
    rivals = [(_grid_name(len(grid)), ORTHOGONAL, grid) for grid in grids]
    rivals += [(item.name, SINGLES, {item.workload}) for item in start.singles]
    for name, stage, wanted in rivals:
        own = [point for point in points if point.stage == stage and point.workload in wanted]
        lost = {point.workload for point in own} - means(own).keys()
        if not lost:
            continue
        reasons = dict.fromkeys(
            reason for point in own if point.workload in lost for reason in point.result.reasons
        )
        values: dict[str, float | str] = {"rival": name}
        if reasons:
            values["reasons"] = "; ".join(list(reasons)[:2])
        if len(wanted) > 1:
            values |= {"lost": len(lost), "workloads": len(wanted)}
        found.append(Finding.of("rival_left_out", **values))
    return tuple(found)


def _grid_name(size: int) -> str:
    return f"orthogonal {size}"


def means(points: Iterable[Measurement]) -> dict[Workload, float]:
    """Geometric mean of the valid readings of each workload, in MB/s."""
    logs: dict[Workload, list[float]] = {}
    for point in points:
        value = point.result.throughput_mb_s.value
        if point.result.admissible and value > 0:
            logs.setdefault(point.workload, []).append(math.log(value))
    return {workload: math.exp(statistics.fmean(own)) for workload, own in logs.items()}


def validated_workloads(
    start: ValidationStart,
    survey: Survey,
    points: Sequence[Measurement],
    rivals: Sequence[Contestant],
) -> tuple[ValidatedWorkload, ...]:
    """Return every drawn workload with its readings and what each contestant said of it."""
    space, ranges = Space(start.ranges), Ranges(survey)
    taken = {(p.stage, p.workload): p for p in points if p.stage in PASSES}
    rows = []
    for index, workload in enumerate(drawn_workloads(start)):
        own = [taken.get((stage, workload)) for stage in PASSES]
        readings = [_reading(point) for point in own]
        known = [reading for reading in readings if reading is not None]
        measured = math.exp(statistics.fmean(map(math.log, known))) if known else None
        both = readings[0] is not None and readings[1] is not None
        rows.append(
            ValidatedWorkload(
                workload=workload,
                region=space.at(workload.unique_bytes).region,
                boundary_zone=ranges.boundary_zone(workload.unique_bytes) is not None,
                readings_mb_s=tuple(readings),
                measured_mb_s=measured,
                repeat_error_frac=abs(known[0] / known[1] - 1) if both else None,
                forecasts=tuple(_forecast(rival, index, measured, len(known)) for rival in rivals)
                if measured is not None
                else (),
                reasons=tuple(reason for point in own if point for reason in point.result.reasons),
            )
        )
    return tuple(rows)


def _reading(point: Measurement | None) -> float | None:
    if point is None or not point.result.admissible or point.result.throughput_mb_s.value <= 0:
        return None
    return point.result.throughput_mb_s.value


def _forecast(rival: Contestant, index: int, measured: float, readings: int) -> Forecast:
    value = rival.mb_s[index]
    low = high = level = None
    if rival.predictions:
        said = rival.predictions[index]
        sd = mean_ln_sd(said, readings)
        half = student_t(said.df) * sd
        low, high = value * math.exp(-half), value * math.exp(half)
        t = abs(math.log(measured / value)) / max(sd, 1e-12)
        level = 2 * student_cdf(said.df, t) - 1
    return Forecast(
        model=rival.name,
        throughput_mb_s=value,
        low_mb_s=low,
        high_mb_s=high,
        error_frac=value / measured - 1,
        level=level,
    )


def mean_ln_sd(prediction: Prediction, readings: int) -> float:
    """Standard deviation of ln(mean of so many readings) about a prediction."""
    noise = max(0.0, prediction.run_ln_sd**2 - prediction.ln_sd**2)
    return math.sqrt(prediction.ln_sd**2 + noise / readings)


def inherent_error(rows: Sequence[ValidatedWorkload], seed: int) -> Interval | None:
    """Median of |first / second - 1|; None when too few were measured twice."""
    repeats = [row.repeat_error_frac for row in rows if row.repeat_error_frac is not None]
    if len(repeats) < SCORED_MIN:
        return None
    return quantile_interval(np.array(repeats), 0.5, seed)


def model_scores(
    start: ValidationStart, rivals: Sequence[Contestant], rows: Sequence[ValidatedWorkload]
) -> tuple[ModelScore, ...]:
    """Score every contestant over the workloads that were measured; none when there are too few."""
    scored = [row for row in rows if row.measured_mb_s is not None]
    if len(scored) < SCORED_MIN:
        return ()
    return tuple(_score(start, rival, at, scored) for at, rival in enumerate(rivals))


def _score(
    start: ValidationStart, rival: Contestant, at: int, rows: Sequence[ValidatedWorkload]
) -> ModelScore:
    own = [row.forecasts[at] for row in rows]
    signed = np.array([item.error_frac for item in own])
    errors, seed = np.abs(signed), start.seed
    inner = errors[[not row.boundary_zone for row in rows]]
    repeats = np.array(
        [math.nan if row.repeat_error_frac is None else row.repeat_error_frac for row in rows]
    )
    levels = [item.level for item in own if item.level is not None]
    detailed = rival.kind != "single"
    return ModelScore(
        model=rival.name,
        kind=rival.kind,
        readings=rival.readings,
        median_error=quantile_interval(errors, 0.5, seed),
        p75_error=quantile_interval(errors, 0.75, seed),
        p90_error=quantile_interval(errors, 0.9, seed),
        enhanced_median_error=quantile_interval(inner, 0.5, seed)
        if inner.size >= SCORED_MIN
        else None,
        amplification=ratio_of_medians(errors, repeats, seed),
        bias_frac=quantile_interval(signed, 0.5, seed),
        coverage=tuple(
            Covered(asked, share_interval(sum(level <= asked for level in levels), len(levels)))
            for asked in CONFIDENCES
            if levels
        ),
        by_parameter=_by_parameter(rows, errors, seed) if detailed else (),
        by_place=_by_place(start, rows, errors) if detailed else (),
    )


def _by_parameter(
    rows: Sequence[ValidatedWorkload], errors: Floats, seed: int
) -> tuple[ParameterError, ...]:
    found, chances = [], []
    for parameter in PARAMETERS:
        values = np.array([float(getattr(row.workload, parameter)) for row in rows])
        masks = bins_of(values)
        chances.append(chance_of_spread([errors[mask] for mask in masks]))
        found.append(
            [
                BinError(
                    float(values[mask].min()),
                    float(values[mask].max()),
                    quantile_interval(errors[mask], 0.5, seed),
                )
                for mask in masks
            ]
        )
    return tuple(
        ParameterError(parameter=parameter, bins=tuple(bins), chance=chance)
        for parameter, bins, chance in zip(PARAMETERS, found, holm(chances), strict=True)
    )


def _by_place(
    start: ValidationStart, rows: Sequence[ValidatedWorkload], errors: Floats
) -> tuple[PlaceError, ...]:
    boundary = np.array([row.boundary_zone for row in rows])
    region = np.array([row.region for row in rows])
    places: list[tuple[int | None, str, Floats]] = [
        (item.region, item.name, errors[~boundary & (region == item.region)])
        for item in start.ranges
    ]
    places.append((None, BOUNDARY_PLACE, errors[boundary]))
    return tuple(
        PlaceError(index, name, quantile_interval(own, 0.5, start.seed))
        for index, name, own in places
        if own.size >= BIN_ROWS_MIN
    )


# Numbers about errors: quantiles with bootstrap intervals, coverage, what the error depends on.

RESAMPLES = 2000
BINS = 5
BIN_ROWS_MIN = 4
"""Workloads in a bin, at the least, for a median with an interval."""
ROWS_PER_BIN = 8
"""Fewer workloads than this for each of five bins make fewer bins."""

Floats = NDArray[np.float64]


def quantile_interval(errors: Floats, quantile: float, seed: int) -> Interval:
    """Quantile of `errors` with its 95% percentile-bootstrap interval, workloads resampled."""
    drawn = errors[_resample(errors.size, seed)]
    low, high = np.quantile(np.quantile(drawn, quantile, axis=1), [0.025, 0.975])
    return Interval(float(np.quantile(errors, quantile)), float(low), float(high), errors.size)


def ratio_of_medians(errors: Floats, repeats: Floats, seed: int) -> Interval | None:
    """Median of `errors` over median of `repeats`, (workloads,) each, resampled together.

    `repeats` is nan where a workload was measured once. None when no repeat differs.
    """
    known = np.isfinite(repeats)
    if not known.any() or not np.median(repeats[known]) > 0:
        return None
    rows = _resample(errors.size, seed)
    some = known[rows].any(axis=1)
    below = np.nanmedian(repeats[rows[some]], axis=1)
    ratios = np.median(errors[rows[some]], axis=1)[below > 0] / below[below > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    value = float(np.median(errors) / np.median(repeats[known]))
    return Interval(value, float(low), float(high), errors.size)


def share_interval(hits: int, count: int) -> Interval:
    """Share of hits with its 95% Wilson interval."""
    from scipy.stats import binomtest  # noqa: PLC0415 - see `chance_of_spread`

    found = binomtest(hits, count).proportion_ci(method="wilson")
    return Interval(hits / count, float(found.low), float(found.high), count)


def bins_of(values: Floats) -> list[NDArray[np.bool_]]:
    """Cut values into bins of about equal counts, equal values together; a mask for each."""
    wanted = min(BINS, max(1, values.size // ROWS_PER_BIN))
    inner = np.quantile(values, np.linspace(0, 1, wanted + 1)[1:-1])
    place = np.searchsorted(np.unique(inner), values, side="right")
    masks = [place == index for index in np.unique(place)]
    return [mask for mask in masks if mask.sum() >= BIN_ROWS_MIN]


def chance_of_spread(groups: Sequence[Floats]) -> float | None:
    """Probability of such differences between the groups if they were alike (Kruskal-Wallis)."""
    from scipy.stats import kruskal  # noqa: PLC0415 - half a second that few commands need

    if len(groups) < 2 or np.ptp(np.concatenate(groups)) == 0:
        return None
    return float(kruskal(*groups).pvalue)


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """Adjust several probabilities for each other (Holm 1979), in their own order."""
    known = sorted((chance, at) for at, chance in enumerate(chances) if chance is not None)
    adjusted: list[float | None] = [None] * len(chances)
    worst = 0.0
    for rank, (chance, at) in enumerate(known):
        worst = max(worst, min(1.0, chance * (len(known) - rank)))
        adjusted[at] = worst
    return adjusted


def _resample(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))


# Did the system move since its survey? The focal points measured again tell (METHODS §2).


def focal_drifts(
    start: ValidationStart, points: Sequence[Measurement]
) -> tuple[tuple[FocalDrift, ...], Interval | None]:
    """Return the change of each focal point since the survey, and of all of them together.

    Fractions: -0.1 where the system is a tenth slower now. The interval of a ratio is recovered
    from the survey's own and that of the readings here (`record.findings.compare`); all together
    are the mean of the logarithms, weighted by their inverse variance. None without any anchor.
    """
    found, logs = [], []
    for item in start.ranges:
        anchors = [p for p in points if p.stage == ANCHORS and p.workload == item.focal]
        usable = [p for p in anchors if p.result.admissible]
        if not usable:
            continue
        now = reading_interval(
            [_mb_s(point) for point in usable],
            [own_error(point.result.throughput_mb_s) for point in usable],
            region_noise(start, points, item.region),
        )
        change = compare(now, item.surveyed_mb_s)
        if change.low is None or change.high is None:
            continue
        n = now.n + item.surveyed_mb_s.n
        interval = Interval(change.ratio - 1, change.low - 1, change.high - 1, n)
        found.append(FocalDrift(item.region, item.name, interval))
        logs.append((math.log(change.ratio), math.log(change.high / change.low) / 2, n))
    return tuple(found), _together(logs)


def moved(drift: Sequence[FocalDrift], together: Interval | None) -> tuple[FocalDrift, ...] | None:
    """Return the regions that are shown to have moved; None when nothing is shown to have.

    All regions and their mean are asked, so each must exclude 0 by an interval that is wider than
    its own 95% one (Bonferroni), on the log scale.
    """
    tests = len(drift) + 1
    regions = tuple(item for item in drift if _excludes_zero(item.change_frac, tests))
    whole = together is not None and _excludes_zero(together, tests)
    return regions if whole or regions else None


def _excludes_zero(change: Interval, tests: int) -> bool:
    if change.low is None or change.high is None:
        return False
    normal = NormalDist()
    stretch = normal.inv_cdf(1 - 0.025 / tests) / normal.inv_cdf(0.975)
    # Very few readings bound a change by nothing: the low end is then a fall by all of it.
    middle, low, high = (
        math.log1p(end) if end > -1 else -math.inf
        for end in (change.value, change.low, change.high)
    )
    return middle - stretch * (middle - low) > 0 or middle + stretch * (high - middle) < 0


def drift_within(points: Sequence[Measurement]) -> Interval | None:
    """Return the change from the first point to the last, from all that was measured repeatedly."""
    groups = [group for group in replicates(points) if len(group) > 1]
    return group_drift(
        [[point.clock_s for point in group] for group in groups],
        [[_mb_s(point) for point in group] for group in groups],
    )


def region_noise(start: ValidationStart, points: Sequence[Measurement], region: int) -> Noise:
    """Run-to-run noise in one region, from all that was measured there more than once."""
    space = Space(start.ranges)
    own = [p for p in points if space.at(p.workload.unique_bytes).region == region]
    return pooled_noise([[_mb_s(p) for p in g] for g in replicates(own) if len(g) > 1])


def replicates(points: Sequence[Measurement]) -> list[list[Measurement]]:
    """Group the valid points by their workload."""
    groups: dict[Workload, list[Measurement]] = {}
    for point in points:
        if point.result.admissible:
            groups.setdefault(point.workload, []).append(point)
    return list(groups.values())


def _together(logs: Sequence[tuple[float, float, int]]) -> Interval | None:
    if not logs:
        return None
    weights = [1 / max(half, 1e-9) ** 2 for _, half, _ in logs]
    total = sum(weights)
    mean = sum(w * log for w, (log, _, _) in zip(weights, logs, strict=True)) / total
    half = total**-0.5
    low, high = math.expm1(mean - half), math.expm1(mean + half)
    return Interval(math.expm1(mean), low, high, sum(n for _, _, n in logs))


def _mb_s(point: Measurement) -> float:
    return max(point.result.throughput_mb_s.value, 1e-6)


# The rival of CP94 Fig. 14: interpolation in an orthogonal sample of the same space.


def interpolate(
    space: Space,
    levels: Sequence[int],
    measured_mb_s: Mapping[Workload, float],
    workloads: Sequence[Workload],
) -> list[float] | None:
    """Return the throughput of each workload in MB/s, multilinear in ln throughput.

    The axes are those of the unit cube (`draw.py`), so unique_bytes, size_mean and process_num are
    interpolated over their logarithms. None when a point of the grid was not measured.
    """
    from scipy.interpolate import RegularGridInterpolator  # noqa: PLC0415 - a third of a second

    grid = grid_workloads(space, levels)
    if any(measured_mb_s.get(workload, 0.0) <= 0 for workload in grid):
        return None
    values = np.array([math.log(measured_mb_s[workload]) for workload in grid])
    interpolator = RegularGridInterpolator(grid_axes(levels), values.reshape(tuple(levels)))
    found = interpolator(np.array([space.coordinates(workload) for workload in workloads]))
    return [math.exp(value) for value in found]
