"""Whether the reading at seq_frac = 1 belongs to its curve.

At seq_frac = 1 exactly every process walks round its data and never jumps: a whole-pass cyclic
scan, of which an LRU cache smaller than the data keeps nothing, while at 0.99 the jumps make
it as good as ever. So the curve may step there, by the whole worth of the cache, and a line
from 0.75 to 1 would carry the step into workloads that have none. Time per byte is straight over
seq_frac up to there (a share of the requests is positioned, the rest is not), so the points
below 1 tell what the curve would reach: a reading at 1 that noise cannot explain by it is kept
for seq_frac = 1 alone.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SIGMAS = 3.0
"""From how many standard deviations a reading at 1 stands alone."""

SD_MIN = 0.01
"""A line is not drawn truer than this, however steady the readings: nothing is quite straight."""

POINTS_BELOW_MIN = 3
"""A line through two points has nothing to be judged by."""


def reached_at_one(x: Floats, ln_mb_s: Floats, variance: Floats) -> tuple[float, float] | None:
    """Return (ln MB/s, variance) that the points below 1 lead to, if the reading at 1 is not it.

    Args:
        x: seq_frac of the curve's points, ascending.
        ln_mb_s: ln throughput there.
        variance: of each of them.

    Returns:
        None when the curve has no point at 1, too few below, or none that stands alone.

    """
    if x.size <= POINTS_BELOW_MIN or x[-1] != 1.0:
        return None
    variance = np.maximum(variance, SD_MIN**2)
    time = np.exp(-ln_mb_s[:-1])
    weight = 1.0 / (variance[:-1] * time**2)
    design = np.column_stack([np.ones(x.size - 1), x[:-1]])
    covariance = np.linalg.inv(design.T @ (design * weight[:, None]))
    at_one = np.ones(2)
    reached = float(at_one @ covariance @ (design.T @ (weight * time)))
    if reached <= 0.0:
        return None
    reached_variance = float(at_one @ covariance @ at_one) / reached**2
    ln_reached = -math.log(reached)
    sd = math.sqrt(reached_variance + float(variance[-1]))
    if abs(ln_reached - float(ln_mb_s[-1])) <= SIGMAS * sd:
        return None
    return ln_reached, reached_variance
