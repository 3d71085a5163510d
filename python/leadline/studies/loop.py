"""Ask, measure, keep, tell: how every study of points is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from leadline.engine import (
    POINT_S_MIN,
    PRECONDITION_BYTES_PER_S_MIN,
    BudgetSpent,
    Engine,
    Limits,
    NothingCompleted,
    PointFailed,
    Progress,
    WrittenSpent,
    longer_windows,
)
from leadline.record import (
    CacheStart,
    EngineResult,
    Measurement,
    SurveyStart,
    ValidationStart,
    point_id,
)
from leadline.store import Keeper
from leadline.studies.pace import Pace
from leadline.studies.resume import clock_after
from leadline.studies.script import PointRequest, Script

PointsStart = SurveyStart | ValidationStart | CacheStart
"""What a study of points recorded before its first one."""


class StudyClock:
    """Seconds since a study began, over all its sittings."""

    def __init__(self, engine: Engine, points: Sequence[Measurement]) -> None:
        self._engine = engine
        self._before_s = 0.0
        if points:
            result = points[-1].result
            self._before_s = points[-1].clock_s + result.total_s - _precondition_s(result)
        self._start_s = engine.clock_s

    def leave_out(self, seconds: float) -> None:
        """Charge nobody for this time."""
        self._start_s += seconds

    @property
    def now_s(self) -> float:
        """Where the study stands."""
        return self._before_s + self._engine.clock_s - self._start_s


def measure_points(
    engine: Engine,
    store: Keeper,
    start: PointsStart,
    script: Script,
    pace: Pace,
    *,
    on_progress: Callable[[Progress], None],
    before: Callable[[PointRequest], None] = lambda _: None,
    precondition_bytes_max: int | None = None,
) -> float:
    """Measure every point still missing and return where the study's clock stands then, in s.

    Every point is durable in the store before the next one starts. On any exception the stored
    points remain, and the study can be resumed with them.

    Args:
        engine: the opened target.
        store: where the points go; the study was begun in it.
        start: what decides the study.
        script: which point comes next; it was told what earlier sittings measured.
        pace: how the budget is shared.
        on_progress: told before each point.
        before: what stands between two points, such as filling a cache.
        precondition_bytes_max: asked of the first point; its time is nobody's.

    Raises:
        BudgetSpent: the budget ended early; the points so far are stored.
        PointFailed: the storage failed while measuring.

    """
    engine.skip_to(clock_after(script.points))
    clock = StudyClock(engine, script.points)
    while (request := script.ask()) is not None:
        done = len(script.points)
        limits = pace.limits(clock.now_s, done)
        on_progress(_progress(script.points, pace, request, limits, clock.now_s))
        before(request)
        limits = pace.limits(clock.now_s, done)
        try:
            point = measure_point(
                engine,
                start,
                request,
                limits,
                clock,
                precondition_bytes_max=None if done else precondition_bytes_max,
            )
        except NothingCompleted as failure:
            if pace.end_s - clock.now_s > limits.warm_up_s_max + limits.measure_s_max:
                raise
            raise BudgetSpent(f"{pace.ended(done)}: {failure}{pace.advice}") from failure
        except WrittenSpent as failure:
            raise WrittenSpent(f"{pace.left(done)} still to measure: {failure}") from failure
        store.add(start.study_id, point)
        script.tell(point)
    return clock.now_s


def measure_point(
    engine: Engine,
    start: PointsStart,
    request: PointRequest,
    limits: Limits,
    clock: StudyClock,
    *,
    precondition_bytes_max: int | None = None,
) -> Measurement:
    """Measure one point, with more time where no request of it ended.

    Raises:
        NothingCompleted: not one request ended in all the time there was.
        PointFailed: the storage failed while measuring.

    """
    failure = NothingCompleted("there was no time to try it")
    end_s = clock.now_s + limits.total_s_max
    for longer in longer_windows(limits):
        clock_s = clock.now_s
        if end_s - clock_s < POINT_S_MIN:
            break
        left_s = end_s - clock_s + _precondition_s_max(precondition_bytes_max)
        started_at = datetime.now(UTC).isoformat()
        try:
            result = engine.run(
                request.workload,
                seed=request.seed,
                limits=msgspec.structs.replace(longer, total_s_max=left_s),
                precondition_bytes_max=precondition_bytes_max,
            )
        except NothingCompleted as error:
            failure = error
        except PointFailed as error:
            raise PointFailed(_point_failed(request, error)) from error
        else:
            clock.leave_out(_precondition_s(result))
            return _measurement(start, request, result, started_at, clock_s)
    raise NothingCompleted(_point_failed(request, failure)) from failure


def _measurement(
    start: PointsStart, request: PointRequest, result: EngineResult, started_at: str, clock_s: float
) -> Measurement:
    return Measurement(
        point_id=point_id(start.study_id, request.order),
        order=request.order,
        stage=request.stage,
        started_at=started_at,
        clock_s=clock_s,
        seed=request.seed,
        workload=request.workload,
        **start.access.stored_in(Measurement),
        result=result,
    )


def _precondition_s(result: EngineResult) -> float:
    return result.precondition.seconds if result.precondition else 0.0


def _precondition_s_max(bytes_max: int | None) -> float:
    """Preconditioning has a budget of its own, in bytes."""
    return (bytes_max or 0) / PRECONDITION_BYTES_PER_S_MIN


def _point_failed(request: PointRequest, error: PointFailed) -> str:
    return f"point {request.order + 1} ({request.stage}): {error}"


def _progress(
    points: Sequence[Measurement], pace: Pace, request: PointRequest, limits: Limits, now_s: float
) -> Progress:
    share_s = now_s / len(points) if points else limits.warm_up_s_max + limits.measure_s_max
    left_s = min(limits.total_s_max, share_s * (pace.points - len(points)))
    last = points[-1].result.throughput_mb_s.value if points else None
    return Progress(len(points), pace.points, request.stage, left_s, last)
