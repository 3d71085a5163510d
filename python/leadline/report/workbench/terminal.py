"""A search for a peak rate on a terminal: its sentences, its loads, how the policies would fare."""

from __future__ import annotations

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.workbench import Experiment, PeakRate
from leadline.report.streaming.terminal import add_row, plain_table
from leadline.report.survey.terminal import printable
from leadline.report.workbench.surface.terminal import SurfaceView
from leadline.report.workbench.table import FARE_HEADS, fare_rows, load_heads, load_rows
from leadline.report.workbench.words import peak_of

_BAR = 12
"""Columns of the bar that stands for the peak's load."""


def render_experiment(experiment: Experiment) -> PeakView | SurfaceView:
    """Return what a rich console can print; it fits itself to the console's width and encoding."""
    return PeakView(experiment) if experiment.start.design is None else SurfaceView(experiment)


class PeakView:
    """One search that rich can print."""

    def __init__(self, experiment: Experiment) -> None:
        self.experiment = experiment

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the sentences, the loads, the policies and the doubts."""
        plain, experiment = options.ascii_only, self.experiment

        def text(line: str, style: str = "") -> Text:
            return Text(printable(line, plain=plain), style=style)

        for number, sentence in enumerate(experiment.sentences):
            yield text(sentence, "bold" if number == 0 else "")
        peak = peak_of(experiment)
        if peak is not None and peak.loads:
            yield text("")
            yield _loads(experiment, peak, plain=plain)
        if experiment.fares:
            yield text(f"How the policies would have fared, on {experiment.fares_on}:")
            table = plain_table(FARE_HEADS, plain=plain)
            for row in fare_rows(experiment):
                add_row(table, row, plain=plain)
            yield table
        elif experiment.fares_on:
            yield text(f"How other policies would have fared: {experiment.fares_on}")
        for warning in experiment.warnings:
            yield text(f"warning: {warning}", "yellow")


def _loads(experiment: Experiment, peak: PeakRate, *, plain: bool) -> Table:
    """Return the loads, each with a bar as long as its load; the peak's is `_BAR` columns."""
    threshold = experiment.start.goal.threshold
    heads = ["Load/s", *load_heads(threshold)[1:], ""]
    table = plain_table(heads, plain=plain)
    unit = peak.rate_per_s.value if peak.rate_per_s is not None else peak.loads[-1].rate_per_s
    sign = "#" if plain else "\N{BOX DRAWINGS HEAVY HORIZONTAL}"
    for load, row in zip(peak.loads, load_rows(peak, threshold), strict=True):
        bar = sign * min(round(_BAR * load.rate_per_s / unit), 2 * _BAR)
        add_row(table, [*row, bar], plain=plain)
    return table
