"""A response surface as planes: two factors span each, the others stand still in it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import NamedTuple

from leadline.record.wording import say_level
from leadline.record.workbench import ExperimentStart, Factor, Level, Sample, Surface, SurfaceCell
from leadline.studies.workbench.answer import say_sample

PLANES_MAX = 12
"""More than these nobody looks at; the table has every cell."""


class Plane(NamedTuple):
    """Cells by the places of their levels along x and y; y is None for a single factor."""

    x: Factor
    y: Factor | None
    fixed: Sample
    cells: dict[tuple[int, int], SurfaceCell]
    ideal: tuple[int, int] | None

    @property
    def rows(self) -> int:
        """Levels along y."""
        return 1 if self.y is None else len(self.y.levels)

    @property
    def x_names(self) -> list[str]:
        """The levels along x, as people write them."""
        return [say_level(self.x.name, level) for level in self.x.levels]

    @property
    def y_names(self) -> list[str]:
        """The same along y; one without a name for a single factor."""
        return [""] if self.y is None else [say_level(self.y.name, each) for each in self.y.levels]

    @property
    def where(self) -> str:
        """Which plane it is: `memory 8`; empty when there is only one."""
        return say_sample(self.fixed)


def varied(start: ExperimentStart) -> tuple[Factor, ...]:
    """Return the factors with more than one level."""
    return tuple(factor for factor in start.factors if len(factor.levels) > 1)


def planes(start: ExperimentStart, surface: Surface) -> tuple[Plane, ...]:
    """Cut a surface into planes; the two factors with most levels span them, the longer along x.

    The plane of the ideal configuration comes first, if there is one.
    """
    factors = varied(start) or start.factors
    if not factors:
        return ()
    x, y = _span(factors)
    others = [factor for factor in factors if factor is not x and factor is not y]
    found = []
    for levels in itertools.product(*(factor.levels for factor in others)):
        fixed = {factor.name: level for factor, level in zip(others, levels, strict=True)}
        cells = {
            _place(cell.sample, x, y): cell for cell in surface.cells if _is_in(cell.sample, fixed)
        }
        if cells:
            ideal = surface.ideal
            mark = _place(ideal, x, y) if ideal is not None and _is_in(ideal, fixed) else None
            found.append(Plane(x, y, fixed, cells, mark))
    return tuple(sorted(found, key=lambda plane: plane.ideal is None))[:PLANES_MAX]


def rate_range(surface: Surface) -> tuple[float, float]:
    """Return the least and the highest rate of all cells."""
    rates = [cell.rate_per_s.value for cell in surface.cells if cell.rate_per_s is not None]
    return (min(rates), max(rates)) if rates else (0.0, 1.0)


def _span(factors: Sequence[Factor]) -> tuple[Factor, Factor | None]:
    longest = sorted(factors, key=lambda factor: -len(factor.levels))
    return longest[0], longest[1] if len(longest) > 1 else None


def _place(sample: Sample, x: Factor, y: Factor | None) -> tuple[int, int]:
    return _index(x, sample[x.name]), 0 if y is None else _index(y, sample[y.name])


def _index(factor: Factor, level: Level) -> int:
    return factor.levels.index(level)


def _is_in(sample: Sample, fixed: Sample) -> bool:
    return all(sample[name] == level for name, level in fixed.items())
