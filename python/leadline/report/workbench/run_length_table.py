"""A study of run lengths as plain rows."""

from __future__ import annotations

from leadline.record import Interval
from leadline.record.wording import say_interval
from leadline.record.workbench import Experiment
from leadline.report.workbench.words import say_cost, say_response
from leadline.studies.workbench.run_lengths import NEEDED_MAX, RunLength, run_length_rows
from leadline.units import format_seconds, say_percent, say_span

LENGTH_HEADS = (
    "Of peak",
    "Run length",
    "Trials",
    "Mean response",
    "Spread (sd)",
    "Trials needed",
    "Bench time",
    "As the longest",
)
_NONE = "\N{EN DASH}"
_ALIKE = {True: "yes", False: "no", None: _NONE}


def run_length_lines(experiment: Experiment) -> list[tuple[str, ...]]:
    """Return a row for each load and length; none where nobody asked for the study."""
    return [_line(row) for row in run_length_rows(experiment)]


def say_needed(needed: Interval | None) -> str:
    """Write `4 (3 to 9)`: how many trials an accuracy takes."""
    if needed is None:
        return f"over {NEEDED_MAX:,}"
    if needed.low is None or needed.high is None:
        return f"{needed.value:.0f}"
    return f"{needed.value:.0f} ({say_span(f'{needed.low:.0f}', f'{needed.high:.0f}')})"


def _line(row: RunLength) -> tuple[str, ...]:
    return (
        say_percent(row.part_of_peak),
        format_seconds(row.seconds),
        str(row.trials),
        say_response(row.response_ms),
        _NONE if row.sd_frac is None else say_interval(row.sd_frac, say_percent),
        _NONE if row.sd_frac is None else say_needed(row.needed),
        _NONE if row.cost_s is None else say_interval(row.cost_s, say_cost),
        _ALIKE[row.reads_as_longest],
    )
