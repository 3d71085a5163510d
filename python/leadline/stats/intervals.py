"""Confidence intervals: of a mean, a median, a ratio, and of a reading with two kinds of noise.

Throughputs are compared by ratio, so noise is a fraction: the standard deviation of ln(reading).
See docs/concepts/intervals.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadline.record import Interval

CONFIDENCE = 0.95
PRIOR_SD_FRAC = 0.03
"""Run-to-run sd expected before anything is measured; CP94 Fig. 15 has 2, 3, 3 and 5 %."""
PRIOR_DF = 0.3
"""Weight of that expectation in degrees of freedom. More would cover too little on a machine
with 10 % noise, less would leave a single replicate pair with a t quantile of 12.7."""

ALIKE = 0.5
"""Correlation taken to hold between a run and the next. What disturbs a shared machine lasts longer
than a run, so runs in a row scatter less around their own mean than around the truth, and too few
of them follow each other to tell by how much (docs/decisions/0005)."""


def student_t(df: float, confidence: float = CONFIDENCE) -> float:
    """Two-sided Student t quantile; df may be fractional."""
    from scipy.special import stdtrit  # noqa: PLC0415 - a quarter of what most commands load

    if not 0 < confidence < 1 or not df > 0:
        raise ValueError("student_t needs df > 0 and a confidence between 0 and 1")
    return float(stdtrit(df, (1 + confidence) / 2))


def student_cdf(df: float, t: float) -> float:
    """Probability that Student's t with `df` degrees of freedom is at most `t`."""
    from scipy.special import stdtr  # noqa: PLC0415 - see `student_t`

    return float(stdtr(df, t))


@dataclass(frozen=True)
class Noise:
    """Run-to-run noise of one system in one region."""

    sd_frac: float
    """Standard deviation of ln(reading) between runs of the same workload."""
    df: float
    """Degrees of freedom it rests on, the prior's included."""


def pooled_noise(groups: Sequence[Sequence[float]], spent_df: float = 0.0) -> Noise:
    """Pool the replicate spread of several workloads into one noise level.

    A weak prior (PRIOR_SD_FRAC worth PRIOR_DF degrees of freedom) keeps one lucky pair from
    looking exact; it fades as replicates come in.

    Args:
        groups: readings of one workload each.
        spent_df: degrees of freedom that went into what was taken out of the readings before.

    """
    squares, df = 0.0, 0
    for group in groups:
        logs = np.log(_positive(group))
        squares += float(((logs - logs.mean()) ** 2).sum())
        df += logs.size - 1
    total = max(df - spent_df, 0.0) + PRIOR_DF
    return Noise(float(np.sqrt((squares + PRIOR_DF * PRIOR_SD_FRAC**2) / total)), total)


def reading_interval(
    readings: Sequence[float],
    within_half_width_frac: Sequence[float | None] | None,
    noise: Noise,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Mean of a workload's readings with an interval that covers both kinds of noise.

    `within_half_width_frac` are the engine's own 95 % half-widths, one per reading, or None.
    `noise` comes from replicates, whose spread holds the within-run error already: the within
    part is added only where a run is less exact than the noise can account for, that is
    variance = max(noise^2, mean within^2). Nothing is counted twice, and an inexact run is not
    hidden by replicates of exact ones. The value is the geometric mean. While nothing was measured
    twice there is no interval: how far another run would be off nobody knows.
    """
    logs = np.log(_positive(readings))
    if noise.df < 1:
        return Interval(float(np.exp(logs.mean())), None, None, logs.size)
    between = noise.sd_frac**2
    within, within_df = _within_variance(within_half_width_frac, logs.size)
    df = noise.df if between >= within else within_df
    half = student_t(df, confidence) * float(np.sqrt(max(between, within) / logs.size))
    mean = float(logs.mean())
    return Interval(
        float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half)), logs.size
    )


def runs_interval(
    readings: Sequence[float], within_half_width_frac: Sequence[float | None] | None = None
) -> Interval:
    """Mean of several runs of one workload in a row, with the interval their spread supports.

    None for its ends where a single run, or one that stood still, has no spread to tell.
    """
    if len(readings) < 2 or min(readings) <= 0:
        return Interval(sum(readings) / len(readings), None, None, len(readings))
    noise = pooled_noise([readings])
    noise = Noise(noise.sd_frac * alike_factor(len(readings)), noise.df)
    return reading_interval(readings, within_half_width_frac, noise)


def alike_factor(runs: int, correlation: float = ALIKE) -> float:
    """By how much to widen the interval of `runs` >= 2 runs in a row, as for independent ones.

    For an AR(1) series the variance of the mean of n is v (1 + 2 S)/n with S = sum of (1 - k/n)
    r^k over k from 1 to n - 1, while the sample variance expects only v (1 - 2 S/(n - 1)).
    """
    lags = range(1, runs)
    double = 2 * sum((1 - lag / runs) * correlation**lag for lag in lags)
    return float(((1 + double) / (1 - double / (runs - 1))) ** 0.5)


_WITHIN_DF = 9.0
"""Degrees of freedom of the engine's batch means: it uses ten batches or more."""


def _within_variance(half_widths: Sequence[float | None] | None, count: int) -> tuple[float, float]:
    """Mean squared within-run standard error, as a fraction, and its degrees of freedom."""
    if half_widths is not None and len(half_widths) != count:
        raise ValueError("one within-run half-width, or None, per reading")
    known = [width for width in half_widths or () if width is not None]
    if not known:
        return 0.0, _WITHIN_DF
    quantile = student_t(_WITHIN_DF)
    return float(np.mean([(width / quantile) ** 2 for width in known])), _WITHIN_DF * len(known)


def _some(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    data = np.asarray(values, dtype=np.float64).reshape(-1)
    if data.size == 0 or not np.isfinite(data).all():
        raise ValueError("an interval needs one or more finite values")
    return data


def _positive(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    data = _some(values)
    if (data <= 0).any():
        raise ValueError("readings must be positive: their ratios are what noise is about")
    return data
