"""The first self-scaling benchmark (CP94 §7): every parameter at its 75 % point at once.

The focal vector is found by going round the parameters: each curve is measured with the others
at their present values and its 75 % point taken, until a whole round changes nothing or the
plan's points are used up; a curve measured again at the same vector gets new x in between.
"""

from __future__ import annotations

import itertools
import math
import random

from leadline.record import PARAMETERS, Plan, Workload
from leadline.stats import good_range
from leadline.studies.survey.borders import Decided
from leadline.studies.survey.middle import START, RegionBounds, Script
from leadline.studies.survey.readings import Readings, curve_of
from leadline.studies.survey.spread import spread

GOOD_FRAC = 0.75
"""CP94 §7: workloads that reach 75 % of the maximum perform well."""

POINTS_PER_CURVE = {
    "unique_bytes": 8,
    "size_mean": 5,
    "read_frac": 3,
    "seq_frac": 3,
    "process_num": 3,
}
FOCAL_REPEATS = 3
"""Readings of the focal vector at the end: a focal value is never a single reading."""

MOVED_FACTOR = 1.25
"""A focal value that moves by less than this factor between rounds has settled."""


class SeventyFiveStrategy:
    """Decides the points of the paper's first version; see the module's first lines.

    Attributes:
        focal: the vector at which every parameter is at its 75 % point, as far as found.
        regions: one, the whole range; this version knows no families.
        decided: always None, borders are not looked for.
        settled: whether a whole round, the last one, moved nothing.

    """

    def __init__(self, plan: Plan, seed: int, readings: Readings) -> None:
        self.plan = plan
        self.readings = readings
        self.focal = START.with_value("unique_bytes", plan.unique_bytes_min)
        self.decided: Decided | None = None
        self.settled = False
        self._random = random.Random(seed)  # noqa: S311 - order of points, not a secret

    @property
    def regions(self) -> tuple[RegionBounds, ...]:
        """The whole range with the focal vector's own unique_bytes."""
        plan = self.plan
        return (
            RegionBounds(plan.unique_bytes_min, plan.unique_bytes_max, self.focal.unique_bytes),
        )

    def focal_in(self, region: RegionBounds) -> Workload:
        """Focal vector of the one region."""
        return self.focal.with_value("unique_bytes", region.focal_bytes)

    def script(self) -> Script:
        """Yield (stage, workload) for every point of the plan, in order."""
        left = self.plan.points - FOCAL_REPEATS
        still = 0
        for visits, parameter in enumerate(itertools.cycle(PARAMETERS)):
            curve = self._curve(parameter)
            for workload in curve[:left]:
                yield "75% point", workload
            left -= len(curve)
            if left < 0:
                break  # a curve cut short decides nothing
            found = self._good_value(parameter)
            moves = moved(parameter, float(getattr(self.focal, parameter)), found)
            still = 0 if moves else still + 1
            self.settled = still >= len(PARAMETERS)
            self.focal = self.focal.with_value(parameter, self._step(parameter, found, visits))
        for _ in range(FOCAL_REPEATS):
            yield "75% point", self.focal

    def _step(self, parameter: str, found: float, visits: int) -> float:
        """Where to go: all the way in the first round, half-way (in ratio) in later ones.

        unique_bytes and size_mean pull at each other around the border of a cache; full steps can
        swing between two vectors for ever.
        """
        before = float(getattr(self.focal, parameter))
        if visits < len(PARAMETERS) or parameter.endswith("frac"):
            return found
        return rounded(math.sqrt(before * found), parameter)

    def _curve(self, parameter: str) -> list[Workload]:
        low, high = self.parameter_range(parameter)
        log = parameter in ("unique_bytes", "size_mean", "process_num")
        known = [
            float(getattr(p.workload, parameter))
            for p in self.readings.along(parameter, self.focal)
        ]
        count = POINTS_PER_CURVE[parameter]
        xs = spread(low, high, known, count, log=log)
        curve = [self.focal.with_value(parameter, rounded(x, parameter) if log else x) for x in xs]
        curve += [self.focal] * (count - len(curve))
        self._random.shuffle(curve)
        return curve

    def parameter_range(
        self, parameter: str, region: RegionBounds | None = None
    ) -> tuple[float, float]:
        """Range of a parameter's curve."""
        plan = self.plan
        largest = (region.focal_bytes if region else self.focal.unique_bytes) / 4
        return {
            "unique_bytes": (float(plan.unique_bytes_min), float(plan.unique_bytes_max)),
            "size_mean": (
                float(plan.size_mean_min),
                float(max(4 * plan.size_mean_min, min(plan.size_mean_max, largest))),
            ),
            "read_frac": (0.0, 1.0),
            "seq_frac": (0.0, 1.0),
            "process_num": (1.0, float(plan.process_num_max)),
        }[parameter]

    def _good_value(self, parameter: str) -> float:
        """The least restrictive value that yields 75 % of the maximum (CP94 §7).

        Least restrictive: the most data, and the least of everything else.
        """
        xs, ys = curve_of(self.readings.along(parameter, self.focal), parameter)
        if len(xs) < 2:
            return float(getattr(self.focal, parameter))
        low, high = good_range(xs, ys, GOOD_FRAC, log=not parameter.endswith("frac"))
        best = high if parameter == "unique_bytes" else low
        return round(best, 2) if parameter.endswith("frac") else rounded(best, parameter)


def moved(parameter: str, before: float, after: float) -> bool:
    """Whether a focal value changed by more than a rounding."""
    if parameter.endswith("frac"):
        return abs(after - before) > 0.1
    return max(before, after) > MOVED_FACTOR * min(before, after)


def rounded(x: float, parameter: str) -> float:
    """Round a focal value to what people say: a whole number of processes, whole KiB."""
    if parameter == "process_num":
        return float(max(1, round(x)))
    step = 4096 if x >= 16384 else 512
    return float(max(step, round(x / step) * step))
