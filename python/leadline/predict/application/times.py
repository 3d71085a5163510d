"""How long an application's phases take in all, once its time in I/O is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from leadline.record import Interval
from leadline.record.application import PhaseFound


def at_once(phase: PhaseFound) -> float:
    """Return the requests that are on their way while any is; one where the trace tells nothing."""
    return max(1.0, phase.on_their_way or phase.workload.process_num or 1.0)


def traced_io_s(phases: Sequence[PhaseFound]) -> float | None:
    """Return the time in I/O where the application was traced; None where that is not known."""
    parts = [_in_io_s(phase) for phase in phases]
    return None if None in parts else sum(part or 0.0 for part in parts)


def _length_s(phase: PhaseFound) -> float | None:
    if phase.from_s is None or phase.to_s is None:
        return None
    return phase.to_s - phase.from_s


def _in_io_s(phase: PhaseFound) -> float | None:
    length = _length_s(phase)
    return None if length is None or phase.in_io is None else length * phase.in_io


def elapsed_of(
    phases: Sequence[PhaseFound], shares: Mapping[int, float], io: Interval
) -> tuple[Interval | None, str | None]:
    """Return the time in all, or why it is not known.

    What a phase does besides I/O it does elsewhere as long as it did where it was traced. A closed
    phase does one after the other; an open one is paced from outside, and takes as long as it did
    unless its I/O takes longer. One that may be either counts as closed.

    Args:
        phases: of the application.
        shares: of the time in I/O, by phase.
        io: time in I/O, of all phases.

    """
    lengths = [_length_s(phase) for phase in phases]
    ios = [_in_io_s(phase) for phase in phases]
    if None in lengths or None in ios:
        return None, (
            "the trace does not say how long requests took, so that what the application does "
            "besides I/O is not known"
        )

    def elapsed(io_s: float) -> float:
        total = 0.0
        for phase, length, in_io in zip(phases, lengths, ios, strict=True):
            own = io_s * shares.get(phase.order, 0.0)
            if phase.loop == "open":
                total += max(length or 0.0, own)
            else:
                total += (length or 0.0) - (in_io or 0.0) + own
        return total

    ends = [None if end is None else elapsed(end) for end in (io.low, io.high)]
    return Interval(elapsed(io.value), ends[0], ends[1], io.n), None
