"""The grid of a surface: its cells, where they lie for a model, and which lie near each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
import numpy.typing as npt

from leadline.errors import LeadlineError
from leadline.record.wording import format_level
from leadline.record.workbench import Factor, Level, PeakRate, Sample

Floats = npt.NDArray[np.float64]


class GridError(LeadlineError):
    """Factors or samples of which no grid can be made."""

    exit_code = 2


def full_grid(factors: Sequence[Factor]) -> tuple[Sample, ...]:
    """Return every combination of levels, the last factor fastest (SH08 §3.7's order)."""
    names = [factor.name for factor in factors]
    levels = [factor.levels for factor in factors]
    return tuple(dict(zip(names, cell, strict=True)) for cell in itertools.product(*levels))


@dataclass(frozen=True)
class Grid:
    """Factors and cells; cells are known by their number everywhere inside this package."""

    factors: tuple[Factor, ...]
    samples: tuple[Sample, ...]

    @staticmethod
    def of(factors: Sequence[Factor], samples: Sequence[Sample] = ()) -> Grid:
        """Return the grid of these samples, or of all combinations of levels when none are given.

        Raises:
            GridError: a factor without levels, a level twice, a log scale with a level not above
                0, a level that is no number on a numeric scale, a sample twice or of other levels.

        """
        if not factors:
            raise GridError("a surface needs at least one factor with levels")
        for factor in factors:
            _check(factor)
        grid = Grid(tuple(factors), tuple(samples) or full_grid(factors))
        keys = [grid.key(sample) for sample in grid.samples]
        if len(set(keys)) < len(keys):
            raise GridError("a sample is in the grid twice")
        return grid

    def __len__(self) -> int:
        return len(self.samples)

    def key(self, sample: Sample) -> tuple[Level, ...]:
        """Return its levels in the order of the factors.

        Raises:
            GridError: a factor is missing, or the level is none of its levels.

        """
        found = []
        for factor in self.factors:
            level = sample.get(factor.name)
            if level is None or level not in factor.levels:
                levels = ", ".join(map(str, factor.levels))
                raise GridError(f"a sample has {factor.name} = {level}; its levels are {levels}")
            found.append(level)
        return tuple(found)

    def cell(self, sample: Sample) -> int:
        """Return the number of a sample.

        Raises:
            GridError: it is not in the grid.

        """
        wanted = self.key(sample)
        for number, other in enumerate(self.samples):
            if self.key(other) == wanted:
                return number
        raise GridError(f"{wanted} is not in the grid")

    def steps(self) -> npt.NDArray[np.int64]:
        """Return the place of each cell's levels in the file, from 0, (cells, factors)."""
        return np.array(
            [
                [
                    factor.levels.index(level)
                    for factor, level in zip(self.factors, key, strict=True)
                ]
                for key in map(self.key, self.samples)
            ]
        )

    def places(self) -> Floats:
        """Return cells in [0, 1], (cells, columns): each numeric factor on its scale is a column.

        A category of k levels is k columns of 0 and 0.5, so that two of its levels are as far
        apart as two numeric levels in the middle of their range: no order is made up.
        """
        columns = []
        for factor in self.factors:
            if factor.scale == "category":
                columns += [0.5 * self.indicator(factor, level) for level in factor.levels]
                continue
            raw = self.scaled(factor)
            spread = raw.max() - raw.min()
            columns.append((raw - raw.min()) / (spread or 1.0))
        return np.column_stack(columns)

    def scaled(self, factor: Factor) -> Floats:
        """Return the levels of a numeric factor on its scale, (cells,)."""
        raw = self.raw(factor)
        return np.asarray(np.log(raw)) if factor.scale == "log" else raw

    def raw(self, factor: Factor) -> Floats:
        """Return the levels of a numeric factor as they are written, (cells,)."""
        return np.array([float(sample[factor.name]) for sample in self.samples])

    def indicator(self, factor: Factor, level: Level) -> Floats:
        """Return 1 where a category has this level, (cells,)."""
        return np.array([float(sample[factor.name] == level) for sample in self.samples])

    @property
    def numeric(self) -> tuple[Factor, ...]:
        """Factors on a scale."""
        return tuple(factor for factor in self.factors if factor.scale != "category")

    @property
    def categories(self) -> tuple[Factor, ...]:
        """Factors without one."""
        return tuple(factor for factor in self.factors if factor.scale == "category")

    def nearest(self, cell: int, among: Sequence[int]) -> int | None:
        """Return the one nearest to a cell, the first of several; None among none."""
        if not among:
            return None
        places = self.places()
        apart = ((places[list(among)] - places[cell]) ** 2).sum(axis=1)
        return among[int(np.argmin(np.round(apart, 12)))]


def _check(factor: Factor) -> None:
    if not factor.levels:
        raise GridError(f"factor {factor.name} has no levels")
    if len(set(factor.levels)) < len(factor.levels):
        raise GridError(f"factor {factor.name} has a level twice")
    if factor.scale == "category":
        return
    for level in factor.levels:
        if isinstance(level, str) or not math.isfinite(level):
            raise GridError(
                f"factor {factor.name} has the level {level!r}, which is no number; "
                'say scale = "category"'
            )
        if factor.scale == "log" and level <= 0:
            raise GridError(
                f"factor {factor.name} has the level {level:g}, which has no logarithm; "
                'say scale = "linear"'
            )


# What a design was told: peaks as logarithms with their own error.

SD_LOG_LEAST = 0.005
"""No peak of an open loop is known better: half a percent."""
SD_LOG_UNKNOWN = 0.15
"""Of a peak whose search could state no interval."""


@dataclass
class PeakReadings:
    """Peaks by cell; the order in which they came plays no part."""

    grid: Grid
    peaks: dict[int, PeakRate] = field(default_factory=dict)

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Keep a peak.

        Raises:
            GridError: the sample is not in the grid.

        """
        self.peaks[self.grid.cell(sample)] = peak
        self.peaks = dict(sorted(self.peaks.items()))

    @property
    def cells(self) -> list[int]:
        """Cells whose peak is a number, ascending."""
        return [
            cell
            for cell, peak in self.peaks.items()
            if (peak.rate_per_s is not None and peak.rate_per_s.value > 0)
        ]

    def unasked(self, in_flight: Sequence[Sample]) -> list[int]:
        """Cells that are neither told nor being measured."""
        taken = set(self.peaks) | {self.grid.cell(sample) for sample in in_flight}
        return [cell for cell in range(len(self.grid)) if cell not in taken]

    @property
    def log_rates(self) -> Floats:
        """Of `cells`."""
        return np.array([math.log(_rate(self.peaks[cell])) for cell in self.cells])

    @property
    def sd_logs(self) -> Floats:
        """Of `cells`: what their own intervals say."""
        return np.array([sd_log(self.peaks[cell]) for cell in self.cells])

    @property
    def cost_s(self) -> float:
        """Test time of all searches."""
        return sum(peak.cost_s for peak in self.peaks.values())


def sd_log(peak: PeakRate) -> float:
    """Standard deviation of the logarithm of a peak, from its interval at its confidence."""
    rate = peak.rate_per_s
    if rate is None or not rate.low or not rate.high or rate.low <= 0:
        return SD_LOG_UNKNOWN
    half = 0.5 * math.log(rate.high / rate.low)
    return max(half / two_sided(peak.confidence), SD_LOG_LEAST)


def two_sided(confidence: float) -> float:
    """Return how many standard deviations a normal interval of this confidence reaches."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def _rate(peak: PeakRate) -> float:
    assert peak.rate_per_s is not None  # noqa: S101 - of cells that have one
    return peak.rate_per_s.value


# Where a surface is flat: factors that change nothing that can be told, and where.


def flat_sentences(
    grid: Grid, log_rate: Floats, covariance: Floats | None, reach: float, apart_frac: float
) -> tuple[str, ...]:
    """Return a sentence for each factor that is flat everywhere or somewhere.

    A run of a factor's levels is flat, the other factors fixed, when no two rates in it are
    expected further apart than `apart_frac`, and none can be told apart. A run counts that is all
    levels, or ends at the last one: from there on more buys nothing.
    """
    flat = _Flat(grid, log_rate, covariance, reach, apart_frac)
    return tuple(filter(None, (flat.sentence(factor) for factor in grid.factors)))


class _Flat:
    """The surface, asked factor by factor."""

    def __init__(
        self,
        grid: Grid,
        log_rate: Floats,
        covariance: Floats | None,
        reach: float,
        apart_frac: float,
    ) -> None:
        self._grid = grid
        self._log_rate = log_rate
        self._covariance = covariance
        self._reach = reach
        self._apart = -np.log1p(-apart_frac)

    def sentence(self, factor: Factor) -> str | None:
        """Say where a factor is flat; None where nowhere, or when too little is known."""
        slices = self._slices(factor)
        starts: dict[int, list[tuple[Level, ...]]] = {}
        for others, cells in slices.items():
            start = self._flat_from(cells)
            if start is not None:
                starts.setdefault(start, []).append(others)
        if not starts:
            return None
        return _say(self._grid, factor, starts, len(slices))

    def _slices(self, factor: Factor) -> dict[tuple[Level, ...], list[int]]:
        """Cells along a factor, by the levels of the others; slices with a gap are left out."""
        at = self._grid.factors.index(factor)
        slices: dict[tuple[Level, ...], list[int]] = {}
        order = np.argsort(self._grid.steps()[:, at], kind="stable")
        for cell in order.tolist():
            key = self._grid.key(self._grid.samples[cell])
            slices.setdefault(key[:at] + key[at + 1 :], []).append(cell)
        whole = len(factor.levels)
        return {
            others: cells
            for others, cells in slices.items()
            if len(cells) == whole > 1 and np.isfinite(self._log_rate[cells]).all()
        }

    def _flat_from(self, cells: Sequence[int]) -> int | None:
        """Where the flat run begins that reaches to the last level; None when there is none."""
        start = len(cells) - 1
        while start > 0 and self._is_flat(cells[start - 1 :]):
            start -= 1
        return start if start < len(cells) - 1 else None

    def _is_flat(self, cells: Sequence[int]) -> bool:
        rates = self._log_rate[list(cells)]
        if rates.max() - rates.min() > self._apart:
            return False
        if self._covariance is None:
            return True
        for one in cells:
            apart = np.abs(self._log_rate[one] - rates)
            sd = sd_of_difference(self._covariance, one)[list(cells)]
            if (apart > np.maximum(self._reach * sd, 1e-12)).any():
                return False
        return True


def _say(
    grid: Grid, factor: Factor, starts: dict[int, list[tuple[Level, ...]]], slices: int
) -> str:
    parts = []
    for start in sorted(starts):
        others = starts[start]
        where = "everywhere" if len(others) == slices else _where(grid, factor, others)
        if start == 0:
            parts.append(f"changes nothing that can be told {where}")
        else:
            parts.append(
                f"changes nothing from {format_level(factor.name, factor.levels[start])} on {where}"
            )
    return f"{factor.name} " + "; ".join(parts)


def _where(grid: Grid, factor: Factor, others: Iterable[tuple[Level, ...]]) -> str:
    rest = [other for other in grid.factors if other is not factor]
    if len(rest) == 1:
        levels = [format_level(rest[0].name, levels[0]) for levels in others]
        return f"with {rest[0].name} = {_list(levels)}"
    settings = [
        ", ".join(
            f"{other.name} = {format_level(other.name, level)}"
            for other, level in zip(rest, levels, strict=True)
        )
        for levels in others
    ]
    return "with " + "; with ".join(settings)


def _list(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    return ", ".join(words[:-1]) + f" or {words[-1]}"


# The ideal configuration: the least of everything that reaches the best rate (SH08 §2.1).


def ideal_cell(
    grid: Grid, log_rate: Floats, covariance: Floats | None, reach: float, apart_frac: float
) -> int | None:
    """Return the ideal cell; None while no cell has a rate.

    A cell reaches the best rate when it is expected within `apart_frac` of it, and what is known
    cannot tell the two apart. Of these the one is ideal that needs the fewest steps along the
    levels of the file, each factor's steps counted as a share of its own; where several need as
    few, the fastest.
    """
    believed = np.isfinite(log_rate)
    if not believed.any():
        return None
    best = int(np.argmax(np.where(believed, log_rate, -np.inf)))
    short = log_rate[best] - log_rate
    reached = believed & (short <= -np.log1p(-apart_frac))
    if covariance is not None:
        reached &= short <= np.maximum(reach * sd_of_difference(covariance, best), 1e-12)
    reached[best] = True
    steps = grid.steps()
    share = (steps / np.maximum(steps.max(axis=0), 1)).sum(axis=1)
    order = np.lexsort((-log_rate, np.round(share, 9)))
    return int(next(cell for cell in order if reached[cell]))


def sd_of_difference(covariance: Floats, cell: int) -> npt.NDArray[np.float64]:
    """Return the standard deviations of one cell's logarithm less each cell's."""
    diagonal = np.diag(covariance)
    variance = diagonal + diagonal[cell] - 2 * covariance[cell]
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
