"""A Gaussian process over workloads: what a mean function leaves unexplained, and how unsure it is.

The covariance of ln throughput is the sum of

    J P J'                                what the mean's parameters leave open (linearised)
    a * sum over axes of k(|x_i - y_i| / s_i)  smooth effects of single parameters (CP94's product)
    v * k(|(x - y) / s|)                  interactions
    noise on the diagonal                 run-to-run differences and the runs' own error

with k the Matern-3/2 correlation, rough enough for real systems (LITERATURE §1.1: robust under
noise). The effects of one level of the hierarchy say nothing of another's: what a disk does that no
sum of times has is not what memory does. With a constant mean and one level this is LITERATURE
§1.5's `additive+`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.linalg.lapack import dpotrf, dpotri

from leadline.models.model import Floats
from leadline.record import Workload

AXES = 5
"""The parameters of a workload."""


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
class Places:
    """Where workloads lie."""

    at: Floats
    """On the axes, (workloads, 5)."""
    level: NDArray[np.intp]
    """Of the hierarchy, from the nearest, (workloads,)."""

    @staticmethod
    def of_one_level(at: Floats) -> Places:
        """Return these places as if there were no boundaries."""
        return Places(at, np.zeros(len(at), dtype=np.intp))


@dataclass(frozen=True)
class Kernel:
    """Covariance of what the mean leaves unexplained."""

    additive_var: float
    """Of the effect of each single parameter, in ln throughput squared."""
    joint_var: float
    """Of all parameters together."""
    scales: tuple[float, ...]
    """Distance over which it changes along each axis, in units of the surveyed range."""
    strengths: tuple[float, ...] = (1.0,)
    """Factor on its standard deviation in each level of the hierarchy, from the nearest."""

    def between(self, left: Places, right: Places) -> Floats:
        """Covariance of places, (left, right): none where levels differ."""
        apart = (left.at[:, None, :] - right.at[None, :, :]) / np.array(self.scales)
        single = matern(np.abs(apart)).sum(axis=2)
        together = matern(np.sqrt((apart**2).sum(axis=2)))
        same = left.level[:, None] == right.level[None, :]
        strength = same * np.array(self.strengths)[left.level][:, None] ** 2
        return np.asarray(strength * (self.additive_var * single + self.joint_var * together))

    def variance(self, level: NDArray[np.intp]) -> Floats:
        """Return the variance at places of these levels."""
        strength = np.array(self.strengths)[level] ** 2
        return np.asarray(strength * (self.additive_var * 5 + self.joint_var))


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
    strength: tuple[float, float] = (1.0, 0.4)
    """Of a level, where there are several."""

    def of(self, levels: int) -> Floats:
        """Return medians and spreads of all that is learned, (8 or 8 + levels, 2)."""
        every = [self.additive_sd, self.joint_sd, self.noise_sd, *[self.scale] * AXES]
        return np.array(every + [self.strength] * (levels if levels > 1 else 0))


@dataclass(frozen=True)
class Unexplained:
    """Readings less what is known of them before; arrays of (readings,)."""

    places: Places
    levels: int
    """How many the hierarchy has, those without readings too."""
    residual: Floats
    known: Floats
    """Covariance that is already known, J P J', (readings, readings)."""
    noise_weight: Floats
    """Variance of each reading relative to the common noise's."""


def learn(readings: Unexplained, beliefs: Beliefs) -> tuple[Kernel, float]:
    """Return the most probable kernel and noise sd."""
    from scipy.optimize import minimize  # noqa: PLC0415 - large, and only a fit needs it

    priors = beliefs.of(readings.levels)
    start, spread = np.log(priors[:, 0]), priors[:, 1]
    likelihood = _Likelihood.of(readings)

    def cost(at: Floats) -> tuple[float, Floats]:
        """Minus the log posterior, and its gradient by the logarithms."""
        value, by_log = likelihood.at(np.exp(np.clip(at, -12, 6)))
        away = (at - start) / spread
        return value + 0.5 * float(away @ away), by_log + away / spread

    found = minimize(cost, start, jac=True, method="L-BFGS-B", options={"maxiter": 40})
    additive, joint, noise, *others = np.exp(np.clip(found.x, -12, 6)).tolist()
    strengths = tuple(others[AXES:]) or (1.0,)
    return Kernel(additive**2, joint**2, tuple(others[:AXES]), strengths), noise


