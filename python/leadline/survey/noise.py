"""Run-to-run noise of a survey, learned from the points measured more than once.

A single run's own interval knows nothing of the difference between runs, which on storage is
usually the larger part (LITERATURE: FAST'17). So every interval of a survey adds the spread seen
between replicates, pooled over the region a point lies in, or over the whole survey where a
region has too few.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import Interval, Measurement, Workload
from leadline.stats import Noise, pooled_noise, reading_interval
from leadline.survey.middle import RegionBounds
from leadline.survey.readings import Readings, throughput

OWN_DEGREES_MIN = 3
"""Degrees of freedom from which a region's replicates are trusted alone."""


class NoiseModel:
    """Between-run noise by region, and the intervals that follow from it."""

    def __init__(self, readings: Readings, regions: Sequence[RegionBounds]) -> None:
        self._regions = regions
        groups = readings.replicates()
        self._overall = _pool(groups)
        self._own = [_pool(_inside(groups, region)) for region in regions]
        self._degrees = [sum(len(g) - 1 for g in _inside(groups, region)) for region in regions]

    def at(self, workload: Workload) -> Noise:
        """Noise of a workload, by the region that holds its unique_bytes."""
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
            [point.result.throughput_mb_s.half_width_frac for point in found],
            self.at(found[0].workload),
        )


def _inside(
    groups: Sequence[Sequence[Measurement]], region: RegionBounds
) -> list[Sequence[Measurement]]:
    return [
        group
        for group in groups
        if region.low_bytes <= group[0].workload.unique_bytes <= region.high_bytes
    ]


def _pool(groups: Sequence[Sequence[Measurement]]) -> Noise:
    return pooled_noise([[throughput(point) for point in group] for group in groups])
