"""A Gaussian process over workloads: what a mean function leaves unexplained, and how unsure it is.

The covariance of ln throughput is the sum of

    J P J'                                what the mean's parameters leave open (linearised)
    a * sum over axes of k(|x_i - y_i| / s)    smooth effects of single parameters (CP94's product)
    v * k(|x - y| / s)                    interactions
    noise on the diagonal                 run-to-run differences and the runs' own error

with k the Matern-3/2 correlation, rough enough for real systems (LITERATURE §1.1: robust under
noise). With a constant mean this is LITERATURE §1.5's `additive+`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf, dpotri

from leadline.predict.model import Floats
from leadline.record import Workload


@dataclass(frozen=True)
class Axes:
    """The five parameters brought to [0, 1] over the surveyed ranges."""

    low: Floats
    high: Floats

    @staticmethod
    def over(workloads: Sequence[Workload]) -> Axes:
        """Return the axes that span these workloads; an axis of one value spans a unit."""
        raw = _raw(workloads)
        low, high = raw.min(axis=0), raw.max(axis=0)
        return Axes(low, np.where(high > low, high, low + 1))

    def place(self, workloads: Sequence[Workload]) -> Floats:
        """Return the places of workloads, (workloads, 5)."""
        return np.asarray((_raw(workloads) - self.low) / (self.high - self.low))


def _raw(workloads: Sequence[Workload]) -> Floats:
    rows = [
        (
            np.log(w.unique_bytes),
            np.log(min(w.size_mean, w.unique_bytes)),
            w.read_frac,
            w.seq_frac,
            np.log(w.process_num * w.queue_depth),
        )
        for w in workloads
    ]
    return np.array(rows, dtype=np.float64).reshape(-1, 5)


@dataclass(frozen=True)
class Kernel:
    """Covariance of what the mean leaves unexplained."""

    additive_var: float
    """Of the effect of each single parameter, in ln throughput squared."""
    joint_var: float
    """Of all parameters together."""
    scale: float
    """Distance over which it changes, in units of the surveyed range."""

    def between(self, left: Floats, right: Floats) -> Floats:
        """Covariance of places, (left, right)."""
        apart = (left[:, None, :] - right[None, :, :]) / self.scale
        single = matern(np.abs(apart)).sum(axis=2)
        together = matern(np.sqrt((apart**2).sum(axis=2)))
        return np.asarray(self.additive_var * single + self.joint_var * together)

    @property
    def at_a_place(self) -> float:
        """Variance anywhere."""
        return self.additive_var * 5 + self.joint_var


def matern(distance: Floats) -> Floats:
    """Matern-3/2 correlation at a distance."""
    return _matern_and_slope(distance)[0]


def _matern_and_slope(distance: Floats) -> tuple[Floats, Floats]:
    """Matern-3/2 correlation, and its derivative by the logarithm of the scale."""
    root = np.sqrt(3.0) * distance
    decay = np.exp(-root)
    return (1 + root) * decay, root**2 * decay


@dataclass(frozen=True)
class Beliefs:
    """Log-normal priors of the kernel and the noise, as (median, sd of the logarithm)."""

    additive_sd: tuple[float, float]
    joint_sd: tuple[float, float]
    scale: tuple[float, float]
    noise_sd: tuple[float, float]


def learn(
    places: Floats, residual: Floats, known: Floats, noise_weight: Floats, beliefs: Beliefs
) -> tuple[Kernel, float]:
    """Return the most probable kernel and noise sd.

    Args:
        places: of the readings, (readings, 5).
        residual: readings less the prior mean, (readings,).
        known: covariance that is already known, J P J', (readings, readings).
        noise_weight: variance of each reading relative to the common noise's, (readings,).
        beliefs: priors.

    """
    from scipy.optimize import minimize  # noqa: PLC0415 - large, and only a fit needs it

    priors = (beliefs.additive_sd, beliefs.joint_sd, beliefs.scale, beliefs.noise_sd)
    start = np.log([median for median, _ in priors])
    spread = np.array([sd for _, sd in priors])
    # Everything here is symmetric: the pairs below the diagonal say all.
    pairs = np.tril_indices(len(residual), -1)
    apart = np.abs(places[pairs[0]] - places[pairs[1]]).T
    far = np.sqrt((apart**2).sum(axis=0))

    def cost(at: Floats) -> tuple[float, Floats]:
        """Minus the log posterior, and its gradient by the logarithms."""
        additive, joint, scale, noise = np.exp(np.clip(at, -12, 6))
        single, single_by_scale = (part.sum(axis=0) for part in _matern_and_slope(apart / scale))
        together, together_by_scale = _matern_and_slope(far / scale)
        noisy = noise**2 * noise_weight
        covariance = known + np.diag(additive**2 * len(apart) + joint**2 + noisy)
        covariance[pairs] += additive**2 * single + joint**2 * together
        factor, failed = dpotrf(covariance, lower=True)
        if failed:
            return 1e12, np.zeros(4)
        pull = cho_solve((factor, True), residual, check_finite=False)
        inverse, _ = dpotri(factor, lower=True)
        # d cost = tr((K^-1 - K^-1 r r' K^-1) dK) / 2
        lean = inverse[pairs] - pull[pairs[0]] * pull[pairs[1]]
        own = np.diag(inverse) - pull**2
        by_log = np.array(
            [
                additive**2 * (2 * lean @ single + len(apart) * own.sum()),
                joint**2 * (2 * lean @ together + own.sum()),
                lean @ (additive**2 * single_by_scale + joint**2 * together_by_scale),
                own @ noisy,
            ]
        )
        size = 2 * float(np.log(np.diag(factor)).sum())
        away = (at - start) / spread
        value = 0.5 * (float(residual @ pull) + size + float(away @ away))
        return value, np.asarray(by_log + away / spread)

    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 40})
    additive, joint, scale, noise = np.exp(np.clip(found.x, -12, 6))
    return Kernel(float(additive**2), float(joint**2), float(scale)), float(noise)
