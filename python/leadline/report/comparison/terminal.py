"""A comparison on a terminal: what differs first, then the ratios and their verdicts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from leadline.record.comparison import ComparedWorkload, SystemsComparison
from leadline.record.wording import say_rate
from leadline.report.comparison import words
from leadline.report.drawing.terminal import Terminal, on_terminal


@on_terminal
def render_comparison(terminal: Terminal, document: SystemsComparison) -> Iterator[RenderableType]:
    """Tell the facts, the ratios, the prices, the gate and the notes."""
    if document.differing_facts:
        yield Text("What differs", "bold")
        yield _facts(terminal, document)
    else:
        yield Text("No recorded fact differs.")
    caches = words.cache_rows(document)
    if caches:
        yield Text("File caches", "bold")
        heads = ["System", "Reads (95 %)", "Writes (95 %)", "Write policy"]
        yield terminal.table(heads, [row[:4] for row in caches])
    yield from terminal.warnings(words.survey_doubts(document))
    for a, b, rows in words.pair_groups(document):
        yield terminal.text(words.say_score(a, b, rows), "bold")
        yield _ratios(terminal, a, b, rows)
        if any(row.per_price_ratio is not None for row in rows):
            yield _prices(terminal, document, a, b, rows)
        for line in words.say_withheld(rows):
            yield terminal.text(line, "yellow")
    yield from map(terminal.text, (words.say_chance(document), *document.notes))
    yield from terminal.sentences(words.gate_lines(document.gate) if document.gate else ())


def _facts(terminal: Terminal, document: SystemsComparison) -> Table:
    rows = []
    group = ""
    for difference in document.differing_facts:
        shown = difference.group if difference.group != group else ""
        group = difference.group
        rows.append([shown, difference.title, *words.fact_cells(difference)])
    return terminal.table(["", "Fact", *(each.name for each in document.contenders)], rows)


def _ratios(terminal: Terminal, a: str, b: str, rows: Sequence[ComparedWorkload]) -> Table:
    marked = any(row.findings for row in rows)
    heads = ["Workload", a, b, f"{a} / {b} (95 %)", "Verdict", *(["Warnings"] if marked else [])]
    cells = [
        [
            words.say_title(row.title, row.workload),
            say_rate(row.a_mb_s) if row.a_mb_s else "not known",
            say_rate(row.b_mb_s) if row.b_mb_s else "not known",
            words.say_ratio(row.ratio),
            words.say_verdict(row),
            *([words.marks(row)] if marked else []),
        ]
        for row in rows
    ]
    return terminal.table(heads, cells)


def _prices(
    terminal: Terminal,
    document: SystemsComparison,
    a: str,
    b: str,
    rows: Sequence[ComparedWorkload],
) -> Table:
    names = [each.name for each in document.contenders]
    prices = [words.say_price(document, names.index(name)) for name in (a, b)]
    money = f"for {words.PRICE_UNIT} {words.currency(document)}"
    heads = ["Workload", f"{a} {money}", f"{b} {money}", f"{a} / {b} (95 %)"]
    cells = [
        [
            words.say_title(row.title, row.workload),
            words.say_per_price(row.a_mb_s_per_price),
            words.say_per_price(row.b_mb_s_per_price),
            words.say_ratio(row.per_price_ratio),
        ]
        for row in rows
    ]
    return terminal.table(heads, [["price", *prices, ""], *cells])
