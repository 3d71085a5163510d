"""A validation's plan: workloads drawn, the same system required, what it refuses."""

from __future__ import annotations

import itertools
import math
import random
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from leadline.engine import BUDGET_SHARE, LAYOUT_BYTES_PER_S, POINT_S_MIN, Engine
from leadline.errors import LeadlineError
from leadline.models.ranges import Ranges
from leadline.record import (
    PARAMETERS,
    DrawnRange,
    Measurement,
    PlanStage,
    SingleNumber,
    Survey,
    ValidationPlan,
    ValidationStart,
    Workload,
    derive_seed,
)
from leadline.record.finding import Finding
from leadline.studies.resume import clock_after
from leadline.studies.same_system import changed_facts
from leadline.studies.script import PointRequest
from leadline.units import format_bytes, format_seconds

# What can stop a validation; each message says what to type next.


class ValidationRefused(LeadlineError):
    """The survey, the system or the options allow no honest validation."""

    exit_code = 2


# What a validation measures: random workloads, rivals' samples and anchors, in order (CP94 §9).
#
# Every workload is a point of a unit cube with one axis per parameter. The axis of unique_bytes is
# logarithmic over the whole surveyed range; that of size_mean is logarithmic over what the family
# of curves of the region found there covers, and never past a quarter of unique_bytes, as in the
# survey itself; that of process_num is logarithmic, those of the fractions are linear. Random
# workloads are uniform in the cube. The orthogonal samples are evenly spaced in it, so that no
# corner of a grid lies outside what was surveyed.

BLOCK_BYTES = 4096
SIZE_STEP_BYTES = 512
"""Steps of the survey's own points, so that direct I/O can do them."""

ANCHOR_READINGS = 2
"""Readings of each focal point at the start, in the middle and at the end."""

GRID_SHORTFALL = 0.05
"""A grid may be smaller than asked by this share: the paper's own 162 points stand for twice 84."""

PASSES = ("pass 1", "pass 2")
ANCHORS, SINGLES, ORTHOGONAL = "anchors", "single numbers", "orthogonal"

Cube = tuple[float, ...]
"""Coordinates in the unit cube, in the order of PARAMETERS."""


@dataclass(frozen=True)
class Space:
    """The surveyed space of workloads and its unit cube."""

    ranges: tuple[DrawnRange, ...]

    def workload(self, cube: Sequence[float]) -> Workload:
        """Return the workload at coordinates of 0 to 1, in the order of PARAMETERS."""
        u, size, read, seq, processes = cube
        low, high = self._unique_bytes
        unique_bytes = _step(_between(low, high, u), BLOCK_BYTES, low, high)
        found = self.at(unique_bytes)
        least, most = _sizes(found, unique_bytes)
        return Workload(
            unique_bytes=unique_bytes,
            size_mean=_step(_between(least, most, size), SIZE_STEP_BYTES, least, most),
            read_frac=round(read, 3),
            seq_frac=round(seq, 3),
            process_num=round(_between(1, found.process_num_max, processes)),
        )

    def coordinates(self, workload: Workload) -> Cube:
        """Return where a workload lies in the unit cube; what lies outside is put on its face."""
        found = self.at(workload.unique_bytes)
        return (
            _place(workload.unique_bytes, *self._unique_bytes),
            _place(workload.size_mean, *_sizes(found, workload.unique_bytes)),
            workload.read_frac,
            workload.seq_frac,
            _place(workload.process_num, 1, found.process_num_max),
        )

    def at(self, unique_bytes: int) -> DrawnRange:
        """Return the region that holds this many bytes; the nearest one outside of all."""
        return next(
            (item for item in self.ranges if unique_bytes <= item.high_bytes), self.ranges[-1]
        )

    @property
    def _unique_bytes(self) -> tuple[int, int]:
        return self.ranges[0].low_bytes, self.ranges[-1].high_bytes


def drawn_workloads(start: ValidationStart) -> tuple[Workload, ...]:
    """Return the random workloads of a validation, in the order they were drawn."""
    return draw(Space(start.ranges), start.count, start.seed)


def draw(space: Space, count: int, seed: int) -> tuple[Workload, ...]:
    """Draw `count` different workloads uniformly from the unit cube, without structure."""
    uniform = random.Random(f"workloads {seed}")  # noqa: S311 - a sample, not a secret
    found: dict[Workload, None] = {}
    while len(found) < count:
        found[space.workload([uniform.random() for _ in PARAMETERS])] = None
    return tuple(found)


def grid_levels(wanted: int) -> tuple[int, ...]:
    """Return the levels per parameter, in the order of PARAMETERS, of a grid of about this size.

    It is the smallest grid that is no smaller (less GRID_SHORTFALL), has two levels or more of
    each parameter, and whose counts differ by two at the most and fall in that order:
    CP94 gives process_num the fewest.
    """
    least = wanted * (1 - GRID_SHORTFALL)
    most = 2
    while most ** len(PARAMETERS) < least:
        most += 1
    counts = [
        levels
        for levels in itertools.product(range(2, most + 2), repeat=len(PARAMETERS))
        if list(levels) == sorted(levels, reverse=True)
        and levels[0] - levels[-1] <= 2
        and math.prod(levels) >= least
    ]
    return min(counts, key=lambda levels: (math.prod(levels), levels))


def grid_axes(levels: Sequence[int]) -> tuple[tuple[float, ...], ...]:
    """Return the coordinates of the levels of each parameter, evenly spaced from 0 to 1."""
    return tuple(tuple(at / (count - 1) for at in range(count)) for count in levels)


