"""A comparison on a terminal: what differs first, then the ratios and their verdicts.

Names, facts and warnings are data: they reach the terminal as plain text, without markup and
without control characters.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record.comparison import ComparedWorkload, SystemsComparison
from leadline.record.wording import say_rate
from leadline.report.comparison import words
from leadline.report.survey.terminal import printable


def render_comparison(document: SystemsComparison) -> ComparisonView:
    """Return what a rich console can print; it fits itself to the console's width."""
    return ComparisonView(document)


class ComparisonView:
    """A comparison that rich can print."""

    def __init__(self, document: SystemsComparison) -> None:
        self.document = document

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield the facts, the ratios, the prices, the gate and the notes for this console."""
        plain = options.ascii_only

        def text(line: str, style: str = "") -> Text:
            return Text(printable(line, plain=plain), style=style)

        document = self.document
        if document.differing_facts:
            yield text("What differs", "bold")
            yield _facts(document, plain=plain)
        else:
            yield text("No recorded fact differs.")
        caches = words.cache_rows(document)
        if caches:
            yield text("File caches", "bold")
            yield _caches(caches, plain=plain)
        for line in words.survey_doubts(document):
            yield text(f"warning: {line}", "yellow")
        for a, b, rows in words.pair_groups(document):
            yield text(words.say_score(a, b, rows), "bold")
            yield _ratios(a, b, rows, plain=plain)
            if any(row.per_price_ratio is not None for row in rows):
                yield _prices(document, a, b, rows, plain=plain)
            for line in (line for row in rows for line in words.say_reason(row)):
                yield text(line, "yellow")
        for line in (words.say_chance(document), *document.notes):
            yield text(line)
        for number, line in enumerate(words.gate_lines(document.gate) if document.gate else ()):
            yield text(line, "bold" if number == 0 else "")


def _facts(document: SystemsComparison, *, plain: bool) -> Table:
    heads = ["", "Fact", *(each.name for each in document.contenders)]
    table = _table(heads, plain=plain)
    group = ""
    for difference in document.differing_facts:
        shown = difference.group if difference.group != group else ""
        group = difference.group
        _add(table, [shown, difference.title, *words.fact_cells(difference)], plain=plain)
    return table


def _caches(rows: Sequence[tuple[str, str, str, str, list[str]]], *, plain: bool) -> Table:
    table = _table(["System", "Reads (95 %)", "Writes (95 %)", "Write policy"], plain=plain)
    for row in rows:
        _add(table, row[:4], plain=plain)
    return table


def _ratios(a: str, b: str, rows: Sequence[ComparedWorkload], *, plain: bool) -> Table:
    marked = any(row.warnings for row in rows)
    heads = ["Workload", a, b, f"{a} / {b} (95 %)", "Verdict", *(["Warnings"] if marked else [])]
    table = _table(heads, plain=plain)
    for row in rows:
        cells = [
            words.say_title(row.title, row.workload),
            say_rate(row.a_mb_s) if row.a_mb_s else "not known",
            say_rate(row.b_mb_s) if row.b_mb_s else "not known",
            words.say_ratio(row.ratio),
            words.say_verdict(row),
        ]
        _add(table, [*cells, *([words.marks(row)] if marked else [])], plain=plain)
    return table


def _prices(
    document: SystemsComparison, a: str, b: str, rows: Sequence[ComparedWorkload], *, plain: bool
) -> Table:
    names = [each.name for each in document.contenders]
    prices = [words.say_price(document, names.index(name)) for name in (a, b)]
    money = f"for {words.PRICE_UNIT} {words.currency(document)}"
    heads = ["Workload", f"{a} {money}", f"{b} {money}", f"{a} / {b} (95 %)"]
    table = _table(heads, plain=plain)
    _add(table, ["price", *prices, ""], plain=plain)
    for row in rows:
        cells = [
            words.say_title(row.title, row.workload),
            words.say_per_price(row.a_mb_s_per_price),
            words.say_per_price(row.b_mb_s_per_price),
            words.say_ratio(row.per_price_ratio),
        ]
        _add(table, cells, plain=plain)
    return table


def _table(heads: Sequence[str], *, plain: bool) -> Table:
    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(Text(printable(head, plain=plain)), overflow="fold")
    return table


def _add(table: Table, cells: Sequence[str], *, plain: bool) -> None:
    table.add_row(*(Text(printable(cell, plain=plain)) for cell in cells))
