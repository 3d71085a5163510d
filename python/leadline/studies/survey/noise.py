"""Run-to-run noise of a survey, learned from the points measured more than once.

A single run's own interval knows nothing of the difference between runs, which on storage is
usually the larger part (LITERATURE: FAST'17). So every interval of a survey adds the spread seen
between replicates, pooled over the region a point lies in, or over the whole survey where a
region has too few.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from leadline.record import Interval, Measurement, Workload
from leadline.stats import Noise, group_drift, group_step, own_error, pooled_noise, reading_interval
from leadline.studies.counted import throughput
from leadline.studies.survey.middle import RegionBounds
from leadline.studies.survey.readings import Readings

BORDER_ZONE = 1.15
"""Places within this factor of a border count as at the border."""

OWN_DEGREES_MIN = 3
"""Degrees of freedom from which a region's replicates are trusted alone."""


class NoiseModel:
    """Between-run noise by region, and the intervals that follow from it."""

    def __init__(self, readings: Readings, regions: Sequence[RegionBounds]) -> None:
        self._regions = regions
        groups = readings.replicates()
        movement = _movement(readings)
        every = max(_degrees(groups), 1)
        self._overall = _pool(groups, movement, 1.0)
        self._borders = [region.low_bytes for region in regions[1:]]
        inside = [_inside(groups, region, self._borders) for region in regions]
        self._degrees = [_degrees(own) for own in inside]
        self._own = [
            _pool(own, movement, degrees / every)
            for own, degrees in zip(inside, self._degrees, strict=True)
        ]

    def at(self, workload: Workload) -> Noise:
        """Noise of a workload, by the region that holds its unique_bytes."""
        if _at_border(workload.unique_bytes, self._borders):
            return self._overall
        for index, region in enumerate(self._regions):
            inside = region.low_bytes <= workload.unique_bytes <= region.high_bytes
            if inside and self._degrees[index] >= OWN_DEGREES_MIN:
                return self._own[index]
        return self._overall

    def interval(self, found: Sequence[Measurement]) -> Interval:
        """95 % interval of the throughput behind readings of one workload."""
        if not found:
            return Interval(0.0, None, None, 0)
        return reading_interval(
            [throughput(point) for point in found],
            [own_error(point.result.throughput_mb_s) for point in found],
            self.at(found[0].workload),
        )


def _inside(
    groups: Sequence[Sequence[Measurement]], region: RegionBounds, borders: Sequence[int]
) -> list[Sequence[Measurement]]:
    return [
        group
        for group in groups
        if region.low_bytes <= group[0].workload.unique_bytes <= region.high_bytes
        and not _at_border(group[0].workload.unique_bytes, borders)
    ]


def _at_border(unique_bytes: int, borders: Sequence[int]) -> bool:
    """Whether a place is so near a border that its readings jump between two levels.

    Readings there differ by far more than those inside a region (CP94 §7: "performance is often
    unstable"); they would drown the region's own noise, and its noise would understate theirs.
    """
    return any(max(unique_bytes, b) <= BORDER_ZONE * min(unique_bytes, b) for b in borders)


@dataclass(frozen=True)
class _Movement:
    """What the whole system moved while it was measured."""

    ln_since_start: Callable[[float], float]
    """Change of ln throughput by time."""
    parameters: int
    """How many numbers of it were fitted to the replicates."""


def _movement(readings: Readings) -> _Movement:
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
