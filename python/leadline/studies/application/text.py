"""The tables of an application: CP94's five, caches, phases, streams, calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import RenderableType

from leadline.charts.terminal import Terminal, on_terminal
from leadline.record.application import (
    APPLICATION,
    Application,
    CallCount,
    Capture,
    FiveParameters,
    PhaseFound,
    Stream,
)
from leadline.record.application.reuse import MissRatio
from leadline.record.wording import format_number
from leadline.studies.application.characterize import STREAM_WORDS, load_application
from leadline.studies.application.streams import stream_rows as rows_to_export
from leadline.studies.registry import Kind, first
from leadline.units import format_bytes, format_percent, format_seconds

FIVE_HEADS = ("", "unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num", "I/O time")
CACHE_HEADS = ("Page cache", "Misses under LRU", "Under active/inactive LRU")
STREAM_HEADS = (
    "Phase",
    "Stream",
    "Requests",
    "Bytes",
    "Data",
    "Mean request",
    "Reads",
    "Sequential",
)
PHASE_HEADS = (
    "Phase",
    "From",
    "To",
    "Requests",
    "Syncs",
    "Dirty at a sync",
    "Gap p50",
    "p99",
    "Loop",
)
CALL_HEADS = ("Call", "Calls", "Time")
FILE_HEADS = ("File", "Requests", "Read", "Written")
UNKNOWN = "n.m."
_SHOWN = 8
"""Rows of the table of caches."""


def five_rows(study: Application) -> list[tuple[str, ...]]:
    """Return the five numbers of the whole, and of each phase where there are several."""
    rows = [_five("whole trace", study.found.workload, study.found.in_io)]
    if len(study.phases) > 1:
        rows += [
            _five(f"phase {each.order + 1}", each.workload, each.in_io) for each in study.phases
        ]
    return rows


def _five(name: str, five: FiveParameters, in_io: float | None) -> tuple[str, ...]:
    return (
        name,
        format_bytes(five.unique_bytes),
        format_bytes(five.size_mean),
        format_percent(five.read_frac),
        format_percent(five.seq_frac),
        UNKNOWN if five.process_num is None else format_number(five.process_num),
        UNKNOWN if in_io is None else format_percent(in_io),
    )


def cache_rows(study: Application) -> list[tuple[str, ...]]:
    """Return miss ratios of some sizes, evenly spread over those known."""
    return [
        (
            format_bytes(point.cache_bytes),
            format_percent(point.lru)
            + ("" if point.lru_error is None else f" ± {format_percent(1.96 * point.lru_error)}"),
            UNKNOWN if point.two_lists is None else format_percent(point.two_lists),
        )
        for point in shown_points(study)
    ]


def shown_points(study: Application) -> list[MissRatio]:
    """Return the sizes of cache of the table's rows."""
    points = study.found.reuse.points
    places = sorted({round(place * (len(points) - 1) / (_SHOWN - 1)) for place in range(_SHOWN)})
    return [points[place] for place in places]


def stream_rows(phases: tuple[PhaseFound, ...], least: float = 0.0) -> list[tuple[str, ...]]:
    """Return a row for each stream of each phase that has so much of its requests or bytes."""
    return [
        _stream(phase, stream)
        for phase in phases
        for stream in phase.streams
        if max(stream.weight, stream.bytes_weight) >= least
    ]


def _stream(phase: PhaseFound, stream: Stream) -> tuple[str, ...]:
    return (
        str(phase.order + 1),
        STREAM_WORDS[stream.kind],
        format_percent(stream.weight),
        format_percent(stream.bytes_weight),
        format_bytes(stream.unique_bytes),
        format_bytes(stream.size_mean),
        format_percent(stream.read_frac),
        format_percent(stream.seq_frac),
    )


def phase_rows(phases: tuple[PhaseFound, ...]) -> list[tuple[str, ...]]:
    """Return a row for each phase: when, syncs, gaps, and whether requests wait for others."""
    return [
        (
            str(phase.order + 1),
            _seconds(phase.from_s),
            _seconds(phase.to_s),
            f"{phase.requests:,}",
            f"{phase.syncs:,}",
            UNKNOWN
            if phase.dirty_at_sync_bytes is None
            else format_bytes(phase.dirty_at_sync_bytes),
            UNKNOWN if phase.gaps is None else format_seconds(phase.gaps.p50_s),
            UNKNOWN if phase.gaps is None else format_seconds(phase.gaps.p99_s),
            phase.loop,
        )
        for phase in phases
    ]


