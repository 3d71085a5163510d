"""Balance on a terminal: the sentence, and which resource gives out at which disk bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.balance import RESOURCE_WORDS, RESOURCES, Balance, StreamBalance, WhatIf
from leadline.report.balance.table import NO_NUMBER, say_gain, say_saturation
from leadline.report.streaming.table import not_counted_lines
from leadline.report.streaming.terminal import add_row, plain_table
from leadline.report.streaming.words import system_name
from leadline.report.survey.terminal import printable
from leadline.studies.streaming.answer import compared
from leadline.studies.streaming.what_if import say_changes


def render_balance(systems: Sequence[StreamBalance]) -> BalanceView:
    """Return what a rich console can print; it fits itself to the console's width and encoding."""
    return BalanceView(systems)


class BalanceView:
    """One system or several that rich can print."""

    def __init__(self, systems: Sequence[StreamBalance]) -> None:
        self.systems = systems

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield for every system its sentences, its table, what-ifs and doubts."""
        plain = options.ascii_only

        def text(line: str, style: str = "") -> Text:
            return Text(printable(line, plain=plain), style=style)

        for number, sentence in enumerate(compared(self.systems)):
            yield text(sentence, "bold" if number == 0 else "")
        for said in self.systems:
            if len(self.systems) > 1:
                yield text(f"{said.system}, {said.platform}", "bold")
            shown = said.sentences if len(self.systems) == 1 else said.sentences[:1]
            for number, sentence in enumerate(shown):
                yield text(sentence, "bold" if number == 0 else "")
            if any(each.order for each in said.balances):
                yield text("")
                yield text("MB/s of disk bandwidth per processor at which it is used up:")
                yield _table(said.balances, plain=plain)
            if said.what_if:
                yield text("What other parts would bring, and what gives out then:")
                yield _what_if(said.what_if, plain=plain)
            for line in not_counted_lines(said.not_measurable):
                yield text(line)
            for warning in said.warnings:
                yield text(f"warning: {warning}", "yellow")


def _table(balances: Sequence[Balance], *, plain: bool) -> Table:
    table = plain_table(
        ["Phase", *(RESOURCE_WORDS[name] for name in RESOURCES), "First"], plain=plain
    )
    platforms = {each.platform for each in balances}
    for each in balances:
        found = {saturation.resource: saturation for saturation in each.saturations}
        name = f"{each.kernel} {each.phase}"
        cells = [say_saturation(found.get(resource), brief=True) for resource in RESOURCES]
        first = RESOURCE_WORDS[each.first] if each.first else NO_NUMBER
        shown = f"{system_name(each)}: {name}" if len(platforms) > 1 else name
        add_row(table, [shown, *cells, first], plain=plain)
    return table


def _what_if(found: Sequence[WhatIf], *, plain: bool) -> Table:
    asked = list(dict.fromkeys(say_changes(each.changes) for each in found))
    table = plain_table(["Phase", "MB/s now", *asked], plain=plain)
    for name in dict.fromkeys(f"{each.kernel} {each.phase}" for each in found):
        own = {
            say_changes(each.changes): each
            for each in found
            if f"{each.kernel} {each.phase}" == name
        }
        now = f"{next(iter(own.values())).before_mb_s.value:,.0f}"
        cells = [_gain(own[change]) if change in own else "" for change in asked]
        add_row(table, [name, now, *cells], plain=plain)
    return table


def _gain(found: WhatIf) -> str:
    gain = say_gain(found).partition(" (")[0]
    return f"{gain}, {RESOURCE_WORDS[found.limited_after]}"
