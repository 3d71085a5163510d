"""An application described, from a trace or a capture: numbers, caches and words."""

from __future__ import annotations

import math
import signal
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec
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
    Capture,
    CommandEnded,
    FiveParameters,
    Perturbation,
    PhaseFound,
    Reuse,
    Stream,
    TraceFacts,
)
from leadline.record.application.capture import BYTES_OFF_MAX, LOST_MAX
from leadline.record.finding import Finding
from leadline.record.wording import format_count, format_number, join_words
from leadline.store import Keeper, Store, StoreError
from leadline.studies.application.streams import describe_phases, five_of
from leadline.studies.application.trace import (
    PAGE_BYTES,
    Part,
    Trace,
    has_durations,
    read_trace,
    time_in_io,
)
from leadline.units import format_bytes, format_ci, format_percent, format_seconds

# What is told of a capture: how it was seen, what speaks against it, and what to do.

MAPPED_MAX = 0.1
"""Of all bytes: with more by mappings, what requests say is not the whole."""
_WAYS = {
    "bpf": "by BPF at each system call",
    "ptrace": "by ptrace, which stops it at each call and slows it down",
}
_BLIND = "Not seen: requests of io_uring and libaio, reuse of mapped pages"


def format_capture(capture: Capture | None) -> Iterator[str]:
    """Say how it was seen, what is missing, and what cannot be seen so."""
    if capture is None:
        return
    lost = "none lost" if not capture.lost else f"{capture.lost:,} lost"
    yield (
        f"Traced {_WAYS[capture.way]}: {format_count(capture.calls, 'call')}, {lost}; "
        f"{_format_bytes(capture)}."
    )
    pages = "" if capture.mapped_bytes is not None else ", bytes used of mapped files"
    yield f"{_BLIND}{pages}."
    if capture.perturbation is not None:
        yield _format_perturbation(capture.perturbation)


def _format_bytes(capture: Capture) -> str:
    if capture.counted_bytes is None or capture.bytes_off is None:
        return "bytes unchecked: /proc/PID/io could not be read"
    counted = format_bytes(sum(capture.counted_bytes))
    if capture.bytes_off == 0 and capture.edge_bytes:
        edge = f"{format_bytes(capture.edge_bytes)} moved while tracing began or ended"
        return f"bytes equal to /proc/PID/io, {counted}, within {edge}"
    if capture.bytes_off == 0:
        return f"bytes equal to /proc/PID/io, {counted}"
    return f"bytes {format_percent(capture.bytes_off)} off /proc/PID/io, {counted}"


def _format_perturbation(found: Perturbation) -> str:
    ratio = format_number(found.ratio)
    if found.low is not None and found.high is not None:
        ratio = format_ci(ratio, format_number(found.low), format_number(found.high), level=0.95)
    runs = format_count(found.pairs, "interleaved pair")
    return f"Tracing overhead: {ratio} of the untraced time ({runs} of runs)."


def format_ended(ended: CommandEnded | None) -> str:
    """Say of a command that failed how it ended; nothing of one that did not."""
    if ended is None or ended.code == 0:
        return ""
    if ended.signal is not None:
        return f" (ended by {_signal(ended.signal)})"
    return f" (exit code {ended.code})"


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def findings_of_capture(capture: Capture | None, requested_bytes: int) -> Iterator[Finding]:
    """Find what speaks against a capture."""
    if capture is None:
        return
    yield from _about_the_end(capture)
    off = capture.bytes_off
    if off is not None and off > BYTES_OFF_MAX:
        yield Finding.of("bytes_off", off_frac=off)
    if capture.lost_share > LOST_MAX:
        yield Finding.of("calls_lost", lost_frac=capture.lost_share)
    if capture.not_kept is not None:
        yield Finding.of("trace_not_kept", why=capture.not_kept)
    mapped = capture.mapped_bytes
    if mapped is not None and mapped > MAPPED_MAX * (mapped + requested_bytes):
        yield Finding.of("mapped", mapped_bytes=mapped, requested_bytes=requested_bytes)
    yield from _about_who(capture)


def _about_the_end(capture: Capture) -> Iterator[Finding]:
    ended = capture.ended
    if capture.stopped:
        yield Finding.of("watching_stopped", signal=_signal(capture.stopped))
    elif ended is not None and ended.signal is not None:
        yield Finding.of("ended_by_signal", signal=_signal(ended.signal))
    elif ended is not None and ended.code:
        yield Finding.of("ended_with_code", exit_code=ended.code)
    if ended is not None and capture.left_running:
        yield Finding.of("left_running", processes=capture.left_running)


