"""From what is believed of all cells to the surface: intervals, expected error, ideal, flat."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from leadline.models.gaussian_process import matern
from leadline.record import Interval
from leadline.record.workbench import Experiment, Goal, Sample, Surface, SurfaceCell
from leadline.stats import student_t
from leadline.studies.workbench.loads import t_interval
from leadline.studies.workbench.surface.grid import (
    Floats,
    Grid,
    GridError,
    PeakReadings,
    flat_sentences,
    ideal_cell,
    two_sided,
)
from leadline.studies.workbench.surface.posterior import (
    Effort,
    Law,
    Peaks,
    QuadraticLog,
    SoftMin,
    posterior,
)
from leadline.units import format_ci, format_percent

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


def surface_of(readings: PeakReadings, belief: Belief, goal: Goal) -> Surface:
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


def _cell(readings: PeakReadings, belief: Belief, cell: int, reach: float) -> SurfaceCell:
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


def format_error(error: SurfaceError, confidence: float) -> str:
    """Say the error, of what, and how well the grid itself is known."""
    said = f"Against the grid of experiment {error.against[:8]} its mean absolute error is "
    said += _span(error.mape, confidence)
    if error.predicted_mape is not None:
        said += (
            f", and over the {error.predicted} cells that were not measured "
            f"{_span(error.predicted_mape, confidence)}; {error.within_intervals} of them meet the "
            "grid's interval"
        )
    said += f". The worst is {format_percent(error.worst_frac)} off."
    if error.grid_half_frac is not None:
        said += f" The grid's own rates are known to ± {format_percent(error.grid_half_frac)}."
    return said


def _span(mean: Interval, confidence: float) -> str:
    count = f"{mean.n} cells"
    if mean.low is None or mean.high is None:
        return f"{format_percent(mean.value)} ({count})"
    ends = format_percent(max(0.0, mean.low)), format_percent(mean.high)
    return f"{format_ci(format_percent(mean.value), *ends, level=confidence)} ({count})"


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


# The paper's surface: a quadratic in the factors, fitted by least squares (SH08 §4).
#
# In raw factors and rates it is SH08's own. In logarithms a factor that doubles the rate whenever
# it is doubled is a straight line, which is what servers do until something else limits them.

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


def quadratic_raw(readings: PeakReadings) -> Belief:
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


def quadratic_log(readings: PeakReadings) -> Belief:
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


def _nothing(model: str, readings: PeakReadings) -> Belief:
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


def believe(model: Model, readings: PeakReadings, seed: int) -> Belief:
    """Return what a model says of all cells; it needs one peak."""
    peaks = Peaks(readings.cells, readings.log_rates, readings.sd_logs)
    found = posterior(
        model.law(readings.grid, peaks.log_rates), model.misfit(readings.grid), peaks, seed
    )
    return Belief(model.name, found.log_rate, found.covariance)


def choose(readings: PeakReadings, seed: int) -> Model:
    """Return the model that foresees each peak best from all others.

    Scored by the logarithm of the density it gives each peak left out, added up: a model that is
    near but too sure of itself loses, and so does one that is never sure (Geisser and Eddy 1979).
    """
    usable = [model for model in MODELS if readings.grid.numeric or model.law is not SoftMin]
    if len(readings.cells) < PEAKS_TO_CHOOSE:
        return usable[0]
    return max(usable, key=lambda model: left_out_score(model, readings, seed))


def left_out_score(model: Model, readings: PeakReadings, seed: int) -> float:
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
