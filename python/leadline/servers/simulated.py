"""A simulated server: the engine's M/G/k in virtual time, whose truth is known."""

from __future__ import annotations

import time
from typing import Any

import msgspec

from leadline.engine.simulated import run_here
from leadline.errors import TargetRefused
from leadline.record.job import Offer, TrialJob
from leadline.record.workbench import (
    Measured,
    SimulatedServer,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)

_SET_UP_S, _WARM_UP_S = 10.0, 5.0
"""The engine's own, where the system does not say."""


def run_simulated_trial(order: TrialOrder, server: SimulatedServer) -> Trial:
    """Answer at once, or after `wall_scale` of the time it would take.

    Raises:
        TargetRefused: the server or a factor makes no sense.

    """
    system = dict(server.system) | dict(order.sample)
    request = order.request
    limit = server.generator_max_per_s
    sent = request if limit is None else _at_most(request, limit)
    measured = _simulate(system, sent, order)
    overhead_s = system.get("set_up_s", _SET_UP_S) + measured.warm_up_s
    cost_s = overhead_s + measured.seconds
    if server.wall_scale > 0:
        time.sleep(cost_s * server.wall_scale)
    state = TrialState.ABORTED if measured.aborted else TrialState.DONE
    failure = None
    if sent is not request:
        state = TrialState.GENERATOR_LIMITED
        failure = f"the generator sent {limit:g} requests/s of {request.rate_per_s:g}"
    elif server.dies_above_per_s is not None and request.rate_per_s > server.dies_above_per_s:
        state, cost_s = TrialState.SERVER_LOST, overhead_s + 1.0
        failure = f"the server died at {request.rate_per_s:g} requests/s"
    return Trial(
        order=order.order,
        request=request,
        seed=order.seed,
        state=state,
        cost_s=cost_s,
        measured=None if state is TrialState.SERVER_LOST else measured,
        failure=failure,
    )


def _at_most(request: TrialRequest, rate_per_s: float) -> TrialRequest:
    if request.rate_per_s <= rate_per_s:
        return request
    return msgspec.structs.replace(request, rate_per_s=rate_per_s)


def _simulate(system: dict[str, Any], request: TrialRequest, order: TrialOrder) -> Measured:
    offer = Offer(
        rate_per_s=request.rate_per_s,
        seconds=request.seconds,
        seed=order.seed,
        limit_ms=order.threshold.limit_ms,
        abort_above_ms=request.abort_above_ms,
        also_limits_ms=order.threshold.also_limits_ms,
    )
    try:
        return run_here(TrialJob(server=system, order=offer))
    except TargetRefused as error:
        raise TargetRefused(f"the simulated server: {error}") from error