def _about_who(capture: Capture) -> Iterator[Finding]:
    if capture.no_bpf:
        yield Finding.of("slowed_down", why=capture.no_bpf)
    if capture.rights_lost:
        yield Finding.of("rights_lost", programs=capture.rights_lost)
    if capture.calls_of_32_bits:
        yield Finding.of("calls_of_32_bits", calls=capture.calls_of_32_bits)
    if capture.threads_missed:
        yield Finding.of("threads_missed", threads=capture.threads_missed)


# What is told of an application: its five numbers, its time in I/O, its caches, its streams.

IN_IO_MIN = 0.05
"""Below it what storage does hardly matters to the application."""
FIRST_TOUCHES_MAX = 0.5
NOTHING_TO_SAVE = 0.99
"""Compulsory misses of all references."""
FEW_AGAIN = 0.3
"""Of a stream's references: with fewer of pages that were used before, its size is a guess."""
_UNSEEN = {
    "mmap": "file was mapped and its pages used without a call (mmap)",
    "io_uring": "call handed requests to io_uring, which no system call shows",
    "msync": "mapped file was made safe (msync), whose writes are not seen",
    "O_DSYNC": "file was opened so that each write waits until it is safe (O_DSYNC, O_SYNC)",
    "libaio": "call handed requests to libaio, which is not read",
    "O_DIRECT": "file was opened for direct I/O (O_DIRECT), which holds none of it",
    "wait": "pause was written, which has no request to belong to",
    "MPI-IO": "request of MPI-IO is left out: those of POSIX that it became are there",
}


def format_five(system: str, five: FiveParameters) -> str:
    """Say CP94's five numbers in one sentence."""
    depth = "unknown" if five.process_num is None else format_number(five.process_num)
    return (
        f"{system}: working set {format_bytes(five.unique_bytes)}, mean request "
        f"{format_bytes(five.size_mean)}, {format_percent(five.read_frac)} reads, "
        f"{format_percent(five.seq_frac)} sequential, mean queue depth {depth}."
    )


def format_time(
    facts: TraceFacts,
    seconds: float | None,
    in_io: float | None,
    parts: Sequence[tuple[str, float]],
) -> str:
    """Say how much of the time is I/O, and what of that is for what."""
    if seconds is None or facts.times == "none":
        return "I/O time: unknown, the trace has no times."
    if in_io is None:
        return (
            f"Elapsed time: {format_seconds(seconds)}; I/O time unknown, the trace has no request "
            "durations."
        )
    all_s = sum(each for _, each in parts)
    told = [
        f"{format_percent(each / all_s)} {name}" for name, each in parts if all_s > 0 and each > 0
    ]
    for_what = f": {join_words(told)}" if len(told) > 1 else ""
    whose = "Device busy" if facts.below_the_cache else "I/O time"
    return f"{whose}: {format_percent(in_io)} of {format_seconds(seconds)} elapsed{for_what}."


def format_caches(reuse: Reuse) -> str:
    """Say which cache saves half of what any can, and what no cache can."""
    first = reuse.first_touches
    none = f"compulsory misses {format_percent(first)}"
    if first > NOTHING_TO_SAVE:
        return f"No cache helps: {none}."
    size = half_way(reuse)
    lists = reuse.two_lists_misses(size)
    beside = "" if lists is None else f", active/inactive LRU {format_percent(lists)}"
    return (
        f"Miss ratio at {format_bytes(size)}: LRU {format_percent(reuse.lru_misses(size))}"
        f"{_error_at(reuse, size)}{beside}; {none}."
    )


def _error_at(reuse: Reuse, size: float) -> str:
    """Say half of the 95% interval of a sampled miss ratio; nothing where every page was seen.

    It is that of the nearest size that is told.
    """
    told = [point for point in reuse.points if point.lru_error is not None]
    if not told:
        return ""
    if size < told[0].cache_bytes:
        return " (extrapolated: the sample covers no cache so small)"
    near = min(told, key=lambda point: abs(math.log(point.cache_bytes / size)))
    return f" ± {format_percent(1.96 * (near.lru_error or 0.0))}"


