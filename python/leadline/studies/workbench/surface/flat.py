"""Where a surface is flat: factors that change nothing that can be told, and where."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from leadline.record.wording import say_level
from leadline.record.workbench import Factor, Level
from leadline.studies.workbench.surface.grid import Floats, Grid
from leadline.studies.workbench.surface.ideal import sd_of_difference


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
                f"changes nothing from {say_level(factor.name, factor.levels[start])} on {where}"
            )
    return f"{factor.name} " + "; ".join(parts)


def _where(grid: Grid, factor: Factor, others: Iterable[tuple[Level, ...]]) -> str:
    rest = [other for other in grid.factors if other is not factor]
    if len(rest) == 1:
        levels = [say_level(rest[0].name, levels[0]) for levels in others]
        return f"with {rest[0].name} = {_list(levels)}"
    settings = [
        ", ".join(
            f"{other.name} = {say_level(other.name, level)}"
            for other, level in zip(rest, levels, strict=True)
        )
        for levels in others
    ]
    return "with " + "; with ".join(settings)


def _list(words: Sequence[str]) -> str:
    if len(words) == 1:
        return words[0]
    return ", ".join(words[:-1]) + f" or {words[-1]}"
