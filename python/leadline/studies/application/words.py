"""What is told of an application: its five numbers, its time in I/O, its caches, its streams."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from leadline.record.application import FiveParameters, PhaseFound, Reuse, Stream, TraceFacts
from leadline.record.finding import Finding
from leadline.record.wording import join_words, say_count, say_number
from leadline.units import format_bytes, format_seconds, say_percent

IN_IO_MIN = 0.05
"""Below it what storage does hardly matters to the application."""
FIRST_TOUCHES_MAX = 0.5
NOTHING_TO_SAVE = 0.99
"""First touches of all references."""
FEW_AGAIN = 0.3
"""Of a stream's references: with fewer of pages that were used before, its size is a guess."""
_UNSEEN = {
    "mmap": "file was mapped and its pages used without a call (mmap)",
    "io_uring": "call handed requests to io_uring, which no system call shows",
    "msync": "mapped file was made safe (msync), whose writes are not seen",
    "O_DSYNC": "file was opened so that each write waits until it is safe (O_DSYNC, O_SYNC)",
    "libaio": "call handed requests to libaio, which is not read",
    "O_DIRECT": "file was opened past the file cache (O_DIRECT), which holds none of it",
    "wait": "pause was written, which has no request to belong to",
    "MPI-IO": "request of MPI-IO is left out: those of POSIX that it became are there",
}


def say_five(system: str, five: FiveParameters) -> str:
    """Say CP94's five numbers in one sentence."""
    at_once = (
        "how many are on their way at once the trace does not say"
        if five.process_num is None
        else f"{say_number(five.process_num)} on their way at once"
    )
    return (
        f"{system} touches {format_bytes(five.unique_bytes)} of data (unique_bytes) in requests of "
        f"{format_bytes(five.size_mean)} (size_mean), {say_percent(five.read_frac)} of them reads "
        f"(read_frac), {say_percent(five.seq_frac)} sequential (seq_frac), {at_once} (process_num)."
    )


def say_time(
    facts: TraceFacts,
    seconds: float | None,
    in_io: float | None,
    parts: Sequence[tuple[str, float]],
) -> str:
    """Say how much of the time is I/O, and what of that is for what."""
    if seconds is None or facts.times == "none":
        return "The trace says no times, so that nothing is known of its time in I/O."
    if in_io is None:
        return (
            f"It took {format_seconds(seconds)}; the trace does not say how long requests took, so "
            "that its time in I/O is not known."
        )
    all_s = sum(each for _, each in parts)
    told = [f"{say_percent(each / all_s)} {name}" for name, each in parts if all_s > 0 and each > 0]
    for_what = f": of the time of requests {join_words(told)}" if len(told) > 1 else ""
    whose = "a device was at work" if facts.below_the_cache else "it was in I/O"
    return f"In {say_percent(in_io)} of its {format_seconds(seconds)} {whose}{for_what}."


def say_caches(reuse: Reuse) -> str:
    """Say which cache saves half of what any can, and what no cache can."""
    first = reuse.first_touches
    none = (
        f"{say_percent(first)} of its references to pages are the first to theirs, which no cache "
        "saves"
    )
    if first > NOTHING_TO_SAVE:
        return f"No cache helps it: {none}."
    size = half_way(reuse)
    lists = reuse.two_lists_misses(size)
    beside = "" if lists is None else f", {say_percent(lists)} by Linux's two lists"
    return (
        f"A cache of {format_bytes(size)} misses {say_percent(reuse.lru_misses(size))}"
        f"{_error_at(reuse, size)} under LRU{beside}; {none}."
    )


def _error_at(reuse: Reuse, size: float) -> str:
    """Say half of the 95 % interval of a sampled miss ratio; nothing where every page was seen.

    It is that of the nearest size that is told.
    """
    told = [point for point in reuse.points if point.lru_error is not None]
    if not told:
        return ""
    if size < told[0].cache_bytes:
        return " (a guess: the sample tells nothing of caches so small)"
    near = min(told, key=lambda point: abs(math.log(point.cache_bytes / size)))
    return f" ± {say_percent(1.96 * (near.lru_error or 0.0))}"


def half_way(reuse: Reuse) -> float:
    """Return the bytes of the smallest LRU cache that saves half of what any can."""
    wanted = (1.0 + reuse.first_touches) / 2
    low, high = 0.0, 1.1 * reuse.unique_pages * reuse.page_bytes
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if reuse.lru_misses(middle) <= wanted else (middle, high)
    return high


def say_phases(phases: Sequence[PhaseFound]) -> str:
    """Say how many phases there are, and what the longest is made of."""
    longest = max(phases, key=lambda phase: phase.requests)
    share = longest.requests / max(1, sum(phase.requests for phase in phases))
    streams = join_words([say_stream(each) for each in longest.streams[:3]])
    rest = len(longest.streams) - 3
    more = f", and {say_count(rest, 'lighter stream')}" if rest > 0 else ""
    if len(phases) == 1:
        return f"It is one phase: {streams}{more}."
    return (
        f"It has {len(phases)} phases; phase {longest.order + 1}, {say_percent(share)} of the "
        f"requests, is {streams}{more}."
    )


def say_stream(stream: Stream) -> str:
    """Say a stream in a few words: `62 % uniform over 12 MiB`."""
    over = f"over {format_bytes(stream.unique_bytes)}"
    if stream.kind == "moving":
        over = f"within {format_bytes(stream.unique_bytes)}"
    return f"{say_percent(stream.weight)} {stream.kind} {over}"


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
