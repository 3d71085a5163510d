"""What became of a trial; where it measured something: whose limit was it?"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from leadline.record.workbench import (
    Measured,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)

SHORT_FRAC = 0.02
"""A generator that offers less than this below the rate, beyond what chance takes, fell short."""
CHANCE_SD = 4.0
"""Poisson arrivals over a window stray; so many standard deviations are chance."""
LATE_FRAC = 0.5
"""Of the threshold: a generator that sends later than this is what was measured."""
FAILED_FRAC_MAX = 0.05


class Outcome(msgspec.Struct, frozen=True):
    """What became of a trial."""

    state: TrialState
    failure: str | None = None
    measured: Measured | None = None


def timed_trial(order: TrialOrder, conduct: Callable[[], Outcome]) -> Trial:
    """Conduct a trial, and say what became of it and what it cost."""
    started_at, begin_s = datetime.now(UTC).isoformat(timespec="seconds"), time.monotonic()
    outcome = conduct()
    return Trial(
        order=order.order,
        request=order.request,
        seed=order.seed,
        state=outcome.state,
        cost_s=time.monotonic() - begin_s,
        measured=outcome.measured,
        failure=outcome.failure,
        started_at=started_at,
    )


def state_of(
    measured: Measured, request: TrialRequest, threshold: Threshold
) -> tuple[TrialState, str | None]:
    """Return the state, and why when the trial says nothing of the server.

    The generator is asked first: one that falls behind its own schedule makes any server look
    saturated, since responses count from when they were due.
    """
    rate_per_s = request.rate_per_s
    expected = rate_per_s * measured.seconds
    if measured.due < expected * (1 - SHORT_FRAC) - CHANCE_SD * math.sqrt(expected):
        return TrialState.GENERATOR_LIMITED, (
            f"the generator offered {measured.offered_per_s:.4g} requests/s of {rate_per_s:.4g}: "
            "give it more processors or connections, or a lower highest rate"
        )
    late_ms, least_ms = measured.sent_late_ms_p99, _threshold_ms(threshold)
    if late_ms is not None and least_ms is not None and late_ms > LATE_FRAC * least_ms:
        return TrialState.GENERATOR_LIMITED, (
            f"the generator itself sent {late_ms:.3g} ms late (99th percentile), and the threshold "
            f"is {least_ms:g} ms: give it more processors, or a lower highest rate"
        )
    if measured.failed > FAILED_FRAC_MAX * measured.due:
        return TrialState.FAILED, (
            f"{measured.failed} of {measured.due} requests were answered with an error; see the "
            "server's log (a server that turns requests away under load has not answered them)"
        )
    return (TrialState.ABORTED if measured.aborted else TrialState.DONE), None


def _threshold_ms(threshold: Threshold) -> float | None:
    given = [within.limit_ms for within in threshold.shares]
    given += [threshold.mean_ms] if threshold.mean_ms is not None else []
    return min(given, default=None)
