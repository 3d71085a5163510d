"""Balance on a terminal: the sentence, and which resource gives out at which disk bandwidth."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record.balance import RESOURCE_WORDS, RESOURCES, Balance, StreamBalance, WhatIf
from leadline.report.balance.table import NO_NUMBER, say_gain, say_saturation
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.report.streaming.table import not_counted_lines
from leadline.report.streaming.words import system_name
from leadline.studies.streaming.answer import compared
from leadline.studies.streaming.what_if import say_changes


@on_terminal
def render_balance(
    terminal: Terminal, systems: Sequence[StreamBalance]
) -> Iterator[RenderableType]:
    """Tell for every system its sentences, its table, what-ifs and doubts."""
    yield from terminal.sentences(compared(systems))
    for said in systems:
        if len(systems) > 1:
            yield terminal.text(f"{said.system}, {said.platform}", "bold")
        yield from terminal.sentences(said.sentences if len(systems) == 1 else said.sentences[:1])
        if any(each.order for each in said.balances):
            yield Text("")
            yield Text("MB/s of disk bandwidth per processor at which it is used up:")
            yield _table(terminal, said.balances)
        if said.what_if:
            yield Text("What other parts would bring, and what gives out then:")
            yield _what_if(terminal, said.what_if)
        yield from map(terminal.text, not_counted_lines(said.not_measurable))
        yield from terminal.warnings(said.findings)


def _table(terminal: Terminal, balances: Sequence[Balance]) -> Table:
    rows = []
    platforms = {each.platform for each in balances}
    for each in balances:
        found = {saturation.resource: saturation for saturation in each.saturations}
        name = f"{each.kernel} {each.phase}"
        cells = [say_saturation(found.get(resource), brief=True) for resource in RESOURCES]
        first = RESOURCE_WORDS[each.first] if each.first else NO_NUMBER
        shown = f"{system_name(each)}: {name}" if len(platforms) > 1 else name
        rows.append([shown, *cells, first])
    return terminal.table(["Phase", *(RESOURCE_WORDS[name] for name in RESOURCES), "First"], rows)


def _what_if(terminal: Terminal, found: Sequence[WhatIf]) -> Table:
    rows = []
    asked = list(dict.fromkeys(say_changes(each.changes) for each in found))
    for name in dict.fromkeys(f"{each.kernel} {each.phase}" for each in found):
        own = {
            say_changes(each.changes): each
            for each in found
            if f"{each.kernel} {each.phase}" == name
        }
        now = f"{next(iter(own.values())).before_mb_s.value:,.0f}"
        cells = [_gain(own[change]) if change in own else "" for change in asked]
        rows.append([name, now, *cells])
    return terminal.table(["Phase", "MB/s now", *asked], rows)


def _gain(found: WhatIf) -> str:
    gain = say_gain(found).partition(" (")[0]
    return f"{gain}, {RESOURCE_WORDS[found.limited_after]}"
