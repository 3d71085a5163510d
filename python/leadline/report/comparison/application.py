"""An application on several systems, on a terminal: each one's times, then the ratios."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from rich.console import RenderableType

from leadline.record.application.comparison import ApplicationComparison, ApplicationPair
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.wording import say_interval
from leadline.report.comparison.words import say_ratio
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.units import format_seconds

_OF_THE_APPLICATION = {"predicted_below_cache", "predicted_of_little_io", "predicted_first_touches"}
"""What is so on every system."""


@on_terminal
def render_application_comparison(
    terminal: Terminal, document: ApplicationComparison
) -> Iterator[RenderableType]:
    """Tell the times, the ratios with verdicts, and what speaks against them."""
    named = list(zip(document.names, document.predictions, strict=True))
    yield terminal.text(f"{document.application}, predicted", "bold")
    rows = [(name, _io(found), _elapsed(found), _missing(found)) for name, found in named]
    yield terminal.table(("System", "In I/O (95 %)", "In all (95 %)", "Not surveyed"), rows)
    yield terminal.table(
        ("Pair", "Faster in I/O by (95 %)", "In all (95 %)", "Verdict"),
        [
            (
                f"{pair.a} / {pair.b}",
                say_ratio(pair.io_ratio),
                say_ratio(pair.elapsed_ratio),
                _verdict(pair),
            )
            for pair in document.pairs
        ],
    )
    for pair in document.pairs:
        for found in pair.findings:
            yield terminal.text(f"{pair.a} / {pair.b}: {found}", "yellow")
    said = dict.fromkeys(
        each
        if each.where or each.code in _OF_THE_APPLICATION
        else msgspec.structs.replace(each, where=name)
        for name, found in named
        for each in found.findings
    )
    yield from terminal.warnings(said)


def _io(found: ApplicationPrediction) -> str:
    least = "at least " if found.io_at_least else ""
    return least + say_interval(found.io_s, format_seconds)


def _elapsed(found: ApplicationPrediction) -> str:
    if found.elapsed_s is None:
        return "not known"
    least = "at least " if found.io_at_least else ""
    return least + say_interval(found.elapsed_s, format_seconds)


def _missing(found: ApplicationPrediction) -> str:
    return ", ".join(f"{term.calls:,} {term.name}" for term in found.terms if term.seconds is None)


def _verdict(pair: ApplicationPair) -> str:
    said = {"a": f"{pair.a} is faster", "b": f"{pair.b} is faster", "cannot tell": "cannot tell"}
    return said[pair.verdict]
