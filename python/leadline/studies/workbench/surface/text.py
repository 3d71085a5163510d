"""A response surface as planes, and as rows of text."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.charts.terminal import Terminal
from leadline.record.wording import format_level
from leadline.record.workbench import (
    Experiment,
    ExperimentStart,
    Factor,
    Level,
    Sample,
    Surface,
    SurfaceCell,
)
from leadline.studies.workbench.answer import format_sample
from leadline.studies.workbench.surface.models import surface_error
from leadline.studies.workbench.text import (
    VERDICTS,
    format_cost,
    format_half,
    format_half_brief,
    format_load,
    format_peak,
)
from leadline.units import format_percent

# A response surface as plain rows: what it says, every configuration, what each cost.

# A response surface as planes: two factors span each, the others stand still in it.

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
        return [format_level(self.x.name, level) for level in self.x.levels]

    @property
    def y_names(self) -> list[str]:
        """The same along y; one without a name for a single factor."""
        return (
            [""] if self.y is None else [format_level(self.y.name, each) for each in self.y.levels]
        )

    @property
    def where(self) -> str:
        """Which plane it is: `memory 8`; empty when there is only one."""
        return format_sample(self.fixed)


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


CELL_HEADS = ("Peak rate", "Half its interval", "From", "Trials", "Test time")

MODELS = {
    "quadratic-raw": "a quadratic in the levels",
    "quadratic-log": "a quadratic in their logarithms",
    "soft-min": "a law of bottlenecks",
    "gaussian-process": "a Gaussian process around a law of bottlenecks",
    "full-grid": "none: every configuration was measured",
}


def surface_tiles(experiment: Experiment, surface: Surface) -> list[tuple[str, str]]:
    """Return the figures beside the title: number and what it is."""
    measured = sum(cell.measured for cell in surface.cells)
    tiles = []
    if surface.ideal is not None:
        best = next(cell for cell in surface.cells if cell.sample == surface.ideal)
        if best.rate_per_s is not None:
            rate = f"{format_load(best.rate_per_s.value)}/s {format_half(best.rate_per_s)}"
            tiles.append((rate, f"with the ideal {format_sample(surface.ideal)}"))
    tiles += [
        (f"{measured} of {len(surface.cells)}", "configurations measured"),
        (format_cost(surface.cost_s), "test time so far"),
    ]
    if surface.error_frac is not None and measured < len(surface.cells):
        asked = experiment.start.surface_error_frac
        more = "" if asked is None else f"; {format_percent(asked)} was asked"
        tiles.append((format_percent(surface.error_frac), f"expected error of the model{more}"))
    error = surface_error(experiment)
    if error is not None:
        what = f"mean absolute error against a measured grid of {error.mape.n}"
        tiles.append((format_percent(error.mape.value), what))
    return tiles


def cell_rows(experiment: Experiment, surface: Surface) -> list[dict[str, Any]]:
    """Return a row for every configuration, in the order of the grid."""
    peaks = {format_sample(peak.sample): peak for peak in experiment.peaks}
    costs = sample_costs(experiment)
    most = max(costs.values(), default=0.0)
    rows = []
    for cell in surface.cells:
        name = format_sample(cell.sample)
        found = peaks.get(name)
        peak = None if found is None else found.peak
        how = "predicted"
        if cell.measured:
            how = (
                "measured" if peak is None else VERDICTS[peak.verdict].replace("found", "measured")
            )
        rows.append(
            {
                "levels": [
                    format_level(factor.name, cell.sample[factor.name])
                    for factor in experiment.start.factors
                ],
                "rate": format_peak(cell.rate_per_s),
                "half": format_half(cell.rate_per_s),
                "how": how,
                "trials": "" if found is None else str(len(found.trials)),
                "cost": format_cost(costs[name]) if name in costs else "",
                "bar": 100 * costs.get(name, 0.0) / most if most > 0 else 0.0,
                "ideal": cell.sample == surface.ideal,
                "measured": cell.measured,
            }
        )
    return rows


def sample_costs(experiment: Experiment) -> dict[str, float]:
    """Return the bench seconds of every sample that was measured, by its words."""
    return {
        format_sample(peak.sample): sum(trial.cost_s for trial in peak.trials)
        for peak in experiment.peaks
        if peak.trials
    }


# A response surface on a terminal: its sentences, and the planes as tables of rates.


def print_surface(terminal: Terminal, experiment: Experiment) -> Iterator[RenderableType]:
    """Tell the sentences, a table for each plane, and the doubts."""
    yield from terminal.sentences(experiment.sentences)
    surface = experiment.surface
    cut = () if surface is None else planes(experiment.start, surface)
    for plane in cut:
        yield Text("")
        if plane.where:
            yield terminal.text(plane.where, "bold")
        yield _plane(terminal, plane)
    if cut:
        yield Text("requests/s; * measured, the others predicted; [ ] the ideal configuration")
    yield from terminal.warnings(experiment.findings)


def _plane(terminal: Terminal, plane: Plane) -> Table:
    corner = plane.x.name if plane.y is None else f"{plane.y.name} \\ {plane.x.name}"
    rows = []
    for row in reversed(range(plane.rows)):
        name = plane.y_names[row]
        cells = [
            _cell(plane.cells.get((column, row)), ideal=(column, row) == plane.ideal)
            for column in range(len(plane.x.levels))
        ]
        rows.append([name, *cells])
    return terminal.table([corner, *plane.x_names], rows)


def _cell(cell: SurfaceCell | None, *, ideal: bool) -> str:
    """Write `[738*] ±0.6%`: rate, whether it was measured, whether it is the ideal, its doubt."""
    if cell is None or cell.rate_per_s is None:
        return "\N{EN DASH}"
    rate = format_load(cell.rate_per_s.value) + ("*" if cell.measured else "")
    return f"{f'[{rate}]' if ideal else rate} {format_half_brief(cell.rate_per_s)}".strip()
