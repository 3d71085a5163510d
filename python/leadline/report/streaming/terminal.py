"""A streaming study on a terminal: what it says, every phase, and disk scaling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.balance import RESOURCE_WORDS, Scaling, ScalingStep, StreamBalance
from leadline.record.streaming import StreamStudy
from leadline.report.streaming.bound_rows import bound_rows
from leadline.report.streaming.table import (
    PHASE_HEADS,
    how_rows,
    not_counted_lines,
    phase_rows,
    verified_rows,
)
from leadline.report.streaming.words import NOT_FOUND
from leadline.report.survey.terminal import printable
from leadline.studies.streaming.answer import balance_of
from leadline.studies.streaming.scaling import fell_short

_SHORT_HEADS = {
    "CPU used": "CPU",
    "ns per byte: user + kernel": "ns/byte",
    "Instructions per byte": "Instr/byte",
}
_SHOWN = ("In", "Out", "CPU used", "ns per byte: user + kernel", "Instructions per byte", "CPI")
_SHOWN_BELOW = (
    "Switches: waited + forced",
    "Faults: minor + major",
    "Block layer: read + written",
    "First and last done",
)
"""Of a single run: how its time and its bytes went beside the processor."""


def render_stream(study: StreamStudy) -> StreamView:
    """Return what a rich console can print; it fits itself to the console's width and encoding."""
    return StreamView(study, balance_of(study))


class StreamView:
    """A study that rich can print."""

    def __init__(self, study: StreamStudy, said: StreamBalance) -> None:
        self.study = study
        self.said = said

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the sentences, the phases, the scaling, and what was verified."""
        plain, study, said = options.ascii_only, self.study, self.said

        def text(line: str, style: str = "") -> Text:
            return Text(printable(line, plain=plain), style=style)

        for number, sentence in enumerate(study.sentences or said.sentences):
            yield text(sentence, "bold" if number == 0 else "")
        yield text("")
        if any(len(each.steps) > 1 for each in said.scaling):
            yield _scaling(said.scaling, plain=plain)
        elif study.runs:
            yield _phases(study, said, _SHOWN, plain=plain)
            if len(study.runs) == 1:
                yield _phases(study, said, _SHOWN_BELOW, plain=plain)
            yield from (text(line) for line in _bounds(study))
        for line in not_counted_lines(said.not_measurable):
            yield text(line)
        for kernel, words in (*how_rows(study), *verified_rows(study)):
            yield text(f"{kernel}: {words}")
        for warning in dict.fromkeys((*study.warnings, *said.warnings)):
            yield text(f"warning: {warning}", "yellow")


def _phases(study: StreamStudy, said: StreamBalance, shown: Sequence[str], *, plain: bool) -> Table:
    places = [PHASE_HEADS.index(head) for head in shown]
    table = plain_table(["Phase", *(_SHORT_HEADS.get(head, head) for head in shown)], plain=plain)
    for row in phase_rows(study, said):
        add_row(table, [row.name, *(row.cells[place] for place in places)], plain=plain)
    return table


def _bounds(study: StreamStudy) -> Iterator[str]:
    """Say how near every phase came to what its busiest resource allows."""
    for row in bound_rows(study):
        if row["bound"]:
            yield f"{row['group']}: {row['share']} of its bound by {row['limit']}, {row['said']}"


def _scaling(scaling: Sequence[Scaling], *, plain: bool) -> Table:
    heads = ["Phase", "Disks", "MB/s", "95 %", "This disk", "Stopped by"]
    table = plain_table(heads, plain=plain)
    for each in scaling:
        for number, step in enumerate(each.steps):
            name = f"{each.kernel} {each.phase}" if number == 0 else ""
            add_row(table, [name, *_step(step)], plain=plain)
    return table


def _step(step: ScalingStep) -> list[str]:
    limit = RESOURCE_WORDS[step.limited_by] if step.limited_by else ""
    rate = step.achieved_mb_s
    known = rate.low is not None and rate.high is not None
    return [
        str(step.disks),
        f"{rate.value:,.0f}",
        f"{rate.low:,.0f} to {rate.high:,.0f}" if known else "no interval",
        f"{step.gained_mb_s.value:+,.0f} of {step.ideal_gain_mb_s:,.0f}".replace(
            "-", "\N{MINUS SIGN}"
        ),
        limit or (NOT_FOUND if fell_short(step) else ""),
    ]


def plain_table(heads: Sequence[str], *, plain: bool) -> Table:
    """Return a table without markup that folds rather than cuts."""
    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(Text(printable(head, plain=plain)), overflow="fold")
    return table


def add_row(table: Table, cells: Sequence[str], *, plain: bool) -> None:
    """Add cells as plain text: names are data."""
    table.add_row(*(Text(printable(cell, plain=plain)) for cell in cells))
