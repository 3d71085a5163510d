"""Which point to measure next: the self-scaling benchmark as a conversation (CP94 §7-8).

A `Surveyor` is asked for a point and told its measurement. It does no I/O, knows no clock and
draws only from the survey's seed, so the same measurements always lead to the same questions.
That makes a resumed survey the same survey: the stored measurements are told again, in order.
Where a question was the best of many by a model fitted to floating-point readings, "the same" is
not for arithmetic to promise: such stored points are their own decision (`MiddleStrategy`).
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Generator, Sequence

from leadline.errors import LeadlineError
from leadline.models.model import is_paged
from leadline.record import PARAMETERS, Measurement, Plan, SurveyStart, Workload, derive_seed
from leadline.record.wording import format_count
from leadline.stats import good_range
from leadline.studies.memory import memory_bytes_of
from leadline.studies.script import PointRequest
from leadline.studies.survey.boundaries import Decided, SurveyReadings, curve_of
from leadline.studies.survey.middle import START, MiddleStrategy, RegionBounds, Script, interleave
from leadline.studies.survey.plan import reserved_75, share, spread
from leadline.units import format_bytes

BUFFERS_SHARE = 16
"""Requests of all processes together have at most this part of a memory cap on average: their
sizes go to four times their mean, and the kernel ends an engine whose buffers do not fit."""


class ResumeMismatch(LeadlineError):
    """A stored point is not the one this survey would have asked for."""

    exit_code = 2


class Surveyor:
    """Asks for points and is told what they measured.

    Attributes:
        points: every measurement told so far, in order.
        strategy: what has been decided (focal vector, boundaries); read by `explain`.

    """

    def __init__(self, start: SurveyStart, recorded: Sequence[Measurement] = ()) -> None:
        """Begin a survey, or take up a recorded one where it was left.

        Args:
            start: the record made before the first point.
            recorded: every stored point, in order; they are told here.

        Raises:
            ResumeMismatch: a stored point is not the one this survey would have asked for.

        """
        self.start = start
        self.points: list[Measurement] = []
        readings = SurveyReadings()
        self.strategy: MiddleStrategy | SeventyFiveStrategy = (
            SeventyFiveStrategy(start.plan, start.seed, readings)
            if start.focal_mode == "75%"
            else MiddleStrategy(
                start.plan,
                start.seed,
                readings,
                tuple(recorded),
                memory_bytes=memory_bytes_of(
                    start.cache_limit_bytes, start.facts, start.system_profile
                ),
                processors=start.facts.get("cpu_count"),
                needed=start.needed,
                at_once_bytes=(start.cache_limit_bytes or math.inf) / BUFFERS_SHARE,
                paged=is_paged(start),
            )
        )
        self._readings = readings
        self._script: Script = self.strategy.script()
        self._undecided = False
        self._pending = self._advance()
        for measurement in recorded:
            self.tell(measurement)

    @property
    def complete(self) -> bool:
        """Whether there is no next point; unlike `ask`, this never fits a model to find it."""
        return self._pending is None and not self._undecided

    def ask(self) -> PointRequest | None:
        """Return the next point to measure; None when the survey is complete."""
        while self._undecided:
            self._pending = self._advance()
        return self._pending

    def tell(self, measurement: Measurement) -> None:
        """Take the measurement of the point last asked for.

        Raises:
            ResumeMismatch: it answers another question.

        """
        asked = self.ask()
        if asked is None or measurement.workload != asked.workload:
            raise ResumeMismatch(
                f"stored point {measurement.order} measured {measurement.workload}, but this "
                f"version of Leadline would have measured {asked and asked.workload}; "
                "start a new survey instead of resuming this one"
            )
        if measurement.seed != asked.seed:
            raise ResumeMismatch(
                f"stored point {measurement.order} was drawn from the seed {measurement.seed}, "
                f"the survey's point {asked.order} has {asked.seed}: it belongs to another survey, "
                "or the points are not in their order; start a new survey"
            )
        self.points.append(measurement)
        self._readings.add(measurement)
        self._pending = self._advance()

    def _advance(self) -> PointRequest | None:
        """Go on to the next point, or to a decision that waits until it is asked for."""
        try:
            step = next(self._script)
        except StopIteration:
            self._undecided = False
            return None
        self._undecided = step is None
        if step is None:
            return None
        stage, workload = step
        order = len(self.points)
        return PointRequest(order, stage, workload, derive_seed(self.start.seed, order))


# The first self-scaling benchmark (CP94 §7): every parameter at its 75% point at once.
#
# The focal vector is found by going round the parameters: each curve is measured with the others at
# their present values and its 75% point taken, until a whole round changes nothing, until the
# vector comes back to an earlier one, or until the search's points are used up. The rest of the
# plan, reserved from the start, goes onto the five curves at the vector that was found.

GOOD_FRAC = 0.75
"""CP94 §7: workloads that reach 75% of the maximum perform well."""

SEARCH_POINTS = {"unique_bytes": 6, "size_mean": 5, "read_frac": 3, "seq_frac": 3, "process_num": 3}
"""Of a curve while the vector is looked for; those that are known there count."""
SEARCH_POINTS_NEW = 1
"""A curve that is known is measured this often again, in between: noise must not settle it."""

FOCAL_REPEATS = 3
"""Readings of the focal vector at the end: a focal value is never a single reading."""

MOVED_FACTOR = 1.25
"""A focal value that moves by less than this factor between rounds has settled."""


class SeventyFiveStrategy:
    """Decides the points of the paper's first version; see above.

    Attributes:
        focal: the vector at which every parameter is at its 75% point, as far as found.
        regions: one, the whole range; this version knows no families.
        decided: always None, boundaries are not looked for.
        settled: whether a whole round, the last one, moved nothing.
        vectors: the vector after each round, first that at which the search began.

    """

    def __init__(self, plan: Plan, seed: int, readings: SurveyReadings) -> None:
        self.plan = plan
        self.readings = readings
        self.focal = START.with_value("unique_bytes", plan.unique_bytes_min)
        self.decided: Decided | None = None
        self.settled = False
        self.vectors: list[Workload] = [self.focal]
        self._last_step: dict[str, float] = {}
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
        reserved = reserved_75(self.plan.points)
        used = yield from self._search(self.plan.points - reserved)
        yield from self._final_curves(self.plan.points - used, reserved)

    def _search(self, most: int) -> Generator[tuple[str, Workload] | None, None, int]:
        """Go round the parameters; return how many points that took."""
        used = still = 0
        for visits, parameter in enumerate(itertools.cycle(PARAMETERS), 1):
            curve = self._curve(parameter, self._wanted(parameter))
            if used + len(curve) > most:
                break  # a curve cut short decides nothing
            for workload in curve:
                yield "75% point", workload
            used += len(curve)
            found = self._good_value(parameter)
            moves = moved(parameter, float(getattr(self.focal, parameter)), found)
            still = 0 if moves else still + 1
            self.settled = still >= len(PARAMETERS)
            if self.settled:
                break
            self.focal = self.focal.with_value(parameter, self._damped(parameter, found))
            if visits % len(PARAMETERS) == 0:
                self.vectors.append(self.focal)
                if self.cycle:
                    break
        return used

    def _damped(self, parameter: str, found: float) -> float:
        """Where to go: all the way, but half-way (in ratio) where that would turn back.

        unique_bytes and size_mean pull at each other around the boundary of a cache; full steps can
        swing between two vectors for ever.
        """
        step = found - float(getattr(self.focal, parameter))
        turns = step * self._last_step.get(parameter, 0.0) < 0
        self._last_step[parameter] = step
        return self._half_way(parameter, found) if turns else found

    def _half_way(self, parameter: str, found: float) -> float:
        """Half-way in ratio; a share goes there at once."""
        if parameter.endswith("frac"):
            return found
        return rounded(math.sqrt(float(getattr(self.focal, parameter)) * found), parameter)

    def _wanted(self, parameter: str) -> int:
        known = {getattr(p.workload, parameter) for p in self.readings.along(parameter, self.focal)}
        return max(SEARCH_POINTS_NEW, SEARCH_POINTS[parameter] - len(known))

    def _final_curves(self, points: int, reserved: int) -> Script:
        """Measure the five curves at the vector, each as well as the others; known points stay.

        What the search has left over is told as its own.
        """
        left = points - FOCAL_REPEATS
        counts = share(left, dict.fromkeys(PARAMETERS, 1.0), dict.fromkeys(PARAMETERS, 1))
        workloads = [w for name in PARAMETERS for w in self._curve(name, counts[name])]
        self._random.shuffle(workloads)
        for at, workload in enumerate(interleave(workloads, [self.focal] * FOCAL_REPEATS)):
            yield "75% point" if at < points - reserved else "final curves", workload

    @property
    def cycle(self) -> tuple[Workload, ...]:
        """The vectors between which the search goes round; none where it does not.

        It does where a round ends at a vector that an earlier round ended at, with another between.
        """
        last = self.vectors[-1]
        for at in range(len(self.vectors) - 2, -1, -1):
            if same(self.vectors[at], last):
                turn = self.vectors[at:-1]
                return tuple(turn) if any(not same(vector, last) for vector in turn) else ()
        return ()

    def _curve(self, parameter: str, count: int) -> list[Workload]:
        low, high = self.parameter_range(parameter)
        log = parameter in ("unique_bytes", "size_mean", "process_num")
        known = [
            float(getattr(p.workload, parameter))
            for p in self.readings.along(parameter, self.focal)
        ]
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
        """The least restrictive value that yields 75% of the maximum (CP94 §7).

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


