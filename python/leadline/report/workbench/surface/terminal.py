"""A response surface on a terminal: its sentences, and the planes as tables of rates."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.workbench import Experiment, SurfaceCell
from leadline.report.streaming.terminal import add_row, plain_table
from leadline.report.survey.terminal import printable
from leadline.report.workbench.surface.planes import Plane, planes
from leadline.report.workbench.words import say_half_brief, say_load


class SurfaceView:
    """A surface that rich can print."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the sentences, a table for each plane, and the doubts."""
        plain, experiment = options.ascii_only, self.experiment

        def text(line: str, style: str = "") -> Text:
            return Text(printable(line, plain=plain), style=style)

        for number, sentence in enumerate(experiment.sentences):
            yield text(sentence, "bold" if number == 0 else "")
        surface = experiment.surface
        cut = () if surface is None else planes(experiment.start, surface)
        for plane in cut:
            yield text("")
            if plane.where:
                yield text(plane.where, "bold")
            yield _plane(plane, plain=plain)
        if cut:
            yield text("requests/s; * measured, the others predicted; [ ] the ideal configuration")
        for warning in experiment.warnings:
            yield text(f"warning: {warning}", "yellow")


def _plane(plane: Plane, *, plain: bool) -> Table:
    corner = plane.x.name if plane.y is None else f"{plane.y.name} \\ {plane.x.name}"
    table = plain_table([corner, *(str(level) for level in plane.x.levels)], plain=plain)
    for row in reversed(range(plane.rows)):
        name = "" if plane.y is None else str(plane.y.levels[row])
        cells = [
            _cell(plane.cells.get((column, row)), ideal=(column, row) == plane.ideal)
            for column in range(len(plane.x.levels))
        ]
        add_row(table, [name, *cells], plain=plain)
    return table


def _cell(cell: SurfaceCell | None, *, ideal: bool) -> str:
    """Write `[738*] ±0.6 %`: rate, whether it was measured, whether it is the ideal, its doubt."""
    if cell is None or cell.rate_per_s is None:
        return "\N{EN DASH}"
    rate = say_load(cell.rate_per_s.value) + ("*" if cell.measured else "")
    return f"{f'[{rate}]' if ideal else rate} {say_half_brief(cell.rate_per_s)}".strip()
