"""The joint model: operation times, and a Gaussian process for what they do not explain.

All readings are explained at once, in ln throughput. The mean is a sum of times (`operation_time`)
whose parameters are learned by penalised least squares; a Gaussian process (`gaussian_process`)
takes what the mean cannot say. Their uncertainties are one covariance, linearised at the fit, so
the interval knows both. CP94's product model divides ten noisy readings by each other and cannot
see interactions; this one averages the noise of all readings and has interactions by its form.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve, solve_triangular

from leadline.models.gaussian_process import (
    AXES,
    Axes,
    Beliefs,
    Kernel,
    LeftOut,
    Places,
    Unexplained,
    learn,
    left_out_errors,
    widening,
)
from leadline.models.model import Expected, Floats, PredictionRefused, Sample, is_paged, sample_of
from leadline.models.operation_time import BOUNDARY, OVERLAP, PLACE, UNIT, OperationTime, Requests
from leadline.record import Measurement, Survey, Workload

STARTS = 4
"""Random starts of the first fit: the sum of exponentials has local optima."""
ROUNDS = 3
"""Of fitting the mean and learning the kernel in turn."""
ITERATIONS = 60
OUTLIER_SIGMAS = 3.0
"""A reading that all others predict farther off than this counts less: its variance grows as its
error squared."""
DOUBTS = 3
"""Rounds of that: a wild reading makes its neighbours look off until it counts little."""

_PLACE_SD = (3.0, 1.5, 3.0, 3.0, 1.0, 3.0, 1.5, 0.5, 0.7, 0.1, 2.0, 1.5)
"""Prior sd of a place's parameters, in their order: a cost is unknown by a factor of twenty, what
writes cost beside reads too (a cache may take them or not), random and sequential requests differ
by a factor of four or so, runs of sequential ones again; that throughput changes with unique_bytes
within a level is known to be rare."""
_LN_UNIT = 4.5
"""Prior mean of ln u over the reference size: a stripe unit beyond what is surveyed, no effect."""
_LN_WIDTH = float(np.log(0.1))
_BOUNDARY_SD = (0.7, 0.5)
"""Prior sd of ln width and of what writes add to ln C: a limit of dirty data may hold writes back
long before the cache is full."""
_OVERLAP = (0.0, 1.5)
"""Prior mean and sd of ln(r - 1): whether writes behind a cache wait for it is not known."""

_SYSTEMATIC_SD = (0.05, 1.0)
_SCALE = (0.7, 0.5)
"""Beliefs about the kernel: effects of a twentieth that change over most of an axis."""
_NOISE_SPREAD = 0.4


@dataclass(frozen=True)
class _Prior:
    mean: Floats
    sd: Floats


class JointModel:
    """See the module's first lines; `fit_joint` makes one."""

    name = "joint"

    def __init__(
        self,
        sample: Sample,
        *,
        mean: OperationTime,
        prior: _Prior,
        theta: Floats,
        kernel: Kernel,
        noise_ln_sd: float,
        told_weight: Floats,
    ) -> None:
        self.sample = sample
        self.knows_pages = sample.paged
        self.mean = mean
        self.theta = theta
        self.kernel = kernel
        self.noise_ln_sd = noise_ln_sd
        self.n = len(sample.workloads)
        self._prior = prior
        self._axes = Axes.over(sample.workloads)
        self._places = self._place(sample.workloads)
        fitted, jacobian = mean.ln_mb_s(Requests.of(sample.workloads, paged=sample.paged), theta)
        self._jacobian = jacobian * prior.sd
        unexplained = kernel.between(self._places, self._places)
        noise = noise_ln_sd**2 * sample.noise_weight
        self._weights = np.linalg.solve(unexplained + np.diag(noise), sample.ln_mb_s - fitted)
        model = self._jacobian @ self._jacobian.T + unexplained
        self._factor = cho_factor(model + np.diag(noise), lower=True)
        # What the model bends after is what the readings no longer tell of the noise.
        bent = float(np.trace(cho_solve(self._factor, model)))
        self.df = max(self.n - bent, 4.0)
        open_ = sample.ln_mb_s - fitted + jacobian @ (theta - prior.mean)
        left_out = self._left_out(open_, told_weight)
        self.widening = widening(left_out, len(sample.noise.weights))

    def _left_out(self, open_: Floats, told_weight: Floats) -> LeftOut:
        """Predict each reading by all others.

        `open_` is what they add to the prior's mean, `told_weight` the readings' weights before any
        was doubted: what looked far off may be what the model has no words for.
        """
        error, variance = left_out_errors(self._factor, open_)
        scatter = self.noise_ln_sd**2
        return LeftOut(
            ln_error=error,
            model_var=np.maximum(variance - scatter * self.sample.noise_weight, 0.0),
            noise_var=scatter * told_weight,
            level=self._places.level,
            asked=np.array(self.sample.scattered or [True] * self.n),
        )

    def expect(self, workloads: Sequence[Workload]) -> Expected:
        """Return what is expected of each workload."""
        ln_mb_s, jacobian, near = self._at(workloads)
        known = jacobian @ self._jacobian.T + near
        variance = (jacobian**2).sum(axis=1) + self.kernel.variance(self._levels(workloads))
        variance -= np.einsum("ij,ji->i", known, cho_solve(self._factor, known.T))
        return Expected(
            ln_mb_s=ln_mb_s,
            ln_sd=np.sqrt(np.maximum(variance, 1e-12)) * self._wider(workloads),
            noise_ln_sd=self.noise_at(workloads),
        )

    def noise_at(self, workloads: Sequence[Workload]) -> Floats:
        """Return the run-to-run sd of ln throughput of each workload."""
        return self.noise_ln_sd * np.sqrt(self.sample.noise.weight_at(workloads))

    def _place(self, workloads: Sequence[Workload]) -> Places:
        return Places(self._axes.place(workloads), self._levels(workloads))

    def _levels(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        return self.sample.noise.regions(workloads)

    def _wider(self, workloads: Sequence[Workload]) -> Floats:
        return self.widening[self._levels(workloads)]

    def covariance(self, workloads: Sequence[Workload]) -> Floats:
        """Covariance of what is expected of these workloads, (workloads, workloads)."""
        _, jacobian, near = self._at(workloads)
        places = self._place(workloads)
        known = jacobian @ self._jacobian.T + near
        prior = jacobian @ jacobian.T + self.kernel.between(places, places)
        wider = self._wider(workloads)
        covariance = prior - known @ cho_solve(self._factor, known.T)
        return np.asarray(covariance * np.outer(wider, wider))

    def _at(self, workloads: Sequence[Workload]) -> tuple[Floats, Floats, Floats]:
        requests = Requests.of(workloads, paged=self.sample.paged)
        fitted, jacobian = self.mean.ln_mb_s(requests, self.theta)
        near = self.kernel.between(self._place(workloads), self._places)
        return fitted + near @ self._weights, jacobian * self._prior.sd, near

    def embedded(self) -> dict[str, Any]:
        """Return all a browser needs to predict the same.

        `theta` and `smeared` are `OperationTime`'s, `jacobian` is scaled by `prior_sd`, `places`,
        `levels` and `axes` are `Places`' and `Axes`', `weights` and `whitening` combine the
        readings: mean = m(x) + k(x) weights, variance = |J(x)|^2 + k(x, x) - |whitening c|^2 with
        c = J(x) jacobian' + k(x), times the square of its level's `widening`. `whitening` is the
        inverse of the covariance's lower Cholesky factor: through the inverse covariance itself a
        quiet system would lose six digits.
        """
        identity = np.eye(self.n)
        return {
            "kind": self.name,
            "n": self.n,
            "df": self.df,
            "smeared": list(self.mean.smeared),
            "of_writes": list(self.mean.of_writes),
            "paged": self.sample.paged,
            "ln_unique_reference": self.mean.ln_unique_reference,
            "theta": self.theta.tolist(),
            "prior_sd": self._prior.sd.tolist(),
            "axes": {"low": self._axes.low.tolist(), "high": self._axes.high.tolist()},
            "places": self._places.at.tolist(),
            "levels": self._places.level.tolist(),
            "jacobian": self._jacobian.tolist(),
            "weights": self._weights.tolist(),
            "whitening": solve_triangular(self._factor[0], identity, lower=True).tolist(),
            "kernel": {
                "additive_var": self.kernel.additive_var,
                "joint_var": self.kernel.joint_var,
                "scales": list(self.kernel.scales),
                "strengths": list(self.kernel.strengths),
            },
            "noise_ln_sd": [
                float(self.noise_ln_sd * np.sqrt(weight)) for weight in self.sample.noise.weights
            ],
            "noise_edges_bytes": list(self.sample.noise.edges_bytes),
            "widening": self.widening.tolist(),
        }


def joint_of_survey(survey: Survey, points: Sequence[Measurement]) -> JointModel:
    """Fit the joint model to a stored survey and its points.

    Raises:
        PredictionRefused: there are no points.

    """
    if not points:
        raise PredictionRefused(
            f"the survey of {survey.start.system} has no points yet, so there is nothing to "
            f"predict from; finish it: leadline survey {survey.start.target} --resume"
        )
    start = survey.start
    processors, paged = start.facts.get("cpu_count"), is_paged(start)
    return fit_joint(sample_of(points, survey.boundaries, processors, paged=paged))


def fit_joint(sample: Sample, earlier: JointModel | None = None) -> JointModel:
    """Fit the joint model.

    Args:
        sample: the readings.
        earlier: a model of fewer readings of the same system: where to start from.

    """
    if earlier is not None and earlier.mean.of_writes == _of_writes(sample):
        mean, prior = earlier.mean, _prior(sample, earlier.mean)
        theta = earlier.theta
    else:
        mean, prior, theta = _first_fit(sample)
    jacobian_at = Requests.of(sample.workloads, paged=sample.paged)
    axes = Axes.over(sample.workloads)
    places = Places(axes.place(sample.workloads), sample.noise.regions(sample.workloads))
    expected = sample.noise.overall_ln_sd
    beliefs = Beliefs(_SYSTEMATIC_SD, _SYSTEMATIC_SD, _SCALE, (expected, _NOISE_SPREAD))
    levels = len(sample.noise.weights)
    kernel, noise = Kernel(0.0, 0.0, (1.0,) * AXES, (1.0,) * levels), expected
    told = sample
    for _ in range(ROUNDS if earlier is None else 1):
        fitted, jacobian = mean.ln_mb_s(jacobian_at, theta)
        residual = sample.ln_mb_s - fitted
        scaled = jacobian * prior.sd
        open_ = residual + jacobian @ (theta - prior.mean)
        known = scaled @ scaled.T
        readings = Unexplained(places, levels, open_, known, sample.noise_weight)
        kernel, noise = learn(readings, beliefs)
        unexplained = kernel.between(places, places)
        sample = _doubted(told, sample, known + unexplained, noise, open_)
        covariance = unexplained + np.diag(noise**2 * sample.noise_weight)
        factor = np.asarray(np.linalg.cholesky(covariance), dtype=np.float64)
        theta, _ = _fit_mean(sample, mean, prior, factor, theta)
    return JointModel(
        sample,
        mean=mean,
        prior=prior,
        theta=theta,
        kernel=kernel,
        noise_ln_sd=noise,
        told_weight=told.noise_weight,
    )


def _doubted(
    told: Sample, sample: Sample, explained: Floats, noise_ln_sd: float, open_: Floats
) -> Sample:
    """Return the sample as told, with the readings counting less that no others would predict.

    A reading far off the mean's fit alone is none of them: where a whole level is, the mean lacks
    words for it, and its readings bear each other out.

    Args:
        told: the readings with the weights that they came with.
        sample: the same, as they are doubted so far.
        explained: covariance of all but noise, (readings, readings).
        noise_ln_sd: of a reading of weight one.
        open_: what the readings add to the prior's mean, (readings,).

    """
    for _ in range(DOUBTS):
        noise = noise_ln_sd**2 * sample.noise_weight
        error, variance = left_out_errors(cho_factor(explained + np.diag(noise), lower=True), open_)
        expected = variance - noise + noise_ln_sd**2 * told.noise_weight
        sample = told.doubting(error / np.sqrt(expected), OUTLIER_SIGMAS)
    return sample


def _first_fit(sample: Sample) -> tuple[OperationTime, _Prior, Floats]:
    """Fit the mean alone from several starts, with every combination of boundary shapes."""
    random = np.random.default_rng(0)
    whitened = np.eye(len(sample.workloads)) * max(2 * sample.noise.overall_ln_sd, 0.06)
    reference = float(np.mean(Requests.of(sample.workloads, paged=sample.paged).ln_unique))
    best: tuple[float, OperationTime, _Prior, Floats] | None = None
    shapes = [
        (True, False) if known.smeared is None else (known.smeared,) for known in sample.boundaries
    ]
    for smeared in itertools.product(*shapes):
        mean = OperationTime(smeared, reference, _of_writes(sample))
        prior = _prior(sample, mean)
        for _ in range(STARTS):
            start = _start(prior, mean, random)
            theta, cost = _fit_mean(sample, mean, prior, whitened, start)
            if best is None or cost < best[0]:
                best = (cost, mean, prior, theta)
    assert best is not None  # noqa: S101 - product() of nothing is one empty combination
    return best[1], best[2], best[3]


def _of_writes(sample: Sample) -> tuple[bool, ...]:
    """Tell of each boundary whether it is a limit of dirty data.

    Below the end of a page cache that hit ratios show all reads hit: what changes there, writes
    do.
    """
    counted = [known.smeared is not None for known in sample.boundaries]
    return tuple(not own and any(counted[index + 1 :]) for index, own in enumerate(counted))


def _prior(sample: Sample, mean: OperationTime) -> _Prior:
    """Beliefs about the parameters before the readings are asked, but for their overall level."""
    size = np.log([workload.size_mean for workload in sample.workloads])
    ln_seconds = float(np.median(size - np.log(1e6) - sample.ln_mb_s))
    centre, sd = np.zeros(mean.parameters), np.ones(mean.parameters)
    for place in range(len(sample.boundaries) + 1):
        at = PLACE * place
        centre[at], centre[at + 1], centre[at + 2] = ln_seconds - 0.7, -0.3, ln_seconds - 0.7
        centre[at + UNIT] = _LN_UNIT
        sd[at : at + PLACE] = _PLACE_SD
    for index, known in enumerate(sample.boundaries):
        at = mean.boundary(index)
        centre[at : at + BOUNDARY] = (known.ln_bytes, _LN_WIDTH, 0.0)
        sd[at : at + BOUNDARY] = (known.ln_sd, *_BOUNDARY_SD)
    centre[OVERLAP], sd[OVERLAP] = _OVERLAP
    return _Prior(centre, sd)


def _start(prior: _Prior, mean: OperationTime, random: np.random.Generator) -> Floats:
    """Return a place to start from: nearer places are faster, by how much is drawn."""
    theta = prior.mean.copy()
    for place in range(len(mean.smeared) + 1):
        level = 0.5 * place - 2.0 * (place == 0)
        for offset in (0, 2):
            theta[PLACE * place + offset] += level + random.normal()
    return theta


def _fit_mean(
    sample: Sample, mean: OperationTime, prior: _Prior, factor: Floats, theta: Floats
) -> tuple[Floats, float]:
    """Most probable parameters under a noise covariance, given by its Cholesky factor.

    Levenberg-Marquardt on whitened residuals, with the prior as further residuals.
    """
    requests = Requests.of(sample.workloads, paged=sample.paged)
    whitening = solve_triangular(factor, np.eye(len(factor)), lower=True)

    def look(at: Floats) -> tuple[float, Floats, Floats]:
        fitted, jacobian = mean.ln_mb_s(requests, at)
        residual = whitening @ (sample.ln_mb_s - fitted)
        away = (at - prior.mean) / prior.sd
        return float(residual @ residual + away @ away), residual, jacobian

    cost, residual, jacobian = look(theta)
    damping = 1e-2
    for _ in range(ITERATIONS):
        slope = whitening @ jacobian
        curvature = slope.T @ slope + np.diag(1 / prior.sd**2)
        gradient = slope.T @ residual - (theta - prior.mean) / prior.sd**2
        before = cost
        while damping < 1e8:
            damped = curvature + damping * np.diag(np.diag(curvature))
            trial = theta + np.clip(np.linalg.solve(damped, gradient), -2.0, 2.0)
            with np.errstate(all="ignore"):
                seen = look(trial)
            if np.isfinite(seen[0]) and seen[0] < cost:
                theta, (cost, residual, jacobian) = trial, seen
                damping = max(damping * 0.2, 1e-9)
                break
            damping *= 5
        if before - cost < 1e-6 * max(1.0, cost):
            break
    return theta, cost
