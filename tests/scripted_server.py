"""Trials of servers whose response is a formula, for tests of policies that need a known truth."""

from __future__ import annotations

import math
import random
from collections.abc import Callable

from leadline.record.workbench import (
    Batch,
    Measured,
    PeakRate,
    ResponseMs,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.conversation import Policy

SET_UP_S = 15.0

Response = Callable[[float], float]
"""Mean response in milliseconds at a rate."""


def measured(
    rate_per_s: float, seconds: float, mean_ms: float, limit_ms: float | None = None
) -> Measured:
    """A window with exponential response times of this mean."""
    due = round(rate_per_s * seconds)
    share_over = math.exp(-limit_ms / mean_ms) if limit_ms is not None else 0.0
    return Measured(
        seconds=seconds,
        warm_up_s=5.0,
        due=due,
        unanswered=0,
        failed=0,
        completed_per_s=rate_per_s,
        response_ms=ResponseMs(
            mean=mean_ms,
            p50=mean_ms * math.log(2),
            p90=mean_ms * math.log(10),
            p95=mean_ms * math.log(20),
            p99=mean_ms * math.log(100),
            p99_9=mean_ms * math.log(1000),
            max=mean_ms * math.log(max(due, 2)),
        ),
        batches=(Batch(due=due, mean_ms=mean_ms, over=round(due * share_over), completed=due),),
        aborted=False,
    )


def trial(
    request: TrialRequest,
    order: int,
    mean_ms: float = 0.0,
    state: TrialState = TrialState.DONE,
    limit_ms: float | None = None,
) -> Trial:
    done = state in (TrialState.DONE, TrialState.ABORTED)
    return Trial(
        order=order,
        request=request,
        seed=order,
        state=state,
        cost_s=SET_UP_S + (request.seconds if done else 0.0),
        measured=measured(request.rate_per_s, request.seconds, mean_ms, limit_ms) if done else None,
        failure=None if done else f"scripted: {state}",
    )


def search(
    policy: Policy, response: Response, noise: float = 0.02, seed: int = 1, at_most: int = 2000
) -> tuple[PeakRate, list[Trial]]:
    """Let the policy search a server with this response and lognormal noise between trials."""
    draws = random.Random(seed)
    trials: list[Trial] = []
    for order in range(at_most):
        asked = policy.ask()
        if isinstance(asked, PeakRate):
            return asked, trials
        mean_ms = response(asked.rate_per_s) * math.exp(noise * draws.gauss(0, 1))
        trials.append(trial(asked, order, mean_ms))
        policy.tell(trials[-1])
    raise AssertionError(f"no answer after {at_most} trials")


def one_queue(capacity_per_s: float) -> Response:
    """R = 1 / (a - b λ), the curve of SH08 §3.6; beyond the capacity it is 100 s."""

    def response(rate_per_s: float) -> float:
        left = capacity_per_s - rate_per_s
        return min(1e3 / left, 1e5) if left > 0 else 1e5

    return response
