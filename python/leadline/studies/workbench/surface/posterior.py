"""What a law and a few peaks say of all cells: many fits, weighted by how well they fit.

    ln rate(cell) = law(cell) + misfit(cell),     ln peak(cell) = ln rate(cell) + its own error

The misfit is a Gaussian process over the grid, or a number of each cell's own. The law is not
linear and several bottlenecks may explain the same peaks, so its parameters are drawn: modes by
least squares from several beginnings, draws around each of them, weights by importance.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from leadline.studies.workbench.surface.grid import Floats
from leadline.studies.workbench.surface.laws import Law

TAIL_DEGREES = 5.0
"""Of the t distribution that is drawn from: its tails are wider than the posterior's."""
WIDER = 1.2


@dataclass(frozen=True)
class Effort:
    """How thoroughly the parameters are searched."""

    starts: int = 6
    """Beginnings of the least squares."""
    draws: int = 3000


THOROUGH = Effort()


@dataclass(frozen=True)
class Peaks:
    """What was measured."""

    cells: list[int]
    log_rates: Floats
    sd_logs: Floats


@dataclass(frozen=True)
class Posterior:
    """Mean and covariance of ln rate in all cells, and how well the peaks were foreseen."""

    log_rate: Floats
    covariance: Floats
    effective_draws: float
    """As many draws of equal weight would say as much."""


def posterior(
    law: Law, misfit: Floats, peaks: Peaks, seed: int, effort: Effort = THOROUGH
) -> Posterior:
    """Return what is believed of all cells.

    Args:
        law: with its priors.
        misfit: correlation of the law's misfit between cells, (cells, cells).
        peaks: at least one.
        seed: of the draws.
        effort: of the search.

    """
    random = np.random.default_rng(seed)
    numbers, log_proposed = _draw(law, misfit, peaks, random, effort)
    misfit_sd = np.exp(law.misfit_sd[0] + law.misfit_sd[1] * random.standard_normal(len(numbers)))
    rates = law.log_rates(numbers)
    cells = peaks.cells
    among = misfit[np.ix_(cells, cells)]
    noisy = misfit_sd[:, None, None] ** 2 * among + np.diag(peaks.sd_logs**2)
    inverse = np.linalg.inv(noisy)
    residual = peaks.log_rates - rates[:, cells]
    pull = np.einsum("dij,dj->di", inverse, residual)
    log_fit = -0.5 * (np.einsum("di,di->d", residual, pull) + np.linalg.slogdet(noisy)[1])
    weight = _weights(log_fit - 0.5 * (numbers**2).sum(axis=1) - log_proposed)

    towards = misfit[:, cells]
    means = rates + misfit_sd[:, None] ** 2 * (pull @ towards.T)
    mean = weight @ means
    off = (means - mean) * np.sqrt(weight)[:, None]
    known = np.einsum("d,dij->ij", weight * misfit_sd**4, inverse)
    left = (weight @ misfit_sd**2) * misfit - towards @ known @ towards.T
    return Posterior(mean, off.T @ off + left, float(1 / (weight**2).sum()))


def _weights(log_weight: Floats) -> Floats:
    """Weights that add up to 1, the largest of them cut (Ionides 2008)."""
    weight = np.exp(log_weight - log_weight.max())
    weight = np.minimum(weight, weight.mean() * np.sqrt(len(weight)))
    return np.asarray(weight / weight.sum())


def _draw(
    law: Law, misfit: Floats, peaks: Peaks, random: np.random.Generator, effort: Effort
) -> tuple[Floats, Floats]:
    """Parameters from a mixture of t distributions about the modes, and ln of its density."""
    modes = _modes(law, misfit, peaks, random, effort.starts)
    best = max(mode.log_mass for mode in modes)
    masses = np.array([np.exp(mode.log_mass - best) for mode in modes])
    masses = 0.9 * masses / masses.sum() + 0.1 / len(modes)
    which = random.choice(len(modes), size=effort.draws, p=masses)
    normal = random.standard_normal((effort.draws, law.size))
    stretch = np.sqrt(TAIL_DEGREES / random.chisquare(TAIL_DEGREES, effort.draws))
    spread = np.stack([mode.spread for mode in modes])[which]
    centre = np.stack([mode.at for mode in modes])[which]
    numbers = centre + stretch[:, None] * np.einsum("dij,dj->di", spread, normal)
    parts = [
        np.log(mass) + mode.log_density(numbers) for mass, mode in zip(masses, modes, strict=True)
    ]
    return numbers, np.logaddexp.reduce(np.stack(parts), axis=0)


@dataclass(frozen=True)
class _Mode:
    """A best fit, and the spread about it."""

    at: Floats
    spread: Floats
    """A root of the covariance."""
    log_mass: float

    def log_density(self, numbers: Floats) -> Floats:
        """Logarithm of the multivariate t density, but for what all modes have in common."""
        apart = np.linalg.solve(self.spread, (numbers - self.at).T)
        size = len(self.at)
        distance = (apart**2).sum(axis=0)
        log_size = np.linalg.slogdet(self.spread)[1]
        tail = -0.5 * (TAIL_DEGREES + size) * np.log1p(distance / TAIL_DEGREES)
        return np.asarray(tail - log_size)


def _modes(
    law: Law, misfit: Floats, peaks: Peaks, random: np.random.Generator, starts: int
) -> list[_Mode]:
    """Best fits from several beginnings, each once."""
    from scipy.optimize import least_squares  # noqa: PLC0415 - large, and few searches need it

    cells = peaks.cells
    misfit_var = float(np.exp(2 * law.misfit_sd[0]))
    noisy = misfit_var * misfit[np.ix_(cells, cells)] + np.diag(peaks.sd_logs**2)
    whiten = np.linalg.inv(np.linalg.cholesky(noisy))

    def short(numbers: Floats) -> Floats:
        rates = law.log_rates(numbers[None, :])[0, cells]
        return np.concatenate([whiten @ (peaks.log_rates - rates), numbers])

    def slope(numbers: Floats) -> Floats:
        step = 1e-5
        moved = numbers + step * np.vstack([np.zeros(law.size), np.eye(law.size)])
        rates = law.log_rates(moved)[:, cells]
        return np.vstack([-whiten @ ((rates[1:] - rates[0]) / step).T, np.eye(law.size)])

    modes: list[_Mode] = []
    for start in range(starts):
        begin = random.standard_normal(law.size) * (0.0 if start == 0 else 0.7)
        fit = least_squares(short, begin, jac=slope, max_nfev=60)
        if any(np.abs(mode.at - fit.x).max() < 0.1 for mode in modes):
            continue
        information = fit.jac.T @ fit.jac
        spread = np.linalg.cholesky(np.linalg.inv(information))
        mass = -fit.cost + float(np.linalg.slogdet(spread)[1])
        modes.append(_Mode(fit.x, WIDER * spread, mass))
    return modes
