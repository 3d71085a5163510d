"""A trace as the engine has read it, and what it answers (crates/trace)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

import msgspec
import numpy as np
from numpy.typing import NDArray

from leadline import _engine
from leadline.errors import LeadlineError
from leadline.inputs import open_regular
from leadline.record.application import Reuse, TraceFacts

PAGE_BYTES = 4096
"""Of what a cache keeps (crates/trace)."""
REQUESTS_MIN = 1000
"""Of fewer, shares are known to no better than 3 %, and reuse not at all."""


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
    """What requests found on their way."""

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
        kept = {name: getattr(about, name) for name in TraceFacts.__struct_fields__[:-1]}
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
