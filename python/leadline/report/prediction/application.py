"""An application's predicted time on a terminal: one sentence, its terms, its streams, warnings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import RenderableType

from leadline.record.application.prediction import ApplicationPrediction, Term
from leadline.record.wording import join_words, say_bytes, say_interval
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.units import format_bytes, format_seconds, say_percent


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
    io = say_interval(found.io_s, format_seconds)
    said = f"{found.application} on {found.system}: {least}{io} in I/O"
    if found.elapsed_s is None:
        yield f"{said}. In all: not known, because {found.elapsed_because}."
    else:
        share = "" if found.in_io is None else f", {say_percent(found.in_io)} of it in I/O"
        yield f"{said}, {least}{say_interval(found.elapsed_s, format_seconds)} in all{share}."
    missing = [term for term in found.terms if term.seconds is None]
    if missing:
        terms = join_words([_missing(term) for term in missing])
        yield f"Not surveyed, and in neither time: {terms}."
    for cache in found.caches:
        lists = (
            ""
            if cache.two_lists is None
            else f", {say_percent(cache.two_lists)} by Linux's two lists"
        )
        yield (
            f"A cache of {say_bytes(cache.cache_bytes)} misses {say_percent(cache.lru)} of its "
            f"references under LRU{lists}, when it begins empty."
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
            "not surveyed" if term.seconds is None else say_interval(term.seconds, format_seconds),
            "" if term.traced_s is None else format_seconds(term.traced_s),
        )
        for term in found.terms
    ]
    return ("Term", "Calls", "Time in I/O (95 %)", "Where traced"), rows


def stream_rows(found: ApplicationPrediction) -> tuple[Sequence[str], list[tuple[str, ...]]]:
    """Return heads and a row for each stream of each phase."""
    caches = [f"Misses {format_bytes(cache.cache_bytes.value)}" for cache in found.caches]
    rows = [
        (
            f"{each.phase + 1}",
            f"{each.kind} {'writes' if each.write else 'reads'}",
            f"{each.requests:,.0f}",
            format_bytes(each.size_mean),
            *(say_percent(miss) for miss in each.misses),
            format_seconds(each.seconds),
            format_seconds(each.seconds / max(each.requests, 1e-9)),
        )
        for each in found.streams
    ]
    return ("Phase", "Stream", "Requests", "Mean size", *caches, "Time", "Each"), rows
