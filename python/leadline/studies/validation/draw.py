"""What a validation measures: random workloads, rivals' samples and anchors, in order (CP94 §9).

Every workload is a point of a unit cube with one axis per parameter. The axis of unique_bytes is
logarithmic over the whole surveyed range; that of size_mean is logarithmic over what the family of
curves of the region found there covers, and never past a quarter of unique_bytes, as in the survey
itself; that of process_num is logarithmic, those of the fractions are linear. Random workloads are
uniform in the cube. The orthogonal samples are evenly spaced in it, so that no corner of a grid
lies outside what was surveyed.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.record import (
    PARAMETERS,
    DrawnRange,
    PlanStage,
    SingleNumber,
    ValidationStart,
    Workload,
    derive_seed,
)
from leadline.studies.script import PointRequest

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
