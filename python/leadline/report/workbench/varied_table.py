"""Experiments with several goals or policies as one table: what each cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import RenderableType

from leadline.record.workbench import Experiment
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.report.workbench.words import VERDICTS, say_cost, say_peak
from leadline.studies.workbench.varied import Variation, say_value, spent_s


@on_terminal
def render_varied(
    terminal: Terminal, variations: Sequence[Variation], found: Sequence[Experiment]
) -> Iterable[RenderableType]:
    """Tell a row for each combination, in the order in which they ran."""
    names = list(variations[0])
    heads = [*(name.capitalize() for name in names), "Bench time", "Of least", "Trials", "Found"]
    least = min(map(spent_s, found))
    rows = [
        [
            *(say_value(variation[name]) for name in names),
            say_cost(spent_s(each)),
            f"{spent_s(each) / least:.2f}" if least > 0 else "",
            str(sum(len(own.trials) for own in each.peaks)),
            _found(each),
        ]
        for variation, each in zip(variations, found, strict=True)
    ]
    yield terminal.table(heads, rows)


def _found(experiment: Experiment) -> str:
    if experiment.start.design is not None:
        return f"{len(experiment.peaks)} of {len(experiment.start.samples)} measured"
    peak = experiment.peaks[0].peak if experiment.peaks else None
    if peak is None:
        return "nothing"
    if peak.rate_per_s is None:
        return VERDICTS[peak.verdict]
    return say_peak(peak.rate_per_s)
