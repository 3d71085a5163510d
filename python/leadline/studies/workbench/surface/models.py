"""The paper's surface: a quadratic in the factors, fitted by least squares (SH08 §4).

In raw factors and rates it is SH08's own. In logarithms a factor that doubles the rate whenever it
is doubled is a straight line, which is what servers do until something else limits them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadline.models.gaussian_process import matern
from leadline.studies.workbench.surface.answer import Belief
from leadline.studies.workbench.surface.grid import Floats, Grid, GridError, Readings
from leadline.studies.workbench.surface.posterior import (
    Effort,
    Law,
    Peaks,
    QuadraticLog,
    SoftMin,
    posterior,
)

LEAST_SHARE = 0.01
"""A raw quadratic may fall below nothing; it is cut at this share of the lowest peak measured."""


def raw_terms(grid: Grid) -> Floats:
    """Return the terms of a quadratic in the factors as they are written, (cells, terms)."""
    return _terms(grid, grid.raw)


def log_terms(grid: Grid) -> Floats:
    """Return the terms of a quadratic in the factors on their scales, (cells, terms)."""
    return _terms(grid, grid.scaled)


def _terms(grid: Grid, column_of: Callable[..., Floats]) -> Floats:
    columns = [_centred(column_of(factor)) for factor in grid.numeric]
    terms = [np.ones(len(grid)), *columns]
    terms += [one * other for one, other in itertools.combinations(columns, 2)]
    terms += [column**2 for column in columns if len(np.unique(column)) > 2]
    for factor in grid.categories:
        terms += [grid.indicator(factor, level) for level in factor.levels[1:]]
    return np.column_stack(terms)


def _centred(column: Floats) -> Floats:
    """The same quadratics, better conditioned: from -1 to 1."""
    middle, half = (column.max() + column.min()) / 2, (column.max() - column.min()) / 2
    return np.asarray((column - middle) / (half or 1.0))


def quadratic_raw(readings: Readings) -> Belief:
    """Return SH08's response surface: rates by least squares on raw factors."""
    rates = np.exp(readings.log_rates)
    fitted = _least_squares(raw_terms(readings.grid), readings.cells, rates)
    if fitted is None:
        return _nothing("quadratic-raw", readings)
    rate, covariance, degrees = fitted
    rate = np.maximum(rate, LEAST_SHARE * rates.min())
    if covariance is not None:
        covariance = covariance / np.outer(rate, rate)
    return Belief("quadratic-raw", np.log(rate), covariance, degrees)


def quadratic_log(readings: Readings) -> Belief:
    """Return the quadratic of the logarithm of the rate in factors on their scales."""
    terms = log_terms(readings.grid)
    fitted = _least_squares(terms, readings.cells, readings.log_rates)
    if fitted is None:
        return _nothing("quadratic-log", readings)
    return Belief("quadratic-log", *fitted)


def _least_squares(
    terms: Floats, cells: list[int], values: Floats
) -> tuple[Floats, Floats | None, float] | None:
    """Return values of all cells, their covariance, degrees of freedom; None: too few peaks.

    What the residuals scatter is noise and misfit together; a cell's own misfit is part of what
    may be wrong there, so its variance stands on the diagonal once more.
    """
    rows = terms[cells]
    if np.linalg.matrix_rank(rows) < terms.shape[1]:
        return None
    weights = np.linalg.lstsq(rows, values, rcond=None)[0]
    degrees = len(cells) - terms.shape[1]
    if degrees == 0:
        return np.asarray(terms @ weights), None, 1.0
    residual = values - rows @ weights
    variance = float(residual @ residual) / degrees
    covariance = variance * (terms @ np.linalg.inv(rows.T @ rows) @ terms.T + np.eye(len(terms)))
    return np.asarray(terms @ weights), covariance, float(degrees)


def _nothing(model: str, readings: Readings) -> Belief:
    """Too few peaks for the terms: what was measured, and no word on the rest."""
    log_rate = np.full(len(readings.grid), np.nan)
    log_rate[readings.cells] = readings.log_rates
    return Belief(model, log_rate, None)


# D-optimal designs: the samples that make a quadratic's terms known best (SH08 §4).

STARTS = 20
"""Random beginnings of the exchange; each ends at a design that no single exchange betters."""


def d_optimal(terms: Floats, count: int, seed: int) -> list[int]:
    """Return the cells of a D-optimal design, ascending: Fedorov's exchange (1972).

    The determinant of X'X over the chosen rows is raised by the best exchange of a chosen cell for
    one that is not, until none raises it. No cell is chosen twice.

    Args:
        terms: of the model, for all cells, (cells, terms).
        count: cells to choose.
        seed: of the random beginnings.

    Raises:
        GridError: there are fewer samples than terms, or more than cells.

    """
    cells, size = terms.shape
    if count < size:
        raise GridError(
            f"a quadratic in these factors has {size} terms; a design of {count} samples cannot "
            f"find them: give {size} or more"
        )
    if count > cells:
        raise GridError(f"the grid has {cells} cells; a design cannot have {count} samples")
    random = np.random.default_rng(seed)
    found = [exchange(terms, _beginning(terms, count, random)) for _ in range(STARTS)]
    return max(found, key=lambda chosen: (round(_log_determinant(terms[chosen]), 9), chosen))


