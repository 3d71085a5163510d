"""Trials that one stall decides: a device or a host that stood still for a moment.

A server that a load saturates responds late in most of a window. Where one short stretch takes a
trial over the threshold, and the response in the rest of the window is far below it, the load is
not the cause. A search that takes such a trial for a limit never returns (PEERS.md §6).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from leadline.record.workbench import Batch, Threshold, Trial
from leadline.studies.workbench.threshold import threshold_ratio

STRETCH_S = 1.5
"""A stall and the queue that it leaves are over within this time."""
CLEAR = 0.5
"""The rest of the window is below this part of the threshold."""
_LATE_EXPECTED_MIN = 5.0
"""Requests over the limit in the rest if it were at the threshold; fewer would say little."""


@dataclass(frozen=True)
class Stall:
    """A stretch of a trial without which it had met the threshold."""

    rate_per_s: float
    at_s: float
    """Into the window."""
    longest_ms: float
    """Response of the trial."""


def deciding_stall(trial: Trial, threshold: Threshold) -> Stall | None:
    """Return the stall that took a trial over the threshold; None when it was not one alone."""
    ratio = threshold_ratio(threshold, trial)
    measured = trial.measured
    if ratio is None or ratio <= 1 or measured is None or measured.response_ms is None:
        return None
    batches = measured.batches
    part_s = measured.seconds / max(len(batches), 1)
    if part_s <= 0 or measured.seconds < 2 * STRETCH_S:
        return None
    width = math.ceil(STRETCH_S / part_s) + 1
    waits = [batch.due * batch.mean_ms for batch in batches]
    starts = range(max(len(batches) - width, 0) + 1)
    start = max(starts, key=lambda at: sum(waits[at : at + width]))
    if not is_clear([*batches[:start], *batches[start + width :]], threshold):
        return None
    worst = max(range(start, min(start + width, len(batches))), key=lambda at: waits[at])
    return Stall(
        rate_per_s=trial.request.rate_per_s,
        at_s=worst * part_s,
        longest_ms=measured.response_ms.max,
    )


def is_clear(batches: Sequence[Batch], threshold: Threshold) -> bool:
    """Whether the response in these parts is far below every limit of the threshold."""
    due = sum(batch.due for batch in batches)
    if due == 0:
        return False
    if threshold.mean_ms is not None:
        mean_ms = sum(batch.due * batch.mean_ms for batch in batches) / due
        if mean_ms > CLEAR * threshold.mean_ms:
            return False
    for place, within in enumerate(threshold.shares):
        allowed = (1 - within.percentile) * due
        over = sum(batch.over_each[place] for batch in batches)
        if allowed < _LATE_EXPECTED_MIN or over > CLEAR * allowed:
            return False
    return True


def format_stalls(stalls: Sequence[Stall], trials: Iterable[Trial]) -> str:
    """Write how often trials met a stall that decided them."""
    measured_s = sum(trial.measured.seconds for trial in trials if trial.measured is not None)
    longest_ms = max(stall.longest_ms for stall in stalls)
    return (
        f"{len(stalls)} stalls in {measured_s:.3g} s of trials, the longest response "
        f"{longest_ms:.3g} ms"
    )
