"""How far a trial is from the threshold of saturation (SH08 §3.3), as one number.

The *threshold ratio* of a trial is its response over the threshold: 1 at the peak rate, more when
the server is saturated. With a threshold on the mean it is R / R_sat, with one on a percentile the
percentile over L_sat, with several the largest of them: the server is saturated by any.
SH08 states the peak-rate region of a percentile as [P_sat ± s P_sat], which for P_sat = 0.95 would
reach beyond 1; here it is L_sat ± s L_sat, the same width in time as that of the mean.
"""

from __future__ import annotations

import itertools
import math

from leadline.record.workbench import Measured, Threshold, Trial, TrialState, Within

RATIO_MAX = 1e6
"""Ratio of a trial without a finite response: nothing was answered, or the server was lost."""


def threshold_ratio(threshold: Threshold, trial: Trial) -> float | None:
    """Return the trial's response over the threshold; None when the trial says nothing of it.

    A trial that was given up as saturated is at least at the upper edge of the peak-rate region,
    whatever part of its window it has measured.
    """
    if trial.state not in (TrialState.DONE, TrialState.ABORTED):
        return None
    if trial.measured is None or trial.measured.due == 0:
        return None
    ratio = measured_ratio(threshold, trial.measured)
    if trial.state is TrialState.ABORTED:
        return max(ratio, 1 + threshold.width_frac)
    return ratio


def measured_ratio(threshold: Threshold, measured: Measured) -> float:
    """Return the response over the threshold, at most `RATIO_MAX`."""
    if measured.response_ms is None:
        return RATIO_MAX
    ratios = [0.0]
    if threshold.mean_ms is not None:
        ratios.append(measured.response_ms.mean / threshold.mean_ms)
    for place, within in enumerate(threshold.shares):
        ratios.append(_share_ms(within, place, measured) / within.limit_ms)
    return min(max(ratios), RATIO_MAX)


def percentile_ms(threshold: Threshold, measured: Measured) -> float:
    """Return the response time that a share P_sat of the requests due was within, the first one's.

    Requests that failed are within no time. Between the percentiles that a load generator reports,
    and the share within L_sat that it counts, times are taken as exponential: linear in
    -ln(1 - share). So the percentile is above L_sat if and only if less than P_sat was within it.

    Raises:
        ValueError: the threshold has no percentile.

    """
    if not threshold.shares:
        raise ValueError("a threshold without a percentile has no time of it")
    return _share_ms(threshold.shares[0], 0, measured)


def _share_ms(within: Within, place: int, measured: Measured) -> float:
    """Return the time that the threshold's share of this place was within."""
    share = within.percentile
    points = _distribution(within, place, measured)
    for (share_low, ms_low), (share_high, ms_high) in itertools.pairwise(points):
        if share <= share_high:
            return _between(share, (share_low, ms_low), (share_high, ms_high))
    return math.inf


_FASTEST_SHARE = 1e-9
"""Where the distribution begins: everything below the median is taken to be as long as it."""


def _distribution(within: Within, place: int, measured: Measured) -> list[tuple[float, float]]:
    """Pairs of a share of the requests due and the time that it was within; both rise."""
    response = measured.response_ms
    if response is None:
        return []
    answered = 1 - measured.failed / measured.due
    quantiles = [
        (_FASTEST_SHARE, response.p50),
        (0.5, response.p50),
        (0.9, response.p90),
        (0.95, response.p95),
        (0.99, response.p99),
        (0.999, response.p99_9),
        (1.0, response.max),
    ]
    points = [(share * answered, ms) for share, ms in quantiles]
    counted = _share_within(within, place, measured)
    if counted is None:
        return points
    below = [point for point in points if point[1] < counted[1] and point[0] < counted[0]]
    above = [point for point in points if point[1] >= counted[1] and point[0] >= counted[0]]
    return [*below, counted, *above]


def _share_within(within: Within, place: int, measured: Measured) -> tuple[float, float] | None:
    """Share of the requests due that was within L_sat, as counted; None when it was not."""
    counted = [batch for batch in measured.batches if place < len(batch.over_each)]
    due = sum(batch.due for batch in counted)
    over = sum(batch.over_each[place] for batch in counted)
    if over == 0:
        return None
    return 1 - over / due - measured.failed / measured.due, within.limit_ms


def _between(share: float, low: tuple[float, float], high: tuple[float, float]) -> float:
    def depth(of: float) -> float:
        return -math.log(max(1 - of, 1e-6))

    span = depth(high[0]) - depth(low[0])
    if span <= 0:
        return high[1]
    return low[1] + (depth(share) - depth(low[0])) / span * (high[1] - low[1])
