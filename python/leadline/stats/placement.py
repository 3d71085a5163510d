"""Where to measure next on the `unique_bytes` curve, so that few readings find every boundary.

First both ends, then the gap with the largest drop, then where the fits so far would learn most:
at the boundaries, and where rival explanations disagree (LITERATURE §2.3). No randomness: the same
readings give the same next place.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.stats import hierarchy
from leadline.stats.explanations import (
    EVIDENCE_MARGIN,
    SLOPE_PRIOR_SD,
    Explanation,
    choose,
    explain,
    noise_of,
    readings_of,
)
from leadline.stats.hierarchy import SMEARED, STEP, CurveReadings, Floats

EXPLORE_SHARE = 0.55
"""Share of all readings placed by drop and coverage before any fit is trusted."""
_DROP_FLOOR = 0.15
"""ln drop credited to every gap, so that wide flat gaps are looked into as well."""
_CANDIDATES = 121
_OPEN_WIDTH = np.log(2.0)
_OPEN_DROP = np.log(1.4)
"""A gap this wide and this steep may hold a boundary: it is halved before any is refined."""


def next_unique_bytes(
    readings: Sequence[tuple[float, float]], low: float, high: float, count_left: int
) -> float:
    """Return the `unique_bytes` to measure next, between `low` and `high`.

    `readings` are (unique_bytes, throughput_mb_s) so far, `count_left` counts this one too.

    Raises:
        ValueError: an empty range, or nothing left to place.

    """
    if not 0 < low < high or count_left < 1:
        raise ValueError("placing a reading needs 0 < low < high and a reading left")
    places = [place for place, _ in readings]
    for end in (low, high):
        if not any(abs(np.log(place / end)) < 0.02 for place in places):
            return end
    distinct = len(set(places))
    explore = int(np.clip(round(EXPLORE_SHARE * (distinct + count_left)), 5, 10))
    gap = _steepest_gap(readings, open_only=distinct >= explore)
    if gap is not None:
        return float(np.exp(gap))
    data, prior_sd = readings_of(places, [reading for _, reading in readings], None)
    rivals, data = explain(data, prior_sd)
    best = choose(rivals, EVIDENCE_MARGIN)
    noise = noise_of(best, data, prior_sd)
    candidates = np.linspace(np.log(low), np.log(high), _CANDIDATES)
    turn = (distinct - explore) % 3
    if best.boundaries and turn != 1:
        gain = _boundary_gain(best, data, noise, candidates)
    else:
        gain = _disagreement(best, rivals, data, noise, candidates)
    return float(np.exp(candidates[int(np.argmax(gain))]))


def _steepest_gap(readings: Sequence[tuple[float, float]], *, open_only: bool) -> float | None:
    """Middle, in ln U, of the gap with the largest drop x sqrt(width).

    `open_only` leaves out the gaps too narrow, or too level, to hide a boundary of their own.
    """
    x, inverse = np.unique(np.log([place for place, _ in readings]), return_inverse=True)
    logs = np.log([reading for _, reading in readings])
    y = np.bincount(inverse, logs) / np.bincount(inverse)
    width = np.diff(x)
    drop = np.abs(np.diff(y))
    score = (drop + _DROP_FLOOR) * np.sqrt(width)
    if open_only:
        score[(width < _OPEN_WIDTH) | (drop < _OPEN_DROP)] = 0.0
    gap = int(np.argmax(score))
    if score[gap] == 0.0:
        return None
    return float((x[gap] + x[gap + 1]) / 2)


def _boundary_gain(
    best: Explanation, data: CurveReadings, noise: float, candidates: Floats
) -> Floats:
    """Predict the fall of the summed variance of ln C_k for one more reading at each candidate.

    Averaged over where the boundaries may be, as a reading just above C tells most and one just
    below C next to nothing.
    """
    codes = np.array([[SMEARED if code == STEP else code for code in best.codes]])
    theta = np.array([best.coefficients])
    _, at_centre, _ = hierarchy.places(best.boundaries)
    first = at_centre.start
    spread = np.sqrt(np.diag(_covariance(codes, theta, data, noise)))[at_centre]
    spread = np.clip(spread, 0.03, 0.35)
    gain = np.zeros_like(candidates)
    for shift in (-1.2, -0.4, 0.4, 1.2):
        for level in range(best.boundaries):
            moved = theta.copy()
            moved[0, first + level] += shift * spread[level]
            covariance = _covariance(codes, moved, data, noise)
            _, jacobian = hierarchy.ln_time(candidates, data.middle, codes, moved)
            lean = covariance @ jacobian[0]
            variance = noise**2 + (jacobian[0] * lean).sum(axis=0)
            gain += (lean[at_centre] ** 2).sum(axis=0) / variance
    return gain


def _covariance(codes: hierarchy.Codes, theta: Floats, data: CurveReadings, noise: float) -> Floats:
    """Covariance of the parameters of one fit under weak priors."""
    _, jacobian = hierarchy.ln_time(data.x, data.middle, codes, theta)
    levels = codes.shape[1]
    prior_sd = np.array([5.0, *SLOPE_PRIOR_SD] + [2.0] * levels + [0.5] * levels + [0.5] * levels)
    information = (jacobian[0] * data.weight) @ jacobian[0].T / noise**2 + np.diag(prior_sd**-2.0)
    return np.asarray(np.linalg.inv(information))


def _disagreement(
    best: Explanation,
    rivals: Sequence[Explanation],
    data: CurveReadings,
    noise: float,
    candidates: Floats,
) -> Floats:
    """How far credible rivals lie from the best fit, less where readings are already dense.

    Where nobody disagrees the emptiest place wins.
    """
    near = np.abs(candidates[:, None] - data.x[None, :])
    fitted = best.ln_time(candidates, data.middle)
    gain = np.zeros_like(candidates)
    for rival in rivals:
        weight = np.exp(-min(abs(rival.bic - best.bic), 40.0) / 8)
        difference = (rival.ln_time(candidates, data.middle) - fitted) / noise
        gain += weight * np.minimum(difference**2, 25.0)
    crowd = 1 + np.exp(-((near / 0.15) ** 2)).sum(axis=1)
    return np.asarray(gain / crowd + 0.5 * np.minimum(near.min(axis=1), 1.0))
