"""Whether a survey's slowest requests fit its budget, found out before it starts."""

from __future__ import annotations

from leadline.engine import Engine, Limits, NothingCompleted, Target, open_engine
from leadline.record import Plan, Workload
from leadline.studies.survey.plan import PlanRefused
from leadline.units import format_bytes, format_seconds

LARGE_REQUESTS = 14
"""A survey waits for about so many of its largest requests one by one before it knows how large
they may be: of four slow systems none with a budget of so many ended early, one with 13 did."""
ROOMY_POINT_S = 20.0
"""Points of this length hold many requests of anything that answers within seconds."""

TRIAL_S = 600.0
"""Virtual time is free."""


def require_fit(engine: Engine, target: Target, plan: Plan, seed: int) -> None:
    """Try one of the slowest workloads, and refuse a budget that such requests would use up.

    On a simulated system alone, where another one of the same kind is tried: on a real one the
    trial would have to write all the data first, which is the survey's own first cost. There the
    scouting ends its ranges where requests get too slow.

    Raises:
        PlanRefused: the budget is too short; the message says how long it must be.

    """
    if not engine.virtual or plan.point_s >= ROOMY_POINT_S:
        return
    workload = Workload(unique_bytes=plan.unique_bytes_max, size_mean=plan.size_mean_max)
    limits = Limits(
        warm_up_s_max=0.0,
        warm_up_s_min=0.0,
        measure_s_min=TRIAL_S,
        measure_s_max=TRIAL_S,
        accuracy=0.0,
        total_s_max=2 * TRIAL_S,
    )
    with open_engine(target, engine.access, run_seed=seed) as another:
        try:
            result = another.run(workload, seed=seed, limits=limits)
        except NothingCompleted:
            request_s = TRIAL_S
        else:
            request_s = workload.size_mean / (1e6 * result.throughput_mb_s.value)
    if LARGE_REQUESTS * request_s > plan.budget_s:
        raise PlanRefused(
            f"a request of {format_bytes(plan.size_mean_max)} on "
            f"{format_bytes(plan.unique_bytes_max)} takes {format_seconds(request_s)} here: "
            f"{plan.points} points do not fit {format_seconds(plan.budget_s)}. Give --budget "
            f"{round(1.2 * LARGE_REQUESTS * request_s)}s or more."
        )
