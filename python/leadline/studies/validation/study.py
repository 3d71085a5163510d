"""A validation of a stored survey as somebody asks for it."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.engine import Engine
from leadline.record import Measurement, Status, Survey, Validation, ValidationStart
from leadline.record.finding import Finding
from leadline.record.validation import VALIDATION
from leadline.store import Store, Stored
from leadline.studies.conduct import OnProgress, PointStudy, Reached
from leadline.studies.resume import find_unfinished, kept_when_stopped
from leadline.studies.survey.stored import surveyed_target
from leadline.studies.validation.begin import Asked, begin_validation, require_as_surveyed
from leadline.studies.validation.errors import ValidationRefused
from leadline.studies.validation.explain import explain_validation
from leadline.studies.validation.run import measure_validation


class ValidationStudy(PointStudy[ValidationStart]):
    """A validation, begun or gone on with, on the target of its survey."""

    records = VALIDATION

    def __init__(
        self, survey: Survey, points: Sequence[Measurement], asked: Asked, model: str | None = None
    ) -> None:
        """Take what was asked for.

        Args:
            survey: what is to be validated.
            points: its points.
            asked: the options.
            model: of the headline; None is the default.

        Raises:
            ValidationRefused: the survey is not finished.
            TargetRefused: its target cannot be used now.

        """
        _require_finished(survey)
        self._survey, self._points, self._asked, self._model = survey, points, asked, model
        start = survey.start
        self.reached = Reached(
            target=surveyed_target(survey),
            access=start.access,
            given=frozenset(),
            cache_limit_bytes=start.access.cache_limit_bytes,
            max_bytes=start.plan.unique_bytes_max,
        )
        self.system, self.seed = start.system, asked.seed

    def unfinished(self, store: Store) -> Stored[ValidationStart, Validation]:
        """Return the newest unfinished one of this survey."""
        start = self._survey.start
        return find_unfinished(store, VALIDATION, start.system, start.target, parent=start.study_id)

    def begin(self, opened: Engine, findings: tuple[Finding, ...]) -> ValidationStart:
        """Plan it."""
        return begin_validation(opened, self._survey, self._points, self._asked, findings=findings)

    def go_on(self, opened: Engine, start: ValidationStart) -> None:
        """Refuse what is not the surveyed system any more."""
        require_as_surveyed(opened, self._survey, start.ranges)

    def measure(
        self,
        opened: Engine,
        store: Store,
        start: ValidationStart,
        points: Sequence[Measurement],
        on_progress: OnProgress,
    ) -> Validation:
        """Measure the workloads that are missing, and score what the models predict of all."""
        survey = self._survey

        def explained() -> Validation:
            points = store.items(start.study_id)
            return explain_validation(start, survey, self._points, points, model=self._model)

        with kept_when_stopped(store, start.study_id, explained):
            budget_s = self._asked.budget_s
            measure_validation(
                opened, store, start, points, budget_s=budget_s, on_progress=on_progress
            )
        found = explained()
        store.end(start.study_id, found, found.status)
        return found


def _require_finished(survey: Survey) -> None:
    if survey.status is not Status.DONE:
        raise ValidationRefused(
            f"survey {survey.start.study_id[:8]} is not finished, and what it predicts would "
            f"change: leadline survey {survey.start.target} --name {survey.start.system} --resume"
        )
