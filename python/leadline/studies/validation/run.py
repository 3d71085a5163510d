"""A validation: begun, run, kept and loaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leadline.engine import Engine, Progress
from leadline.record import Measurement, Status, Survey, Validation, ValidationStart
from leadline.record.finding import Finding
from leadline.record.validation import VALIDATION
from leadline.store import Keeper, Store, Stored
from leadline.studies.conduct import OnProgress, PointStudy, Reached
from leadline.studies.loop import StudyClock, measure_points
from leadline.studies.pace import Pace
from leadline.studies.resume import find_unfinished, kept_when_stopped
from leadline.studies.script import KnownScript, PointRequest
from leadline.studies.survey.study import load_survey, surveyed_target
from leadline.studies.validation.explain import explain_validation
from leadline.studies.validation.plan import (
    ValidationOptions,
    ValidationRefused,
    begin_validation,
    requests,
    require_as_surveyed,
)

# Run a validation: ask, measure, store; within the budget, whatever happens.


def measure_validation(
    engine: Engine,
    store: Keeper,
    start: ValidationStart,
    points: Sequence[Measurement] = (),
    *,
    budget_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> tuple[Measurement, ...]:
    """Measure every point still missing and return all points in their order.

    Every point is durable in the store before the next one starts. On any exception the stored
    points remain, and the validation can be resumed by passing them as `points`.

    Args:
        engine: the opened target.
        store: where the points go; the validation was started in it.
        start: what decides the validation.
        points: what was measured in earlier sittings.
        budget_s: hard cap on this sitting; None is what the plan's budget has left.
        on_progress: told before each point.

    Raises:
        BudgetSpent: the budget ended early; the points so far are stored.
        PointFailed: the storage failed while measuring.
        ValidationRefused: the stored points are not those of this validation.

    """
    asked = requests(start)
    _require_same_script(asked, points)
    engine.skip_to(start.clock_start_s)
    end_s = start.plan.budget_s
    if budget_s is not None:
        end_s = StudyClock(engine, points).now_s + budget_s
    script = KnownScript(asked, points)
    measure_points(
        engine, store, start, script, pace_of(start, end_s, len(asked)), on_progress=on_progress
    )
    return tuple(script.points)


def pace_of(start: ValidationStart, end_s: float, points: int) -> Pace:
    """The plan's time for each point, or an equal share of a budget that runs short."""
    return Pace(
        end_s,
        points,
        start.accuracy,
        point_s_max=start.plan.point_s,
        advice="; what was measured is kept. --resume --budget TIME gives the rest more time",
    )


def _require_same_script(asked: Sequence[PointRequest], points: Sequence[Measurement]) -> None:
    for request, point in zip(asked, points, strict=False):
        if (point.workload, point.stage) != (request.workload, request.stage):
            raise ValidationRefused(
                f"stored point {point.order} measured {point.workload}, but this version of "
                f"Leadline would have measured {request.workload}; start a new validation instead "
                "of resuming this one"
            )


# Validations, as they are told.


def explained_validation(store: Store, ref: str) -> Validation:
    """Return a validation: a finished one as it was stored, another as what it has explains it.

    Raises:
        StoreError: no validation, or several, go by this reference.

    """
    found = store.find(ref, VALIDATION)
    if found.answer is not None and found.status is Status.DONE:
        return found.answer
    survey, survey_points = load_survey(store, found.start.parent)
    points = store.items(found.start.study_id)
    return explain_validation(found.start, survey, survey_points, points)


def load_validation(store: Store, survey_id: str) -> Validation | None:
    """Return the newest validation of a survey that scores something; None without any point.

    While none of them does, the newest that has a point: it says how far it is.
    """
    known = [item for item in store.list(VALIDATION, survey_id) if item.items]
    found = (explained_validation(store, item.study_id) for item in known)
    newest = next(found, None)
    if newest is None or newest.scores:
        return newest
    return next((item for item in found if item.scores), newest)


# A validation of a stored survey as requested.


class ValidationStudy(PointStudy[ValidationStart]):
    """A validation, begun or gone on with, on the target of its survey."""

    records = VALIDATION

    def __init__(
        self,
        survey: Survey,
        points: Sequence[Measurement],
        asked: ValidationOptions,
        model: str | None = None,
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
        reached = Reached(
            target=surveyed_target(survey),
            access=start.access,
            given=frozenset(),
            cache_limit_bytes=start.access.cache_limit_bytes,
            max_bytes=start.plan.unique_bytes_max,
        )
        super().__init__(reached, start.system, asked.seed)

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
