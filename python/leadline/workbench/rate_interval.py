"""From an interval of the response at one load to an interval of the peak rate.

SH08's policies state how well they know the *response* at the load they report. What a user asked
is the rate. Locally the response follows 1/R = a - b λ (SH08 §3.6), so a chord of the measured
curve in 1/R turns the one into the other.
"""

from __future__ import annotations

from collections.abc import Iterable

from leadline.record import Interval
from leadline.workbench.loads import LoadTrials

_RATIO_MIN = 1e-3
"""A Student interval of two trials can reach below no response time at all."""


def rate_interval(
    load: LoadTrials, others: Iterable[LoadTrials], confidence: float
) -> Interval | None:
    """Return an interval of the peak rate, given trials at one load near it.

    The value is the load itself, as SH08 reports it. The interval holds the loads at which the
    response can be *at* the threshold, given the t interval of the response at this load:

    - the local slope is the chord to the nearest load below. The curve of 1/R is flat first and
      steeper near the peak, so that the chord is too flat rather than too steep, and the interval
      too wide rather than too narrow;
    - with no load below, the response is taken to rise no slower than in proportion to the load;
    - loads measured on either side whose own intervals exclude the threshold bound it;
    - the load itself is always inside.

    Half a peak-rate region off (R may be anywhere in R_sat ± s R_sat) is thereby accounted for.
    None with fewer than two trials.
    """
    ratios = load.ratio_interval(confidence)
    if ratios is None:
        return None
    rate = load.rate_per_s
    known = [other for other in others if other.ratio is not None and other is not load]
    below = max((o for o in known if o.rate_per_s < rate), key=_rate, default=None)
    low = min(_peak_if(max(ratios[1], _RATIO_MIN), rate, below), rate)
    high = max(_peak_if(max(ratios[0], _RATIO_MIN), rate, below), rate)
    for other in known:
        verdict = other.saturated(confidence, 0.0) if len(other.ratios) > 1 else None
        if verdict is False and other.rate_per_s < rate:
            low = max(low, other.rate_per_s)
        if verdict is True and other.rate_per_s > rate:
            high = min(high, other.rate_per_s)
    return Interval(rate, low, high, len(load.ratios))


def _rate(load: LoadTrials) -> float:
    return load.rate_per_s


def _peak_if(ratio: float, rate: float, below: LoadTrials | None) -> float:
    """Load at which the response is at the threshold, if it is `ratio` of it at `rate`."""
    in_proportion = rate / ratio
    if below is None or below.ratio is None or below.ratio >= ratio:
        return in_proportion
    fall_per_load = (1 / max(below.ratio, _RATIO_MIN) - 1 / ratio) / (rate - below.rate_per_s)
    return rate + (1 / ratio - 1) / fall_per_load
