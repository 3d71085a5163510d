"""How the time budget of a survey or a validation is shared among its points."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import msgspec

from leadline.errors import LeadlineError, NothingCompleted
from leadline.record.job import Limits
from leadline.record.result import EngineResult

POINT_S_MIN = 0.3
"""With less time left than this no point says anything; measuring stops instead."""

BUDGET_SHARE = 0.98
"""What of a budget goes to the points; the rest is for what stands between them."""

LAYOUT_BYTES_PER_S = 300e6
"""Cautious writing rate for the forecast before anything has been measured."""

LAYOUT_BYTES_PER_S_MIN = 5e6
"""A target that takes its data file slower than this is given up."""

PRECONDITION_BYTES_PER_S_MIN = 20e6
"""A device that preconditions slower than this takes the rest from the first point's own time."""

BOUND_GRACE_S = 60.0
"""What a measurement without a budget may take beside its windows, its pauses and its layout: for
longer windows where no request ended, and for a device that is slow to settle."""

_LONGER = (1, 4, 16, 64)

_MEASURE_S_ENOUGH = 10.0
"""A window is a quarter of a point's time or this long before its own interval may end it: a short
one can look exact between two bursts."""

_WARM_UP_SHARE = 0.45
"""Most of a point's time that may go into reaching the steady state."""

MEASURE_SHARE = 1 - _WARM_UP_SHARE
"""What of a point's time is its window, where nothing ends it early."""


class BudgetSpent(LeadlineError):
    """The time budget ended before the plan did; what was measured is kept."""

    exit_code = 3


@dataclass(frozen=True)
class Progress:
    """Where a running survey or validation stands."""

    done: int
    planned: int
    stage: str
    left_s: float
    throughput_mb_s: float | None
    """Of the point before; None ahead of the first."""


def share_limits(share_s: float, *, left_s: float, accuracy: float) -> Limits:
    """Time limits of one point.

    Without an accuracy nothing ends a point early, and nothing begins its window early: requests
    that a buffer takes in are as fast from one to the next as those of a steady state, until it is
    full.

    Args:
        share_s: what the point may take.
        left_s: what is left of the whole budget: the hard end.
        accuracy: relative half-width of its own interval that ends a point early; 0 where nothing
            does.

    """
    warm_up_s = _WARM_UP_SHARE * share_s
    measure_s = MEASURE_SHARE * share_s
    return Limits(
        warm_up_s_max=warm_up_s,
        warm_up_s_min=0.0 if accuracy else warm_up_s,
        measure_s_min=min(0.25 * share_s, _MEASURE_S_ENOUGH) if accuracy else measure_s,
        measure_s_max=measure_s,
        accuracy=accuracy,
        total_s_max=left_s,
    )


def bounded(
    limits: Limits,
    *,
    runs: int = 1,
    pause_s: float = 0.0,
    layout_bytes: int = 0,
    precondition_bytes_max: int | None = None,
    grace_s: float = BOUND_GRACE_S,
) -> Limits:
    """Return the limits of a run with the bound of all runs together as `total_s_max`.

    For who has no budget to share: an engine that stopped, or a server that sends a byte now and
    then, would otherwise be waited for without an end.

    Args:
        limits: of one run.
        runs: how many.
        pause_s: between two of them.
        layout_bytes: what may have to be written before the first.
        precondition_bytes_max: most that preconditioning may write.
        grace_s: beside all that.

    """
    window_s = limits.warm_up_s_max + limits.measure_s_max
    written_s = layout_bytes / LAYOUT_BYTES_PER_S_MIN
    written_s += (precondition_bytes_max or 0) / PRECONDITION_BYTES_PER_S_MIN
    total_s = runs * window_s + (runs - 1) * pause_s + written_s + grace_s
    return msgspec.structs.replace(limits, total_s_max=total_s)


def longer_windows(limits: Limits) -> Iterator[Limits]:
    """Yield the limits, then the same with longer windows, for as long as no request ends in them.

    A workload may be so slow, or its process be kept waiting for so long: it gets more time, rather
    than that a study ends there, or that what is hard to measure is left out.
    """
    for times in _LONGER:
        yield msgspec.structs.replace(limits, measure_s_max=times * limits.measure_s_max)


def until_completed(
    run: Callable[..., EngineResult], limits: Limits, left_s: Callable[[], float] | None = None
) -> EngineResult:
    """Call `run(limits=...)`; where no request ended in the window, with a longer one.

    Args:
        run: runs a workload.
        limits: of its first window; the others are longer.
        left_s: says what is left of the bound of all of it; without one each window has the whole.

    Raises:
        NothingCompleted: not one request ended in the longest window that there was time for.

    """
    failure = NothingCompleted("there was no time to try it")
    for each in longer_windows(limits):
        total_s = limits.total_s_max if left_s is None else left_s()
        if total_s < POINT_S_MIN:
            break
        try:
            return run(limits=msgspec.structs.replace(each, total_s_max=total_s))
        except NothingCompleted as error:
            failure = error
    raise failure
