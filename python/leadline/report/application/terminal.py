"""An application on a terminal: the answer, a miss-ratio curve, tables."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from leadline.record.application import Application
from leadline.report.application import tables
from leadline.report.drawing.terminal import Terminal, on_terminal

_BAR = 40
_FILES = 5
"""Of those with most bytes; the others are on the page and in --json."""
_LEAST = 0.05
"""Of a phase's requests or bytes: lighter streams are on the page and in --json."""


@on_terminal
def render_application(terminal: Terminal, study: Application) -> Iterator[RenderableType]:
    """Tell the sentences, the curve, the tables and the warnings."""
    for sentence in terminal.sentences(study.found.sentences):
        yield sentence
        yield Text("")
    yield terminal.table(tables.FIVE_HEADS, tables.five_rows(study))
    yield from _curve(terminal, study)
    yield terminal.table(tables.STREAM_HEADS, tables.stream_rows(study.phases, _LEAST))
    yield terminal.table(tables.PHASE_HEADS, tables.phase_rows(study.phases))
    calls = tables.call_rows(study.phases)
    if calls:
        yield terminal.table(tables.CALL_HEADS, calls)
    files = tables.file_rows(study)[:_FILES]
    if files:
        yield terminal.table(tables.FILE_HEADS, files)
    yield from terminal.warnings(study.found.findings)


def _curve(terminal: Terminal, study: Application) -> Iterator[RenderableType]:
    """Draw what misses by LRU as bars beside the numbers, when there is room."""
    sign = "#" if terminal.plain else "█"
    rows = tables.cache_rows(study)
    width = min(_BAR, terminal.width - 60)
    if width < 10:
        yield terminal.table(tables.CACHE_HEADS, rows)
        return
    points = tables.shown_points(study)
    drawn = [
        (*row, sign * round(width * point.lru)) for row, point in zip(rows, points, strict=True)
    ]
    yield terminal.table((*tables.CACHE_HEADS, "Misses"), drawn)
