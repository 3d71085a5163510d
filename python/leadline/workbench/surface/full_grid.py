"""The full grid: every sample measured, in the order of the file (SH08 Algorithm 1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from leadline.record.workbench import Goal, PeakRate, Prior, Sample, Surface
from leadline.workbench.surface.answer import Belief, surface_of
from leadline.workbench.surface.grid import Grid
from leadline.workbench.surface.readings import Readings


class FullGrid:
    """Measures all cells, or the first `most` of them; no model stands between them."""

    name = "full-grid"

    def __init__(
        self, grid: Grid, goal: Goal, error_frac: float | None, seed: int, most: int | None
    ) -> None:
        """Nothing is random here, and nothing stops early: `seed` and `error_frac` play no part."""
        del error_frac, seed
        self._grid = grid
        self._goal = goal
        self._readings = Readings(grid)
        self._plan = list(range(len(grid)))[:most]

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        """Return the next samples of the file."""
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
        """Return what was measured; other cells have no rate."""
        readings = self._readings
        cells = readings.cells
        log_rate = np.full(len(self._grid), np.nan)
        log_rate[cells] = readings.log_rates
        variance = np.zeros(len(self._grid))
        variance[cells] = readings.sd_logs**2
        belief = Belief(self.name, log_rate, np.diag(variance))
        return surface_of(readings, belief, self._goal)


def nearest_peak(readings: Readings, sample: Sample) -> Prior | None:
    """Return the peak of the sample nearest to this one; nobody says how near they are."""
    cell = readings.grid.cell(sample)
    near = readings.grid.nearest(cell, [other for other in readings.cells if other != cell])
    if near is None:
        return None
    rate = readings.peaks[near].rate_per_s
    return None if rate is None else Prior(rate_per_s=rate.value)
