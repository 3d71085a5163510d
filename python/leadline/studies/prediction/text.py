"""Predictions of one survey, as a command and a page tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from leadline.charts.terminal import Terminal, on_terminal
from leadline.models.predictor import iops_of, response_us_of
from leadline.record import Interval, Prediction, Survey
from leadline.record.application.prediction import ApplicationPrediction, Term
from leadline.record.wording import (
    format_bytes_ci,
    format_interval,
    format_rate_ci,
    format_workload,
    join_words,
)
from leadline.units import format_bytes, format_ends, format_percent, format_rate, format_seconds


class Predicted(NamedTuple):
    """What was asked of a survey, and what it says."""

    survey: Survey
    names: tuple[str, ...]
    """What each prediction is called; two may be called the same."""
    predictions: tuple[Prediction, ...]
    refused: Mapping[str, str]
    """Workloads that were not surveyed, and why."""
    document: Any
    """What `--json` says of them."""

    def items(self) -> list[tuple[str, Prediction]]:
        """Return every prediction with its name; names that are the same are told apart."""
        seen: dict[str, int] = {}
        found = []
        for name, each in zip(self.names, self.predictions, strict=True):
            seen[name] = seen.get(name, 0) + 1
            found.append((name if seen[name] == 1 else f"{name} ({seen[name]})", each))
        return found


# Predictions on a terminal: one table, and the warnings below it.


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
        "throughput (95% CI)",
        "one run (95% CI)",
        "requests/s",
        "mean response (95% CI)",
        "region",
    ]
    for head in heads if names is None else ["", *heads]:
        table.add_column(head, overflow="fold")
    notes: list[Text] = []
    for index, prediction in enumerate(predictions):
        region = "none" if prediction.region is None else regions[prediction.region]
        cells = [
            format_workload(prediction.workload),
            format_rate_ci(prediction.throughput_mb_s),
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
    return format_ends(format_rate(run.low), format_rate(run.high))


def _seconds(response_us: Interval) -> str:
    return format_interval(response_us, lambda us: format_seconds(us / 1e6))


# An application's predicted time on a terminal: one sentence, its terms, its streams, warnings.


@on_terminal
def render_application(
    terminal: Terminal, found: ApplicationPrediction
) -> Iterator[RenderableType]:
    """Tell the answer, its terms, its streams, what speaks against it."""
    yield from terminal.sentences(sentences_of(found))
    yield from terminal.warnings(found.findings)
    yield terminal.table(*term_rows(found))
    yield terminal.table(*stream_rows(found))
    yield terminal.text(
        f"model: {found.model}, from {found.io_s.n} readings of {found.system}", "dim"
    )


def sentences_of(found: ApplicationPrediction) -> Iterator[str]:
    """Say the answer: time in I/O and in all, what is missing, what caches miss."""
    least = "at least " if found.io_at_least else ""
    io = format_interval(found.io_s, format_seconds)
    said = f"{found.application} on {found.system}: {least}{io} in I/O"
    if found.elapsed_s is None:
        yield f"{said}. In all: not known, because {found.elapsed_because}."
    else:
        share = "" if found.in_io is None else f", {format_percent(found.in_io)} of it in I/O"
        yield f"{said}, {least}{format_interval(found.elapsed_s, format_seconds)} in all{share}."
    missing = [term for term in found.terms if term.seconds is None]
    if missing:
        terms = join_words([_missing(term) for term in missing])
        yield f"Not surveyed, and in neither time: {terms}."
    for cache in found.caches:
        lists = (
            ""
            if cache.two_lists is None
            else f", {format_percent(cache.two_lists)} by Linux's active/inactive LRU"
        )
        yield (
            f"A cache of {format_bytes_ci(cache.cache_bytes)} misses {format_percent(cache.lru)} "
            f"of its references under LRU{lists}, when it begins empty."
        )
    if found.traced_io_s is not None:
        traced = format_seconds(found.traced_io_s)
        whole = "" if found.traced_s is None else f" of {format_seconds(found.traced_s)}"
        yield f"Where it was traced it was in I/O for {traced}{whole}."


def _missing(term: Term) -> str:
    traced = "" if term.traced_s is None else f" ({format_seconds(term.traced_s)} where traced)"
    return f"{term.calls:,} {TERM_NAMES[term.name]}{traced}, because {term.because}"


TERM_NAMES = {"reads": "reads", "writes": "writes", "syncs": "syncs", "metadata": "metadata calls"}


def term_rows(found: ApplicationPrediction) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return heads and a row for each kind of call: how many, and the time in them."""
    rows: list[tuple[str, ...]] = [
        (
            TERM_NAMES[term.name],
            f"{term.calls:,}",
            "not surveyed"
            if term.seconds is None
            else format_interval(term.seconds, format_seconds),
            "" if term.traced_s is None else format_seconds(term.traced_s),
        )
        for term in found.terms
    ]
    return ("Term", "Calls", "Time in I/O (95% CI)", "Where traced"), rows


def stream_rows(found: ApplicationPrediction) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return heads and a row for each stream of each phase."""
    caches = [f"Misses {format_bytes(cache.cache_bytes.value)}" for cache in found.caches]
    rows = [
        (
            f"{each.phase + 1}",
            f"{each.kind} {'writes' if each.write else 'reads'}",
            f"{each.requests:,.0f}",
            format_bytes(each.size_mean),
            *(format_percent(miss) for miss in each.misses),
            format_seconds(each.seconds),
            format_seconds(each.seconds / max(each.requests, 1e-9)),
        )
        for each in found.streams
    ]
    return ("Phase", "Stream", "Requests", "Mean size", *caches, "Time", "Each"), rows
