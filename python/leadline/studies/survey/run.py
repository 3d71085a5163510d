"""Run a survey: ask, measure, store, tell; within the budget, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from leadline.engine import Engine, Progress, Wear
from leadline.record import Measurement, Survey, SurveyStart
from leadline.store import Keeper
from leadline.studies.loop import measure_points
from leadline.studies.pace import Pace
from leadline.studies.resume import kept_when_stopped
from leadline.studies.survey.explain import explain_told
from leadline.studies.survey.strategy import Surveyor


def run_survey(
    engine: Engine,
    store: Keeper,
    start: SurveyStart,
    points: Sequence[Measurement] = (),
    *,
    budget_s: float | None = None,
    wear: Wear | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Survey:
    """Measure every point still missing and return the explained survey.

    Every point is durable in the store before the next one starts. On any exception the stored
    points remain, and the survey can be resumed by passing them as `points`.

    Args:
        engine: the opened target.
        store: where the points go; the survey was begun in it.
        start: what decides the survey.
        points: what was measured in earlier sittings.
        budget_s: hard cap on all sittings together; None is the plan's.
        wear: what the engine counts its writes with; kept with the answer.
        on_progress: told before each point.

    Raises:
        BudgetSpent: the budget ended early, or all that may be written is; the points so far are
            stored.
        PointFailed: the storage failed while measuring.
        ResumeMismatch: `points` are not those of this survey.

    """
    surveyor = Surveyor(start, points)

    def stopped() -> Survey:
        found = explain_told(surveyor)
        written = max(found.written_bytes, wear.written_bytes if wear else 0)
        return msgspec.structs.replace(found, written_bytes=written)

    with kept_when_stopped(store, start.study_id, stopped):
        wall_s = measure_points(
            engine,
            store,
            start,
            surveyor,
            pace_of(start, budget_s),
            on_progress=on_progress,
            precondition_bytes_max=start.precondition_bytes_max,
        )
    survey = explain_told(surveyor, wall_s=wall_s)
    store.end(start.study_id, survey, survey.status)
    return survey


def pace_of(start: SurveyStart, budget_s: float | None = None) -> Pace:
    """How a survey's budget, or another one, is shared among its points."""
    return Pace(budget_s or start.plan.budget_s, start.plan.points, start.accuracy)
