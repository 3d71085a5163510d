"""Designs of a surface: fixed samples (full grid, D-optimal), and the sequential one."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np

from leadline.errors import LeadlineError
from leadline.record.workbench import Factor, Goal, PeakRate, Prior, Sample, Surface
from leadline.studies.workbench.surface.grid import Floats, Grid, PeakReadings
from leadline.studies.workbench.surface.models import (
    Belief,
    believe,
    choose,
    d_optimal,
    log_terms,
    quadratic_log,
    quadratic_raw,
    raw_terms,
    surface_of,
)
from leadline.studies.workbench.surface.posterior import prior_covariance

# Designs whose samples are fixed before the first: the full grid, and the D-optimal ones.

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
        believe: Callable[[PeakReadings], Belief],
    ) -> None:
        """Begin with nothing measured."""
        self.name = name
        self._grid = grid
        self._goal = goal
        self._readings = PeakReadings(grid)
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


def as_measured(readings: PeakReadings) -> Belief:
    """Return what was measured; other cells have no rate."""
    cells = readings.cells
    log_rate = np.full(len(readings.grid), np.nan)
    log_rate[cells] = readings.log_rates
    variance = np.zeros(len(readings.grid))
    variance[cells] = readings.sd_logs**2
    return Belief("measured", log_rate, np.diag(variance))


def nearest_peak(readings: PeakReadings, sample: Sample) -> Prior | None:
    """Return the peak of the sample nearest to this one; nobody says how near they are."""
    cell = readings.grid.cell(sample)
    near = readings.grid.nearest(cell, [other for other in readings.cells if other != cell])
    if near is None:
        return None
    rate = readings.peaks[near].rate_per_s
    return None if rate is None else Prior(rate_per_s=rate.value)


# Our design: measure where most is learned per cost, and stop at the target error.
#
# After each peak a model is chosen and fitted. The next sample is the one whose peak would take the
# most variance out of all cells together (active learning, Cohn 1996), per second it is expected to
# cost; samples in flight count as known. The fitted surface is the prior of each peak search, which
# SH08 §4 left open: a search that begins where the peak probably lies needs fewer trials.

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
        self._readings = PeakReadings(grid)
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


def _expected_cost(readings: PeakReadings) -> Floats:
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


# The contract of every design of a surface: ask for samples, find their peaks, tell.
#
# A design is a pure, seeded conversation like a policy, one level up. What it asks follows from the
# factors, the seed, what it was told and what is being measured, never from the order of the
# tellings; so it is replayed from the stored peaks, and a pool may answer in any order.
#
#     design = open_design("sequential", factors, goal, error_frac=0.06, seed=1)
#     while samples := design.ask(1):
#         peak = …search with open_policy(policy, goal, seed, design.prior_for(samples[0]))…
#         design.tell(samples[0], peak)
#     surface = design.surface()


class SurfaceDesign(Protocol):
    """Which samples to measure, and the surface they give. Made by `open_design`."""

    name: str

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        """Return the next samples to measure, at most `count`.

        Fewer, or none, when no more are wanted now; none while nothing is in flight is the end.

        Args:
            count: testbeds that are free.
            in_flight: samples that are being measured: asked, and not told yet.

        """

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Learn of a sample's peak, however its search ended. Told again, the later one stands."""

    def prior_for(self, sample: Sample) -> Prior | None:
        """Return what is known of a sample's peak before its search begins: the seed of SH08 §3.7.

        None before the first peak.
        """

    def surface(self) -> Surface:
        """Return the surface as it is known by now."""


Maker = Callable[[Grid, Goal, float | None, int, int | None], SurfaceDesign]
"""Grid, goal of each peak, target error of the surface, seed, most samples."""

DESIGNS: dict[str, Maker] = {
    "sequential": SequentialDesign,
    "full-grid": open_full_grid,
    "d-optimal-raw": open_d_optimal_raw,
    "d-optimal-log": open_d_optimal_log,
}
"""Every design by its name; `sequential` is ours and the default."""

DEFAULT = "sequential"


class UnknownDesign(LeadlineError):
    """There is no design of this name."""

    exit_code = 2


def open_design(
    name: str,
    factors: Sequence[Factor],
    goal: Goal,
    *,
    samples: Sequence[Sample] = (),
    error_frac: float | None = None,
    seed: int = 1,
) -> SurfaceDesign:
    """Return a new design.

    Args:
        name: one of `DESIGNS`; with `:N` behind it, of N samples (`d-optimal-raw:6`).
        factors: what varies, and over which levels.
        goal: of each peak search.
        samples: the cells of the surface; all combinations of levels when none are given.
        error_frac: mean absolute error at which a design that can tell may stop.
        seed: of its own random choices.

    Raises:
        UnknownDesign: there is none of this name, or N is no number of samples.
        GridError: factors or samples of which no grid can be made.

    """
    kind, _, number = name.partition(":")
    if kind not in DESIGNS:
        raise UnknownDesign(f"there is no design {kind!r}; there are {', '.join(DESIGNS)}")
    if number and not (number.isdigit() and int(number) > 0):
        raise UnknownDesign(f"the design {name!r} is to end in a number of samples, as in {kind}:8")
    grid = Grid.of(factors, samples)
    return DESIGNS[kind](grid, goal, error_frac, seed, int(number) if number else None)
