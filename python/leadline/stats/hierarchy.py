"""Time per byte of a hierarchy of caches over `unique_bytes`, and many least-squares fits at once.

The model, with x = ln U and y = ln(time per byte):

    time(U) = a * V^b + V^s * sum_k d_k * (1 - h_k(U)),   a > 0, d_k >= 0, V = U / middle

Time adds, throughput does not: a request that misses level k pays d_k more (LITERATURE §2.1).
`b` and `s` are weak slopes: CPU caches stop helping the hits, seeks of the misses grow.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

SHAPE_OF_CODE = ("uniform", "step", "smeared")
UNIFORM, STEP, SMEARED = range(3)
SMEAR_START = 0.2
_LN_WIDTH_RANGE = (float(np.log(0.02)), float(np.log(0.5)))
"""Logistic scale in ln U; 10 % to 90 % of the fall takes a factor of 1.1 to 9 in U."""

SLOPE_MAX = 0.5
"""Steepest fall of a level by itself, as a power of unique_bytes: seeks over a span (LITERATURE
§2.1). What falls faster over a range has a border in it, however smeared."""

_LN_DELTA_RANGE = (-6.0, 12.0)
"""Bounds of ln(d_k / a); the lower one is a level that nobody could see."""


def miss_ratio(
    x: Floats, centres: Floats, ln_widths: Floats, codes: Codes
) -> tuple[Floats, Floats, Floats]:
    """Return 1 - h, its derivative by ln C and by ln width, each (fits, levels, readings).

    uniform: h = min(1, C/U), random addresses over an LRU-like cache; step: cyclic scans under
    LRU; smeared: real policies between the two, logistic in ln U.
    """
    distance = x[None, None, :] - centres[:, :, None]
    kind = codes[:, :, None]
    held = np.exp(-np.maximum(distance, 0.0))
    beyond = distance > 0
    miss = np.where(kind == UNIFORM, 1.0 - held, beyond.astype(np.float64))
    slope = np.where((kind == UNIFORM) & beyond, -held, 0.0)
    widening = np.zeros_like(miss)
    if (codes == SMEARED).any():
        scaled = distance * np.exp(-ln_widths)[:, :, None]
        logistic = expit(scaled)
        steepness = logistic * (1.0 - logistic)
        is_smeared = kind == SMEARED
        miss = np.where(is_smeared, logistic, miss)
        slope = np.where(is_smeared, -steepness * np.exp(-ln_widths)[:, :, None], slope)
        widening = np.where(is_smeared, -steepness * scaled, widening)
    return miss, slope, widening


@dataclass(frozen=True)
class Readings:
    """One curve, ready for fitting."""

    x: Floats
    """ln U."""
    y: Floats
    """ln(time per byte): (readings,) or, for a bootstrap, (fits, readings)."""
    weight: Floats
    """Relative weight of each reading's squared residual; mean 1."""
    slope_penalty: tuple[float, float]
    """Added to a fit's cost as penalty * slope^2 for b and for s: their priors."""
    huber_scale: float
    """Residuals beyond this cost linearly; infinite for plain least squares."""
    centre_low: float
    centre_high: float

    @property
    def middle(self) -> float:
        """The x at which the slope factor is one."""
        return float((self.x.min() + self.x.max()) / 2)


@dataclass(frozen=True)
class Fits:
    """Parameters of many fits of one number of levels: ln a, b, s, ln d_k, ln C_k, ln width_k."""

    codes: Codes
    theta: Floats
    cost: Floats

    @property
    def levels(self) -> int:
        """Borders in each fit."""
        return int(self.codes.shape[1])

    @property
    def centres(self) -> Floats:
        """Place of each border, as ln C_k."""
        return self.theta[:, places(self.levels)[1]]

    def take(self, chosen: NDArray[np.int64]) -> Fits:
        """Return the chosen fits."""
        return Fits(self.codes[chosen], self.theta[chosen], self.cost[chosen])


def places(levels: int) -> tuple[slice, slice, slice]:
    """Where ln d_k, ln C_k and ln width_k stand among the parameters."""
    first = (3, 3 + levels, 3 + 2 * levels)
    return slice(3, first[1]), slice(first[1], first[2]), slice(first[2], first[2] + levels)


def ln_time(x: Floats, middle: float, codes: Codes, theta: Floats) -> tuple[Floats, Floats]:
    """Return ln time(U) as (fits, readings) and its Jacobian as (fits, parameters, readings)."""
    at_delta, at_centre, at_width = places(codes.shape[1])
    z = x - middle
    delta = np.exp(theta[:, at_delta])[:, :, None] * np.exp(theta[:, 2:3] * z)[:, None, :]
    miss, by_centre, by_width = miss_ratio(x, theta[:, at_centre], theta[:, at_width], codes)
    base = np.exp(theta[:, :1] + theta[:, 1:2] * z)
    added = delta * miss
    missing = added.sum(axis=1)
    total = base + missing
    jacobian = np.empty((theta.shape[0], theta.shape[1], x.size))
    jacobian[:, 0] = base / total
    jacobian[:, 1] = jacobian[:, 0] * z
    jacobian[:, 2] = missing / total * z
    jacobian[:, at_delta] = added / total[:, None, :]
    jacobian[:, at_centre] = delta * by_centre / total[:, None, :]
    jacobian[:, at_width] = delta * by_width / total[:, None, :]
    return np.log(total), jacobian


