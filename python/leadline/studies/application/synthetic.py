"""A phase of an application as a workload that the engine can run, and what that loses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import msgspec

from leadline.errors import LeadlineError
from leadline.record import PROCESSES_MAX, Arrivals, Workload
from leadline.record.access import FSYNC_EACH_MAX, NO_SYNC
from leadline.record.application import Application, PhaseFound, Stream
from leadline.record.finding import Finding
from leadline.record.jobs.streams import (
    STREAMS_MAX,
    Loop,
    Moving,
    Once,
    Pieces,
    Places,
    SizeShare,
    StreamAsked,
    Uniform,
)
from leadline.record.wording import format_count, format_number
from leadline.units import format_bytes, format_percent

GRANULE_BYTES = 512
"""Smallest transfer, of which sizes are multiples."""
PAGE_BYTES = 4096
SMALL_BYTES = PAGE_BYTES / 2
APART = 1.1
"""Ratio of the mean sizes of a stream's reads and writes from which each gets its own."""
THINK_S_MAX = 3600.0
RUN_S_LEAST, RUN_S_MOST = 10.0, 600.0
PIECES_MOST = 64
PIECES_ROOM = 1.1
"""Pieces begin with whole pages, and sizes are drawn."""
USED_MOSTLY = 0.5
SLOWER_MOST = 5.0
"""Times as long as it took where it was traced."""


class SyntheticRefused(LeadlineError):
    """A description that cannot be run; the message says why."""

    exit_code = 2


class Synthetic(msgspec.Struct, frozen=True, kw_only=True):
    """What the engine is asked."""

    phase: PhaseFound
    workload: Workload
    """The data of all streams, the workers and their pauses; its other numbers are means."""
    streams: tuple[StreamAsked, ...]
    arrivals: Arrivals
    sync: str
    """As `--sync` spells it."""
    losses: tuple[Finding, ...]
    """What of the description it leaves out."""

    begins_cold: bool
    """Whether little of its data was used before it."""

    def losses_of(self, *, whole: bool) -> tuple[Finding, ...]:
        """Return these and those of a run of the whole phase, or else of the steady state."""
        if not whole:
            return (*self.losses, *_steady_losses(self.phase))
        return (*self.losses, *_whole_losses(self.phase, cold=self.begins_cold))


def synthetic_of(application: Application, phase: int | None = None) -> Synthetic:
    """Return a phase as streams that the engine can run.

    Args:
        application: its description.
        phase: which of its phases, from 1; that with most requests by default.

    Raises:
        SyntheticRefused: there is no such phase, or it has no streams.

    """
    chosen = _chosen(application, phase)
    if not chosen.streams:
        raise SyntheticRefused(
            f"phase {chosen.order + 1} of {application.start.system} has no streams; characterise "
            "a longer trace"
        )
    losses = list(_losses(application, chosen))
    streams, at = list[StreamAsked](), 0
    for stream in chosen.streams:
        made = _streams(stream, at, losses, chosen.requests)
        streams += made
        at += max(each.unique_bytes for each in made)
    at_once = chosen.on_their_way or chosen.workload.process_num or 1.0
    processes = min(PROCESSES_MAX, max(1, round(at_once)))
    arrivals = _arrivals(chosen)
    think_s = _think_s(chosen, processes) if arrivals.kind == "closed" else 0.0
    workload = Workload(
        unique_bytes=at,
        size_mean=max(GRANULE_BYTES, round(_mean(streams, _size_mean))),
        read_frac=_mean(streams, lambda each: each.read_frac),
        seq_frac=min(1.0, max(0.0, chosen.workload.seq_frac)),
        process_num=processes,
        think_time_s=min(THINK_S_MAX, think_s),
    )
    return Synthetic(
        phase=chosen,
        workload=workload,
        streams=tuple(streams),
        arrivals=arrivals,
        sync=sync_of(chosen, workload.read_frac),
        losses=tuple(dict.fromkeys(losses)),
        begins_cold=chosen.used_before < USED_MOSTLY,
    )


def longest_run_s(phase: PhaseFound) -> float:
    """Return how long a run of a whole phase may take: slower storage needs longer."""
    return min(RUN_S_MOST, max(RUN_S_LEAST, SLOWER_MOST * (_length_s(phase) or 0.0)))


def _chosen(application: Application, phase: int | None) -> PhaseFound:
    if phase is None:
        return max(application.phases, key=lambda each: each.requests)
    for each in application.phases:
        if each.order == phase - 1:
            return each
    raise SyntheticRefused(
        f"{application.start.system} has no phase {phase}: it has "
        f"{format_count(len(application.phases), 'phase')}"
    )


