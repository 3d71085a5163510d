"""A trace as the engine has read it, and what it answers (crates/trace)."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from leadline import _engine
from leadline.errors import LeadlineError
from leadline.inputs import open_regular
from leadline.record.application import Gaps, Loop, Reuse, TraceFacts
from leadline.record.jobs.replay import KeptSteps, Replay
from leadline.record.wording import format_number
from leadline.units import format_percent

PAGE_BYTES = 4096
"""Of what a cache keeps (crates/trace)."""
REQUESTS_MIN = 1000
"""Of fewer, shares are known to no better than 3%, and reuse not at all."""


class TraceRefused(LeadlineError):
    """A trace that cannot be read or described; the message says why, and what to do instead."""

    exit_code = 2


class TraceStopped(LeadlineError):
    """The reading of a trace was stopped."""

    exit_code = 3


class Cell(msgspec.Struct, frozen=True):
    """References that are alike (`Cell` of crates/trace)."""

    again: bool
    least: float
    beyond: float
    write: bool
    sequential: bool
    size: int
    references: float
    requests: float
    bytes: float
    after_write: float


class Called(msgspec.Struct, frozen=True):
    """Calls of one name."""

    name: str
    calls: int
    seconds: float


class GapSums(msgspec.Struct, frozen=True):
    """Times between a process's requests."""

    count: int
    mean_s: float
    variation: float
    bins: list[tuple[int, int]]
    overlapping: int


class Outstanding(msgspec.Struct, frozen=True):
    """What requests found outstanding."""

    seen: int
    mean: float
    variance: float
    most: int


class Part(msgspec.Struct, frozen=True):
    """A part of a trace (`Part` of crates/trace, which says what each is)."""

    from_s: float
    to_s: float
    requests: int
    by_class: tuple[int, int, int, int]
    bytes_by_class: tuple[int, int, int, int]
    used_before: float
    others_since: tuple[float, float]
    begins: tuple[int, int]
    sizes: tuple[list[tuple[int, int]], list[tuple[int, int]]]
    timed: tuple[tuple[int, float], tuple[int, float]]
    calls: list[Called]
    syncs: int
    dirty_at_sync: float
    unplaced_bytes: int
    busy_s: float
    device_s: float
    gaps: GapSums
    outstanding: Outstanding
    processes: int
    rate: float
    references: int
    unique_pages: float
    cells: list[Cell]
    pages_by_octave: list[int]

    @property
    def read_bytes(self) -> int:
        """Bytes read."""
        return self.bytes_by_class[0] + self.bytes_by_class[1]

    @property
    def written_bytes(self) -> int:
        """Bytes written."""
        return self.bytes_by_class[2] + self.bytes_by_class[3]


class _About(msgspec.Struct, frozen=True):
    format: str
    below_the_cache: bool
    times: Literal["none", "whole seconds", "known"]
    processes_known: bool
    processes: int
    files: int
    requests: int
    timed: int
    references: int
    kept: int
    slices: int
    lines: int
    unread: tuple[int, int]
    late: int
    unseen: tuple[tuple[str, int], ...]
    memory_bytes: int


class _Features(msgspec.Struct, frozen=True):
    requests: int
    read_size: float | None
    write_size: float | None
    read_frac: float
    seq_frac: float
    syncs: float
    near: tuple[float | None, ...]


class Trace:
    """A trace that has been read."""

    def __init__(self, read: _engine.TraceRead) -> None:
        self._read = read
        about = msgspec.json.decode(read.about(), type=_About)
        self.slices = about.slices
        self.whole = self.part(0, about.slices)
        told = set(TraceFacts.__struct_fields__) & set(_About.__struct_fields__)
        kept = {name: getattr(about, name) for name in told}
        self.facts = TraceFacts(**kept, unplaced_bytes=self.whole.unplaced_bytes)

    def part(self, start: int, end: int) -> Part:
        """Describe the slices from `start` up to before `end`."""
        return msgspec.json.decode(self._read.part(start, end), type=Part)

    def features(self) -> NDArray[np.float64]:
        """Return what tells slices apart, (slices, features): NaN where one says nothing.

        Logarithms of the mean sizes of reads and writes, shares of reads, of sequential requests,
        of syncs to requests, and of references near to their page's last use, at three distances.
        """
        found = msgspec.json.decode(self._read.features(), type=list[_Features])
        rows = [
            (
                _log(each.read_size),
                _log(each.write_size),
                each.read_frac,
                each.seq_frac,
                min(1.0, each.syncs),
                *(np.nan if near is None else near for near in each.near),
            )
            for each in found
        ]
        return np.array(rows, dtype=np.float64)

    def steps(self, name: str, application_id: str) -> KeptSteps | None:
        """Return the requests themselves, as a description keeps them; None of too many."""
        found = self._read.steps()
        if found is None:
            return None
        said, steps = found
        about = {"trace": name, "application_id": application_id, **msgspec.json.decode(said)}
        return KeptSteps(replay=msgspec.convert(about, Replay), packed=zlib.compress(steps))

    def reuse(self, cache_pages: Sequence[int]) -> Reuse:
        """Return how pages are used again, and what misses in caches of so many pages."""
        document = msgspec.json.decode(self._read.misses(list(cache_pages)))
        points = [
            {"cache_bytes": point.pop("pages") * document["page_bytes"], **point}
            for point in document.pop("points")
        ]
        return msgspec.convert(document | {"points": points}, type=Reuse)


def _log(size: float | None) -> float:
    return np.nan if size is None else float(np.log(size))


