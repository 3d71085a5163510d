"""Residual bootstrap of the places of boundaries."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from leadline.stats import hierarchy
from leadline.stats.explanations import NOISE_PRIOR_DF, Explanation
from leadline.stats.hierarchy import STEP, CurveReadings, Floats

RESAMPLES = 240
_SHAPES_BY_BIC = 6.0
"""Rival shapes within this BIC of the best take part, by their weight."""


def bootstrap(
    best: Explanation,
    rivals: Sequence[Explanation],
    data: CurveReadings,
    noise: float,
    rng: np.random.Generator,
) -> Floats:
    """Return ln C_k of refits to resampled residuals, (resamples, boundaries).

    Shapes the data cannot tell apart share the resamples by weight, so that the interval knows
    that the shape is uncertain; each resample draws its own noise level, so that it knows how
    few readings the noise rests on.
    """
    close = [
        rival
        for rival in rivals
        if rival.boundaries == best.boundaries and rival.bic - best.bic < _SHAPES_BY_BIC
    ][:4]
    weights = np.exp([(best.bic - rival.bic) / 2 for rival in close])
    counts = np.ceil(RESAMPLES * weights / weights.sum()).astype(int)
    return np.concatenate(
        [
            _resampled(rival, data, noise, int(count), rng)
            for rival, count in zip(close, counts, strict=True)
        ]
    )


def _resampled(
    rival: Explanation, data: CurveReadings, noise: float, count: int, rng: np.random.Generator
) -> Floats:
    fitted = rival.ln_time(data.x, data.middle)
    residual = (data.y - fitted) * np.sqrt(data.weight)
    residual = np.clip(residual, -data.huber_scale * 2, data.huber_scale * 2)
    residual -= residual.mean()
    spread = max(float(np.sqrt(np.mean(residual**2))), 1e-12)
    free = max(data.x.size - rival.parameters, 1) + NOISE_PRIOR_DF
    drawn = residual[rng.integers(0, residual.size, (count, residual.size))] * noise / spread
    drawn *= np.sqrt(free / rng.chisquare(free, (count, 1)))
    resampled = replace(data, y=fitted + drawn / np.sqrt(data.weight))
    starts = _starts(rival, data)
    fits = [
        hierarchy.refine(
            resampled,
            np.repeat([rival.codes], count, axis=0),
            np.repeat(start[None, :], count, axis=0),
            10,
        )
        for start in starts
    ]
    winner = np.argmin([fit.cost for fit in fits], axis=0)
    centres = np.array([fit.centres for fit in fits])
    chosen = centres[winner, np.arange(count)]
    return _jitter_steps(rival, data, chosen, rng)


def _starts(rival: Explanation, data: CurveReadings) -> list[Floats]:
    """Return the fit itself, and each boundary moved either way: a kink has local minima."""
    theta = np.array(rival.coefficients)
    starts = [theta]
    distinct = np.unique(data.x)
    for level, code in enumerate(rival.codes):
        place = 3 + rival.boundaries + level
        shifts = [-0.25, -0.1, 0.1, 0.25]
        if code == STEP:
            middles = (distinct[1:] + distinct[:-1]) / 2
            nearest = int(np.argmin(np.abs(middles - theta[place])))
            around = middles[max(nearest - 2, 0) : nearest + 3]
            shifts = [float(middle - theta[place]) for middle in around]
        for shift in shifts:
            moved = theta.copy()
            moved[place] += shift
            starts.append(moved)
    return starts


def _jitter_steps(
    rival: Explanation, data: CurveReadings, centres: Floats, rng: np.random.Generator
) -> Floats:
    """Spread a step's place over the gap between readings, where nothing tells it."""
    centres = centres.copy()
    distinct = np.unique(data.x)
    for level, code in enumerate(rival.codes):
        if code == STEP:
            right = np.clip(np.searchsorted(distinct, centres[:, level]), 1, distinct.size - 1)
            share = rng.random(len(centres))
            centres[:, level] = distinct[right - 1] + share * (
                distinct[right] - distinct[right - 1]
            )
    return centres
