"""The models that `prediction.py` holds against each other, each fitted to the same points."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve

from leadline.models.gaussian_process import Axes, Beliefs, Places, Unexplained, learn
from leadline.models.model import Sample, sample_of
from leadline.models.predictor import Predictor
from leadline.models.product import NoFamilies
from leadline.record import Measurement, Survey, Workload

Floats = NDArray[np.float64]
Fitted = Callable[[Sequence[Workload]], tuple[Floats, Floats | None, float]]
"""ln MB/s of workloads, its sd (None when the model has none), and degrees of freedom."""

CACHED_SHARE_FLOOR = 0.03
"""LITERATURE §1.5: the hit feature is ln(1 - h + 0.03)."""
FAR = 1e4
"""Variance of what is unknown beforehand: the level, and the effect of the hit feature."""


@dataclass(frozen=True)
class Points:
    """What a model may be fitted to."""

    survey: Survey
    points: Sequence[Measurement]

    @property
    def sample(self) -> Sample:
        """The readings with their noise and the boundaries found."""
        return sample_of(self.points, self.survey.boundaries)


def fit(model: str, points: Points) -> Fitted | None:
    """Fit one of MODELS; None where a package it needs is missing."""
    return MODELS[model](points)


def _leadline(name: str) -> Callable[[Points], Fitted | None]:
    def fitted(points: Points) -> Fitted | None:
        try:
            model = Predictor(points.survey, points.points, model=name).model
        except NoFamilies:
            return None  # a design without curves has no product

        def expect(workloads: Sequence[Workload]) -> tuple[Floats, Floats | None, float]:
            expected = model.expect(workloads)
            return expected.ln_mb_s, expected.ln_sd, model.df

        return expect

    return fitted


def _features(sample: Sample, workloads: Sequence[Workload]) -> Floats:
    """A level and the physical cached share of each boundary: ln(1 - h + 0.03), h = min(1, C/U)."""
    unique = np.log([workload.unique_bytes for workload in workloads])
    columns = [np.ones_like(unique)]
    for ln_bytes, *_ in sample.boundaries:
        held = np.minimum(1.0, np.exp(ln_bytes - unique))
        columns.append(np.log(1 - held + CACHED_SHARE_FLOOR))
    return np.stack(columns, axis=1)


def _additive(points: Points) -> Fitted:
    """LITERATURE §1.5's additive+: no physics but the cached share."""
    sample = points.sample
    axes = Axes.over(sample.workloads)
    places = Places.of_one_level(axes.place(sample.workloads))
    basis = _features(sample, sample.workloads)
    middle = float(sample.ln_mb_s.mean())
    known = FAR * basis @ basis.T
    beliefs = Beliefs((0.5, 1.0), (0.3, 1.0), (0.7, 0.5), (sample.noise.overall_ln_sd, 0.4))
    readings = Unexplained(places, 1, sample.ln_mb_s - middle, known, sample.noise_weight)
    kernel, noise = learn(readings, beliefs)
    covariance = known + kernel.between(places, places)
    factor = cho_factor(covariance + np.diag(noise**2 * sample.noise_weight), lower=True)

    def expect(workloads: Sequence[Workload]) -> tuple[Floats, Floats | None, float]:
        at = Places.of_one_level(axes.place(workloads))
        own = _features(sample, workloads)
        cross = FAR * own @ basis.T + kernel.between(at, places)
        solved = cho_solve(factor, cross.T)
        variance = FAR * (own**2).sum(axis=1) + kernel.variance(at.level)
        variance -= np.einsum("ij,ji->i", cross, solved)
        mean = middle + solved.T @ (sample.ln_mb_s - middle)
        return mean, np.sqrt(np.maximum(variance, 1e-12)), float(len(sample.workloads) - 8)

    return expect


def _boosting(points: Points) -> Fitted | None:
    """Gradient boosting on the five parameters and the cached share."""
    if importlib.util.find_spec("sklearn") is None:
        return None
    from sklearn.ensemble import GradientBoostingRegressor  # noqa: PLC0415 - an optional rival

    sample = points.sample
    axes = Axes.over(sample.workloads)

    def columns(workloads: Sequence[Workload]) -> Floats:
        return np.hstack([axes.place(workloads), _features(sample, workloads)])

    model = GradientBoostingRegressor(
        n_estimators=400, learning_rate=0.05, max_depth=3, subsample=0.7, random_state=0
    )
    model.fit(columns(sample.workloads), sample.ln_mb_s)

    def expect(workloads: Sequence[Workload]) -> tuple[Floats, Floats | None, float]:
        return np.asarray(model.predict(columns(workloads))), None, 1.0

    return expect


MODELS: dict[str, Callable[[Points], Fitted | None]] = {
    "joint": _leadline("joint"),
    "product": _leadline("product"),
    "additive+": _additive,
    "boosting": _boosting,
}
"""joint and product are Leadline's; the others are what LITERATURE §1 would have one try."""
