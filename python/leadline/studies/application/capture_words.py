"""What is told of a capture: how it was seen, what speaks against it, and what to do."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from leadline.record.application import Capture, CommandEnded, Perturbation
from leadline.record.application.capture import BYTES_OFF_MAX, LOST_MAX
from leadline.record.finding import Finding
from leadline.record.wording import say_count, say_number
from leadline.units import format_bytes, say_percent

MAPPED_MAX = 0.1
"""Of all bytes: with more by mappings, what requests say is not the whole."""
_WAYS = {
    "bpf": "by programs in the kernel (BPF) at each system call",
    "ptrace": "by stopping it at each call (ptrace), which slows it down",
}
_BLIND = "It does not see requests of io_uring and libaio, nor how mapped pages are used again"


def say_capture(capture: Capture | None) -> Iterator[str]:
    """Say how it was seen, what is missing, and what cannot be seen so."""
    if capture is None:
        return
    lost = "none was lost" if not capture.lost else f"{capture.lost:,} were lost"
    yield (
        f"It was seen {_WAYS[capture.way]}: {say_count(capture.calls, 'call')}, {lost}; "
        f"{_say_bytes(capture)}."
    )
    pages = "" if capture.mapped_bytes is not None else ", nor how much of mapped files is used"
    yield f"{_BLIND}{pages}."
    if capture.perturbation is not None:
        yield _say_perturbation(capture.perturbation)


def _say_bytes(capture: Capture) -> str:
    if capture.counted_bytes is None or capture.bytes_off is None:
        return "its bytes are unchecked: the count in /proc/PID/io could not be read"
    counted = format_bytes(sum(capture.counted_bytes))
    if capture.bytes_off == 0:
        return f"its bytes are those of /proc/PID/io, {counted}"
    return f"its bytes are {say_percent(capture.bytes_off)} off those of /proc/PID/io, {counted}"


def _say_perturbation(found: Perturbation) -> str:
    ends = (
        ""
        if found.low is None or found.high is None
        else f" ({say_number(found.low)} to {say_number(found.high)}, 95 %)"
    )
    return (
        f"Watched it took {say_number(found.ratio)} of its time unwatched{ends}, from "
        f"{say_count(found.pairs, 'pair')} of runs in turns."
    )


def say_ended(ended: CommandEnded | None) -> str:
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
