"""A phase of an application: its five numbers, its streams, calls and times."""

from __future__ import annotations

from typing import Literal

import msgspec

StreamKind = Literal["uniform", "loop", "once-only", "moving"]
"""How a stream comes back to its data: at random, round and round, never, or only to what is near
to where it is."""
Loop = Literal["closed", "open", "inconclusive"]
"""Whether the next request waits for the one before."""
SYNC_CALLS = ("fsync", "fdatasync", "sync", "flush", "sync_file_range")
"""Names of calls that wait until what was written is on the device, or begin to write it back; all
others are metadata."""


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
    """Outstanding requests while there is one, where the trace has times for that; else the
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
    by_turns: float = 1.0
    """Files that it goes through at a time, each from where it was left."""
    begins_frac: float | None = None
    """Share of its requests that are for a file's first byte; None where nobody counted them."""


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
    """Share of the time in which a request or call was outstanding (CP94 Fig. 1)."""
    on_their_way: float | None
    """Requests, in the mean over those times."""
    used_before: float = 0.0
    """Share of its data that earlier phases used."""
