"""From an interval of the response at one load to an interval of the peak rate.

SH08's policies state how well they know the *response* at the load they report. What a user asked
is the rate. Locally the response follows 1/R = a - b λ (SH08 §3.6), so a chord of the measured
curve in 1/R turns the one into the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from leadline.record import Interval
from leadline.studies.workbench.loads import LoadTrials

_RATIO_MIN = 1e-3
"""A Student interval of two trials can reach below no response time at all."""
_CLEARLY_LESS = 0.7
_BOUND_CONFIDENCE = 0.999


def rate_interval(
    load: LoadTrials, others: Iterable[LoadTrials], confidence: float
) -> Interval | None:
    """Return an interval of the peak rate, given trials at one load near it.

    The value is the load itself, as SH08 reports it. The interval holds the loads at which the
    response can be *at* the threshold, given the t interval of the response at this load:

    - the local slope is the chord to the nearest load below whose response is clearly less (by
      `_CLEARLY_LESS`: a nearer one would be a slope of noise). The curve of 1/R is flat first and
      steeper near the peak, so that the chord is too flat rather than too steep, and the interval
      too wide rather than too narrow;
    - with no such load, the response is taken to rise no slower than in proportion to the load;
    - loads on either side that are told from the peak with `_BOUND_CONFIDENCE` bound it. Those of
      SH08's search are told with 95 % from as little as two trials, and there are many of them;
    - the load itself is always inside.

    Half a peak-rate region off (R may be anywhere in R_sat ± s R_sat) is thereby accounted for.
    That a search stops when its trials happen to agree with the region is not: on a known curve 87
    to 98 % of the 95 % intervals hold the peak. Nor is that a load was told wrongly on the way,
    which two trials do to a server with two modes.

    None with fewer than two trials; no ends where they would be further apart than twice the rate.
    """
    ratios = load.ratio_interval(confidence)
    if ratios is None:
        return None
    rate = load.rate_per_s
    known = [other for other in others if other.ratio is not None and other is not load]
    low = min(_peak_if(max(ratios[1], _RATIO_MIN), rate, known), rate)
    high = max(_peak_if(max(ratios[0], _RATIO_MIN), rate, known), rate)
    for other in known:
        told = other.ratio_interval(_BOUND_CONFIDENCE)
        if told is not None and told[1] < 1 and other.rate_per_s < rate:
            low = max(low, other.rate_per_s)
        if told is not None and told[0] > 1 and other.rate_per_s > rate:
            high = min(high, other.rate_per_s)
    low = max(low, 0.0)
    if high - low > 2 * rate:
        return Interval(rate, None, None, len(load.ratios))
    return Interval(rate, low, high, len(load.ratios))


def _peak_if(ratio: float, rate: float, known: Sequence[LoadTrials]) -> float:
    """Load at which the response is at the threshold, if it is `ratio` of it at `rate`."""
    below = [
        (other.rate_per_s, other.ratio)
        for other in known
        if other.rate_per_s < rate
        and other.ratio is not None
        and other.ratio <= _CLEARLY_LESS * ratio
    ]
    if not below:
        return rate / ratio
    rate_below, ratio_below = max(below)
    fall_per_load = (1 / max(ratio_below, _RATIO_MIN) - 1 / ratio) / (rate - rate_below)
    return rate + (1 / ratio - 1) / fall_per_load
