"""Phases: where what is read off in slices of a trace changes for good.

Optimal partitioning (Jackson et al. 2005) under a normal model of several features at once, each
with its own noise, which is read off the differences between neighbours, so that steps do not count
as noise. A change that is smaller than matters to a person is none, however sure it is.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

GROUPS_MAX = 240
"""Slices are taken together until there are so few: every pair of them is a possible phase."""
LEAST_GROUPS = 12
"""Of a phase, a twentieth of the trace: shorter bursts by turns are how one phase goes."""
PENALTY = 4.0
"""For each feature and the logarithm of the slices, against 1 of BIC: slices of a trace are not
independent. On 100 traces of one phase (seeds 1 to 100) no second one was found."""
PHASES_MAX = 8


def phase_starts(features: NDArray[np.float64], matters: NDArray[np.float64]) -> tuple[int, ...]:
    """Return the slices at which phases begin, 0 first.

    Args:
        features: of each slice, (slices, features); NaN where a slice says nothing.
        matters: of each feature the least change that matters, and at least its noise.

    """
    count = len(features)
    each = max(1, -(-count // GROUPS_MAX))
    if count < 2 * LEAST_GROUPS * each or features.size == 0:
        return (0,)
    edges = np.arange(0, count, each)
    with np.errstate(invalid="ignore"):
        grouped = np.array([_mean(features[edge : edge + each]) for edge in edges])
    values = _filled(grouped) / _noise(grouped, matters)
    cuts = _partition(values)
    starts = [int(edges[cut]) for cut in cuts]
    return tuple(_joined(starts, features, matters))


def _mean(slices: NDArray[np.float64]) -> NDArray[np.float64]:
    """Mean of each feature over the slices that say something; NaN where none does."""
    known = ~np.isnan(slices)
    sums = np.where(known, slices, 0.0).sum(axis=0)
    return np.asarray(np.where(known.any(axis=0), sums / np.maximum(known.sum(axis=0), 1), np.nan))


def _filled(grouped: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fill what slices do not say with what was said before, so that it is no change."""
    filled = grouped.copy()
    for feature in filled.T:
        known = np.flatnonzero(~np.isnan(feature))
        if len(known) == 0:
            feature[:] = 0.0
            continue
        last = np.maximum.accumulate(np.where(np.isnan(feature), -1, np.arange(len(feature))))
        feature[:] = feature[np.where(last < 0, known[0], last)]
    return filled


def _noise(grouped: NDArray[np.float64], matters: NDArray[np.float64]) -> NDArray[np.float64]:
    steps = np.diff(_filled(grouped), axis=0)
    spread = 1.4826 * np.median(np.abs(steps - np.median(steps, axis=0)), axis=0) / np.sqrt(2)
    return np.asarray(np.maximum(spread, matters / 2))


def _partition(values: NDArray[np.float64]) -> list[int]:
    """Cut so that what is left within the parts, and a penalty for each, are least."""
    count, features = values.shape
    sums = np.vstack([np.zeros(features), np.cumsum(values, axis=0)])
    squares = np.concatenate([[0.0], np.cumsum((values**2).sum(axis=1))])
    penalty = PENALTY * features * np.log(count)
    best = np.full(count + 1, np.inf)
    best[0] = -penalty
    before = np.zeros(count + 1, dtype=int)
    for end in range(LEAST_GROUPS, count + 1):
        starts = np.arange(0, end - LEAST_GROUPS + 1)
        within = squares[end] - squares[starts]
        within -= ((sums[end] - sums[starts]) ** 2).sum(axis=1) / (end - starts)
        cost = best[starts] + within + penalty
        before[end] = starts[int(np.argmin(cost))]
        best[end] = cost.min()
    cuts, end = [], count
    while end > 0:
        end = int(before[end])
        cuts.append(end)
    return cuts[::-1]


def _joined(
    starts: list[int], features: NDArray[np.float64], matters: NDArray[np.float64]
) -> list[int]:
    """Join neighbours whose difference does not matter, the most alike first, and all too many."""
    while len(starts) > 1:
        means = [_mean(features[a:b]) for a, b in pairwise([*starts, len(features)])]
        steps = [
            float(np.nanmax(np.abs(np.append((b - a) / matters, 0.0)))) for a, b in pairwise(means)
        ]
        least = int(np.argmin(steps))
        if steps[least] >= 1.0 and len(starts) <= PHASES_MAX:
            break
        del starts[least + 1]
    return starts
