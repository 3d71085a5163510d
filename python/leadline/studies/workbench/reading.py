"""What is kept of a trial: the response over parts of its window, and completions in overload.

The response is one number of seconds for each part that equals the threshold where the server is
just saturated: the mean, or, of a threshold on a percentile, the percentile as the share of slow
responses tells it. An exponential tail has P(R > L) = a^(L/Y) when Y is its (1 - a) percentile,
so Y = L ln a / ln(share over L). It needs nothing but the counts of each batch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec
import numpy as np
from numpy.typing import NDArray

from leadline.record.workbench import Batch, Measured, Threshold, Trial
from leadline.studies.workbench.loads import Stalls

Floats = NDArray[np.float64]

PARTS = (0.0, 1 / 6, 1 / 2, 1.0)
"""Of the window: what is left of the start, a middle, and the rest."""
_BUSY_GROUPS_MAX = 12
_BUSY_PART_MIN = 1 / 6
_FULL_PART = 0.5
_SHARE_MAX = 0.95


@dataclass(frozen=True)
class Aim:
    """One threshold as the model sees it."""

    limit_s: float
    """R_sat, or L_sat."""
    over_frac: float | None
    """1 - P_sat; None: the threshold is on the mean."""
    place: int = 0
    """Of the limit among those that batches count requests over."""

    @property
    def gain(self) -> float:
        """Percentile over mean of an exponential response."""
        return 1.0 if self.over_frac is None else -math.log(self.over_frac)


def aims(threshold: Threshold) -> tuple[Aim, ...]:
    """Return the mean's and the percentiles', as far as there are any."""
    found = []
    if threshold.mean_ms is not None:
        found.append(Aim(threshold.mean_ms / 1e3, None))
    for place, within in enumerate(threshold.shares):
        found.append(Aim(within.limit_ms / 1e3, 1 - within.percentile, place))
    return tuple(found)


@dataclass(frozen=True)
class Part:
    """The response over one part of a window."""

    from_s: float
    """Since the load began."""
    to_s: float
    log_s: float
    count_variance: float
    """Of `log_s`, from the number of requests alone."""


@dataclass(frozen=True)
class Busy:
    """Completions while the server was surely never idle."""

    from_s: float
    step_s: float
    log_rates: Floats


@dataclass(frozen=True)
class Reading:
    """One trial, as the likelihood sees it."""

    rate_per_s: float
    """Really offered."""
    warm_up_s: float
    seconds: float
    parts: tuple[Part, ...]
    abort_above_s: float | None
    """It was given up at this mean response."""
    stalls: Stalls | None
    """Of a trial far below the threshold: they are taken out of its parts."""
    busy: Busy | None
    overloaded: bool
    """Busy for most of the window: completions then say all."""

    @property
    def calm(self) -> bool:
        """Whether stalls are taken out of its parts."""
        return self.stalls is not None


def read(trial: Trial, aim: Aim, stalls: Stalls | None = None) -> Reading | None:
    """Return what a trial says about a threshold; None when it says nothing.

    Args:
        trial: at one load.
        aim: the threshold.
        stalls: of a trial far below it (`leadline.studies.workbench.loads.stalls_of`).

    """
    measured = trial.measured
    if measured is None or measured.due == 0 or measured.seconds <= 0 or not measured.batches:
        return None
    if stalls is not None:
        measured = msgspec.structs.replace(measured, batches=stalls.rest)
    busy = _busy(measured, aim)
    overloaded = (
        busy is not None and len(busy.log_rates) * busy.step_s >= _FULL_PART * measured.seconds
    )
    bound_ms = trial.request.abort_above_ms
    aborted = measured.aborted and bound_ms is not None and stalls is None
    return Reading(
        rate_per_s=measured.offered_per_s,
        warm_up_s=measured.warm_up_s,
        seconds=measured.seconds,
        parts=() if aborted else tuple(_parts(measured, aim)),
        abort_above_s=bound_ms / 1e3 if aborted and bound_ms is not None else None,
        stalls=stalls,
        busy=busy,
        overloaded=overloaded,
    )


def _parts(measured: Measured, aim: Aim) -> list[Part]:
    batches = measured.batches
    cuts = sorted({round(share * len(batches)) for share in PARTS})
    step_s = measured.seconds / len(batches)
    found = []
    for first, end in pairwise(cuts):
        inside = batches[first:end]
        response = _response_s(inside, aim)
        if response is not None:
            log_s, variance = response
            from_s = measured.warm_up_s + first * step_s
            to_s = measured.warm_up_s + end * step_s
            found.append(Part(from_s, to_s, log_s, variance))
    return found


def _response_s(batches: Sequence[Batch], aim: Aim) -> tuple[float, float] | None:
    """Logarithm of the response of some batches, and its variance from counting."""
    due = sum(batch.due for batch in batches)
    if due == 0:
        return None
    if aim.over_frac is None:
        mean_ms = sum(batch.due * batch.mean_ms for batch in batches) / due
        return math.log(max(mean_ms, 1e-6) / 1e3), 1.0 / due
    over = sum(batch.over_each[aim.place] for batch in batches) + 0.5
    share = min(over / (due + 1), _SHARE_MAX)
    depth = -math.log(share)
    return math.log(aim.limit_s * aim.gain / depth), 3.0 / over / depth**2


def _busy(measured: Measured, aim: Aim) -> Busy | None:
    """Return completions of the longest run of batches that all waited long.

    A backlog of several thresholds at both ends of a batch means that no worker was idle in it.
    """
    bound_ms = 1e3 * max(3 * aim.limit_s / aim.gain, 0.1)
    batches = measured.batches
    first, end = _longest_run([batch.mean_ms > bound_ms for batch in batches])
    if end - first < _BUSY_PART_MIN * len(batches):
        return None
    size = math.ceil((end - first) / _BUSY_GROUPS_MAX)
    part_s = measured.seconds / len(batches)
    starts = range(first, end - size + 1, size)
    counts = [sum(batch.completed for batch in batches[at : at + size]) for at in starts]
    if len(counts) < 2 or min(counts) == 0:
        return None
    rates = np.log(np.array(counts) / (size * part_s))
    return Busy(measured.warm_up_s + first * part_s, size * part_s, rates)


def _longest_run(flags: Sequence[bool]) -> tuple[int, int]:
    """Return the longest run of true flags, its first one left out, as (first, end)."""
    best, start = (0, 0), None
    for place, flag in enumerate([*flags, False]):
        if flag and start is None:
            start = place
        elif not flag and start is not None:
            if place - start - 1 > best[1] - best[0]:
                best = (start + 1, place)
            start = None
    return best
