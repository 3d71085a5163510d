"""Did the system move during the survey? The sentinel point tells (METHODS §2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.record import Interval
from leadline.stats.intervals import PRIOR_DF, PRIOR_SD_FRAC, student_t


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
