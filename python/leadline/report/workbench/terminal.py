"""A search for a peak rate on a terminal: its sentences, its loads, how the policies would fare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record.workbench import Experiment, PeakRate
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.report.workbench.run_length_table import LENGTH_HEADS, run_length_lines
from leadline.report.workbench.surface.terminal import tell_surface
from leadline.report.workbench.table import (
    CURVE_HEADS,
    FARE_HEADS,
    curve_rows,
    fare_rows,
    has_curve,
    load_heads,
    load_rows,
)
from leadline.report.workbench.words import peak_of

_BAR = 12
"""Columns of the bar that stands for the peak's load."""


@on_terminal
def render_experiment(terminal: Terminal, experiment: Experiment) -> Iterable[RenderableType]:
    """Tell a search, or a surface."""
    tell = _tell_peak if experiment.start.design is None else tell_surface
    return tell(terminal, experiment)


def _tell_peak(terminal: Terminal, experiment: Experiment) -> Iterator[RenderableType]:
    """Tell the sentences, the loads, the policies and the doubts."""
    yield from terminal.sentences(experiment.sentences)
    peak = peak_of(experiment)
    if peak is not None and peak.loads:
        yield Text("")
        yield _loads(terminal, experiment, peak)
    if has_curve(experiment) and (rows := curve_rows(experiment.peaks[0])):
        even = bool(experiment.peaks[0].curve)
        yield terminal.text(
            "The load-latency curve, at even parts of the peak:"
            if even
            else "The load-latency curve, from the trials that kept their rate:"
        )
        yield terminal.table(["Load/s", *CURVE_HEADS[1:]], rows)
    if lengths := run_length_lines(experiment):
        yield terminal.text("How long a trial should be, by independent trials of each length:")
        yield terminal.table(LENGTH_HEADS, lengths)
    if experiment.fares:
        yield terminal.text(f"How the policies would have fared, on {experiment.fares_on}:")
        yield terminal.table(FARE_HEADS, fare_rows(experiment))
    elif experiment.fares_on:
        yield terminal.text(f"How other policies would have fared: {experiment.fares_on}")
    yield from terminal.warnings(experiment.findings)


def _loads(terminal: Terminal, experiment: Experiment, peak: PeakRate) -> Table:
    """Return the loads, each with a bar as long as its load; the peak's is `_BAR` columns."""
    threshold = experiment.start.goal.threshold
    unit = peak.rate_per_s.value if peak.rate_per_s is not None else peak.loads[-1].rate_per_s
    sign = "#" if terminal.plain else "\N{BOX DRAWINGS HEAVY HORIZONTAL}"
    rows = [
        [*row, sign * min(round(_BAR * load.rate_per_s / unit), 2 * _BAR)]
        for load, row in zip(peak.loads, load_rows(peak, threshold), strict=True)
    ]
    return terminal.table(["Load/s", *load_heads(threshold)[1:], ""], rows)
