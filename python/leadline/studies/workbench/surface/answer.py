"""From what is believed of all cells to the surface: intervals, expected error, ideal, flat."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from leadline.record import Interval
from leadline.record.workbench import Goal, Surface, SurfaceCell
from leadline.stats import student_t
from leadline.studies.workbench.surface.flat import flat_sentences
from leadline.studies.workbench.surface.grid import Floats
from leadline.studies.workbench.surface.ideal import ideal_cell
from leadline.studies.workbench.surface.readings import Readings, two_sided

MEAN_OF_ABSOLUTE = math.sqrt(2 / math.pi)
"""Mean absolute value of a normal number, in standard deviations."""

TELL_APART_FRAC = 0.05
"""Rates nearer than this are one rate to whoever chooses a configuration, however well known."""


@dataclass(frozen=True)
class Belief:
    """The logarithms of all cells' rates, jointly normal; nan where nothing is believed."""

    model: str
    log_rate: Floats
    """(cells,)"""
    covariance: Floats | None
    """(cells, cells); None when the model cannot say how far off it may be."""
    degrees: float = math.inf
    """Degrees of freedom of the noise it rests on."""

    def reach(self, confidence: float) -> float:
        """Return how many standard deviations an interval of this confidence reaches."""
        if math.isinf(self.degrees):
            return two_sided(confidence)
        return student_t(self.degrees, confidence)

    @property
    def sd(self) -> Floats:
        """Of each cell's logarithm."""
        if self.covariance is None:
            return np.full(len(self.log_rate), np.nan)
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def error_frac(self) -> float | None:
        """Mean absolute error that it expects of itself over the cells it speaks of."""
        sd = self.sd[np.isfinite(self.log_rate)]
        if self.covariance is None or not len(sd):
            return None
        return float(np.mean(MEAN_OF_ABSOLUTE * sd))


def surface_of(readings: Readings, belief: Belief, goal: Goal) -> Surface:
    """Return the surface: a measured cell says what was measured, the others what the model says.

    The expected error is the model's, over all cells with a rate.
    """
    reach = belief.reach(goal.confidence)
    cells = tuple(_cell(readings, belief, cell, reach) for cell in range(len(readings.grid)))
    ideal = ideal_cell(readings.grid, belief.log_rate, belief.covariance, reach, TELL_APART_FRAC)
    flat = flat_sentences(readings.grid, belief.log_rate, belief.covariance, reach, TELL_APART_FRAC)
    return Surface(
        model=belief.model,
        cells=cells,
        error_frac=belief.error_frac,
        cost_s=readings.cost_s,
        ideal=None if ideal is None else readings.grid.samples[ideal],
        flat=flat,
    )


def _cell(readings: Readings, belief: Belief, cell: int, reach: float) -> SurfaceCell:
    sample = readings.grid.samples[cell]
    if cell in readings.peaks:
        return SurfaceCell(sample=sample, rate_per_s=readings.peaks[cell].rate_per_s, measured=True)
    at = float(belief.log_rate[cell])
    if not math.isfinite(at):
        return SurfaceCell(sample=sample, rate_per_s=None, measured=False)
    half = reach * float(belief.sd[cell])
    rests_on = len(readings.cells)
    if not math.isfinite(half):
        rate = Interval(math.exp(at), None, None, rests_on)
    else:
        rate = Interval(math.exp(at), math.exp(at - half), math.exp(at + half), rests_on)
    return SurfaceCell(sample=sample, rate_per_s=rate, measured=False)
