"""Where the response crosses the threshold, from trials beside it alone.

A device's response rises with the load as no queue's does: its percentiles rise by a factor while
the load rises by a fifth, far below what it completes in an overload. Trials as long as those that
define the peak need no model then: near the threshold the logarithm of the response is linear in
that of the load, and where the line crosses is the peak. Its interval is Fieller's.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence

from leadline.record import Interval
from leadline.record.workbench import Threshold, Trial, TrialState
from leadline.stats import student_t

TRIALS_MIN = 8
_WIDER = 2.0
"""Trials of one search follow each other within minutes, in which a device wanders: their errors go
together, and the line is less certain than of independent ones (held at a correlation of 0.5)."""
_HALF_LN_MIN = 0.05
"""No device is the same from search to search by less."""
_NEAR_LN, _RESPONSE_LN = 0.25, 1.5
"""Trials whose load is within so much of the crossing, and whose response of the threshold."""
_ROUNDS = 4
_SLOPE_MIN = 3.0
"""Standard errors that the slope is above 0: else there is no crossing to speak of."""
_UNSURE_MAX = 0.5
"""Fieller's g: beyond, the slope is too uncertain for an interval."""
_WINDOW_PART = 0.9

Point = tuple[float, float]
"""Logarithms of a load, and of the response there over the threshold."""


def response_ln(threshold: Threshold, trial: Trial, run_length_s: float) -> float | None:
    """Return the logarithm of a response over its threshold, of a share that of late requests.

    None of a trial that was cut short, or whose window is shorter than the peak's trials.
    """
    measured = trial.measured
    if trial.state is not TrialState.DONE or measured is None or measured.response_ms is None:
        return None
    if measured.seconds < _WINDOW_PART * run_length_s:
        return None
    found = []
    if threshold.mean_ms is not None:
        found.append(math.log(max(measured.response_ms.mean, 1e-6) / threshold.mean_ms))
    for place, within in enumerate(threshold.shares):
        over = sum(batch.over_each[place] for batch in measured.batches) + measured.failed + 0.5
        found.append(math.log(over / (measured.due + 1) / (1 - within.percentile)))
    return max(found, default=None)


def crossing(points: Sequence[Point], confidence: float) -> Interval | None:
    """Return the load at which the expected response is at the threshold; None if not known."""
    near = [point for point in points if abs(point[1]) <= _RESPONSE_LN]
    if len(near) < TRIALS_MIN:
        return None
    middle = statistics.median(x for x, _ in near)
    kept, found = near, None
    for _ in range(_ROUNDS):
        kept = [point for point in near if abs(point[0] - middle) <= _NEAR_LN]
        if len(kept) < TRIALS_MIN or not min(y for _, y in kept) < 0 < max(y for _, y in kept):
            return None
        found = _fieller(kept, confidence)
        if found is None:
            return None
        middle = found[1]
    assert found is not None  # noqa: S101 - there is a round
    low, _, high = found
    low = middle - max(_WIDER * (middle - low), _HALF_LN_MIN)
    high = middle + max(_WIDER * (high - middle), _HALF_LN_MIN)
    return Interval(math.exp(middle), math.exp(low), math.exp(high), len(kept))


def _fieller(points: Sequence[Point], confidence: float) -> tuple[float, float, float] | None:
    count = len(points)
    x_mean = statistics.fmean(x for x, _ in points)
    y_mean = statistics.fmean(y for _, y in points)
    spread = sum((x - x_mean) ** 2 for x, _ in points)
    if spread == 0:
        return None
    slope = sum((x - x_mean) * (y - y_mean) for x, y in points) / spread
    squares = sum((y - y_mean - slope * (x - x_mean)) ** 2 for x, y in points)
    variance = squares / (count - 2)
    if slope <= _SLOPE_MIN * math.sqrt(variance / spread):
        return None
    # Responses scatter log-normally about the line; the expected one lies above their median.
    off = -(y_mean + variance / 2) / slope
    reach = student_t(count - 2, confidence) * math.sqrt(variance) / slope
    unsure = reach**2 / spread
    if unsure >= _UNSURE_MAX:
        return None
    half = reach * math.sqrt((1 - unsure) / count + off**2 / spread)
    ends = ((off + way * half) / (1 - unsure) for way in (-1, 1))
    low, high = (x_mean + end for end in ends)
    return low, x_mean + off, high
