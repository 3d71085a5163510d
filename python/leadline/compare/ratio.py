"""Ratios of two throughputs, how sure they are, and what they decide.

Everything is done on the natural-log scale, where noise is additive: the ratio's variance is the
sum of both variances, and Student's t takes its degrees of freedom from Welch and Satterthwaite
(Welch, "The generalization of Student's problem when several different population variances are
involved", Biometrika 34, 1947). See docs/concepts/comparison.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadline.record import Interval, Prediction
from leadline.record.comparison import Verdict
from leadline.stats import pooled_noise
from leadline.stats.intervals import CONFIDENCE, student_cdf, student_t

ALPHA = 0.05
"""Chance of a wrong verdict: what the 95 % intervals leave."""


@dataclass(frozen=True)
class LogRatio:
    """The natural log of throughput A over throughput B, as well as it is known."""

    mean: float
    sd: float
    """Standard error of the mean."""
    df: float
    """Degrees of freedom of Student's t."""
    n: int
    """Readings it rests on, both sides together."""

    def interval(self, confidence: float = CONFIDENCE) -> Interval:
        """Return the ratio with an interval that holds it with this confidence."""
        half = student_t(self.df, confidence) * self.sd
        low, high = math.exp(self.mean - half), math.exp(self.mean + half)
        return Interval(math.exp(self.mean), low, high, self.n)

    def p_value(self) -> float:
        """Probability of a ratio at least this far from 1, if both are equally fast."""
        return 2 * student_cdf(self.df, -abs(self.mean) / self.sd)

    def p_value_below(self, limit: float) -> float:
        """Twice the probability of a ratio this low, if the true one is `limit`.

        Twice, so that 5 % stands where the two-sided 95 % interval ends below `limit`.
        """
        return min(1.0, 2 * student_cdf(self.df, (self.mean - math.log(limit)) / self.sd))

    def inverse(self) -> LogRatio:
        """Return B over A."""
        return LogRatio(-self.mean, self.sd, self.df, self.n)


def predicted_ratio(a: Prediction, b: Prediction) -> LogRatio | None:
    """Return A over B of two independent surveys; None when a side has no spread to go by."""
    rates = (a.throughput_mb_s.value, b.throughput_mb_s.value)
    spreads = (a.ln_sd, b.ln_sd)
    if not all(math.isfinite(x) and x > 0 for x in (*rates, *spreads, a.df, b.df)):
        return None
    variances = [sd**2 for sd in spreads]
    df = sum(variances) ** 2 / (variances[0] ** 2 / a.df + variances[1] ** 2 / b.df)
    return LogRatio(
        mean=math.log(rates[0] / rates[1]),
        sd=math.sqrt(sum(variances)),
        df=df,
        n=a.throughput_mb_s.n + b.throughput_mb_s.n,
    )


def paired_ratio(readings: Sequence[tuple[float, float]]) -> LogRatio | None:
    """Return A over B from readings taken in pairs, one after the other (MB/s each).

    What disturbs both halves of a pair alike is in neither ratio. The spread of the pairs' ratios
    is pooled with the weak prior of `pooled_noise`, so that two lucky pairs are not exact. None
    with fewer than two pairs, or when a reading is not above zero.
    """
    if len(readings) < 2 or not all(x > 0 and math.isfinite(x) for pair in readings for x in pair):
        return None
    ratios = [a / b for a, b in readings]
    noise = pooled_noise([ratios])
    mean = float(np.log(ratios).mean())
    return LogRatio(mean, noise.sd_frac / math.sqrt(len(ratios)), noise.df, 2 * len(ratios))


def verdict_of(ratio: LogRatio, p_value: float) -> Verdict:
    """Name the faster system if this p-value shows one; one that is not a number shows none."""
    if not p_value < ALPHA:
        return "cannot tell"
    return "a" if ratio.mean > 0 else "b"


def holm(p_values: Sequence[float]) -> list[float]:
    """Adjust p-values so that the chance of any false one below 5 % is at most 5 %.

    Holm's step-down procedure ("A simple sequentially rejective multiple test procedure",
    Scandinavian Journal of Statistics 6, 1979), valid however the tests depend on each other. A
    p-value that is not a number counts as 1.
    """
    known = [p if math.isfinite(p) else 1.0 for p in p_values]
    order = sorted(range(len(known)), key=known.__getitem__)
    adjusted, running = [1.0] * len(known), 0.0
    for rank, index in enumerate(order):
        running = max(running, min(1.0, known[index] * (len(known) - rank)))
        adjusted[index] = running
    return adjusted
