"""Which point to measure next: the self-scaling benchmark as a conversation (CP94 §7-8).

A `Surveyor` is asked for a point and told its measurement. It does no I/O, knows no clock and
draws only from the survey's seed, so the same measurements always lead to the same questions.
That makes a resumed survey the same survey: the stored measurements are told again, in order.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from leadline.errors import LeadlineError
from leadline.record import Measurement, SurveyStart, Workload, derive_seed
from leadline.survey.middle import MiddleStrategy
from leadline.survey.readings import Readings
from leadline.survey.seventy_five import SeventyFiveStrategy


class ResumeMismatch(LeadlineError):
    """A stored point is not the one this survey would have asked for."""

    exit_code = 2


@dataclass(frozen=True)
class PointRequest:
    """A question to the storage system."""

    order: int
    stage: str
    workload: Workload
    seed: int


class Surveyor:
    """Asks for points and is told what they measured.

    Attributes:
        points: every measurement told so far, in order.
        strategy: what has been decided (focal vector, borders); read by `explain`.

    """

    def __init__(self, start: SurveyStart) -> None:
        self.start = start
        self.points: list[Measurement] = []
        readings = Readings()
        kind = SeventyFiveStrategy if start.focal_mode == "75%" else MiddleStrategy
        self.strategy: MiddleStrategy | SeventyFiveStrategy = kind(start.plan, start.seed, readings)
        self._readings = readings
        self._script: Generator[tuple[str, Workload], None, None] = self.strategy.script()
        self._pending = self._advance()

    def ask(self) -> PointRequest | None:
        """Return the next point to measure; None when the survey is complete."""
        return self._pending

    def tell(self, measurement: Measurement) -> None:
        """Take the measurement of the point last asked for.

        Raises:
            ResumeMismatch: it answers another question.

        """
        asked = self._pending
        if asked is None or measurement.workload != asked.workload:
            raise ResumeMismatch(
                f"stored point {measurement.order} measured {measurement.workload}, but this "
                f"version of Leadline would have measured {asked and asked.workload}; "
                "start a new survey instead of resuming this one"
            )
        self.points.append(measurement)
        self._readings.add(measurement)
        self._pending = self._advance()

    def _advance(self) -> PointRequest | None:
        try:
            stage, workload = next(self._script)
        except StopIteration:
            return None
        order = len(self.points)
        return PointRequest(order, stage, workload, derive_seed(self.start.seed, order))