def grid_workloads(space: Space, levels: Sequence[int]) -> tuple[Workload, ...]:
    """Return every combination of an orthogonal sample, the last parameter varying fastest."""
    return tuple(space.workload(cube) for cube in itertools.product(*grid_axes(levels)))


def single_numbers(space: Space) -> tuple[SingleNumber, ...]:
    """Return the workloads that stand for benchmarks with a single answer (CP94 Fig. 12).

    Stand-ins, not the benchmarks: CP94 §3 says how much they touch (Andrew 4.5 MB, IOStone 1 MB);
    their mix is taken from CP94 Fig. 16's workstation (small requests, mostly reads, mostly
    sequential, one process). Bonnie is its sequential block write over all the surveyed data, which
    its author wants larger than the memory. Each is moved to the nearest surveyed value.
    """
    biggest = space.ranges[-1].high_bytes
    kinds = {
        "Andrew-like": (4_500_000, 4096, 0.8, 0.8),
        "IOStone-like": (1_000_000, 4096, 0.8, 0.8),
        "Bonnie-like": (biggest, 16384, 0.0, 1.0),
    }
    found = []
    for name, (unique_bytes, size_mean, read_frac, seq_frac) in kinds.items():
        wanted = Workload(unique_bytes, size_mean, read_frac, seq_frac)
        found.append(SingleNumber(name, space.workload(space.coordinates(wanted))))
    return tuple(found)


def requests(start: ValidationStart) -> tuple[PointRequest, ...]:
    """Return every point of a validation in its order; the same for the same start record.

    Anchors come first, in the middle and last. Between them are two passes over the random
    workloads, each in an order of its own; the rivals' points are spread over both, so that drift
    falls on all alike.
    """
    space = Space(start.ranges)
    order = random.Random(f"order {start.seed}")  # noqa: S311 - order of points, not a secret
    drawn = drawn_workloads(start)
    grids = dict.fromkeys(w for levels in start.plan.grids for w in grid_workloads(space, levels))
    rivals = list(grids)
    order.shuffle(rivals)
    script: list[tuple[str, Workload]] = _anchors(start, order)
    for index, stage in enumerate(PASSES):
        points = [(stage, workload) for workload in drawn]
        points += [(SINGLES, single.workload) for single in start.singles]
        points += [(ORTHOGONAL, workload) for workload in rivals[index :: len(PASSES)]]
        order.shuffle(points)
        script += points + _anchors(start, order)
    # Not the survey's own seeds, which a survey of the same seed took already.
    seed = derive_seed(start.seed, -1)
    return tuple(
        PointRequest(number, stage, workload, derive_seed(seed, number))
        for number, (stage, workload) in enumerate(script)
    )


def plan_stages(
    ranges: Sequence[DrawnRange], count: int, grids: Sequence[Sequence[int]], singles: int
) -> tuple[PlanStage, ...]:
    """Return the stages of a validation with their numbers of points."""
    space = Space(tuple(ranges))
    rivals = len({w for levels in grids for w in grid_workloads(space, levels)})
    passes = len(PASSES)
    stages = [
        PlanStage(
            ANCHORS,
            ANCHOR_READINGS * (passes + 1) * len(ranges),
            "focal points again, at the start, in the middle and at the end: drift",
        ),
        *(PlanStage(name, count, "random workloads over the surveyed ranges") for name in PASSES),
        PlanStage(SINGLES, passes * singles, "stand-ins for benchmarks with a single answer"),
    ]
    if rivals:
        sizes = " and ".join(str(len(set(grid_workloads(space, levels)))) for levels in grids)
        stages.append(PlanStage(ORTHOGONAL, rivals, f"grids of {sizes} points to interpolate"))
    return tuple(stages)


def _anchors(start: ValidationStart, order: random.Random) -> list[tuple[str, Workload]]:
    points = [(ANCHORS, item.focal) for item in start.ranges] * ANCHOR_READINGS
    order.shuffle(points)
    return points


def _sizes(found: DrawnRange, unique_bytes: int) -> tuple[int, int]:
    least = found.size_mean_min
    return least, max(least, min(found.size_mean_max, unique_bytes // 4))


def _between(low: float, high: float, at: float) -> float:
    return float(low * (high / low) ** at)


def _place(value: float, low: float, high: float) -> float:
    if high <= low:
        return 0.0
    return min(1.0, max(0.0, math.log(value / low) / math.log(high / low)))


def _step(value: float, step: int, low: int, high: int) -> int:
    """Round to a multiple of `step` within the range, whose ends may lie off the steps."""
    return min(high, max(low, round(value / step) * step))


# Is it still the system that was surveyed? Only then is the difference a model's error.


def require_same_system(before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Refuse to validate on a system that is not the surveyed one any more.

    Raises:
        ValidationRefused: which facts differ.

    """
    changed = changed_facts(before, now)
    if changed:
        raise ValidationRefused(
            f"this is not the system that was surveyed: {'; '.join(changed)}. A difference "
            "from the predictions would say nothing about the model: survey it again "
            "(`leadline survey`), or set back what changed"
        )


# The record that decides a validation, made before its first point.

COUNT_MIN = 4
"""A median of fewer says nothing."""
BUDGET_FACTOR = 1.1
"""Time over the points' own, for preparing them, when nobody names a budget."""
RIVAL_COSTS = (1, 2)
"""Sizes of the orthogonal samples, as multiples of the survey's points (CP94 Fig. 14)."""


@dataclass(frozen=True)
class ValidationOptions:
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
    asked: ValidationOptions,
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
    survey: Survey,
    cost: int,
    ranges: Sequence[DrawnRange],
    asked: ValidationOptions,
    *,
    layout: bool,
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
