"""A streaming study on a terminal: what it says, every phase, and disk scaling."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record.balance import RESOURCE_WORDS, Scaling, ScalingStep, StreamBalance
from leadline.record.streaming import StreamStudy
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.report.streaming.bound_rows import bound_rows
from leadline.report.streaming.table import (
    PHASE_HEADS,
    how_rows,
    not_counted_lines,
    phase_rows,
    verified_rows,
)
from leadline.report.streaming.words import NOT_FOUND
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


@on_terminal
def render_stream(terminal: Terminal, study: StreamStudy) -> Iterator[RenderableType]:
    """Tell the sentences, the phases, the scaling, and what was verified."""
    said = balance_of(study)
    yield from terminal.sentences(study.sentences or said.sentences)
    yield Text("")
    if any(len(each.steps) > 1 for each in said.scaling):
        yield _scaling(terminal, said.scaling)
    elif study.runs:
        yield _phases(terminal, study, said, _SHOWN)
        if len(study.runs) == 1:
            yield _phases(terminal, study, said, _SHOWN_BELOW)
        yield from map(terminal.text, _bounds(study))
    yield from map(terminal.text, not_counted_lines(said.not_measurable))
    for kernel, words in (*how_rows(study), *verified_rows(study)):
        yield terminal.text(f"{kernel}: {words}")
    yield from terminal.warnings(dict.fromkeys((*study.findings, *said.findings)))


def _phases(
    terminal: Terminal, study: StreamStudy, said: StreamBalance, shown: Sequence[str]
) -> Table:
    places = [PHASE_HEADS.index(head) for head in shown]
    heads = ["Phase", *(_SHORT_HEADS.get(head, head) for head in shown)]
    rows = phase_rows(study, said)
    return terminal.table(heads, [[row.name, *(row.cells[at] for at in places)] for row in rows])


def _bounds(study: StreamStudy) -> Iterator[str]:
    """Say how near every phase came to what its busiest resource allows."""
    for row in bound_rows(study):
        if row["bound"]:
            doubt = ", which was measured too low or has risen since" if row["passed"] else ""
            yield (
                f"{row['group']}: {row['share']} of its bound by {row['limit']}, "
                f"{row['said']}{doubt}"
            )


def _scaling(terminal: Terminal, scaling: Sequence[Scaling]) -> Table:
    rows = [
        [f"{each.kernel} {each.phase}" if number == 0 else "", *_step(step)]
        for each in scaling
        for number, step in enumerate(each.steps)
    ]
    return terminal.table(["Phase", "Disks", "MB/s", "95 %", "This disk", "Stopped by"], rows)


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
