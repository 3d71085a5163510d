"""Numbers about errors: quantiles with bootstrap intervals, coverage, what the error depends on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.record import Interval

RESAMPLES = 2000
BINS = 5
BIN_ROWS_MIN = 4
"""Workloads in a bin, at the least, for a median with an interval."""
ROWS_PER_BIN = 8
"""Fewer workloads than this for each of five bins make fewer bins."""

Floats = NDArray[np.float64]


def quantile_interval(errors: Floats, quantile: float, seed: int) -> Interval:
    """Quantile of `errors` with its 95 % percentile-bootstrap interval, workloads resampled."""
    drawn = errors[_resample(errors.size, seed)]
    low, high = np.quantile(np.quantile(drawn, quantile, axis=1), [0.025, 0.975])
    return Interval(float(np.quantile(errors, quantile)), float(low), float(high), errors.size)


def ratio_of_medians(errors: Floats, repeats: Floats, seed: int) -> Interval | None:
    """Median of `errors` over median of `repeats`, (workloads,) each, resampled together.

    `repeats` is nan where a workload was measured once. None when no repeat differs.
    """
    known = np.isfinite(repeats)
    if not known.any() or not np.median(repeats[known]) > 0:
        return None
    rows = _resample(errors.size, seed)
    some = known[rows].any(axis=1)
    below = np.nanmedian(repeats[rows[some]], axis=1)
    ratios = np.median(errors[rows[some]], axis=1)[below > 0] / below[below > 0]
    low, high = np.quantile(ratios, [0.025, 0.975])
    value = float(np.median(errors) / np.median(repeats[known]))
    return Interval(value, float(low), float(high), errors.size)


def share_interval(hits: int, count: int) -> Interval:
    """Share of hits with its 95 % Wilson interval."""
    from scipy.stats import binomtest  # noqa: PLC0415 - see `chance_of_spread`

    found = binomtest(hits, count).proportion_ci(method="wilson")
    return Interval(hits / count, float(found.low), float(found.high), count)


def bins_of(values: Floats) -> list[NDArray[np.bool_]]:
    """Cut values into bins of about equal counts, equal values together; a mask for each."""
    wanted = min(BINS, max(1, values.size // ROWS_PER_BIN))
    inner = np.quantile(values, np.linspace(0, 1, wanted + 1)[1:-1])
    place = np.searchsorted(np.unique(inner), values, side="right")
    masks = [place == index for index in np.unique(place)]
    return [mask for mask in masks if mask.sum() >= BIN_ROWS_MIN]


def chance_of_spread(groups: Sequence[Floats]) -> float | None:
    """Probability of such differences between the groups if they were alike (Kruskal-Wallis)."""
    from scipy.stats import kruskal  # noqa: PLC0415 - half a second that few commands need

    if len(groups) < 2 or np.ptp(np.concatenate(groups)) == 0:
        return None
    return float(kruskal(*groups).pvalue)


def holm(chances: Sequence[float | None]) -> list[float | None]:
    """Adjust several probabilities for each other (Holm 1979), in their own order."""
    known = sorted((chance, at) for at, chance in enumerate(chances) if chance is not None)
    adjusted: list[float | None] = [None] * len(chances)
    worst = 0.0
    for rank, (chance, at) in enumerate(known):
        worst = max(worst, min(1.0, chance * (len(known) - rank)))
        adjusted[at] = worst
    return adjusted


def _resample(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, (RESAMPLES, count))
