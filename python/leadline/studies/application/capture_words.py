"""What is told of a capture: how it was seen, what speaks against it, and what to do."""

from __future__ import annotations

import signal
from collections.abc import Iterator

from leadline.record.application import Capture, CommandEnded, Perturbation
from leadline.record.application.capture import BYTES_OFF_MAX, LOST_MAX
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


def warnings_of_capture(capture: Capture | None, requested_bytes: int) -> Iterator[str]:
    """Say what speaks against a capture, and what to do about it."""
    if capture is None:
        return
    yield from _about_the_end(capture)
    off = capture.bytes_off
    if off is not None and off > BYTES_OFF_MAX:
        yield (
            f"bytes off: what was seen is {say_percent(off)} off what the kernel counted; kept, "
            "but no prediction rests on it: run it again alone, as root where it was seen by ptrace"
        )
    if capture.lost_share > LOST_MAX:
        yield (
            f"lost: {say_percent(capture.lost_share)} of the calls found no room; kept, but no "
            "prediction rests on it: run it again with less at once, or on a machine less busy"
        )
    if capture.not_kept is not None:
        yield f"trace not kept: {capture.not_kept}; the description is whole without it"
    mapped = capture.mapped_bytes
    if mapped is not None and mapped > MAPPED_MAX * (mapped + requested_bytes):
        yield (
            f"mapped: {format_bytes(mapped)} of files were used by mappings (mmap), beside "
            f"{format_bytes(requested_bytes)} by requests; only the first touch of a page is seen, "
            "so have it read instead of map if it can (such as SQLite's PRAGMA mmap_size=0)"
        )
    yield from _about_who(capture)


def _about_the_end(capture: Capture) -> Iterator[str]:
    ended = capture.ended
    if capture.stopped:
        yield (
            f"stopped early by {_signal(capture.stopped)}: what was seen until then is described"
        )
    elif ended is not None and ended.signal is not None:
        yield f"ended by {_signal(ended.signal)}: what it did until then is described"
    elif ended is not None and ended.code:
        yield f"failed, with exit code {ended.code}: what it did is described"
    if ended is not None and capture.left_running:
        yield (
            f"{say_count(capture.left_running, 'process')} of the command went on when "
            "it had ended, and what they do now is not seen: watch them with --pid"
        )


def _about_who(capture: Capture) -> Iterator[str]:
    if capture.no_bpf:
        yield (
            f"slowed down: it was stopped at each call, since BPF is refused ({capture.no_bpf}); "
            "run as root for a hundredth of that"
        )
    if capture.rights_lost:
        yield (
            f"{say_count(capture.rights_lost, 'program')} (such as sudo or ping) would have gained "
            "rights and did not while traced without root: run Leadline as root"
        )
    if capture.calls_of_32_bits:
        yield (
            f"{say_count(capture.calls_of_32_bits, 'call')} by programs of 32 bits are not "
            "understood and left out: run programs of 64 bits"
        )
    if capture.threads_missed:
        yield (
            f"{say_count(capture.threads_missed, 'thread')} came when as many as are kept were "
            "watched, and are not seen: watch a part of it with --pid"
        )
