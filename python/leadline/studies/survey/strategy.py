"""Which point to measure next: the self-scaling benchmark as a conversation (CP94 §7-8).

A `Surveyor` is asked for a point and told its measurement. It does no I/O, knows no clock and
draws only from the survey's seed, so the same measurements always lead to the same questions.
That makes a resumed survey the same survey: the stored measurements are told again, in order.
Where a question was the best of many by a model fitted to floating-point readings, "the same" is
not for arithmetic to promise: such stored points are their own decision (`MiddleStrategy`).
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.errors import LeadlineError
from leadline.record import Measurement, SurveyStart, derive_seed
from leadline.studies.memory import memory_bytes_of
from leadline.studies.script import PointRequest
from leadline.studies.survey.borders import SurveyReadings
from leadline.studies.survey.middle import MiddleStrategy, Script
from leadline.studies.survey.seventy_five import SeventyFiveStrategy


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
