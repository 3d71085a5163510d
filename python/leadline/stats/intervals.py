"""Confidence intervals: of a mean, a median, a ratio, and of a reading with two kinds of noise.

Throughputs are compared by ratio, so noise is a fraction: the standard deviation of ln(reading).
See docs/concepts/intervals.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from leadline.record import Interval

CONFIDENCE = 0.95
PRIOR_SD_FRAC = 0.03
"""Run-to-run sd expected before anything is measured; CP94 Fig. 15 has 2, 3, 3 and 5%."""
PRIOR_DF = 0.3
"""Weight of that expectation in degrees of freedom. More would cover too little on a machine
with 10% noise, less would leave a single replicate pair with a t quantile of 12.7."""

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


def sd_interval(values: Sequence[float], confidence: float = CONFIDENCE) -> Interval:
    """Return the standard deviation of normal readings with its two-sided chi-square interval.

    Args:
        values: readings, in any unit.
        confidence: of the interval, between 0 and 1.

    Raises:
        ValueError: fewer than two values, or a confidence that is none.

    """
    from scipy.special import chdtri  # noqa: PLC0415 - see `student_t`

    count = len(values)
    if count < 2 or not 0 < confidence < 1:
        raise ValueError("sd_interval needs two values and a confidence between 0 and 1")
    df = count - 1
    mean = math.fsum(values) / count
    squares = math.fsum((value - mean) ** 2 for value in values)
    above, below = chdtri(df, (1 - confidence) / 2), chdtri(df, (1 + confidence) / 2)
    low, high = math.sqrt(squares / float(above)), math.sqrt(squares / float(below))
    return Interval(math.sqrt(squares / df), low, high, count)


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
    within: Sequence[OwnError | None] | None,
    noise: Noise,
    confidence: float = CONFIDENCE,
) -> Interval:
    """Mean of a workload's readings with an interval that covers both kinds of noise.

    `within` are the runs' own errors, one per reading, or None.
    `noise` comes from replicates, whose spread holds the within-run error already: the within
    part is added only where a run is less exact than the noise can account for, that is
    variance = max(noise^2, mean within^2). Nothing is counted twice, and an inexact run is not
    hidden by replicates of exact ones. The value is the geometric mean. While nothing was measured
    twice there is no interval: how far another run would be off nobody knows.
    """
    logs = np.log(_positive(readings))
    if noise.df < 1:
        return Interval(float(np.exp(logs.mean())), None, None, logs.size)
    own = _pooled_error(within, logs.size)
    larger = max(own.sd_frac, noise.sd_frac)
    df = noise.df if noise.sd_frac >= own.sd_frac else own.df
    half = student_t(df, confidence) * larger / logs.size**0.5
    mean = float(logs.mean())
    return Interval(
        float(np.exp(mean)), float(np.exp(mean - half)), float(np.exp(mean + half)), logs.size
    )


def runs_interval(
    readings: Sequence[float], within: Sequence[OwnError | None] | None = None
) -> Interval:
    """Mean of several runs of one workload in a row, with the interval their spread supports.

    None for its ends where a single run, or one that stood still, has no spread to tell.
    """
    if len(readings) < 2 or min(readings) <= 0:
        return Interval(sum(readings) / len(readings), None, None, len(readings))
    noise = pooled_noise([readings])
    noise = Noise(noise.sd_frac * alike_factor(len(readings)), noise.df)
    return reading_interval(readings, within, noise)


def alike_factor(runs: int, correlation: float = ALIKE) -> float:
    """By how much to widen the interval of `runs` >= 2 runs in a row, as for independent ones.

    For an AR(1) series the variance of the mean of n is v (1 + 2 S)/n with S = sum of (1 - k/n)
    r^k over k from 1 to n - 1, while the sample variance expects only v (1 - 2 S/(n - 1)).
    """
    lags = range(1, runs)
    double = 2 * sum((1 - lag / runs) * correlation**lag for lag in lags)
    return float(((1 + double) / (1 - double / (runs - 1))) ** 0.5)


class OwnError(NamedTuple):
    """What one run knows of its own error, from the batches of its window."""

    sd_frac: float
    """Standard error as a fraction of the reading."""
    df: float


def own_error(reading: Interval) -> OwnError | None:
    """Return the standard error behind the interval of one run; None where it stated none."""
    half, df = reading.half_width_frac, reading.df
    return None if half is None or df is None else OwnError(half / student_t(df), df)


def _pooled_error(within: Sequence[OwnError | None] | None, count: int) -> OwnError:
    """Root mean square of the runs' own errors, with Welch and Satterthwaite's df."""
    if within is not None and len(within) != count:
        raise ValueError("one own error, or None, per reading")
    known = [error for error in within or () if error is not None]
    squares = [error.sd_frac**2 for error in known]
    if not sum(squares) > 0:
        return OwnError(0.0, math.inf)
    uneven = sum(square**2 / error.df for square, error in zip(squares, known, strict=True))
    return OwnError((sum(squares) / len(known)) ** 0.5, sum(squares) ** 2 / uneven)


def _some(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    data = np.asarray(values, dtype=np.float64).ravel()
    if data.size == 0 or not np.isfinite(data).all():
        raise ValueError("an interval needs one or more finite values")
    return data


def _positive(values: Sequence[float]) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    data = _some(values)
    if (data <= 0).any():
        raise ValueError("readings must be positive: their ratios are what noise is about")
    return data
