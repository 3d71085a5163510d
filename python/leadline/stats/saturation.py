"""At which rate is a resource used up? A line of use on rate, extrapolated (AD98 Fig. 9).

Use is `a + b x` for a rate x and the resource is used up where that is 1. What is fitted is use
by rate, `b + a / x`, whose noise is the same fraction everywhere. The interval is Fieller's: the
rates at which a use of 1 is not refuted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadline.record import Interval
from leadline.stats.intervals import (
    PRIOR_DF,
    PRIOR_SD_FRAC,
    pooled_noise,
    reading_interval,
    student_t,
)

LEVELS_MIN = 3
"""Rates that a line needs to have an intercept of its own."""
SPREAD_MIN = 2.0
"""The largest rate by the smallest; closer together they do not tell an intercept from a slope."""
_LEVEL_FRAC = 0.15
"""Rates this close are one level: they differ by noise."""
_Numbers = np.ndarray[tuple[int], np.dtype[np.float64]]


@dataclass(frozen=True)
class SaturationFit:
    """Where a resource is used up, and how that was found."""

    rate: Interval | None
    """None when the line never gets there."""
    through_origin: bool
    levels: int
    use_at_most: float


def saturation(
    rates: Sequence[float], uses: Sequence[float], levels_max: int | None = None
) -> SaturationFit:
    """Return the rate at which use is 1; one pair for each run.

    The line goes through the origin unless the rates are at least `LEVELS_MIN` levels and spread
    by `SPREAD_MIN`. There are no more levels than `levels_max`, the settings that were tried: what
    else looks like one is noise.

    Raises:
        ValueError: no pair, or one that is not positive.

    """
    x, use = np.asarray(rates, dtype=np.float64), np.asarray(uses, dtype=np.float64)
    if x.size == 0 or x.size != use.size or (x <= 0).any() or (use <= 0).any():
        raise ValueError("a saturation needs pairs of a positive rate and a positive use")
    levels = min(_levels(x), levels_max or x.size)
    most = float(use.max())
    if levels < LEVELS_MIN or x.max() / x.min() < SPREAD_MIN:
        return SaturationFit(_proportional(x, use), True, levels, most)
    return SaturationFit(_with_intercept(x, use), False, levels, most)


def _levels(x: _Numbers) -> int:
    ordered = np.sort(x)
    return 1 + int((ordered[1:] / ordered[:-1] > 1 + _LEVEL_FRAC).sum())


def _proportional(x: _Numbers, use: _Numbers) -> Interval:
    at_full = [float(value) for value in x / use]
    if len(at_full) == 1:
        return Interval(at_full[0], None, None, 1)
    return reading_interval(at_full, None, pooled_noise([at_full]))


def _with_intercept(x: _Numbers, use: _Numbers) -> Interval | None:
    cost = use / x
    design = np.column_stack([np.ones_like(x), 1 / x])
    line, *_ = np.linalg.lstsq(design, cost, rcond=None)
    slope, floor = float(line[0]), float(line[1])
    if slope <= 0 or floor >= 1:
        return None
    left = cost - design @ line
    df = x.size - 2 + PRIOR_DF
    expected = PRIOR_DF * (PRIOR_SD_FRAC * float(cost.mean())) ** 2
    variance = (float(left @ left) + expected) / df
    spread = student_t(df) ** 2 * variance * np.linalg.inv(design.T @ design)
    ends = _fieller(slope, floor, spread)
    low, high = ends or (None, None)
    return Interval((1 - floor) / slope, low, high, int(x.size))


def _fieller(
    slope: float, floor: float, spread: np.ndarray[tuple[int, int], np.dtype[np.float64]]
) -> tuple[float, float] | None:
    """Solve (1 - a - b x)² = t² var(a + b x) for x; `spread` is t² times the covariance."""
    square = slope**2 - spread[0, 0]
    half = (1 - floor) * slope + spread[0, 1]
    rest = (1 - floor) ** 2 - spread[1, 1]
    under = half**2 - square * rest
    if square <= 0 or under < 0:
        return None
    root = math.sqrt(under)
    return max(0.0, (half - root) / square), (half + root) / square
