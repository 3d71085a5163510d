"""Run a validation: ask, measure, store; within the budget, whatever happens."""

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
    NothingCompleted,
    PointFailed,
    Progress,
    share_limits,
)
from leadline.record import EngineResult, Measurement, ValidationStart, point_id
from leadline.store import Keeper
from leadline.validate.begin import clock_after
from leadline.validate.draw import PointRequest, requests
from leadline.validate.errors import ValidationRefused

LONGER = (1, 4, 16)
"""A random workload may be so slow that no request of it ends within a point's time: it gets more,
rather than that what is hard to measure is left out."""


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
    engine.skip_to(max(start.clock_start_s, clock_after(points)))
    done = list(points)
    before_s = points[-1].clock_s + points[-1].result.total_s if points else 0.0
    opened_s = engine.clock_s
    end_s = start.plan.budget_s if budget_s is None else before_s + budget_s
    for request in asked[len(done) :]:
        now_s = before_s + engine.clock_s - opened_s
        limits = limits_for(start, end_s - now_s, len(asked) - len(done))
        on_progress(_progress(done, len(asked), request, limits, now_s))
        point = _measure(engine, start, request, limits, now_s)
        store.add(start.study_id, point)
        done.append(point)
    return tuple(done)


def limits_for(start: ValidationStart, left_s: float, points_left: int) -> Limits:
    """Time limits of the next point: the plan's, or an equal share of a budget that runs short.

    Raises:
        BudgetSpent: nothing useful fits any more.

    """
    share_s = min(start.plan.point_s, BUDGET_SHARE * left_s / points_left)
    if share_s < POINT_S_MIN:
        raise BudgetSpent(
            f"the budget ended with {points_left} of {start.plan.points} points still to measure; "
            "what was measured is kept. --resume --budget TIME gives the rest more time"
        )
    return share_limits(share_s, left_s=left_s, accuracy=start.accuracy)


def _require_same_script(asked: Sequence[PointRequest], points: Sequence[Measurement]) -> None:
    for request, point in zip(asked, points, strict=False):
        if (point.workload, point.stage) != (request.workload, request.stage):
            raise ValidationRefused(
                f"stored point {point.order} measured {point.workload}, but this version of "
                f"Leadline would have measured {request.workload}; start a new validation instead "
                "of resuming this one"
            )


def _measure(
    engine: Engine, start: ValidationStart, request: PointRequest, limits: Limits, now_s: float
) -> Measurement:
    result, started_at, waited_s = _result(engine, request, limits)
    return Measurement(
        point_id=point_id(start.study_id, request.order),
        order=request.order,
        stage=request.stage,
        started_at=started_at,
        clock_s=now_s + waited_s,
        seed=request.seed,
        workload=request.workload,
        backend=start.backend,
        direct=start.direct,
        sync=start.sync,
        result=result,
    )


def _result(
    engine: Engine, request: PointRequest, limits: Limits
) -> tuple[EngineResult, str, float]:
    """Return what the last attempt gave, when it began (UTC), and the seconds lost before it."""
    begun_s, failure = engine.clock_s, NothingCompleted("there was no time to try it")
    for times in LONGER:
        left_s = limits.total_s_max - (engine.clock_s - begun_s)
        if left_s < POINT_S_MIN:
            break
        longer = msgspec.structs.replace(
            limits, measure_s_max=times * limits.measure_s_max, total_s_max=left_s
        )
        started_at, waited_s = datetime.now(UTC).isoformat(), engine.clock_s - begun_s
        try:
            result = engine.run(request.workload, seed=request.seed, limits=longer)
            return result, started_at, waited_s
        except NothingCompleted as error:
            failure = error
        except PointFailed as error:
            raise PointFailed(_point_failed(request, error)) from error
    raise NothingCompleted(_point_failed(request, failure)) from failure


def _point_failed(request: PointRequest, error: PointFailed) -> str:
    return f"point {request.order + 1} ({request.stage}): {error}"


def _progress(
    done: Sequence[Measurement], planned: int, request: PointRequest, limits: Limits, now_s: float
) -> Progress:
    share_s = now_s / len(done) if done else limits.warm_up_s_max + limits.measure_s_max
    left_s = min(limits.total_s_max, share_s * (planned - len(done)))
    last = done[-1].result.throughput_mb_s.value if done else None
    return Progress(len(done), planned, request.stage, left_s, last)
