"""Balance on a terminal: the sentence, and which resource gives out at which disk bandwidth."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.balance import RESOURCE_WORDS, RESOURCES, Balance, StreamBalance
from leadline.report.balance_table import NO_NUMBER, say_saturation, what_if_rows
from leadline.report.stream_table import not_counted_lines
from leadline.report.stream_terminal import add_row, plain_table
from leadline.report.stream_words import system_name
from leadline.report.terminal import printable


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

        for said in self.systems:
            if len(self.systems) > 1:
                yield text(f"{said.system}, {said.platform}", "bold")
            for number, sentence in enumerate(said.sentences):
                yield text(sentence, "bold" if number == 0 else "")
            if any(each.order for each in said.balances):
                yield text("")
                yield text("MB/s of disk bandwidth per processor at which it is used up:")
                yield _table(said.balances, plain=plain)
            for row in what_if_rows([said]):
                yield text(f"{row.changes}: {row.phase} {row.gain}; then {row.after}")
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