def read_trace(path: str, on_bytes: Callable[[int], object] = lambda _: None) -> Trace:
    """Read a trace to its end, and see that it can be described.

    Args:
        path: the file, or `-` for standard input.
        on_bytes: told how many bytes were read, every half million lines.

    Raises:
        InputRefused: there is no such file, or it is none.
        TraceRefused: it is no trace that is known, has no order, or too few requests.

    """
    with open_regular(path) as file:
        try:
            trace = Trace(_engine.TraceRead(file.fileno(), on_bytes))
        except ValueError as error:
            raise TraceRefused(f"{path} is not taken: {error}") from None
    _require_enough(path, trace)
    return trace


def _require_enough(path: str, trace: Trace) -> None:
    facts, placed = trace.facts, trace.whole.read_bytes + trace.whole.written_bytes
    if facts.unplaced_bytes > placed:
        raise TraceRefused(
            f"{path} is not taken: of {facts.unplaced_bytes:,} of its "
            f"{facts.unplaced_bytes + placed:,} bytes it does not say where they lie, because the "
            "files were opened before it began, so that nothing can be said of locality; record "
            "with `leadline characterize -- COMMAND`, or `strace -f -y -ttt -T -o FILE COMMAND`"
        )
    require_requests(facts.requests, f"{path} is not taken: it has", "trace a longer run")


def require_requests(requests: int, beginning: str, instead: str) -> None:
    """Refuse what has too few to be described.

    Raises:
        TraceRefused: fewer than `REQUESTS_MIN`.

    """
    if requests < REQUESTS_MIN:
        raise TraceRefused(
            f"{beginning} {requests:,} reads and writes, and of fewer than {REQUESTS_MIN:,} "
            f"neither streams nor reuse can be told; {instead}"
        )


# What the times of a part say: time in I/O, gaps, and whether requests wait for others.

TIMED_MIN = 0.5
"""Of the requests: with fewer durations nothing is said of time in I/O."""
OVERLAPPING_MAX = 0.01
"""Of a process's requests: a few begin before its last has ended where clocks differ."""
DISPERSION_CLOSED, DISPERSION_OPEN = 0.8, 0.95
"""Variance over mean of what a request finds outstanding: below 1 a few wait for each other, 1 of a
Poisson process, above of bursts."""
EXPECTED_MIN = 20.0
"""Requests that would find another outstanding, were nobody to wait, to say that somebody does."""


class InIO(NamedTuple):
    """Time in which something was outstanding."""

    share: float | None
    on_their_way: float | None


def time_in_io(part: Part, facts: TraceFacts) -> InIO:
    """Return the share of time in I/O, and how many were outstanding then."""
    seconds = part.to_s - part.from_s
    if not has_durations(part, facts) or seconds <= 0 or part.busy_s <= 0:
        return InIO(None, None)
    called = sum(seconds for _, seconds in part.timed) + sum(each.seconds for each in part.calls)
    all_s = part.device_s or called
    return InIO(min(1.0, part.busy_s / seconds), max(1.0, all_s / part.busy_s))


def has_durations(part: Part, facts: TraceFacts) -> bool:
    """Whether the trace says how long most requests took."""
    if facts.times != "known":
        return False
    timed = sum(calls for calls, _ in part.timed)
    return part.device_s > 0 or timed >= TIMED_MIN * max(1, part.requests)


def gaps_of(part: Part, facts: TraceFacts) -> Gaps | None:
    """Return the times between requests; None where times are not known."""
    found = part.gaps
    if facts.times != "known" or found.count == 0:
        return None
    return Gaps(
        count=found.count,
        mean_s=found.mean_s,
        variation=found.variation,
        p50_s=_quantile(found.bins, 0.5),
        p90_s=_quantile(found.bins, 0.9),
        p99_s=_quantile(found.bins, 0.99),
        histogram=tuple((least * 1e-9, count) for least, count in found.bins),
    )


def _quantile(bins: list[tuple[int, int]], share: float) -> float:
    """Return seconds below which a share lies; within a bin, half an octave, evenly spread."""
    wanted = share * sum(count for _, count in bins)
    for least, count in bins:
        if wanted <= count:
            return (least + (wanted / count) * least / 2) * 1e-9
        wanted -= count
    return bins[-1][0] * 1.5e-9


def closed_or_open(part: Part, facts: TraceFacts) -> tuple[Loop, str]:
    """Say whether requests wait for others, and by what."""
    if not has_durations(part, facts):
        return "inconclusive", "the trace does not say how long requests took"
    if facts.processes_known and part.device_s == 0:
        overlapping = part.gaps.overlapping / max(1, part.gaps.count)
        if overlapping <= OVERLAPPING_MAX:
            return "closed", "no process made a request before its last had ended"
        return "open", (
            f"{format_percent(overlapping)} of the requests were made before their process's last "
            "had ended"
        )
    return _by_what_is_found(part, time_in_io(part, facts).share or 0.0)


def _by_what_is_found(part: Part, busy: float) -> tuple[Loop, str]:
    """Say it by how many others requests find outstanding."""
    found = part.outstanding
    would = found.seen * busy
    if found.most == 0 and would > EXPECTED_MIN:
        return "closed", "no request was made while another was outstanding"
    if found.mean * found.seen < EXPECTED_MIN:
        return "inconclusive", "too few requests found another outstanding"
    dispersion = found.variance / found.mean
    because = (
        f"requests found {format_number(found.mean)} others outstanding, with a variance of "
        f"{format_number(found.variance)}"
    )
    if dispersion < DISPERSION_CLOSED:
        return "closed", because
    return ("open" if dispersion > DISPERSION_OPEN else "inconclusive"), because
