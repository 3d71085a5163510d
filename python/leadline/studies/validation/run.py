"""Run a validation: ask, measure, store; within the budget, whatever happens."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from leadline.engine import Engine, Progress
from leadline.record import Measurement, ValidationStart
from leadline.store import Keeper
from leadline.studies.loop import StudyClock, measure_points
from leadline.studies.pace import Pace
from leadline.studies.script import KnownScript, PointRequest
from leadline.studies.validation.draw import requests
from leadline.studies.validation.errors import ValidationRefused


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
