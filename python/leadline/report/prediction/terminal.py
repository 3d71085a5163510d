"""Predictions on a terminal: one table, and the warnings below it."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leadline.predict import iops_of, response_us_of
from leadline.record import Interval, Prediction, Survey
from leadline.record.wording import say_rate, say_workload
from leadline.units import format_rate, format_seconds, say_span


def render_predictions(
    survey: Survey, predictions: Sequence[Prediction], names: Sequence[str] | None = None
) -> RenderableType:
    """Return a table that a rich console can print.

    Args:
        survey: what they were predicted from.
        predictions: one row each.
        names: what to call them; None leaves the column out.

    """
    regions = {region.index: region.name for region in survey.regions}
    table = Table(box=None, pad_edge=False, header_style="dim")
    heads = [
        "workload",
        "throughput (95 %)",
        "one run (95 %)",
        "requests/s",
        "mean response (95 %)",
        "region",
    ]
    for head in heads if names is None else ["", *heads]:
        table.add_column(head, overflow="fold")
    notes: list[Text] = []
    for index, prediction in enumerate(predictions):
        region = "none" if prediction.region is None else regions[prediction.region]
        cells = [
            say_workload(prediction.workload),
            say_rate(prediction.throughput_mb_s),
            _span(prediction),
            f"{iops_of(prediction).value:,.0f}",
            _seconds(response_us_of(prediction)),
            region + (" *" if prediction.findings else ""),
        ]
        named = cells if names is None else [names[index], *cells]
        table.add_row(*(Text(cell) for cell in named))
        label = "" if names is None else f"{names[index]}: "
        notes += [Text(f"* {label}{warning}") for warning in prediction.findings]
    model = predictions[0].model if predictions else "none"
    n = predictions[0].throughput_mb_s.n if predictions else 0
    footer = Text(f"model: {model}, from {n} readings of {survey.start.system}", style="dim")
    return Group(table, *notes, footer)


def _span(prediction: Prediction) -> str:
    run = prediction.run_throughput_mb_s
    if run.low is None or run.high is None:
        return "no interval"
    return say_span(format_rate(run.low), format_rate(run.high))


def _seconds(response_us: Interval) -> str:
    said = format_seconds(response_us.value / 1e6)
    if response_us.low is None or response_us.high is None:
        return said
    span = say_span(format_seconds(response_us.low / 1e6), format_seconds(response_us.high / 1e6))
    return f"{said} ({span})"
