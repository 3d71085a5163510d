"""Where the response crosses the threshold, from trials beside it alone.

A device's response rises with the load as no queue's does: its percentiles rise by a factor while
the load rises by a fifth, far below what it completes in an overload. Trials as long as those that
define the peak need no model then: near the threshold the logarithm of the response is linear in
that of the load, and where the line crosses is the peak. Few trials beside it scatter more than
the line rises, so that its slope has a prior; the crossing has its posterior, a mixture of
Student's t over slopes.
"""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import stdtr

from leadline.record import Interval
from leadline.record.workbench import Threshold, Trial, TrialState
from leadline.studies.workbench.loads import measured_ratio

TRIALS_MIN = 8
_SLOPE_LN, _SLOPE_SD_LN = math.log(5.0), 0.6
"""Prior of the slope: devices have 2 to 5, a queue at 90% of its capacity 9."""
_SLOPES_LN = _SLOPE_LN + np.linspace(-2.0, 2.0, 41)
_TOGETHER_MAX, _TOGETHER_SE = 0.8, 0.7
"""Trials of one search follow each other within minutes, in which a device wanders: their errors go
together, by as much as neighbours tell and so many standard errors more (chosen so that intervals
hold nine times in ten or more at correlations up to 0.5)."""
_HALF_LN_MIN = 0.05
"""No device is the same from search to search by less."""
_NEAR_LN, _RESPONSE_LN = 0.25, 1.5
"""Trials whose load is within so much of the crossing count, or the nearest ones; a response
farther from the threshold counts as that far: in an overload it says no more of the crossing."""
_ROUNDS = 4
_WINDOW_PART = 0.9


class Point(NamedTuple):
    """Logarithms of one trial."""

    load: float
    response: float
    """Over its threshold: the mean, or the percentile."""
    counted: float
    """Of what is expected to be at its limit at the peak, over that limit: the mean, or the share
    of late requests, which rises by more than the percentile does."""


def point(threshold: Threshold, trial: Trial, run_length_s: float) -> Point | None:
    """Return what a trial says of the crossing.

    None of a trial that was cut short, or whose window is shorter than the peak's trials.
    """
    measured = trial.measured
    if trial.state is not TrialState.DONE or measured is None or measured.response_ms is None:
        return None
    if measured.seconds < _WINDOW_PART * run_length_s:
        return None
    counted = []
    if threshold.mean_ms is not None:
        counted.append(math.log(max(measured.response_ms.mean, 1e-6) / threshold.mean_ms))
    for place, within in enumerate(threshold.shares):
        over = sum(batch.over_each[place] for batch in measured.batches) + measured.failed + 0.5
        counted.append(math.log(over / (measured.due + 1) / (1 - within.percentile)))
    response = math.log(max(measured_ratio(threshold, measured), 1e-6))
    return Point(math.log(trial.request.rate_per_s), response, max(counted, default=response))


def crossing(points: Sequence[Point], confidence: float) -> Interval | None:
    """Return the load at which the expected response is at the threshold; None if not known.

    Args:
        points: in the order in which they were measured.
        confidence: that the interval holds it.

    """
    responses = [each.response for each in points]
    if len(points) < TRIALS_MIN or not min(responses) < 0 < max(responses):
        return None
    middle, kept, low, high = statistics.median(each.load for each in points), points, 0.0, 0.0
    for _ in range(_ROUNDS):
        far = sorted(abs(each.load - middle) for each in points)[TRIALS_MIN - 1]
        kept = [each for each in points if abs(each.load - middle) <= max(far, _NEAR_LN)]
        low, middle, high = _posterior(kept, confidence)
    low, high = min(low, middle - _HALF_LN_MIN), max(high, middle + _HALF_LN_MIN)
    return Interval(math.exp(middle), math.exp(low), math.exp(high), len(kept))


def _posterior(points: Sequence[Point], confidence: float) -> tuple[float, float, float]:
    """Return low, median and high of the crossing's load, as logarithms."""
    loads, responses, counted = np.array(points).T
    responses = np.clip(responses, -_RESPONSE_LN, _RESPONSE_LN)
    count, slopes = len(points), np.exp(_SLOPES_LN)
    load, response = loads.mean(), responses.mean()
    errors = responses - response - np.outer(slopes, loads - load)
    squares = np.maximum((errors**2).sum(axis=1), 1e-12)
    wider = _wider(errors[np.argmin(squares)])
    weights = -0.5 * ((_SLOPES_LN - _SLOPE_LN) / _SLOPE_SD_LN) ** 2 - _SLOPES_LN
    weights -= (count - 1) / 2 / wider**2 * np.log(squares)
    weights = np.exp(weights - weights.max())
    # What is counted is exp(steeper * response) in a trial, and responses scatter log-normally
    # about the line: what is expected of it lies above its median.
    steeper = (counted @ responses) / (responses @ responses)
    variances = squares / (count - 2)
    middles = load - (response + steeper * variances / 2) / slopes
    scales = wider * np.sqrt(variances / count) / slopes
    places = load + np.linspace(-3 * _NEAR_LN, 3 * _NEAR_LN, 601)
    below = stdtr(count - 2, (places - middles[:, None]) / scales[:, None])
    tail = (1 - confidence) / 2
    cumulated = weights @ below / weights.sum()
    low, middle, high = np.interp((tail, 0.5, 1 - tail), cumulated, places)
    return float(low), float(middle), float(high)


def _wider(errors: Sequence[float]) -> float:
    """Return how much wider an interval is because errors that follow each other go together."""
    squares = sum(error**2 for error in errors)
    beside = sum(one * other for one, other in itertools.pairwise(errors))
    together = (max(beside / squares, 0.0) if squares else 0.0) + _TOGETHER_SE / len(errors) ** 0.5
    together = min(together, _TOGETHER_MAX)
    return math.sqrt((1 + together) / (1 - together))
