"""How much wider a model's doubt must be than it says, told by readings it was not fitted to.

A model states how unsure it is if systems are as it believes. Where a system does what the model
has no words for, predictions are off by more, and its own readings show it: each is predicted by
the model fitted to all others (leave one out, in closed form), and how far those predictions are
off beside what they said and what a run scatters by is one factor on their doubt, for each level of
the hierarchy. This is the idea of the jackknife+ (Barber and others, 2021) put into a factor, as
some twenty readings of a level are too few for quantiles of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from leadline.predict.model import Floats

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
