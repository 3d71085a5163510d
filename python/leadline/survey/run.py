"""Run a survey: ask, measure, store, tell; within the budget, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from leadline.engine import (
    BUDGET_SHARE,
    POINT_S_MIN,
    BudgetSpent,
    Engine,
    Limits,
    PointFailed,
    Progress,
    share_limits,
)
from leadline.record import EngineResult, Measurement, Survey, SurveyStart, point_id
from leadline.store import Keeper
from leadline.survey.explain import explain_told
from leadline.survey.strategy import PointRequest, Surveyor

PRECONDITION_BYTES_PER_S_MIN = 20e6
"""A device that preconditions slower than this takes the rest from the first point's own time."""


def run_survey(
    engine: Engine,
    store: Keeper,
    start: SurveyStart,
    points: Sequence[Measurement] = (),
    *,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Survey:
    """Measure every point still missing and return the explained survey.

    Every point is durable in the store before the next one starts. On any exception the stored
    points remain, and the survey can be resumed by passing them as `points`.

    Raises:
        BudgetSpent: the budget ended early; the points so far are stored.
        PointFailed: the storage failed while measuring.
        ResumeMismatch: `points` are not those of this survey.

    """
    surveyor = Surveyor(start, points)
    clock = _Clock(engine, points)
    while (request := surveyor.ask()) is not None:
        left = start.plan.points - len(surveyor.points)
        limits = limits_for(start, clock.now_s, left)
        on_progress(_progress(start, surveyor, request, clock.now_s))
        precondition = None if surveyor.points else start.precondition_bytes_max
        measurement = _measure(
            engine, start, request, limits, clock, precondition_bytes_max=precondition
        )
        store.add(start.study_id, measurement)
        surveyor.tell(measurement)
    survey = explain_told(surveyor, wall_s=clock.now_s)
    store.end(start.study_id, survey, survey.status)
    return survey


class _Clock:
    """Seconds since the survey began, over all its sittings."""

    def __init__(self, engine: Engine, points: Sequence[Measurement]) -> None:
        self._engine = engine
        self._before_s = points[-1].clock_s + _charged_s(points[-1].result) if points else 0.0
        self._start_s = engine.clock_s

    def leave_out(self, seconds: float) -> None:
        """Charge nobody for this time: preconditioning has a budget of its own, in bytes."""
        self._start_s += seconds

    @property
    def now_s(self) -> float:
        return self._before_s + self._engine.clock_s - self._start_s


def _charged_s(result: EngineResult) -> float:
    """Time of a point that counts against the survey's budget."""
    return result.total_s - _precondition_s(result)


def _precondition_s(result: EngineResult) -> float:
    return result.precondition.seconds if result.precondition else 0.0


def limits_for(start: SurveyStart, now_s: float, points_left: int) -> Limits:
    """Time limits of the next point: an equal share of what is left of the budget.

    A point that ends early leaves its time to the others; a slow one takes it from them.

    Raises:
        BudgetSpent: nothing useful fits any more.

    """
    left_s = start.plan.budget_s - now_s
    share_s = BUDGET_SHARE * left_s / points_left
    if share_s < POINT_S_MIN:
        raise BudgetSpent(
            f"the budget ended with {points_left} of {start.plan.points} points still to measure"
        )
    return share_limits(share_s, left_s=left_s, accuracy=start.accuracy)


def _measure(
    engine: Engine,
    start: SurveyStart,
    request: PointRequest,
    limits: Limits,
    clock: _Clock,
    *,
    precondition_bytes_max: int | None,
) -> Measurement:
    started_at, clock_s = datetime.now(UTC).isoformat(), clock.now_s
    if precondition_bytes_max is not None:
        extra_s = precondition_bytes_max / PRECONDITION_BYTES_PER_S_MIN
        limits = msgspec.structs.replace(limits, total_s_max=limits.total_s_max + extra_s)
    try:
        result = engine.run(
            request.workload,
            seed=request.seed,
            limits=limits,
            precondition_bytes_max=precondition_bytes_max,
        )
    except PointFailed as error:
        raise PointFailed(f"point {request.order + 1} ({request.stage}): {error}") from error
    clock.leave_out(_precondition_s(result))
    return Measurement(
        point_id=point_id(start.study_id, request.order),
        order=request.order,
        stage=request.stage,
        started_at=started_at,
        clock_s=clock_s,
        seed=request.seed,
        workload=request.workload,
        backend=start.backend,
        direct=start.direct,
        sync=start.sync,
        result=result,
    )


def _progress(
    start: SurveyStart, surveyor: Surveyor, request: PointRequest, now_s: float
) -> Progress:
    done = len(surveyor.points)
    share_s = now_s / done if done else start.plan.point_s
    left_s = min(start.plan.budget_s - now_s, share_s * (start.plan.points - done))
    last = surveyor.points[-1].result.throughput_mb_s.value if done else None
    return Progress(done, start.plan.points, request.stage, left_s, last)
