"""The grid of a surface: its cells, where they lie for a model, and which lie near each other."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from leadline.errors import LeadlineError
from leadline.record.workbench import Factor, Level, Sample

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
