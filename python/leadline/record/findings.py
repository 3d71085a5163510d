"""What a recorded curve says, and whether its intervals can tell: read alike by survey and report.

Two throughputs are compared by their ratio. Its 95% interval is recovered from the two intervals
on the log scale (MOVER: Zou and Donner, "Construction of confidence limits about effect measures",
Statistics in Medicine 27, 2008): with ln ratio d = a - b,
    low  = d - sqrt((a - a_low)^2 + (b_high - b)^2),
    high = d + sqrt((a_high - a)^2 + (b - b_low)^2).
When one side was picked as the best of k candidates, both arms are stretched by
z(1 - 0.025/k) / z(0.975) (Bonferroni; normal quantiles, so slightly short for very small n), so
that picking the luckiest of many equal readings is not mistaken for a difference.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import msgspec

from leadline.record.survey import Boundary, Curve, CurvePoint
from leadline.record.workload import Interval

LEVEL_FRAC = 0.95
"""A curve has levelled off where it stays at or above this share of its best."""


DRIFT_TOLD_TO = 1.0
"""A drift whose interval reaches a doubling is one that nobody can tell anything of."""


def told_drift(drift: Interval | None) -> Interval | None:
    """Return a study's drift where its interval says something; else None."""
    if drift is None or drift.low is None or drift.high is None or drift.high > DRIFT_TOLD_TO:
        return None
    return drift


class Comparison(msgspec.Struct, frozen=True):
    """The ratio of two throughputs with its 95% interval, absent when a side has none."""

    ratio: float
    low: float | None
    high: float | None

    @property
    def shown(self) -> bool:
        """Whether the interval excludes "no difference"; a missing interval shows nothing."""
        return self.low is not None and self.high is not None and not self.low <= 1.0 <= self.high

    @property
    def faster(self) -> bool:
        """Whether the first side is shown to be the faster one."""
        return self.shown and self.ratio > 1.0

    @property
    def slower(self) -> bool:
        """Whether the first side is shown to be the slower one."""
        return self.shown and self.ratio < 1.0

    def inverse(self) -> Comparison:
        """Return the same comparison seen from the other side."""
        low = 1 / self.high if self.high else None
        high = 1 / self.low if self.low else None
        return Comparison(1 / self.ratio if self.ratio else math.inf, low, high)


class Gain(msgspec.Struct, frozen=True, kw_only=True):
    """What moving along a curve brings, from its least x to its best x."""

    first: CurvePoint
    best: CurvePoint
    last: CurvePoint
    to_best: Comparison
    """Throughput at the best x over that at the least x."""
    level_x: float
    """Least x from which every reading up to the best stays at 95% of the best or above."""
    rising: bool
    """The largest x is the best and is shown to be more than 5% above the one before it."""
    to_last: Comparison
    """Throughput at the largest x over the best: below 1 and shown when it falls again."""


def compare(a: Interval, b: Interval, *, candidates: int = 1) -> Comparison:
    """Compare `a` with `b`; `candidates` is the number that `a` or `b` was picked from."""
    if a.value <= 0 or b.value <= 0:
        return Comparison(math.nan, None, None)
    ratio = a.value / b.value
    ends = (a.low, a.high, b.low, b.high)
    if any(end is None or end <= 0 for end in ends):
        return Comparison(ratio, None, None)
    a_low, a_high, b_low, b_high = (math.log(end) for end in ends if end is not None)
    a_mid, b_mid = math.log(a.value), math.log(b.value)
    stretch = _stretch(candidates)
    down = stretch * math.hypot(a_mid - a_low, b_high - b_mid)
    up = stretch * math.hypot(a_high - a_mid, b_mid - b_low)
    return Comparison(ratio, ratio * math.exp(-down), ratio * math.exp(up))


def _stretch(candidates: int) -> float:
    normal = NormalDist()
    return normal.inv_cdf(1 - 0.025 / max(1, candidates)) / normal.inv_cdf(0.975)


def gain(curve: Curve | None) -> Gain | None:
    """Say what a larger x brings on this curve; None when it has fewer than two points."""
    if curve is None or len(curve.points) < 2:
        return None
    points = sorted(curve.points, key=lambda point: point.x)
    rivals = len(points) - 1
    first, last = points[0], points[-1]
    best = max(points, key=lambda point: point.throughput_mb_s.value)
    floor = LEVEL_FRAC * best.throughput_mb_s.value
    level_x = best.x
    for point in reversed([point for point in points if point.x <= best.x]):
        if point.throughput_mb_s.value < floor:
            break
        level_x = point.x
    before = compare(last.throughput_mb_s, points[-2].throughput_mb_s)
    return Gain(
        first=first,
        best=best,
        last=last,
        to_best=compare(best.throughput_mb_s, first.throughput_mb_s, candidates=rivals),
        level_x=level_x,
        rising=best is last and before.faster and before.ratio > 1 / LEVEL_FRAC,
        to_last=compare(last.throughput_mb_s, best.throughput_mb_s, candidates=rivals),
    )


def ends(curve: Curve | None) -> Comparison | None:
    """Compare the largest x with the least: reads with writes, sequential with random."""
    if curve is None or len(curve.points) < 2:
        return None
    points = sorted(curve.points, key=lambda point: point.x)
    return compare(points[-1].throughput_mb_s, points[0].throughput_mb_s)


def average_slope(curve: Curve) -> float | None:
    """Slope from the first to the last point in MB/s per MB touched (CP94 Fig. 6's average)."""
    points = sorted(curve.points, key=lambda point: point.x)
    if len(points) < 2 or points[-1].x == points[0].x:
        return None
    rise_mb_s = points[-1].throughput_mb_s.value - points[0].throughput_mb_s.value
    return rise_mb_s / ((points[-1].x - points[0].x) / 1e6)


def boundary_is_gradual(boundary: Boundary) -> bool:
    """Whether throughput falls over a stretch beyond the boundary rather than at an edge."""
    return boundary.shape == "smeared"