def format_vector(strategy: SeventyFiveStrategy) -> str:
    """Say the focal vector, and how the search for it ended."""
    rounds = format_count(len(strategy.vectors) - 1, "whole round")
    if strategy.settled:
        ended = f"It settled after {rounds}."
    elif strategy.cycle:
        turn = ", then ".join(_say(vector) for vector in strategy.cycle)
        ended = f"It goes round, as seen after {rounds}: {turn}, and back."
    else:
        ended = f"It had not settled after {rounds}, the last of which began at "
        ended += f"{_say(strategy.vectors[max(0, len(strategy.vectors) - 2)])}."
    return (
        "Focal vector, at which each parameter alone reaches 75% of its best: "
        f"{_say(strategy.focal)}. {ended}"
    )


def _say(vector: Workload) -> str:
    return (
        f"{format_bytes(vector.unique_bytes)} touched, {format_bytes(vector.size_mean)} requests, "
        f"{100 * vector.read_frac:.0f}% reads, {100 * vector.seq_frac:.0f}% sequential, "
        f"{format_count(vector.process_num, 'process')}"
    )


def same(one: Workload, other: Workload) -> bool:
    """Whether two vectors differ by no more than a rounding."""
    return not any(
        moved(parameter, float(getattr(one, parameter)), float(getattr(other, parameter)))
        for parameter in PARAMETERS
    )


def rounded(x: float, parameter: str) -> float:
    """Round a focal value to what people say: a whole number of processes, whole KiB."""
    if parameter == "process_num":
        return float(max(1, round(x)))
    step = 4096 if x >= 16384 else 512
    return float(max(step, round(x / step) * step))