@dataclass(frozen=True)
class _Likelihood:
    """Of what is unexplained, under a kernel.

    All is symmetric: the pairs below the diagonal say all, those of one level, as no others share
    anything.
    """

    readings: Unexplained
    pairs: tuple[NDArray[np.intp], NDArray[np.intp]]
    pair_level: NDArray[np.intp]
    apart: Floats
    """Distance of each pair along each axis, (axes, pairs)."""

    @staticmethod
    def of(readings: Unexplained) -> _Likelihood:
        """Look at each pair of readings once."""
        at, level = readings.places.at, readings.places.level
        below, beside = np.nonzero(np.tril(level[:, None] == level[None, :], -1))
        apart = np.abs(at[below] - at[beside]).T
        return _Likelihood(readings, (below, beside), level[below], apart)

    def at(self, asked: Floats) -> tuple[float, Floats]:
        """Return minus the log likelihood, and its derivatives by the logarithms of `asked`."""
        additive, joint, noise = asked[:3]
        scales, strengths = asked[3 : 3 + AXES], asked[3 + AXES :]
        level = self.readings.places.level
        strong = (strengths if len(strengths) else np.ones(self.readings.levels)) ** 2
        near = self.apart / scales[:, None]
        singles, singles_by_scale = _matern_and_slope(near)
        single, far = singles.sum(axis=0), np.sqrt((near**2).sum(axis=0))
        together, together_by_scale = matern(far), 3 * np.exp(-np.sqrt(3.0) * far) * near**2
        shared, alone = strong[self.pair_level], strong[level]
        single, together = shared * additive**2 * single, shared * joint**2 * together
        single_alone, joint_alone = alone * additive**2 * len(self.apart), alone * joint**2
        noisy = noise**2 * self.readings.noise_weight
        covariance = self.readings.known + np.diag(single_alone + joint_alone + noisy)
        covariance[self.pairs] += single + together
        factor, failed = dpotrf(covariance, lower=True)
        if failed:
            return 1e12, np.zeros(len(asked))
        residual = self.readings.residual
        pull = cho_solve((factor, True), residual, check_finite=False)
        inverse, _ = dpotri(factor, lower=True)
        # d cost = tr((K^-1 - K^-1 r r' K^-1) dK) / 2
        lean = inverse[self.pairs] - pull[self.pairs[0]] * pull[self.pairs[1]]
        own = np.diag(inverse) - pull**2
        by_scales = additive**2 * singles_by_scale + joint**2 * together_by_scale
        by_log = [
            2 * lean @ single + own @ single_alone,
            2 * lean @ together + own @ joint_alone,
            own @ noisy,
            *((shared * by_scales) @ lean),
        ]
        # No pairs at all, of one reading, are summed to integers.
        of_pairs = np.bincount(self.pair_level, lean * (single + together), len(strong))
        by_level = 2 * of_pairs + np.bincount(
            level, own * (single_alone + joint_alone), len(strong)
        )
        size = 2 * float(np.log(np.diag(factor)).sum())
        cost = 0.5 * (float(residual @ pull) + size)
        return cost, np.array(by_log + list(by_level[: len(strengths)]))


# How much wider a model's doubt must be than it says, told by readings it was not fitted to.
#
# A model states how unsure it is if systems are as it believes. Where a system does what the model
# has no words for, predictions are off by more, and its own readings show it: each is predicted by
# the model fitted to all others (leave one out, in closed form), and how far those predictions are
# off beside what they said and what a run scatters by is one factor on their doubt, for each level
# of the hierarchy. This is the idea of the jackknife+ (Barber and others, 2021) put into a factor,
# as some twenty readings of a level are too few for quantiles of their own.

FACTORS = np.exp(np.linspace(0.0, np.log(8.0), 61))
"""A doubt is widened, never narrowed: readings lie on curves, nearer to each other than to what is
asked, and flatter the model."""
OVERALL_LN_SD = 0.7
"""A system is as a model believes up to a factor of two or so."""
LEVEL_LN_SD = 0.35
"""A level is as much worse than the model believes as the whole system is, up to this."""
ASKED_MIN = 12
"""So many errors tell a factor to about a fifth."""
TAIL_DF = 5.0
"""Of Student's t, of the variance expected, which errors follow: one far off widens little."""


@dataclass(frozen=True)
class LeftOut:
    """Readings predicted by a model of all others; arrays of (readings,)."""

    ln_error: Floats
    model_var: Floats
    """What the model says of the prediction."""
    noise_var: Floats
    """What a reading scatters by."""
    level: NDArray[np.intp]
    """Of the hierarchy, from the nearest."""
    asked: NDArray[np.bool_]
    """Whether it was chosen as predictions are asked for: anywhere, and not along a curve, where
    its neighbours tell most of it."""


def left_out_errors(factor: tuple[Floats, bool], readings: Floats) -> tuple[Floats, Floats]:
    """Return the error of each reading as all others predict it, and the variance expected of it.

    In closed form (Rasmussen and Williams, *Gaussian Processes for Machine Learning*, 5.4.2).

    Args:
        factor: Cholesky's, of the readings' covariance, noise included, as `cho_factor` gives it.
        readings: less their expectation, (readings,).

    """
    inverse = cho_solve(factor, np.eye(len(readings)))
    variance = 1 / np.diag(inverse)
    return (inverse @ readings) * variance, np.asarray(variance)


def widening(left_out: LeftOut, levels: int) -> Floats:
    """Return the factor on a model's standard deviation for each level.

    Args:
        left_out: the model's readings, each left out; of fewer than `ASKED_MIN` that were chosen
            as predictions are asked for, all count.
        levels: how many there are; one without readings is as the whole system.

    """
    fit = _fit(left_out)
    if left_out.asked.sum() >= ASKED_MIN:
        fit = fit * left_out.asked[:, None]
    ln_factors = np.log(FACTORS)
    overall = _mean(fit.sum(axis=0) - 0.5 * (ln_factors / OVERALL_LN_SD) ** 2)
    near = -0.5 * ((ln_factors - np.log(overall)) / LEVEL_LN_SD) ** 2
    at = left_out.level
    return np.array([_mean(fit[at == each].sum(axis=0) + near) for each in range(levels)])


def _fit(left_out: LeftOut) -> Floats:
    """Log-likelihood of each reading's error with each factor, (readings, factors)."""
    variance = left_out.noise_var[:, None] + left_out.model_var[:, None] * FACTORS**2
    square = left_out.ln_error[:, None] ** 2 / variance
    tail = -0.5 * (TAIL_DF + 1) * np.log1p(square / (TAIL_DF - 2))
    return np.asarray(tail - 0.5 * np.log(variance))


def _mean(ln_likely: Floats) -> float:
    """Mean of the factor, each as likely as it is said to be."""
    weight = np.exp(ln_likely - ln_likely.max())
    return float((weight * FACTORS).sum() / weight.sum())
