"""From what is believed of all cells to the surface: intervals, expected error, ideal, flat."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from leadline.record import Interval
from leadline.record.workbench import Experiment, Goal, Sample, Surface, SurfaceCell
from leadline.stats import student_t
from leadline.studies.workbench.loads import t_interval
from leadline.studies.workbench.surface.grid import (
    Floats,
    Readings,
    flat_sentences,
    ideal_cell,
    two_sided,
)
from leadline.units import say_percent

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


# A surface held against a measured grid: its mean absolute percentage error (SH08 §5.3).


class SurfaceError(msgspec.Struct, frozen=True, kw_only=True):
    """How far a surface is from a measured grid; fractions of the measured rates."""

    against: str
    """The experiment whose grid it is."""
    mape: Interval
    """Mean absolute percentage error over all cells that both have, n of them."""
    predicted_mape: Interval | None
    """The same over the cells that this surface did not measure; None without any."""
    worst_frac: float
    worst: Sample
    grid_half_frac: float | None
    """Half of the grid's own intervals, in the mean: no error much below it can be seen."""
    within_intervals: int
    """Predicted cells whose interval overlaps the grid's."""
    predicted: int


def surface_error(experiment: Experiment) -> SurfaceError | None:
    """Return how far the surface is from its grid; None without either, or a common cell."""
    grid, surface = experiment.start.against, experiment.surface
    if grid is None or surface is None:
        return None
    own = {_key(cell.sample): cell for cell in surface.cells if cell.rate_per_s is not None}
    pairs = [(own[_key(cell.sample)], cell) for cell in grid.cells if _key(cell.sample) in own]
    if not pairs:
        return None
    predicted = [(one, true) for one, true in pairs if not one.measured]
    worst = max(pairs, key=lambda pair: _off(*pair))
    halves = [
        half
        for _, true in pairs
        if true.rate_per_s is not None and (half := true.rate_per_s.half_width_frac) is not None
    ]
    return SurfaceError(
        against=grid.study_id,
        mape=_mean(pairs, experiment.start.goal.confidence),
        predicted_mape=_mean(predicted, experiment.start.goal.confidence) if predicted else None,
        worst_frac=_off(*worst),
        worst=worst[0].sample,
        grid_half_frac=math.fsum(halves) / len(halves) if halves else None,
        within_intervals=sum(_meet(*pair) for pair in predicted),
        predicted=len(predicted),
    )


def say_error(error: SurfaceError, confidence: float) -> str:
    """Say the error, of what, and how well the grid itself is known."""
    said = f"Against the grid of experiment {error.against[:8]} its mean absolute error is "
    said += _span(error.mape, confidence)
    if error.predicted_mape is not None:
        said += (
            f", and over the {error.predicted} cells that were not measured "
            f"{_span(error.predicted_mape, confidence)}; {error.within_intervals} of them meet the "
            "grid's interval"
        )
    said += f". The worst is {say_percent(error.worst_frac)} off."
    if error.grid_half_frac is not None:
        said += f" The grid's own rates are known to ± {say_percent(error.grid_half_frac)}."
    return said


def _span(mean: Interval, confidence: float) -> str:
    count = f"{mean.n} cells"
    if mean.low is None or mean.high is None:
        return f"{say_percent(mean.value)} ({count})"
    span = f"{say_percent(max(0.0, mean.low))} to {say_percent(mean.high)}"
    return f"{say_percent(mean.value)} ({span}, {100 * confidence:.4g} %, {count})"


def _key(sample: Sample) -> tuple[tuple[str, object], ...]:
    return tuple(sorted(sample.items()))


def _off(own: SurfaceCell, true: SurfaceCell) -> float:
    if own.rate_per_s is None or true.rate_per_s is None:
        raise ValueError("a cell without a rate has no error")
    return abs(own.rate_per_s.value / true.rate_per_s.value - 1)


def _mean(pairs: Sequence[tuple[SurfaceCell, SurfaceCell]], confidence: float) -> Interval:
    off = [_off(*pair) for pair in pairs]
    low, high = t_interval(off, confidence) or (None, None)
    return Interval(math.fsum(off) / len(off), low, high, len(off))


def _meet(own: SurfaceCell, true: SurfaceCell) -> bool:
    one, other = own.rate_per_s, true.rate_per_s
    if one is None or other is None or one.low is None or one.high is None:
        return False
    low = other.value if other.low is None else other.low
    high = other.value if other.high is None else other.high
    return one.low <= high and low <= one.high
