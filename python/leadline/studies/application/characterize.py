"""Characterise a trace: read, described, kept."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from leadline.inputs import STDIN
from leadline.machine.stop import shielded
from leadline.record import Status
from leadline.record.application import (
    APPLICATION,
    SYNC_CALLS,
    Application,
    ApplicationFound,
    ApplicationStart,
    PhaseFound,
)
from leadline.store import Keeper
from leadline.studies.application.capture_words import findings_of_capture, say_capture
from leadline.studies.application.phases import describe_phases, five_of
from leadline.studies.application.times import has_durations, time_in_io
from leadline.studies.application.trace import PAGE_BYTES, Part, Trace, read_trace
from leadline.studies.application.words import (
    findings_of,
    say_caches,
    say_five,
    say_phases,
    say_time,
)

CACHES = 28
"""Sizes of cache for which both policies are told."""
CACHE_PAGES_MIN = 64


def characterize_trace(
    path: str,
    store: Keeper,
    *,
    name: str | None = None,
    on_bytes: Callable[[int], object] = lambda _: None,
    on_read: Callable[[], object] = lambda: None,
) -> Application:
    """Describe the application that a trace is of; kept when it is known whole.

    Args:
        path: the trace, or `-` for standard input.
        store: where it is kept.
        name: of the application; its trace's name without an ending otherwise.
        on_bytes: told how much of the trace was read.
        on_read: told that all of it was.

    Raises:
        InputRefused: there is no such file.
        TraceRefused: it cannot be read, or not be described.

    """
    began = time.monotonic()
    trace = read_trace(path, on_bytes)
    on_read()
    start = ApplicationStart(
        study_id=uuid.uuid4().hex,
        system=name or _named(path),
        started_at=datetime.now(UTC).isoformat(),
        trace="standard input" if path == STDIN else path,
        facts=trace.facts,
    )
    return describe(trace, start, store, began)


def describe(trace: Trace, start: ApplicationStart, store: Keeper, began: float) -> Application:
    """Describe what was read or seen, and keep it; `began` is a reading of the monotonic clock."""
    phases = describe_phases(trace, start.study_id)
    found = _found(start, trace, phases, began)
    with shielded():  # a stop waits: half of it is nothing
        store.begin(APPLICATION, start)
        for phase in phases:
            store.add(start.study_id, phase)
        store.end(start.study_id, found, Status.DONE)
    return Application(start=start, status=Status.DONE, found=found, phases=phases)


def _named(path: str) -> str:
    return "application" if path == STDIN else Path(path).name.split(".")[0] or "application"


def _found(
    start: ApplicationStart, trace: Trace, phases: tuple[PhaseFound, ...], began: float
) -> ApplicationFound:
    whole, facts = trace.whole, trace.facts
    five = five_of(whole, facts)
    reuse = trace.reuse(_cache_pages(five.unique_bytes / PAGE_BYTES, whole.rate))
    in_io = time_in_io(whole, facts).share
    seconds = whole.to_s - whole.from_s if facts.times != "none" else None
    parts = _parts(whole) if has_durations(whole, facts) else ()
    sentences = (
        say_five(start.system, five),
        say_time(facts, seconds, in_io, parts),
        say_caches(reuse),
        say_phases(phases),
        *say_capture(start.capture),
    )
    return ApplicationFound(
        wall_s=time.monotonic() - began,
        seconds=seconds,
        workload=five,
        read_bytes=whole.read_bytes,
        written_bytes=whole.written_bytes,
        in_io=in_io,
        in_calls_s=parts,
        reuse=reuse,
        sentences=sentences,
        findings=(
            *findings_of_capture(start.capture, whole.read_bytes + whole.written_bytes),
            *findings_of(facts, reuse, in_io, phases),
        ),
    )


def _parts(whole: Part) -> tuple[tuple[str, float], ...]:
    """Seconds of calls by what they were for, as far as they took any."""
    (_, reads_s), (_, writes_s) = whole.timed
    syncs_s = sum(each.seconds for each in whole.calls if each.name in SYNC_CALLS)
    rest_s = sum(each.seconds for each in whole.calls) - syncs_s
    parts = (("reads", reads_s), ("writes", writes_s), ("syncs", syncs_s), ("metadata", rest_s))
    return tuple((name, seconds) for name, seconds in parts if seconds > 0)


def _cache_pages(unique_pages: float, rate: float) -> list[int]:
    """Sizes evenly spread, on a logarithmic scale, up to one that holds everything.

    The smallest has so many pages in the sample: of fewer, one hot page decides the ratio.
    """
    least = CACHE_PAGES_MIN / rate
    most = max(2.0 * least, 1.1 * unique_pages)
    return sorted({round(size) for size in np.geomspace(least, most, CACHES)})
