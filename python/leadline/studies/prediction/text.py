"""Predictions of one survey, as a command and a page tell them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rich.console import RenderableType

from leadline.charts.terminal import Terminal, on_terminal
from leadline.models.predictor import iops_of, response_us_of
from leadline.record import Prediction, Survey
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


# Predictions on a terminal: what was asked, one table, and the warnings below it.

TOLD_MOST = 6
"""Workloads that are written out above the table."""


@on_terminal
def render_predictions(terminal: Terminal, found: Predicted) -> Iterator[RenderableType]:
    """Tell each workload, a row of each, and what speaks against it; all of it: of one run too."""
    items = found.items()
    if terminal.verbose or len(items) <= TOLD_MOST:
        for name, each in items:
            yield terminal.text(f"{_title(name)}: {format_workload(each.workload)}")
    levels = {region.index: region.name for region in found.survey.regions}
    heads = ["Workload", "Throughput (95% CI)", "Requests/s", "Mean response (95% CI)", "Level"]
    rows = [
        [
            _title(name) + (" *" if each.findings else ""),
            format_rate_ci(each.throughput_mb_s),
            f"{iops_of(each).value:,.0f}",
            format_interval(response_us_of(each), lambda us: format_seconds(us / 1e6)),
            "none" if each.region is None else levels[each.region],
        ]
        for name, each in items
    ]
    if terminal.verbose:
        heads.insert(2, "One run (95% CI)")
        for row, (_, each) in zip(rows, items, strict=True):
            row.insert(2, _span(each))
    yield terminal.table(heads, rows)
    for name, each in items:
        yield from (terminal.text(f"* {_title(name)}: {said}", "yellow") for said in each.findings)
    first = items[0][1]
    yield terminal.text(
        f"model: {first.model}, from {first.throughput_mb_s.n} readings of "
        f"{found.survey.start.system}",
        "dim",
    )


def _title(name: str) -> str:
    return name.replace("_", " ")


def _span(prediction: Prediction) -> str:
    run = prediction.run_throughput_mb_s
    if run.low is None or run.high is None:
        return "no interval"
    high = format_rate(run.high)
    return format_ends(format_rate(run.low, high), high)


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
    if found.traced_on is not None:
        yield (
            "Its times are scaled by what it took where it was traced over what "
            f"{found.traced_on} predicts there."
        )
    if found.traced_io_s is not None:
        traced = format_seconds(found.traced_io_s)
        whole = "" if found.traced_s is None else f" of {format_seconds(found.traced_s)}"
        yield f"Where it was traced it was in I/O for {traced}{whole}."
        if found.traced_on is None:
            yield "A survey of that system makes the answer surer: add --traced-on SURVEY."


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