def _beginning(terms: Floats, count: int, random: np.random.Generator) -> list[int]:
    """Half of the design by chance; the rest where the model is known least so far."""
    chosen: list[int] = random.choice(len(terms), size=count // 2, replace=False).tolist()
    while len(chosen) < count:
        unknown = _unknown(terms, chosen)
        unknown[chosen] = -1.0
        chosen.append(int(np.argmax(unknown)))
    return chosen


def _unknown(terms: Floats, chosen: list[int]) -> Floats:
    """Variance of the model in each cell, where a little is known of every term."""
    information = terms[chosen].T @ terms[chosen] + 1e-6 * np.eye(terms.shape[1])
    return np.asarray(np.einsum("ij,jk,ik->i", terms, np.linalg.inv(information), terms))


def exchange(terms: Floats, chosen: list[int]) -> list[int]:
    """Exchange one cell for another, the best pair each time, until the determinant is highest."""
    size = terms.shape[1]
    while True:
        rows = terms[chosen]
        inverse = np.linalg.inv(rows.T @ rows + 1e-12 * np.eye(size))
        across = terms @ inverse @ terms.T
        own = np.diag(across)
        # Fedorov's delta: what adding row j and taking row i away does to the determinant.
        delta = (
            own[None, :]
            - own[chosen][:, None]
            - own[chosen][:, None] * own[None, :]
            + across[chosen] ** 2
        )
        delta[:, chosen] = -np.inf
        out, new = np.unravel_index(int(np.argmax(delta)), delta.shape)
        if not delta[out, new] > 1e-9:
            return sorted(chosen)
        chosen[int(out)] = int(new)


def _log_determinant(rows: Floats) -> float:
    sign, value = np.linalg.slogdet(rows.T @ rows)
    return float(value) if sign > 0 else -np.inf


# The models that compete for a surface, and the choice among them by leave-one-out.

SCALE = 0.35
"""Distance over which a smooth misfit changes, as a share of a factor's range."""
SMOOTH_SHARE = 0.5
"""Of the misfit's variance that is alike in neighbouring cells; the rest is each cell's own."""
PEAKS_TO_CHOOSE = 5
"""With fewer, every model fits."""
QUICK = Effort(starts=2, draws=500)
"""Of one of many fits, each with a peak left out."""


@dataclass(frozen=True)
class Model:
    """A law, and what becomes of what it leaves unexplained."""

    name: str
    law: Callable[[Grid, Floats], Law]
    misfit: Callable[[Grid], Floats]
    """Correlation between cells, (cells, cells)."""


def smooth(grid: Grid) -> Floats:
    """Misfit of a Gaussian process, Matern 3/2, and a part of each cell's own."""
    places = grid.places()
    apart = ((places[:, None, :] - places[None, :, :]) ** 2).sum(axis=2)
    alike = matern(np.sqrt(apart) / SCALE)
    return np.asarray(SMOOTH_SHARE * alike + (1 - SMOOTH_SHARE) * np.eye(len(grid)))


def own(grid: Grid) -> Floats:
    """Misfit of each cell's own."""
    return np.eye(len(grid))


MODELS = (
    Model("gaussian-process", SoftMin, smooth),
    Model("soft-min", SoftMin, own),
    Model("quadratic-log", QuadraticLog, smooth),
)
"""The first is taken while there are too few peaks to choose by."""


def believe(model: Model, readings: Readings, seed: int) -> Belief:
    """Return what a model says of all cells; it needs one peak."""
    peaks = Peaks(readings.cells, readings.log_rates, readings.sd_logs)
    found = posterior(
        model.law(readings.grid, peaks.log_rates), model.misfit(readings.grid), peaks, seed
    )
    return Belief(model.name, found.log_rate, found.covariance)


def choose(readings: Readings, seed: int) -> Model:
    """Return the model that foresees each peak best from all others.

    Scored by the logarithm of the density it gives each peak left out, added up: a model that is
    near but too sure of itself loses, and so does one that is never sure (Geisser and Eddy 1979).
    """
    usable = [model for model in MODELS if readings.grid.numeric or model.law is not SoftMin]
    if len(readings.cells) < PEAKS_TO_CHOOSE:
        return usable[0]
    return max(usable, key=lambda model: left_out_score(model, readings, seed))


def left_out_score(model: Model, readings: Readings, seed: int) -> float:
    """Return the sum of ln densities of peaks, each foreseen from all others."""
    grid, cells = readings.grid, np.array(readings.cells)
    log_rates, sd_logs = readings.log_rates, readings.sd_logs
    misfit = model.misfit(grid)
    score = 0.0
    for at, cell in enumerate(cells):
        kept = np.arange(len(cells)) != at
        peaks = Peaks(cells[kept].tolist(), log_rates[kept], sd_logs[kept])
        found = posterior(model.law(grid, peaks.log_rates), misfit, peaks, seed, QUICK)
        variance = found.covariance[cell, cell] + sd_logs[at] ** 2
        off = log_rates[at] - found.log_rate[cell]
        score -= 0.5 * float(off**2 / variance + np.log(2 * np.pi * variance))
    return score
