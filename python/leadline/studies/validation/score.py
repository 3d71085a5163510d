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
from typing import Literal

import numpy as np

from leadline.predict import Ranges
from leadline.record import (
    PARAMETERS,
    BinError,
    Covered,
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
from leadline.stats.intervals import student_cdf, student_t
from leadline.studies.validation.draw import (
    ORTHOGONAL,
    PASSES,
    SINGLES,
    Space,
    drawn_workloads,
    grid_workloads,
)
from leadline.studies.validation.orthogonal import interpolate
from leadline.studies.validation.statistics import (
    BIN_ROWS_MIN,
    Floats,
    bins_of,
    chance_of_spread,
    holm,
    quantile_interval,
    ratio_of_medians,
    share_interval,
)

CONFIDENCES = (0.5, 0.9, 0.95)
SCORED_MIN = 4
"""A median of fewer workloads is not reported."""
BORDER_PLACE = "region border"
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
    """Geometric mean of the admissible readings of each workload, in MB/s."""
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
                border_zone=ranges.border_zone(workload.unique_bytes) is not None,
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
    inner = errors[[not row.border_zone for row in rows]]
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
    border = np.array([row.border_zone for row in rows])
    region = np.array([row.region for row in rows])
    places: list[tuple[int | None, str, Floats]] = [
        (item.region, item.name, errors[~border & (region == item.region)]) for item in start.ranges
    ]
    places.append((None, BORDER_PLACE, errors[border]))
    return tuple(
        PlaceError(index, name, quantile_interval(own, 0.5, start.seed))
        for index, name, own in places
        if own.size >= BIN_ROWS_MIN
    )
