"""The paper's surface: a quadratic in the factors, fitted by least squares (SH08 §4).

In raw factors and rates it is SH08's own. In logarithms a factor that doubles the rate whenever it
is doubled is a straight line, which is what servers do until something else limits them.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np

from leadline.studies.workbench.surface.answer import Belief
from leadline.studies.workbench.surface.grid import Floats, Grid
from leadline.studies.workbench.surface.readings import Readings

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