def _streams(stream: Stream, at: int, losses: list[Finding], requests: int) -> list[StreamAsked]:
    """Return a stream as the engine takes it; two where its reads and writes differ in size."""
    reads, writes = stream.read_size_mean, stream.write_size_mean
    walks = stream.kind in ("loop", "once-only")
    if not walks and _apart(reads, writes) and 0 < stream.read_frac < 1:
        losses.append(
            Finding.of(
                "not_mapped",
                what=(
                    f"sizes of a {stream.kind} stream, whose reads and writes differ; each "
                    "has its mean"
                ),
            )
        )
        parts = [(stream.read_frac, 1.0, reads or 0.0), (1 - stream.read_frac, 0.0, writes or 0.0)]
        return [
            _asked(stream, at, (share, read), (SizeShare(_whole(size), 1.0),), requests)
            for share, read, size in parts
        ]
    sizes = _fresh_sizes(stream, losses) if _writes_fresh(stream) else _sizes(stream, losses)
    return [_asked(stream, at, (1.0, stream.read_frac), sizes, requests)]


def _apart(reads: float | None, writes: float | None) -> bool:
    """Whether the mean sizes of reads and of writes differ by more than they may."""
    return bool(reads and writes and max(reads / writes, writes / reads) > APART)


def _asked(
    stream: Stream, at: int, part: tuple[float, float], sizes: tuple[SizeShare, ...], requests: int
) -> StreamAsked:
    """`part` is its share of the stream's requests, and that of its reads."""
    longest = max(size.bytes for size in sizes)
    held = max(stream.unique_bytes, float(longest))
    places, unique = _places(stream, held, requests)
    return StreamAsked(
        weight=max(1e-9, stream.weight * part[0]),
        read_frac=min(1.0, max(0.0, part[1])),
        from_bytes=at,
        unique_bytes=-(-round(unique) // PAGE_BYTES) * PAGE_BYTES,
        sizes=sizes,
        places=places,
    )


def _places(stream: Stream, held: float, requests: int) -> tuple[Places, float]:
    """Return where requests go, and over how many bytes."""
    scattered = stream.seq_frac + (stream.begins_frac or 0.0) < 0.5
    if stream.kind in ("loop", "once-only"):
        kind = Loop if stream.kind == "loop" else Once
        pieces = None if scattered else _pieces(stream, held, requests)
        return kind(scattered, pieces), held if pieces is None else PIECES_ROOM * held
    if stream.kind == "moving":
        fresh = min(1.0, max(0.0, 1.0 - stream.seen_again))
        passed = requests * stream.weight * stream.size_mean * fresh
        return Moving(round(held), fresh), held + passed
    return Uniform(min(1.0, max(0.0, stream.seq_frac))), held


def _begins_frac(stream: Stream) -> float:
    """Share of its requests that begin a file; where nobody counted, those that go on nothing."""
    return 1.0 - stream.seq_frac if stream.begins_frac is None else stream.begins_frac


def _pieces(stream: Stream, held: float, requests: int) -> Pieces | None:
    """Return the files that a stream goes through, alike in length; None of a single one."""
    begun = max(1.0, requests * stream.weight * _begins_frac(stream))
    rounds = requests * stream.weight * stream.size_mean / held if stream.kind == "loop" else 1.0
    number = max(round(begun / max(1.0, rounds)), round(stream.by_turns))
    if number < 2:
        return None
    length = stream.size_mean * requests * stream.weight / max(1.0, rounds) / number
    return Pieces(_whole(length), min(PIECES_MOST, max(1, round(stream.by_turns))))


def _sizes(stream: Stream, losses: list[Finding]) -> tuple[SizeShare, ...]:
    """Return the histogram's sizes, each as much above its bin's least as the mean is."""
    bins = [each for each in stream.sizes if each.requests > 0]
    if not bins:
        return (SizeShare(_whole(stream.size_mean), 1.0),)
    least = sum(each.bytes * each.requests for each in bins) / sum(each.requests for each in bins)
    above = min(2.0, max(1.0, stream.size_mean / max(least, 1.0)))
    counts: dict[int, float] = {}
    for each in sorted(bins, key=lambda each: -each.requests)[:STREAMS_MAX]:
        size = _whole(each.bytes * above)
        counts[size] = counts.get(size, 0.0) + float(each.requests)
    mean = sum(size * count for size, count in counts.items()) / sum(counts.values())
    if abs(mean / stream.size_mean - 1) > 0.01:
        losses.append(
            Finding.of(
                "not_mapped",
                what=(
                    f"a mean size of {format_bytes(stream.size_mean)} becomes "
                    f"{format_bytes(mean)}, because sizes are whole sectors of 512 bytes"
                ),
            )
        )
    return tuple(SizeShare(size, count) for size, count in sorted(counts.items()))


def _writes_fresh(stream: Stream) -> bool:
    """Whether it writes data that were not there: to a file's end, or to a file of its own.

    Many small writes to a page would become as many pages, which is worse than a page that is read.
    """
    return stream.kind == "once-only" and not stream.read_frac and stream.size_mean >= SMALL_BYTES


def _fresh_sizes(stream: Stream, losses: list[Finding]) -> tuple[SizeShare, ...]:
    """Return the histogram in whole pages, with its mean if that is a page or more.

    What a program writes to a file's end needs no byte of the device; the streams' file has data
    there, and a page that is written in part would be read first.
    """
    counts: dict[int, float] = {}
    for size in _sizes(stream, losses):
        pages, over = divmod(size.bytes, PAGE_BYTES)
        more = over / PAGE_BYTES if pages else 1.0
        for whole, share in ((pages, 1.0 - more), (pages + 1, more)):
            if share > 0:
                bytes_ = whole * PAGE_BYTES
                counts[bytes_] = counts.get(bytes_, 0.0) + share * size.weight
    most = sorted(counts.items(), key=lambda each: -each[1])[:STREAMS_MAX]
    losses.append(
        Finding.of(
            "not_mapped",
            what=(
                "where a file ends; data written once are whole pages, which no device is read for"
            ),
        )
    )
    return tuple(SizeShare(size, count) for size, count in sorted(most))


def _whole(size: float) -> int:
    return max(1, round(size / GRANULE_BYTES)) * GRANULE_BYTES


def _size_mean(stream: StreamAsked) -> float:
    total = sum(size.weight for size in stream.sizes)
    return sum(size.bytes * size.weight for size in stream.sizes) / total


def _mean(streams: Sequence[StreamAsked], value: Callable[[StreamAsked], float]) -> float:
    total = sum(each.weight for each in streams)
    return sum(each.weight * value(each) for each in streams) / total


def _length_s(phase: PhaseFound) -> float | None:
    if phase.from_s is None or phase.to_s is None or phase.to_s <= phase.from_s:
        return None
    return phase.to_s - phase.from_s


def _arrivals(phase: PhaseFound) -> Arrivals:
    length = _length_s(phase)
    if phase.loop != "open" or length is None:
        return Arrivals()
    return Arrivals("poisson", phase.requests / length)


def _think_s(phase: PhaseFound, processes: int) -> float:
    """Return the pause of a worker between two requests: what is neither I/O nor another call."""
    length = _length_s(phase)
    if length is not None and phase.in_io is not None and processes == 1:
        return length * (1 - phase.in_io) / phase.requests
    if phase.gaps is None:
        return 0.0
    calls_s = (phase.sync_s or 0.0) + (phase.metadata_s or 0.0)
    return max(0.0, phase.gaps.mean_s - calls_s / max(1, phase.gaps.count))


def sync_of(phase: PhaseFound, read_frac: float) -> str:
    """Return how a phase makes its writes safe, as `--sync` spells it."""
    writes = phase.requests * (1 - read_frac)
    if not phase.syncs or writes < 1:
        return NO_SYNC
    each = min(FSYNC_EACH_MAX, max(1, round(writes / phase.syncs)))
    calls = {call.name: call.calls for call in phase.calls}
    name = "fdatasync" if calls.get("fdatasync", 0) > phase.syncs / 2 else "fsync"
    return f"{name}={each}"


def _losses(application: Application, phase: PhaseFound) -> Iterator[Finding]:
    """Say what no job of the engine has, and what the description does not know."""
    others = len(application.phases) - 1
    if others:
        share = 1 - phase.requests / sum(each.requests for each in application.phases)
        yield Finding.of(
            "not_mapped",
            what=(
                f"{format_count(others, 'other phase')}, {format_percent(share)} of the requests"
            ),
        )
    calls = sum(each.calls for each in phase.calls) - phase.syncs
    if calls > 0:
        yield Finding.of("not_mapped", what=f"{calls:,} metadata calls")
    if phase.syncs:
        yield Finding.of(
            "not_mapped", what="when a sync comes; one comes after a fixed number of writes"
        )
    if phase.gaps is None:
        yield Finding.of(
            "not_mapped", what="pauses, of which the trace says nothing; requests follow at once"
        )
    elif phase.loop != "open" and abs(phase.gaps.variation) > 0.1:
        yield Finding.of(
            "not_mapped",
            what=(
                "how pauses scatter (standard deviation over mean "
                f"{format_number(phase.gaps.variation)}); each is their mean"
            ),
        )


def _steady_losses(phase: PhaseFound) -> Iterator[Finding]:
    if any(stream.kind == "once-only" for stream in phase.streams):
        yield Finding.of(
            "not_mapped", what="data used once are as many as the trace has, and then begin again"
        )


def _whole_losses(phase: PhaseFound, *, cold: bool) -> Iterator[Finding]:
    if phase.order:
        yield Finding.of(
            "not_mapped",
            what=(
                "what exactly earlier phases left in the page cache; a run begins with "
                + ("nothing of its data there" if cold else "as much of its data there as has room")
            ),
        )
