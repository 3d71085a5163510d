"""An application's I/O as its trace shows it: phases, their streams, and its reuse of data."""

from __future__ import annotations

from typing import Literal

import msgspec

from leadline.record.study import Records, Status, StudyStart

StreamKind = Literal["uniform", "loop", "once-only", "moving"]
"""How a stream comes back to its data: at random, round and round, never, or only to what is near
to where it is."""
Loop = Literal["closed", "open", "cannot tell"]
"""Whether the next request waits for the one before."""


class SizeCount(msgspec.Struct, frozen=True, kw_only=True):
    """Requests of about one size."""

    bytes: int
    """Least of the bin, of which there are two in each octave."""
    requests: int


class FiveParameters(msgspec.Struct, frozen=True, kw_only=True):
    """CP94's five, as they were found; None where there was nothing to find them from."""

    unique_bytes: float
    """In whole pages."""
    size_mean: float
    read_frac: float
    seq_frac: float
    process_num: float | None
    """Requests on their way while there is one, where the trace has times for that; else the
    processes that make requests at about the same time."""


class Stream(msgspec.Struct, frozen=True, kw_only=True):
    """Requests that are alike."""

    kind: StreamKind
    weight: float
    """Share of the phase's requests."""
    bytes_weight: float
    """Share of the phase's bytes."""
    unique_bytes: float
    """Of a moving one, at a time."""
    size_mean: float
    read_frac: float
    seq_frac: float
    read_size_mean: float | None
    write_size_mean: float | None
    sizes: tuple[SizeCount, ...]
    """One bin in each octave."""
    uses_apart: float | None
    """References to any page between two to the same, in the mean; None of data used once."""
    seen_again: float
    """Share of its references whose page was used before; with few, `unique_bytes` is a guess."""


class CallCount(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one name."""

    name: str
    calls: int
    seconds: float
    """Zero where the trace has no times."""


class Gaps(msgspec.Struct, frozen=True, kw_only=True):
    """Times between a process's requests: from the end of one, where that is known."""

    count: int
    mean_s: float
    variation: float
    """Standard deviation over the mean; 1 of a Poisson process."""
    p50_s: float
    p90_s: float
    p99_s: float
    histogram: tuple[tuple[float, int], ...]
    """Least seconds of a bin, and how many."""


class PhaseFound(msgspec.Struct, frozen=True, kw_only=True):
    """A stretch of the trace in which requests are alike."""

    order: int
    item_id: str
    from_s: float | None
    """From the trace's beginning; None where it says no times."""
    to_s: float | None
    requests: int
    read_bytes: int
    written_bytes: int
    workload: FiveParameters
    read_sizes: tuple[SizeCount, ...]
    write_sizes: tuple[SizeCount, ...]
    streams: tuple[Stream, ...]
    """Heaviest first; their weights sum to 1."""
    streams_error: float | None
    """Largest difference between how long pages wait to be used again and what the streams say."""
    syncs: int
    dirty_at_sync_bytes: float | None
    """Written and not waited for when a sync came, in the mean."""
    sync_s: float | None
    calls: tuple[CallCount, ...]
    """Syncs and metadata, most frequent first."""
    gaps: Gaps | None
    loop: Loop
    loop_because: str
    read_s: float | None
    """All reads' times added up."""
    write_s: float | None
    metadata_s: float | None
    in_io: float | None
    """Share of the time in which a request or call was on its way (CP94 Fig. 1)."""
    on_their_way: float | None
    """Requests, in the mean over those times."""


class AtDistance(msgspec.Struct, frozen=True, kw_only=True):
    """References that come back to a page after so many others."""

    pages: int
    """Least of the bin."""
    reads: float
    writes: float


class MissRatio(msgspec.Struct, frozen=True, kw_only=True):
    """Misses of one size of cache, first touches included."""

    cache_bytes: int
    lru: float
    lru_error: float | None
    """Standard error from sampling; None where every page was looked at."""
    two_lists: float | None
    """Under Linux's two lists; None where the sample is too small for this size."""


class Reuse(msgspec.Struct, frozen=True, kw_only=True):
    """How the application comes back to its data: any cache's miss ratio can be asked of it."""

    page_bytes: int
    references: int
    """To pages."""
    rate: float
    """Share of the pages that were looked at."""
    two_lists_rate: float
    unique_pages: float
    first_reads: float
    first_writes: float
    distances: tuple[AtDistance, ...]
    """Stack distances of all others."""
    points: tuple[MissRatio, ...]

    @property
    def first_touches(self) -> float:
        """Share of the references that no cache could have had."""
        return (self.first_reads + self.first_writes) / max(1, self.references)

    def lru_misses(self, cache_bytes: float) -> float:
        """Return the miss ratio of an LRU cache of any size."""
        pages = cache_bytes / self.page_bytes
        hits = 0.0
        for each, beyond in zip(self.distances, [*self.distances[1:], None], strict=True):
            wide = max(1, each.pages >> 6)
            end = each.pages + wide if beyond is None else min(each.pages + wide, beyond.pages)
            inside = min(1.0, max(0.0, (pages - each.pages) / (end - each.pages)))
            hits += inside * (each.reads + each.writes)
        return 1.0 - hits / max(1, self.references)


class TraceFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What the trace is, and what it does not say."""

    format: str
    below_the_cache: bool
    """Its requests missed a file cache already."""
    times: Literal["none", "whole seconds", "known"]
    timed: int
    """Requests and calls whose duration it says."""
    processes_known: bool
    processes: int
    files: int
    requests: int
    references: int
    lines: int
    unread: tuple[int, int]
    """Lines that are not of its format, and the first of them."""
    late: int
    """Requests that stand after later ones."""
    unseen: tuple[tuple[str, int], ...]
    """What it shows and does not tell, and how often."""
    unplaced_bytes: int
    """Moved to where the trace does not say."""


class ApplicationStart(StudyStart, frozen=True, kw_only=True):
    """What decides a description: the trace alone."""

    trace: str
    """The file as it was named."""
    facts: TraceFacts

    @property
    def target(self) -> str:
        """The trace."""
        return self.trace


class ApplicationFound(msgspec.Struct, frozen=True, kw_only=True):
    """What a trace shows as a whole."""

    wall_s: float
    """That it took to describe it."""
    seconds: float | None
    """Of the trace."""
    workload: FiveParameters
    read_bytes: int
    written_bytes: int
    in_io: float | None
    """Share of the time in which a request or call was on its way (CP94 Fig. 1)."""
    in_calls_s: tuple[tuple[str, float], ...]
    """That share by what it was for: reads, writes, syncs, metadata; seconds of calls added up."""
    reuse: Reuse
    sentences: tuple[str, ...]
    warnings: tuple[str, ...]


class Application(msgspec.Struct, frozen=True, kw_only=True):
    """An application as it is told."""

    start: ApplicationStart
    status: Status
    found: ApplicationFound
    phases: tuple[PhaseFound, ...]


APPLICATION = Records(
    "application",
    ApplicationStart,
    PhaseFound,
    ApplicationFound,
    said="application",
    made_by="leadline characterize --trace FILE",
)
