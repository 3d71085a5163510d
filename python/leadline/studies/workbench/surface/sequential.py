"""Our design: measure where most is learned per cost, and stop at the target error.

After each peak a model is chosen and fitted. The next sample is the one whose peak would take the
most variance out of all cells together (active learning, Cohn 1996), per second it is expected to
cost; samples in flight count as known. The fitted surface is the prior of each peak search, which
SH08 §4 left open: a search that begins where the peak probably lies needs fewer trials.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from leadline.record.workbench import Goal, PeakRate, Prior, Sample, Surface
from leadline.studies.workbench.surface.answer import Belief, surface_of
from leadline.studies.workbench.surface.grid import Floats, Grid
from leadline.studies.workbench.surface.laws import prior_covariance
from leadline.studies.workbench.surface.models import believe, choose
from leadline.studies.workbench.surface.planned import as_measured
from leadline.studies.workbench.surface.readings import Readings

ERROR_FRAC = 0.05
"""Expected mean absolute error at which it stops, when nobody says."""
SAMPLES_LEAST = 4
"""Beside one for each factor: fewer cannot contradict the model."""
PEAK_SD_LOG = 0.04
"""Error of a peak yet to be measured, before the first is told."""
PRIOR_SD_LOG_LEAST = 0.15
"""A surface is never a surer prior than this: a peak that leaned on the surface would be told to
it again as if it were news."""


class SequentialDesign:
    """Asks for one sample after another; several at once when testbeds are free."""

    name = "sequential"

    def __init__(
        self, grid: Grid, goal: Goal, error_frac: float | None, seed: int, most: int | None
    ) -> None:
        """Begin with nothing measured; `most` samples at most, all cells when None."""
        self._grid = grid
        self._goal = goal
        self._target = ERROR_FRAC if error_frac is None else error_frac
        self._seed = seed
        self._most = len(grid) if most is None else min(most, len(grid))
        self._readings = Readings(grid)
        self._belief: Belief | None = None

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        """Return the samples that would teach most per cost; none once the target is reached."""
        if self._is_enough():
            return ()
        readings = self._readings
        pending = sorted({self._grid.cell(sample) for sample in in_flight})
        free = readings.unasked(in_flight)
        count = min(count, self._most - len(readings.peaks) - len(pending), len(free))
        covariance = self._covariance()
        noise = float(np.median(readings.sd_logs)) if readings.cells else PEAK_SD_LOG
        for cell in pending:
            covariance = _as_if_known(covariance, cell, noise)
        cost = _expected_cost(readings)
        chosen: list[int] = []
        for _ in range(count):
            learned = _learned(covariance, noise) / cost
            best = max(free, key=lambda cell: (round(float(learned[cell]), 12), -cell))
            chosen.append(best)
            free.remove(best)
            covariance = _as_if_known(covariance, best, noise)
        return tuple(self._grid.samples[cell] for cell in chosen)

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Learn of a sample's peak."""
        self._readings.tell(sample, peak)
        self._belief = None

    def prior_for(self, sample: Sample) -> Prior | None:
        """Return what the surface says of a sample, never too surely."""
        if not self._readings.cells:
            return None
        belief, cell = self._believed(), self._grid.cell(sample)
        return Prior(
            rate_per_s=math.exp(float(belief.log_rate[cell])),
            sd_log=max(float(belief.sd[cell]), PRIOR_SD_LOG_LEAST),
        )

    def surface(self) -> Surface:
        """Return the surface as it is known by now."""
        readings = self._readings
        belief = self._believed() if readings.cells else as_measured(readings)
        return surface_of(readings, belief, self._goal)

    def _believed(self) -> Belief:
        if self._belief is None:
            model = choose(self._readings, self._seed)
            self._belief = believe(model, self._readings, self._seed)
        return self._belief

    def _covariance(self) -> Floats:
        if not self._readings.cells:
            return prior_covariance(self._grid, self._seed)
        covariance = self._believed().covariance
        assert covariance is not None  # noqa: S101 - every model of MODELS has one
        return covariance

    def _is_enough(self) -> bool:
        """Whether the target is reached. Peaks without a number count: they were paid for."""
        if len(self._readings.peaks) >= self._most:
            return True
        if len(self._readings.cells) < SAMPLES_LEAST + len(self._grid.factors):
            return False
        error_frac = self._believed().error_frac
        return error_frac is not None and error_frac <= self._target


def _learned(covariance: Floats, noise_sd: float) -> Floats:
    """Variance that a peak in each cell would take out of all cells, (cells,)."""
    own = np.diag(covariance) + noise_sd**2
    return np.asarray((covariance**2).sum(axis=0) / own)


def _as_if_known(covariance: Floats, cell: int, noise_sd: float) -> Floats:
    """The covariance once this cell's peak is known."""
    towards = covariance[:, cell]
    return np.asarray(covariance - np.outer(towards, towards) / (towards[cell] + noise_sd**2))


COST_SD_LOG, COST_OWN_SD_LOG, COST_SCALE = 0.4, 0.4, 0.5
"""How searches' costs differ: with the place, by themselves, and over which distance."""


def _expected_cost(readings: Readings) -> Floats:
    """What a search in each cell would cost, as a share of the usual, from those told."""
    grid, cells = readings.grid, list(readings.peaks)
    costs = np.array([max(readings.peaks[cell].cost_s, 1e-3) for cell in cells])
    if not cells:
        return np.ones(len(grid))
    places = grid.places()
    apart = ((places[:, None, :] - places[None, cells, :]) ** 2).sum(axis=2)
    alike = COST_SD_LOG**2 * np.exp(-apart / (2 * COST_SCALE**2))
    among = alike[cells] + COST_OWN_SD_LOG**2 * np.eye(len(cells))
    off = np.log(costs) - np.log(costs).mean()
    return np.asarray(np.exp(alike @ np.linalg.solve(among, off)))
