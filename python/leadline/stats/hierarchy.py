"""Time per byte of a hierarchy of caches over `unique_bytes`, and many least-squares fits at once.

The model, its parameters and how they are fitted are in Rust (crates/stats/src/lib.rs); here is
how NumPy's arrays get there and back.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline import _engine

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

SHAPE_OF_CODE = ("uniform", "step", "smeared")
UNIFORM, STEP, SMEARED = range(3)
"""As crates/stats/src/shape.rs has them."""

LEVELS_MAX = _engine.LEVELS_MAX
"""Most boundaries of a hierarchy."""

SLOPE_MAX = _engine.SLOPE_MAX
"""Steepest fall of a level by itself, as a power of unique_bytes (crates/stats/src/lib.rs)."""


@dataclass(frozen=True)
class CurveReadings:
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
        """Boundaries in each fit."""
        return int(self.codes.shape[1])

    @property
    def centres(self) -> Floats:
        """Place of each boundary, as ln C_k."""
        return self.theta[:, places(self.levels)[1]]

    def take(self, chosen: NDArray[np.int64]) -> Fits:
        """Return the chosen fits."""
        return Fits(self.codes[chosen], self.theta[chosen], self.cost[chosen])


def places(levels: int) -> tuple[slice, slice, slice]:
    """Where ln d_k, ln C_k and ln width_k stand among the parameters."""
    first = (3, 3 + levels, 3 + 2 * levels)
    return slice(3, first[1]), slice(first[1], first[2]), slice(first[2], first[2] + levels)


def miss_ratio(x: Floats, centres: Floats, ln_widths: Floats, codes: Codes) -> Floats:
    """Return 1 - h of each level of each fit at each x, as (fits, levels, readings)."""
    found = _engine.miss_ratio(x, centres, ln_widths, codes)
    return np.frombuffer(found).reshape(*codes.shape, x.size)


def ln_time(x: Floats, middle: float, codes: Codes, theta: Floats) -> tuple[Floats, Floats]:
    """Return ln time(U) as (fits, readings) and its Jacobian as (fits, parameters, readings)."""
    fitted, jacobian = _engine.ln_time(x, middle, codes, theta)
    return (
        np.frombuffer(fitted).reshape(len(theta), x.size),
        np.frombuffer(jacobian).reshape(*theta.shape, x.size),
    )


def huber(residual: Floats, scale: float) -> Floats:
    """Square of a residual up to `scale`, linear beyond."""
    return np.frombuffer(_engine.huber(residual, scale)).reshape(residual.shape)


def refine(data: CurveReadings, codes: Codes, theta: Floats, iterations: int = 14) -> Fits:
    """Improve many fits at once by Levenberg-Marquardt with Huber weights.

    Starts matter: the uniform family has a kink at each reading, so callers pass several.
    """
    refined, cost = _engine.refine(data, codes, theta, iterations)
    return Fits(codes, np.frombuffer(refined).reshape(theta.shape), np.frombuffer(cost))


def start_fits(data: CurveReadings, centres: Floats, codes: Codes) -> Fits:
    """Solve for a and d_k at given boundaries, on relative errors; drops negative d_k.

    A fit that wants a negative d_k is the fit of fewer levels, which competes by itself.
    """
    kept, theta, cost = _engine.start_fits(data, centres, codes)
    wide = 3 + 3 * codes.shape[1]
    return Fits(codes[kept], np.frombuffer(theta).reshape(-1, wide), np.frombuffer(cost))
