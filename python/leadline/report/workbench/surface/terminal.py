"""A response surface on a terminal: its sentences, and the planes as tables of rates."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record.workbench import Experiment, SurfaceCell
from leadline.report.drawing.terminal import Terminal
from leadline.report.workbench.surface.planes import Plane, planes
from leadline.report.workbench.words import say_half_brief, say_load


def tell_surface(terminal: Terminal, experiment: Experiment) -> Iterator[RenderableType]:
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
    """Write `[738*] ±0.6 %`: rate, whether it was measured, whether it is the ideal, its doubt."""
    if cell is None or cell.rate_per_s is None:
        return "\N{EN DASH}"
    rate = say_load(cell.rate_per_s.value) + ("*" if cell.measured else "")
    return f"{f'[{rate}]' if ideal else rate} {say_half_brief(cell.rate_per_s)}".strip()