def huber(residual: Floats, scale: float) -> Floats:
    """Square of a residual up to `scale`, linear beyond."""
    size = np.abs(residual)
    return np.where(size <= scale, size * size, scale * (2 * size - scale))


def cost_of(data: Readings, codes: Codes, theta: Floats) -> Floats:
    """Penalised robust sum of squares of each fit."""
    fitted, _ = ln_time(data.x, data.middle, codes, theta)
    return _cost(data, fitted, theta)


def _cost(data: Readings, fitted: Floats, theta: Floats) -> Floats:
    loss = (data.weight * huber(data.y - fitted, data.huber_scale)).sum(axis=1)
    return np.asarray(loss + (np.array(data.slope_penalty) * theta[:, 1:3] ** 2).sum(axis=1))


def refine(data: Readings, codes: Codes, theta: Floats, iterations: int = 14) -> Fits:
    """Improve many fits at once by Levenberg-Marquardt with Huber weights.

    Starts matter: the uniform family has a kink at each reading, so callers pass several.
    """
    theta = _inside(data, theta, codes.shape[1])
    fitted, jacobian = ln_time(data.x, data.middle, codes, theta)
    cost = _cost(data, fitted, theta)
    damping = np.full(len(theta), 1e-2)
    diagonal = np.arange(theta.shape[1])
    for _ in range(iterations):
        residual = data.y - fitted
        weight = data.weight * np.minimum(
            1.0, data.huber_scale / np.maximum(np.abs(residual), 1e-300)
        )
        weighted = jacobian * weight[:, None, :]
        normal = weighted @ jacobian.transpose(0, 2, 1)
        gradient = (weighted @ residual[:, :, None])[:, :, 0]
        normal[:, (1, 2), (1, 2)] += data.slope_penalty
        gradient[:, 1:3] -= np.multiply(data.slope_penalty, theta[:, 1:3])
        scale = normal[:, diagonal, diagonal]
        normal[:, diagonal, diagonal] = scale * (1 + damping[:, None]) + 1e-9
        step = np.linalg.solve(normal, gradient[:, :, None])[:, :, 0]
        step = np.clip(step, -1.0, 1.0)
        trial = _inside(data, theta + step, codes.shape[1])
        trial_fitted, trial_jacobian = ln_time(data.x, data.middle, codes, trial)
        trial_cost = _cost(data, trial_fitted, trial)
        better = trial_cost < cost
        fitted[better], jacobian[better] = trial_fitted[better], trial_jacobian[better]
        theta = np.where(better[:, None], trial, theta)
        cost = np.where(better, trial_cost, cost)
        damping = np.where(better, damping * 0.2, np.minimum(damping * 6.0, 1e6))
    return Fits(codes, theta, cost)


def _inside(data: Readings, theta: Floats, levels: int) -> Floats:
    """Clip parameters to what a hierarchy can be."""
    theta = theta.copy()
    at_delta, at_centre, at_width = places(levels)
    low, high = _LN_DELTA_RANGE
    theta[:, 0] = np.clip(theta[:, 0], data.y.min() - 3, data.y.max() + 3)
    theta[:, 1:3] = np.clip(theta[:, 1:3], -SLOPE_MAX, SLOPE_MAX)
    theta[:, at_delta] = np.clip(theta[:, at_delta], theta[:, :1] + low, theta[:, :1] + high)
    theta[:, at_centre] = np.clip(theta[:, at_centre], data.centre_low, data.centre_high)
    theta[:, at_width] = np.clip(theta[:, at_width], *_LN_WIDTH_RANGE)
    return theta


def start_fits(data: Readings, centres: Floats, codes: Codes) -> Fits:
    """Solve for a and d_k at given borders, on relative errors; drops negative d_k.

    A fit that wants a negative d_k is the fit of fewer levels, which competes by itself.
    """
    ln_widths = np.full(centres.shape, np.log(SMEAR_START))
    miss, _, _ = miss_ratio(data.x, centres, ln_widths, codes)
    columns = np.concatenate([np.ones((len(centres), 1, data.x.size)), miss], axis=1)
    relative = columns * np.exp(-data.y)[None, None, :]
    weighted = relative * data.weight[None, None, :]
    normal = weighted @ relative.transpose(0, 2, 1)
    size = normal.shape[1]
    trace = normal[:, np.arange(size), np.arange(size)].sum(axis=1)
    normal[:, np.arange(size), np.arange(size)] += 1e-12 * trace[:, None]
    solved = np.linalg.solve(normal, weighted.sum(axis=2)[:, :, None])[:, :, 0]
    good = (solved > 0).all(axis=1)
    solved, centres, codes = solved[good], centres[good], codes[good]
    if len(solved) == 0:
        return Fits(codes, np.empty((0, 3 * size)), np.empty(0))
    logs = np.log(solved)
    flat = np.zeros((len(logs), 2))
    theta = np.concatenate([logs[:, :1], flat, logs[:, 1:], centres, ln_widths[good]], axis=1)
    theta = _inside(data, theta, codes.shape[1])
    return Fits(codes, theta, cost_of(data, codes, theta))
