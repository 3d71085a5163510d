"""A validation on a terminal: every contestant's errors, sentences, warnings."""

from __future__ import annotations

from rich.console import Group
from rich.table import Table
from rich.text import Text

from leadline.record import ModelScore, Validation
from leadline.record.wording import say_number, say_share
from leadline.units import say_percent


def render_validation(validation: Validation) -> Group:
    """Return what a rich console can print."""
    said = [Text(text) for text in validation.sentences]
    said += [Text(f"warning: {text}") for text in validation.findings]
    return Group(_table(validation), Text(), *said)


def _table(validation: Validation) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    table.add_column("model or rival", no_wrap=True)
    heads = ("points", "median error (95 %)", "75 %", "90 %", "enhanced", "A", "50/90/95 %")
    for head in heads:
        table.add_column(head, justify="right", no_wrap=True)
    for score in validation.scores:
        table.add_row(*_cells(score))
    table.caption = (
        "enhanced: median without region borders. A: median error over inherent error. "
        "50/90/95 %: share of the measured values in the intervals of that confidence."
    )
    table.caption_justify = "left"
    return table


def _cells(score: ModelScore) -> tuple[str, ...]:
    enhanced, times = score.enhanced_median_error, score.amplification
    return (
        score.model,
        str(score.readings),
        say_share(score.median_error),
        say_percent(score.p75_error.value),
        say_percent(score.p90_error.value),
        "-" if enhanced is None else say_percent(enhanced.value),
        "-" if times is None else say_number(times.value),
        "/".join(f"{100 * item.share.value:.0f}" for item in score.coverage) or "-",
    )
