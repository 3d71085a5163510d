"""Did the system move during the survey? The sentinel point tells (METHODS §2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.record import Interval
from leadline.stats.intervals import PRIOR_DF, PRIOR_SD_FRAC, Noise, combine, student_t


def drift_interval(
    times: Sequence[float], readings: Sequence[float], noise: Noise | None = None
) -> Interval:
    """Change of the sentinel from its first to its last reading, as a fraction, with its interval.

    A straight line through ln(reading) against time. The line's own residuals and the replicate
    `noise`, where known, are pooled by degrees of freedom. An interval without 0 means drift.
    Fewer than three readings, or no time between them, give no interval.
    """
    t = np.asarray(times, dtype=np.float64)
    y = np.asarray(readings, dtype=np.float64)
    if t.shape != y.shape or t.ndim != 1 or t.size == 0:
        raise ValueError("drift needs one or more sentinel readings, each with its time")
    if (y <= 0).any() or not (np.isfinite(t).all() and np.isfinite(y).all()):
        raise ValueError("drift needs positive, finite readings")
    span = float(t.max() - t.min())
    if t.size < 3 or span == 0:
        change = float(y[np.argmax(t)] / y[np.argmin(t)] - 1)
        return Interval(change, None, None, int(t.size))
    z = (t - t.mean()) / span
    logs = np.log(y)
    change = float(z @ logs / (z @ z))
    residual = logs - logs.mean() - change * z
    own_df = t.size - 2
    prior = noise or Noise(PRIOR_SD_FRAC, PRIOR_DF)
    df = own_df + prior.df
    variance = (float(residual @ residual) + prior.df * prior.sd_frac**2) / df
    half = student_t(df) * float(np.sqrt(variance / (z @ z)))
    return Interval(
        float(np.expm1(change)),
        float(np.expm1(change - half)),
        float(np.expm1(change + half)),
        int(t.size),
    )


def group_drift(
    times: Sequence[Sequence[float]], readings: Sequence[Sequence[float]]
) -> Interval | None:
    """Change over the whole time, as a fraction, from several workloads each measured repeatedly.

    All groups share one slope of ln(reading) against time; each has its own level, so only changes
    within a group count. None when no group was measured at two times.
    """
    pairs = [
        (np.asarray(t, dtype=np.float64), np.log(np.asarray(y, dtype=np.float64)))
        for t, y in zip(times, readings, strict=True)
        if len(t) > 1
    ]
    if not pairs:
        return None
    span = max(float(t.max()) for t, _ in pairs) - min(float(t.min()) for t, _ in pairs)
    z = np.concatenate([t - t.mean() for t, _ in pairs]) / max(span, 1e-12)
    logs = np.concatenate([y - y.mean() for _, y in pairs])
    if not (z @ z) > 0:
        return None
    change = float(z @ logs / (z @ z))
    residual = logs - change * z
    df = logs.size - len(pairs) - 1 + PRIOR_DF
    variance = (float(residual @ residual) + PRIOR_DF * PRIOR_SD_FRAC**2) / df
    half = student_t(df) * float(np.sqrt(variance / (z @ z)))
    ends = [float(np.expm1(end)) for end in (change, change - half, change + half)]
    return Interval(ends[0], ends[1], ends[2], int(logs.size))


def sentinel_moved(first: Sequence[float], last: Sequence[float], noise: Noise) -> bool:
    """Tell whether the sentinel's late readings differ from the early ones beyond the noise."""
    if not first or not last:
        return False
    gap = abs(float(np.mean(np.log(last)) - np.mean(np.log(first))))
    variance, df = combine(
        [
            (noise.sd_frac**2 / len(first), noise.df),
            (noise.sd_frac**2 / len(last), noise.df),
        ]
    )
    # One noise estimate serves both sides, so its degrees of freedom do not add up.
    return gap > student_t(min(df, noise.df)) * float(np.sqrt(variance))