def half_way(reuse: Reuse) -> float:
    """Return the bytes of the smallest LRU cache that saves half of what any can."""
    wanted = (1.0 + reuse.first_touches) / 2
    low, high = 0.0, 1.1 * reuse.unique_pages * reuse.page_bytes
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if reuse.lru_misses(middle) <= wanted else (middle, high)
    return high


def format_phases(phases: Sequence[PhaseFound]) -> str:
    """Say how many phases there are, and what the longest is made of."""
    longest = max(phases, key=lambda phase: phase.requests)
    share = longest.requests / max(1, sum(phase.requests for phase in phases))
    streams = join_words([format_stream(each) for each in longest.streams[:3]])
    rest = len(longest.streams) - 3
    more = f", and {format_count(rest, 'lighter stream')}" if rest > 0 else ""
    if len(phases) == 1:
        return f"One phase: {streams}{more}."
    return (
        f"{len(phases)} phases; phase {longest.order + 1}, {format_percent(share)} of the "
        f"requests: {streams}{more}."
    )


STREAM_WORDS: dict[str, str] = {
    "uniform": "uniform",
    "loop": "cyclic",
    "once-only": "scan",
    "moving": "sliding window",
}
"""Kinds of streams as people know them."""


def format_stream(stream: Stream) -> str:
    """Say a stream in a few words: `62% uniform over 12 MiB`."""
    over = f"over {format_bytes(stream.unique_bytes)}"
    if stream.kind == "moving":
        over = f"within {format_bytes(stream.unique_bytes)}"
    return f"{format_percent(stream.weight)} {STREAM_WORDS[stream.kind]} {over}"


def findings_of(
    facts: TraceFacts, reuse: Reuse, in_io: float | None, phases: Sequence[PhaseFound]
) -> Iterator[Finding]:
    """Find what speaks against the answer."""
    if facts.below_the_cache:
        yield Finding.of("block_trace")
    yield from _about_times(facts, in_io)
    if reuse.first_touches > FIRST_TOUCHES_MAX:
        yield Finding.of("first_touches", first_frac=reuse.first_touches)
    guessed = [
        stream
        for phase in phases
        for stream in phase.streams
        if stream.kind == "uniform" and stream.weight > 0.05 and stream.seen_again < FEW_AGAIN
    ]
    if guessed:
        yield Finding.of("sizes_guessed", streams=len(guessed), again_frac=FEW_AGAIN)
    yield from _about_lines(facts)


def _about_times(facts: TraceFacts, in_io: float | None) -> Iterator[Finding]:
    if facts.times == "none":
        yield Finding.of("no_times")
    if facts.times == "whole seconds":
        yield Finding.of("whole_seconds")
    if facts.format == "strace" and facts.timed:
        yield Finding.of("durations_by_strace")
    if in_io is not None and in_io < IN_IO_MIN and not facts.below_the_cache:
        yield Finding.of("little_io", io_frac=in_io)


def _about_lines(facts: TraceFacts) -> Iterator[Finding]:
    unread, first = facts.unread
    if unread:
        yield Finding.of("lines_unread", unread=unread, lines=facts.lines, first=first)
    if facts.late:
        yield Finding.of("requests_late", requests=facts.late)
    if facts.unplaced_bytes:
        yield Finding.of("bytes_unplaced", unplaced_bytes=facts.unplaced_bytes)
    for name, count in facts.unseen:
        yield Finding.of("calls_unseen", calls=count, what=_UNSEEN.get(name, name))


# Characterise a trace: read, described, kept.

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
    found = msgspec.structs.replace(
        _found(start, trace, phases, began), steps=trace.steps(start.system, start.study_id)
    )
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
        format_five(start.system, five),
        format_time(facts, seconds, in_io, parts),
        format_caches(reuse),
        format_phases(phases),
        *format_capture(start.capture),
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


# Stored applications, as they are told.


def load_application(store: Store, ref: str) -> Application:
    """Return a stored application.

    Raises:
        StoreError: none, or several, go by this reference, or it was killed while it was kept.

    """
    found = store.find(ref, APPLICATION)
    if found.answer is None:
        raise StoreError(
            f"application {found.start.study_id[:8]} was not kept whole: its program was killed "
            f"then; characterise {found.start.trace} again"
        )
    phases = tuple(store.items(found.start.study_id))
    return Application(start=found.start, status=found.status, found=found.answer, phases=phases)
