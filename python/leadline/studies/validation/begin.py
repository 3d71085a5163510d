"""The record that decides a validation, made before its first point."""

from __future__ import annotations

import math
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from leadline.engine import BUDGET_SHARE, LAYOUT_BYTES_PER_S, POINT_S_MIN, Engine
from leadline.predict import Ranges
from leadline.record import (
    PARAMETERS,
    DrawnRange,
    Measurement,
    Survey,
    ValidationPlan,
    ValidationStart,
)
from leadline.record.finding import Finding
from leadline.studies.resume import clock_after
from leadline.studies.validation.draw import Space, grid_levels, plan_stages, single_numbers
from leadline.studies.validation.errors import ValidationRefused
from leadline.studies.validation.same_system import require_same_system
from leadline.units import format_bytes, format_seconds

COUNT_MIN = 4
"""A median of fewer says nothing."""
BUDGET_FACTOR = 1.1
"""Time over the points' own, for preparing them, when nobody names a budget."""
RIVAL_COSTS = (1, 2)
"""Sizes of the orthogonal samples, as multiples of the survey's points (CP94 Fig. 14)."""


@dataclass(frozen=True)
class Asked:
    """The options that decide a new validation."""

    count: int
    seed: int
    seconds: float | None
    """Most time of a point; None takes the survey's own."""
    budget_s: float | None
    """Hard cap; None takes what the points need."""
    rivals: bool
    """Whether the orthogonal samples are measured."""


def begin_validation(
    engine: Engine,
    survey: Survey,
    survey_points: Sequence[Measurement],
    asked: Asked,
    *,
    study_id: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> ValidationStart:
    """Plan a validation on the opened target of a survey.

    Args:
        engine: the survey's target, opened with the survey's own options.
        survey: what is to be validated.
        survey_points: its points.
        asked: the options.
        study_id: its id; by default a new one.
        findings: what was found before the first point.

    Raises:
        ValidationRefused: the survey has nothing to validate, the system changed, or the time of
            a point or the budget is too small.
        EngineFault: the engine died, hung or spoke nonsense.

    """
    if asked.count < COUNT_MIN:
        raise ValidationRefused(
            f"--count {asked.count} is too few for a median; give {COUNT_MIN} or more"
        )
    if asked.seconds is not None and asked.seconds < POINT_S_MIN:
        raise ValidationRefused(
            f"--seconds {asked.seconds:g} is too short for a point to say anything; give "
            f"{POINT_S_MIN} or more"
        )
    ranges = drawn_ranges(survey)
    require_as_surveyed(engine, survey, ranges)
    engine.prepare()
    start = survey.start
    return ValidationStart(
        study_id=study_id or uuid.uuid4().hex,
        parent=start.study_id,
        system=start.system,
        target=start.target,
        seed=asked.seed,
        started_at=datetime.now(UTC).isoformat(),
        count=asked.count,
        **engine.access.stored_in(ValidationStart),
        accuracy=start.accuracy,
        plan=_plan(
            survey,
            len(survey_points),
            ranges,
            asked,
            layout=not engine.virtual and engine.access.backend != "null",
        ),
        ranges=ranges,
        singles=single_numbers(Space(ranges)),
        facts=dict(engine.facts),
        clock_start_s=clock_after(survey_points),
        findings=findings,
    )


def require_as_surveyed(engine: Engine, survey: Survey, ranges: Sequence[DrawnRange]) -> None:
    """Refuse what is not the surveyed system any more, or has no room for what was surveyed.

    Raises:
        ValidationRefused: which decisive facts differ, or how many bytes may be used.

    """
    require_same_system(survey.start.facts, engine.facts)
    highest = ranges[-1].high_bytes
    if engine.capacity_bytes < highest:
        raise ValidationRefused(
            f"the survey touched {format_bytes(highest)}, but only "
            f"{format_bytes(engine.capacity_bytes)} may be used on {survey.start.target} now: "
            "free some space"
        )


def drawn_ranges(survey: Survey) -> tuple[DrawnRange, ...]:
    """Return what the families of a survey cover, region by region.

    Raises:
        ValidationRefused: there is no region, or one without a curve of every parameter.

    """
    surveyed = Ranges(survey)
    wanted = set(PARAMETERS) - {"unique_bytes"}
    if survey.start.plan.process_num_max == 1:
        wanted -= {"process_num"}
    whole = {item.region for item in survey.families if all(map(item.curve, wanted))}
    if not survey.regions or not all(region.index in whole for region in survey.regions):
        mode = survey.start.focal_mode
        raise ValidationRefused(
            f"survey {survey.start.study_id[:8]} has no curve of every parameter in every "
            "region, so there is nothing to validate: survey it again (leadline survey "
            f"{survey.start.target})" + ("" if mode == "middle" else f", without --focal {mode}")
        )
    return tuple(
        DrawnRange(
            region=region.index,
            name=region.name,
            low_bytes=max(region.low_bytes, math.ceil(surveyed.unique_bytes.low)),
            high_bytes=min(region.high_bytes, math.floor(surveyed.unique_bytes.high)),
            size_mean_min=math.ceil(surveyed.of(region.index, "size_mean").low),
            size_mean_max=math.floor(surveyed.of(region.index, "size_mean").high),
            process_num_max=math.floor(surveyed.of(region.index, "process_num").high),
            focal=region.focal,
            surveyed_mb_s=region.throughput_mb_s,
        )
        for region in survey.regions
    )


def _plan(
    survey: Survey, cost: int, ranges: Sequence[DrawnRange], asked: Asked, *, layout: bool
) -> ValidationPlan:
    grids = tuple(grid_levels(times * cost) for times in RIVAL_COSTS) if asked.rivals else ()
    singles = single_numbers(Space(tuple(ranges)))
    stages = plan_stages(ranges, asked.count, grids, len(singles))
    points = sum(stage.points for stage in stages)
    layout_bytes = ranges[-1].high_bytes if layout else 0
    layout_s = layout_bytes / LAYOUT_BYTES_PER_S
    point_s = asked.seconds or survey.start.plan.point_s
    budget_s = asked.budget_s or BUDGET_FACTOR * points * point_s + layout_s
    share_s = BUDGET_SHARE * (budget_s - layout_s) / points
    if share_s < POINT_S_MIN:
        raise ValidationRefused(
            f"a budget of {format_seconds(budget_s)} leaves {format_seconds(max(0.0, share_s))} "
            f"for each of {points} points and {POINT_S_MIN} s is the least: give --budget "
            f"{round(points * POINT_S_MIN * 1.5 + layout_s + 1)}s or more, or a smaller --count"
        )
    return ValidationPlan(
        stages=stages,
        budget_s=budget_s,
        point_s=min(point_s, share_s),
        layout_bytes=layout_bytes,
        grids=grids,
    )