def call_rows(phases: tuple[PhaseFound, ...]) -> list[tuple[str, ...]]:
    """Return syncs and calls about files of all phases together, most frequent first."""
    sums: dict[str, CallCount] = {}
    for call in (call for phase in phases for call in phase.calls):
        before = sums.get(call.name, CallCount(name=call.name, calls=0, seconds=0.0))
        sums[call.name] = CallCount(
            name=call.name, calls=before.calls + call.calls, seconds=before.seconds + call.seconds
        )
    return [
        (each.name, f"{each.calls:,}", format_seconds(each.seconds) if each.seconds else UNKNOWN)
        for each in sorted(sums.values(), key=lambda each: -each.calls)
    ]


def file_rows(study: Application) -> list[tuple[str, ...]]:
    """Return the files with most bytes, of a program that was seen as it ran."""
    capture = study.start.capture
    return [
        (
            each.name,
            f"{each.requests:,}",
            format_bytes(each.read_bytes),
            format_bytes(each.written_bytes),
        )
        for each in (capture.files if capture is not None else ())
    ]


def _seconds(seconds: float | None) -> str:
    return UNKNOWN if seconds is None else format_seconds(seconds)


# An application on a terminal: the answer, a miss-ratio curve, tables.

_BAR = 40
_FILES = 5
"""Of those with most bytes; the others are on the page and in --json."""
_LEAST = 0.05
"""Of a phase's requests or bytes: lighter streams are on the page and in --json."""


@on_terminal
def render_application(terminal: Terminal, study: Application) -> Iterator[RenderableType]:
    """Tell the sentences, the curve, the streams and the warnings; all of it: every table."""
    yield from terminal.sentences(study.found.sentences)
    if terminal.verbose or len(study.phases) > 1:
        yield terminal.table(FIVE_HEADS, five_rows(study))
    yield from _curve(terminal, study)
    yield terminal.table(STREAM_HEADS, stream_rows(study.phases, _LEAST))
    if terminal.verbose:
        yield terminal.table(PHASE_HEADS, phase_rows(study.phases))
        for heads, rows in (
            (CALL_HEADS, call_rows(study.phases)),
            (FILE_HEADS, file_rows(study)[:_FILES]),
        ):
            if rows:
                yield terminal.table(heads, rows)
    yield from terminal.warnings(study.found.findings)


def _curve(terminal: Terminal, study: Application) -> Iterator[RenderableType]:
    """Draw what misses by LRU as bars beside the numbers, when there is room."""
    sign = "#" if terminal.plain else "█"
    step = 1 if terminal.verbose else 2
    rows = cache_rows(study)[::step]
    width = min(_BAR, terminal.width - 60)
    if width < 10:
        yield terminal.table(CACHE_HEADS, rows)
        return
    points = shown_points(study)[::step]
    drawn = [
        (*row, sign * round(width * point.lru)) for row, point in zip(rows, points, strict=True)
    ]
    yield terminal.table((*CACHE_HEADS, "Misses"), drawn)


# An application as JSON.


def application_document(study: Application) -> dict[str, Any]:
    """The keys that `characterize --json` promises (docs/concepts/characterize.md)."""
    start, found = study.start, study.found
    return {
        "application": start.study_id,
        "system": start.system,
        "trace": start.trace,
        "status": study.status,
        "wall_s": found.wall_s,
        "workload": found.workload,
        "seconds": found.seconds,
        "in_io": found.in_io,
        "in_calls_s": dict(found.in_calls_s),
        "read_bytes": found.read_bytes,
        "written_bytes": found.written_bytes,
        "miss_ratios": found.reuse.points,
        "reuse": found.reuse,
        "replay": found.steps and found.steps.replay,
        "phases": study.phases,
        "facts": start.facts,
        "capture": _capture(start.capture),
        "predictable": study.predictable,
        "sentences": found.sentences,
        "findings": [each.document() for each in found.findings],
    }


def _capture(capture: Capture | None) -> dict[str, Any] | None:
    """What was seen of a running program, with what it comes to; None of a trace."""
    if capture is None:
        return None
    return msgspec.structs.asdict(capture) | {
        "bytes_off": capture.bytes_off,
        "lost_share": capture.lost_share,
    }


KIND = Kind(
    APPLICATION,
    load=load_application,
    document=application_document,
    render=render_application,
    rows=lambda store, study_id: rows_to_export(load_application(store, study_id)),
    page="leadline.studies.application.charts",
    ending="-application.html",
    headline=lambda study: first(study.found.sentences),
)
