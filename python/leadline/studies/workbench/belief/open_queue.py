"""The expected wait in an open queue whose speed wanders, at any time after an empty start.

Requests arrive at a rate and are done at a capacity; both fluctuate. Measured in seconds of work,
the net input over the last u seconds is X(u) with mean (rho - 1) u, rho = rate/capacity, and a
variance v(u). The wait that an arrival at time t finds is the largest X(u) of 0 <= u <= t
(Lindley). For inputs whose increments are exchangeable, Spitzer's identity gives its expectation
exactly:

    E W(t) = ∫₀ᵗ E[X(u)⁺] / u du.

Brownian input (v = sigma² u, the diffusion limit of G/G/k) and a speed that differs from trial to
trial (v = τ² u²) are exchangeable, together as well. A speed that wanders as an Ornstein-Uhlenbeck
process of standard deviation s and memory m has v(u) = 2 s² m² (u/m - 1 + e^(-u/m)), which is white
noise for u >> m and a constant for u << m; it is exchangeable in both limits and the identity is
used between them. Against simulated M/G/k servers with drift the load of a given mean response is
reproduced within about 1.5 % (tests/test_open_queue.py).

With E[X⁺] for a normal X this is one quadrature over u, and the mean over a window of a trial only
another weight under the same integral: the horizon of short trials, the growth of an overload and
the steady state are one formula.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_POINTS, _WEIGHTS = np.polynomial.legendre.leggauss(14)
_SHORTEST = 1e-6
"""Of the horizon: where the quadrature over ln u begins."""
_DENSITY_0 = 1 / np.sqrt(2 * np.pi)


def past(horizon_s: float) -> tuple[Floats, Floats]:
    """Return lengths u of the past up to the horizon, and the weights of an integral du/u.

    Below the shortest, E[X⁺] is proportional to √u, whose integral is twice its last value.
    """
    shortest_s = _SHORTEST * horizon_s
    low, high = np.log(shortest_s), np.log(horizon_s)
    half = (high - low) / 2
    u = np.exp(half * (_POINTS + 1) + low)
    return np.append(shortest_s, u), np.append(2.0, half * _WEIGHTS)


def wandering(u_s: Floats | float, sd: Floats, memory_s: Floats) -> Floats:
    """Variance of the input over u when the speed is an Ornstein-Uhlenbeck process."""
    x = np.asarray(u_s / memory_s)
    shape = np.where(x < 1e-3, x * x / 2, x - 1 + np.exp(-x))
    return np.asarray(2 * (sd * memory_s) ** 2 * shape)


def positive_part(mean: Floats, variance: Floats) -> Floats:
    """E[X⁺] of a normal X, to 2e-4 of its standard deviation.

    The distribution function is a logistic one (Page 1977, error 1.4e-4), and all is done with
    seven digits: this is where a search spends its time.
    """
    sd = np.sqrt(variance.astype(np.float32))
    z = np.clip(mean.astype(np.float32) / sd, -8.0, 1e6)
    square = z * z
    below = 1 / (1 + np.exp(z * (-1.5976 - 0.070566 * square)))
    shape = np.float32(_DENSITY_0) * np.exp(-0.5 * square) + z * below
    return np.asarray(sd * np.maximum(shape, 0.0), dtype=np.float64)


def window_weight(u_s: Floats, from_s: float, to_s: float) -> Floats:
    """Share of a window's arrivals whose past is longer than u."""
    return np.clip((to_s - np.maximum(u_s, from_s)) / (to_s - from_s), 0.0, 1.0)


def backlog_left(backlog_s: Floats, rho: Floats, from_s: float, to_s: float) -> Floats:
    """Mean over a window of what is left of a backlog at time 0, drained at 1 - rho."""
    drain = np.maximum(1 - rho, 1e-6)
    at_from = np.maximum(backlog_s - drain * from_s, 0.0)
    at_to = np.maximum(backlog_s - drain * to_s, 0.0)
    return np.asarray((at_from**2 - at_to**2) / (2 * drain * (to_s - from_s)))


def fluctuation(rho: Floats, variance_per_s: Floats, seconds: float) -> Floats:
    """Squared coefficient of variation of the mean wait over a window.

    Of reflected Brownian motion in the steady state it is 2 sigma²/(μ² T), with
    μ = 1 - rho; at rho = 1 and from an empty start it is about 1/3. Between, the sum of both in
    the denominator.
    """
    return np.asarray(2 * variance_per_s / ((1 - rho) ** 2 * seconds + 6 * variance_per_s))
