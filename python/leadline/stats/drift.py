"""Did the system move during the survey? The sentinel point tells (METHODS §2).

Two ways of moving are told apart: a drift, one slope of ln(reading) over all the time, and a step,
one change at one moment, as when the burst credits of a disk are spent.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from leadline.record import DriftStep, Interval
from leadline.stats.intervals import PRIOR_DF, PRIOR_SD_FRAC, student_t

PERMUTATIONS = 999
STEP_CHANCE = 0.05
"""A step this seldom found in shuffled readings is no chance; with what else is asked of it, one
steady survey in a hundred is said to have stepped."""
STEP_SIDE_MIN = 3
"""Readings on either side of a step, at least."""
STEP_FRAC_MIN = 0.05
"""A step below this is left to the drift, however sure."""
DRIFT_FRAC_MIN = 0.02
"""A drift smaller than this is not worth a warning, however sure."""
STEP_BIC_MIN = 6.0
"""How much better than a drift a step must explain the readings: strong evidence."""
_SEED = 1

Floats = NDArray[np.float64]


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


def group_step(
    times: Sequence[Sequence[float]], readings: Sequence[Sequence[float]]
) -> DriftStep | None:
    """Find the moment at which the system changed, from workloads each measured repeatedly.

    Every group has its own level of ln(reading), all share the step. The moment is the one that
    explains most; that it explains more than chance is shown by shuffling the readings within
    their groups (Pitman's permutation test, fixed seed), which asks nothing of the noise but that
    it does not know the time. None when there is no such moment, or when a drift explains the
    readings about as well.
    """
    pairs = [(t, y) for t, y in zip(times, readings, strict=True) if len(t) > 1]
    if not pairs:
        return None
    at = np.concatenate([np.asarray(t, dtype=np.float64) for t, _ in pairs])
    sizes = [len(t) for t, _ in pairs]
    logs = _centred(
        np.log(np.concatenate([np.asarray(y, dtype=np.float64) for _, y in pairs])), sizes
    )
    cuts = np.unique(at)[1:]
    sides = (at[None, :] >= cuts[:, None]).astype(np.float64)
    enough = np.minimum(sides.sum(axis=1), at.size - sides.sum(axis=1)) >= STEP_SIDE_MIN
    cuts, sides = cuts[enough], _centred(sides[enough], sizes)
    known = (sides**2).sum(axis=1) > 1e-9
    cuts, sides = cuts[known], sides[known]
    if not cuts.size:
        return None
    explained = _explained(sides, logs[None, :])[:, 0]
    best = int(explained.argmax())
    if not _beyond_chance(sides, logs, sizes, float(explained[best])):
        return None
    squares = float(logs @ logs)
    left = squares - float(explained[best]) + PRIOR_DF * PRIOR_SD_FRAC**2
    slope = _centred(at, sizes)[None, :]
    drifted = squares - float(_explained(slope, logs[None, :])[0, 0]) + PRIOR_DF * PRIOR_SD_FRAC**2
    if logs.size * np.log(drifted / left) - np.log(logs.size) < STEP_BIC_MIN:
        return None
    side = sides[best]
    change = float(side @ logs / (side @ side))
    if abs(np.expm1(change)) < STEP_FRAC_MIN:
        return None
    # One degree of freedom goes to the moment as well: six readings in pairs still leave one.
    df = logs.size - len(pairs) - 2 + PRIOR_DF
    half = student_t(df) * float(np.sqrt(left / df / (side @ side)))
    ends = [float(np.expm1(end)) for end in (change, change - half, change + half)]
    return DriftStep(
        Interval(ends[0], ends[1], ends[2], int(logs.size)),
        float(at[at < cuts[best]].max()),
        float(cuts[best]),
    )


def _centred(values: Floats, sizes: Sequence[int]) -> Floats:
    """Take each group's mean off, along the last axis."""
    parts = np.split(values, np.cumsum(sizes)[:-1], axis=-1)
    return np.concatenate([part - part.mean(axis=-1, keepdims=True) for part in parts], axis=-1)


def _explained(sides: Floats, logs: Floats) -> Floats:
    """Sum of squares that each shape explains in each series, (shapes, series)."""
    return np.asarray((sides @ logs.T) ** 2 / (sides**2).sum(axis=1)[:, None])


def _beyond_chance(sides: Floats, logs: Floats, sizes: Sequence[int], found: float) -> bool:
    rng = np.random.default_rng(_SEED)
    parts = np.split(logs, np.cumsum(sizes)[:-1])
    shuffled = np.concatenate(
        [rng.permuted(np.tile(part, (PERMUTATIONS, 1)), axis=1) for part in parts], axis=1
    )
    as_good = (_explained(sides, shuffled).max(axis=0) >= found * (1 - 1e-12)).sum()
    return bool((as_good + 1) / (PERMUTATIONS + 1) <= STEP_CHANCE)
