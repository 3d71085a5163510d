"""The models that compete for a surface, and the choice among them by leave-one-out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from leadline.predict.gaussian_process import matern
from leadline.studies.workbench.surface.answer import Belief
from leadline.studies.workbench.surface.grid import Floats, Grid
from leadline.studies.workbench.surface.laws import Law, QuadraticLog, SoftMin
from leadline.studies.workbench.surface.posterior import Effort, Peaks, posterior
from leadline.studies.workbench.surface.readings import Readings

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
