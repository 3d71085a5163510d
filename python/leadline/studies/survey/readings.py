"""The measurements of a survey, looked up by workload."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from leadline.record import Measurement, Workload
from leadline.studies.counted import throughput


@dataclass
class Readings:
    """All measurements so far.

    A point that is not admissible is kept in `all` (nothing is dropped) but no decision and no
    curve rests on it while an admissible one is there.
    """

    all: list[Measurement] = field(default_factory=list)

    def add(self, measurement: Measurement) -> None:
        """Take one more measurement."""
        self.all.append(measurement)

    def at(self, workload: Workload) -> list[Measurement]:
        """Measurements of exactly this workload; the admissible ones when there are any."""
        found = [point for point in self.all if point.workload == workload]
        return [point for point in found if point.result.admissible] or found

    def along(self, parameter: str, focal: Workload) -> list[Measurement]:
        """Measurements that differ from `focal` in at most this one parameter, by x."""
        found = [
            point
            for point in self.all
            if point.workload.with_value(parameter, getattr(focal, parameter)) == focal
        ]
        usable = [point for point in found if point.result.admissible] or found
        return sorted(usable, key=lambda point: (value(point, parameter), point.order))

    def replicates(self) -> list[list[Measurement]]:
        """Group the measurements taken of one and the same workload, two or more each."""
        groups: dict[Workload, list[Measurement]] = {}
        for point in self.all:
            if point.result.admissible:
                groups.setdefault(point.workload, []).append(point)
        return [group for group in groups.values() if len(group) > 1]

    def replicate_series(self) -> tuple[list[list[float]], list[list[float]]]:
        """When the replicates of each workload began, in seconds, and what they read, in MB/s."""
        groups = self.replicates()
        return (
            [[point.clock_s for point in group] for group in groups],
            [[throughput(point) for point in group] for group in groups],
        )


def value(point: Measurement, parameter: str) -> float:
    """Where a point lies on the axis of one parameter."""
    return float(getattr(point.workload, parameter))


def curve_of(points: Sequence[Measurement], parameter: str) -> tuple[list[float], list[float]]:
    """The mean throughput at each x, as two lists ordered by x."""
    at: dict[float, list[float]] = {}
    for point in points:
        at.setdefault(value(point, parameter), []).append(throughput(point))
    xs = sorted(at)
    return xs, [sum(at[x]) / len(at[x]) for x in xs]
