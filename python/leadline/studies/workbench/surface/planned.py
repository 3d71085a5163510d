"""Designs whose samples are fixed before the first: the full grid, and the D-optimal ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from leadline.record.workbench import Goal, PeakRate, Prior, Sample, Surface
from leadline.studies.workbench.surface.answer import Belief, surface_of
from leadline.studies.workbench.surface.d_optimal import d_optimal
from leadline.studies.workbench.surface.grid import Grid
from leadline.studies.workbench.surface.quadratic import (
    log_terms,
    quadratic_log,
    quadratic_raw,
    raw_terms,
)
from leadline.studies.workbench.surface.readings import Readings

SAMPLES = 8
"""Of a D-optimal design, unless it is told; SH08 Table 4 has 6, 8 and 10."""


class PlannedDesign:
    """Measures the cells of a plan, in the order of the file, and fits one model."""

    def __init__(
        self,
        name: str,
        grid: Grid,
        goal: Goal,
        plan: Sequence[int],
        believe: Callable[[Readings], Belief],
    ) -> None:
        """Begin with nothing measured."""
        self.name = name
        self._grid = grid
        self._goal = goal
        self._readings = Readings(grid)
        self._plan = tuple(plan)
        self._believe = believe

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        """Return the next samples of the plan."""
        free = set(self._readings.unasked(in_flight))
        cells = [cell for cell in self._plan if cell in free]
        return tuple(self._grid.samples[cell] for cell in cells[:count])

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Learn of a sample's peak."""
        self._readings.tell(sample, peak)

    def prior_for(self, sample: Sample) -> Prior | None:
        """Return the peak of the nearest sample measured so far (SH08 §3.7)."""
        return nearest_peak(self._readings, sample)

    def surface(self) -> Surface:
        """Return what was measured, and what the model says of the rest."""
        return surface_of(self._readings, self._believe(self._readings), self._goal)


def open_full_grid(
    grid: Grid, goal: Goal, error_frac: float | None, seed: int, most: int | None
) -> PlannedDesign:
    """Return the design of all cells, or of the first `most`; no model stands between them."""
    del error_frac, seed
    return PlannedDesign("full-grid", grid, goal, range(len(grid))[:most], as_measured)


def open_d_optimal_raw(
    grid: Grid, goal: Goal, error_frac: float | None, seed: int, most: int | None
) -> PlannedDesign:
    """Return SH08's own design: D-optimal for a quadratic in raw factors.

    Raises:
        GridError: `most` is too few for the quadratic, or more than there are cells.

    """
    del error_frac
    plan = d_optimal(raw_terms(grid), most or SAMPLES, seed)
    return PlannedDesign("d-optimal-raw", grid, goal, plan, quadratic_raw)


def open_d_optimal_log(
    grid: Grid, goal: Goal, error_frac: float | None, seed: int, most: int | None
) -> PlannedDesign:
    """Return the same with rates and factors in logarithms.

    Raises:
        GridError: `most` is too few for the quadratic, or more than there are cells.

    """
    del error_frac
    plan = d_optimal(log_terms(grid), most or SAMPLES, seed)
    return PlannedDesign("d-optimal-log", grid, goal, plan, quadratic_log)


def as_measured(readings: Readings) -> Belief:
    """Return what was measured; other cells have no rate."""
    cells = readings.cells
    log_rate = np.full(len(readings.grid), np.nan)
    log_rate[cells] = readings.log_rates
    variance = np.zeros(len(readings.grid))
    variance[cells] = readings.sd_logs**2
    return Belief("measured", log_rate, np.diag(variance))


def nearest_peak(readings: Readings, sample: Sample) -> Prior | None:
    """Return the peak of the sample nearest to this one; nobody says how near they are."""
    cell = readings.grid.cell(sample)
    near = readings.grid.nearest(cell, [other for other in readings.cells if other != cell])
    if near is None:
        return None
    rate = readings.peaks[near].rate_per_s
    return None if rate is None else Prior(rate_per_s=rate.value)
