"""What is believed of a surface's cells: laws of the factors, weak priors, a posterior."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from leadline.record.workbench import Factor
from leadline.studies.workbench.surface.grid import Floats, Grid

# Laws: how the logarithm of the peak rate may depend on the factors, with weak priors.
#
# A law is a function of standard normal numbers: whatever is believed of its parameters before the
# first peak is inside it, so that a fit is a search among numbers of the order of one.

SOFT, SHARP = (1.0, 0.4), (1.7, 0.4)
"""ln of how suddenly one bottleneck takes over from another: softly where it is concurrency, which
fills queues little by little, sharply between hard capacities (fitted to whole grids of simulated
servers, docs/concepts/surfaces.md)."""
EXPONENT = {"resource": (1.0, 0.12), "configuration": (1.0, 0.12), "workload": (0.0, 0.7)}
"""How the bottleneck of a factor grows with it: twice the disks, twice the rate of the disks."""
CROWDING = (-4.0, 2.0)
"""ln of what the highest level of a factor costs the rest: contention, cache lines, memory."""
CATEGORY_SD_LOG = 0.4
"""Between the levels of a category."""


class Law(Protocol):
    """ln rate of all cells as a function of standard normal numbers."""

    size: int
    misfit_sd: tuple[float, float]
    """ln of how far off it is in a cell: median, standard deviation."""

    def log_rates(self, numbers: Floats) -> Floats:
        """Return ln rates, (draws, cells), of parameters (draws, size)."""


class SoftMin:
    """The bottleneck law: the least of what each factor and the rest allow, softly.

        hard = [sum over resources (a_i x_i^p_i)^-h + (c / product of (1 + e_i x_i))^-h]^(-1/h)
        rate = [sum over the other factors (a_i x_i^p_i)^-q + hard^-q]^(-1/q)

    with x_i a factor's level. `c` is what limits when nothing that varies does, and more of a
    factor may slow that down: more threads contend for one processor.
    """

    misfit_sd = (math.log(0.03), 0.5)
    """A few per cent on whole grids of simulated servers (docs/concepts/surfaces.md)."""

    def __init__(self, grid: Grid, log_rates: Floats) -> None:
        """Place the priors where the peaks are that were measured."""
        self._logs = np.stack([_log_level(grid, factor) for factor in grid.numeric], axis=1)
        self._shares = np.stack([_share(grid, factor) for factor in grid.numeric], axis=1)
        self._kinds = _category_columns(grid)
        self._exponents = np.array([EXPONENT[factor.role] for factor in grid.numeric])
        self._top = float(log_rates.max())
        factors = len(grid.numeric)
        self._hard = [factor.role == "resource" for factor in grid.numeric]
        self.size = 3 + 3 * factors + self._kinds.shape[1]

    def log_rates(self, numbers: Floats) -> Floats:
        """Return ln rates, (draws, cells), of parameters (draws, size)."""
        factors = self._logs.shape[1]
        soft = np.exp(SOFT[0] + SOFT[1] * numbers[:, 0])[:, None]
        sharp = np.exp(SHARP[0] + SHARP[1] * numbers[:, 1])[:, None]
        rest = (self._top + 0.3 + 0.7 * numbers[:, 2])[:, None] + np.zeros(len(self._logs))
        parts = numbers[:, 3 : 3 + 3 * factors].reshape(-1, factors, 3)
        terms: dict[bool, list[Floats]] = {True: [], False: []}
        for at in range(factors):
            reach = float(np.ptp(self._logs[:, at]))
            base = self._top - 0.5 * reach + (0.7 + 0.5 * reach) * parts[:, at, 0]
            exponent = self._exponents[at, 0] + self._exponents[at, 1] * parts[:, at, 1]
            own = base[:, None] + exponent[:, None] * self._logs[:, at]
            terms[self._hard[at]].append(own)
            cost = np.exp(CROWDING[0] + CROWDING[1] * parts[:, at, 2])
            rest -= np.log1p(cost[:, None] * self._shares[:, at])
        kinds = CATEGORY_SD_LOG * numbers[:, 3 + 3 * factors :] @ self._kinds.T
        return _soft_least([*terms[False], _soft_least([*terms[True], rest], sharp)], soft) + kinds


class QuadraticLog:
    """A quadratic in the factors on their scales, its terms believed to be small."""

    misfit_sd = (math.log(0.08), 0.6)
    """Bends of a bottleneck are no parabolas."""

    def __init__(self, grid: Grid, log_rates: Floats) -> None:
        """Place the constant where the peaks are that were measured."""
        columns = [_share_on_scale(grid, factor) - 0.5 for factor in grid.numeric]
        bends = [column**2 for column in columns if len(np.unique(column)) > 2]
        pairs = [one * other for one, other in itertools.combinations(columns, 2)]
        kinds = _category_columns(grid)
        self._terms = np.column_stack([np.ones(len(grid)), *columns, *bends, *pairs, kinds])
        self._sd = np.array(
            [1.0]
            + [2.0] * len(columns)
            + [2.0] * (len(bends) + len(pairs))
            + [CATEGORY_SD_LOG] * kinds.shape[1]
        )
        self._middle = float(np.mean(log_rates))
        self.size = self._terms.shape[1]

    def log_rates(self, numbers: Floats) -> Floats:
        """Return ln rates, (draws, cells), of parameters (draws, size)."""
        return np.asarray(self._middle + (numbers * self._sd) @ self._terms.T)


def prior_covariance(grid: Grid, seed: int) -> Floats:
    """Return what the laws' priors alone say of ln rates, (cells, cells): where to begin.

    The level of the whole surface is unknown as well; a factor of e either way is as good as any.
    """
    law = SoftMin(grid, np.zeros(1)) if grid.numeric else QuadraticLog(grid, np.zeros(1))
    numbers = np.random.default_rng(seed).standard_normal((4000, law.size))
    return np.asarray(np.cov(law.log_rates(numbers).T) + 1.0)


def _soft_least(terms: list[Floats], q: Floats) -> Floats:
    """Soft minimum of exponentials, all in logarithms."""
    stack = np.stack(terms)
    least = stack.min(axis=0)
    return np.asarray(least - np.log(np.exp(-q * (stack - least)).sum(axis=0)) / q)


def _log_level(grid: Grid, factor: Factor) -> Floats:
    """Logarithm of a level over the lowest; on a scale with levels below or at 0, its share."""
    raw = grid.raw(factor)
    if raw.min() <= 0:
        return _share(grid, factor)
    return np.asarray(np.log(raw / raw.min()))


def _share(grid: Grid, factor: Factor) -> Floats:
    """A raw level from 0 at the lowest to 1 at the highest."""
    raw = grid.raw(factor)
    return np.asarray((raw - raw.min()) / (np.ptp(raw) or 1.0))


def _share_on_scale(grid: Grid, factor: Factor) -> Floats:
    scaled = grid.scaled(factor)
    return np.asarray((scaled - scaled.min()) / (np.ptp(scaled) or 1.0))


def _category_columns(grid: Grid) -> Floats:
    """One column of a category's level each, centred: no level is the ordinary one."""
    columns = [
        grid.indicator(factor, level) - 1 / len(factor.levels)
        for factor in grid.categories
        for level in factor.levels
    ]
    return np.array(columns).reshape(len(columns), len(grid)).T


# What a law and a few peaks say of all cells: many fits, weighted by how well they fit.
#
#     ln rate(cell) = law(cell) + misfit(cell),     ln peak(cell) = ln rate(cell) + its own error
#
# The misfit is a Gaussian process over the grid, or a number of each cell's own. The law is not
# linear and several bottlenecks may explain the same peaks, so its parameters are drawn: modes by
# least squares from several beginnings, draws around each of them, weights by importance.

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
