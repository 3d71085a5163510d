"""A part of a trace as streams: requests that come back to the same data in the same way.

Reads and writes of each octave of sizes are classes whose reuse is a mixture of its own
(`leadline.stats.reuse_times`). What is alike in several classes is one stream with a read fraction
and several sizes, when it can be the same data.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from leadline.record.application import (
    SYNC_CALLS,
    Application,
    CallCount,
    FiveParameters,
    PhaseFound,
    SizeCount,
    Stream,
    StreamKind,
    TraceFacts,
)
from leadline.record.study import point_id
from leadline.stats.phases import phase_starts
from leadline.stats.reuse_times import Component, Uses, fit_mixture, mixture_error, responsibilities
from leadline.studies.application.trace import (
    PAGE_BYTES,
    Cell,
    Part,
    Trace,
    closed_or_open,
    gaps_of,
    has_durations,
    time_in_io,
)

SHARE_MIN = 0.005
"""Of a part's requests and of its bytes: what is smaller in both is no stream of its own."""
CLASS_MIN = 0.04
"""Of the reads, or of the writes: sizes of fewer requests are looked at together."""
ALIKE = 1.15
"""Ratio of two times between uses that are the same."""
ENDS = 16
"""Ends of requests that are remembered at most: a random one goes on from one of them by chance."""
SHARED_MIN = 0.5
"""Writes among the last uses before a read, against what they would be were the data shared."""
MOVING_OVER = 2.5
"""Pages that a stream touched, against those that a standing one of its size has."""
OVER_ALL_USES_MIN = 1000
"""Uses again at a stream's own pace: fewer tell nothing of whether it moves."""
_NAMES: dict[str, StreamKind] = {"uniform": "uniform", "loop": "loop", "once": "once-only"}

Array = NDArray[np.float64]


class _Own(NamedTuple):
    """A component of one class, and which share of each of its cells it has."""

    component: Component
    write: bool
    cells: Sequence[Cell]
    owned: Array
    after_writes: float
    """Of its uses of pages that were used before, those whose last use was a write."""

    def sum_of(self, field: str) -> float:
        return float(self.owned @ np.array([getattr(cell, field) for cell in self.cells]))

    def sum_sequential(self) -> float:
        """Requests that go on where another ended."""
        return float(
            self.owned @ np.array([cell.requests * cell.sequential for cell in self.cells])
        )

    def sum_again(self, field: str) -> float:
        """The same over uses of pages that were used before."""
        counts = np.array([getattr(cell, field) * cell.again for cell in self.cells])
        return float(self.owned @ counts)


class Streams(NamedTuple):
    """What a part is made of."""

    streams: tuple[Stream, ...]
    error: float | None
    """Largest difference between the survival that was seen and that of the mixture."""


def find_streams(part: Part) -> Streams:
    """Return the streams of a part, heaviest first."""
    owns, error = list[_Own](), 0.0
    for write in (False, True):
        for cells in _classes([cell for cell in part.cells if cell.write == write]):
            found, own_error = _of_class(cells, write)
            owns += found
            error = max(error, own_error * _references(cells) / _references(part.cells))
    groups = list(_grouped(owns))
    if not groups:
        return Streams((), None)
    made = [_stream(group, part) for group in groups]
    return Streams(_weighed(_moved(made, groups, part)), error)


def _references(cells: Sequence[Cell]) -> float:
    return sum(cell.references for cell in cells)


def _classes(cells: Sequence[Cell]) -> Iterator[list[Cell]]:
    """Take cells apart by size; sizes of few requests stay together."""
    every, rest = sum(cell.requests for cell in cells), list[Cell]()
    for size in sorted({cell.size for cell in cells}):
        own = [cell for cell in cells if cell.size == size]
        if sum(cell.requests for cell in own) >= CLASS_MIN * every:
            yield own
        else:
            rest += own
    if rest:
        yield rest


def _of_class(cells: Sequence[Cell], write: bool) -> tuple[list[_Own], float]:
    """Fit one class; cells of requests that only continue in a page go with their page's."""
    if _references(cells) <= 0:
        return [], 0.0
    marks = [(cell.size, cell.sequential) for cell in cells]
    numbers = {mark: number for number, mark in enumerate(sorted(set(marks)))}
    uses = Uses(
        np.array([cell.again for cell in cells]),
        np.array([cell.least for cell in cells]),
        np.array([cell.beyond for cell in cells]),
        np.array([cell.references for cell in cells]),
        np.array([numbers[mark] for mark in marks]),
    )
    components = fit_mixture(uses, sum(cell.requests for cell in cells))
    owned = responsibilities(components, uses)
    error = mixture_error(components, uses)
    return [
        _Own(component, write, cells, own, float(after))
        for component, own, after in zip(
            components, owned, _after_writes(cells, owned), strict=True
        )
    ], error


def _after_writes(cells: Sequence[Cell], owned: Array) -> Array:
    """Return the share of each component's uses that follow a write, by least squares."""
    again = np.array([cell.references * cell.again for cell in cells])
    root = np.sqrt(np.maximum(again, 1e-9))
    seen = np.array([cell.after_write for cell in cells]) / root
    found, *_ = np.linalg.lstsq((owned * again / root).T, seen, rcond=1e-9)
    return np.asarray(np.clip(found, 0.0, 1.0))


def _grouped(owns: Sequence[_Own]) -> Iterator[list[_Own]]:
    """Put together what is one stream, seen in several classes."""
    left = sorted(owns, key=lambda own: -own.sum_of("references"))
    while left:
        group, others, left = [left[0]], left[1:], []
        for other in others:
            belongs = all(_same(one, other) for one in group)
            (group if belongs else left).append(other)
        yield group


def _same(one: _Own, other: _Own) -> bool:
    if one.component.kind != other.component.kind:
        return False
    if one.component.kind == "once":
        return one.write == other.write
    few = 3.0 / np.sqrt(max(1.0, min(own.sum_again("references") for own in (one, other))))
    ratio = abs(np.log(one.component.time / other.component.time))
    if ratio > np.log(ALIKE) + few:
        return False
    return one.write == other.write or _shared(one, other)


def _shared(one: _Own, other: _Own) -> bool:
    """Whether reads find what writes wrote as often as they would were it the same data."""
    reads, writes = (other, one) if one.write else (one, other)
    shares = [own.sum_of("references") for own in (reads, writes)]
    expected = shares[1] / sum(shares)
    return reads.after_writes > SHARED_MIN * expected


def _stream(group: Sequence[_Own], part: Part) -> Stream:
    """Add up what a group's classes have; weights are put right when all are known."""
    kind = group[0].component.kind
    total = max(sum(own.sum_of("requests") for own in group) / part.rate, 1e-9)
    reads = sum(own.sum_of("requests") for own in group if not own.write) / part.rate
    total_bytes = sum(own.sum_of("bytes") for own in group) / part.rate
    again = sum(own.sum_again("references") for own in group)

    return Stream(
        kind=_NAMES[kind],
        weight=total,
        bytes_weight=total_bytes,
        unique_bytes=_pages(group, part) * PAGE_BYTES,
        size_mean=total_bytes / total,
        read_frac=reads / total,
        seq_frac=_seq_frac(group, total, part),
        read_size_mean=_size_mean([own for own in group if not own.write]),
        write_size_mean=_size_mean([own for own in group if own.write]),
        sizes=_sizes(group, part),
        uses_apart=None if kind == "once" else _time(group),
        seen_again=again / max(_references_of(group), 1e-9),
        by_turns=_by_turns(reads / total, part) if kind != "uniform" else 1.0,
        begins_frac=_begins_frac(reads / total, part),
    )


def _by_turns(read_frac: float, part: Part) -> float:
    """Files gone through at a time: of n that are drawn at random (n - 1) / 2 others come between.

    The trace tells this of all that is read, and of all that is written.
    """
    reads, writes = part.others_since
    return 1.0 + 2.0 * (read_frac * reads + (1.0 - read_frac) * writes)


def _begins_frac(read_frac: float, part: Part) -> float:
    """Of all that is read, and of all that is written, which is what the trace tells."""
    random_reads, reads, random_writes, writes = part.by_class
    of_reads = part.begins[0] / max(1, random_reads + reads)
    of_writes = part.begins[1] / max(1, random_writes + writes)
    return read_frac * of_reads + (1.0 - read_frac) * of_writes


def _seq_frac(group: Sequence[_Own], requests: float, part: Part) -> float:
    """Sequential fraction, without those that are so by chance."""
    found = sum(own.sum_sequential() for own in group) / part.rate / requests
    if group[0].component.kind != "uniform":
        return min(1.0, found)
    places = _pages(group, part) * requests / max(1.0, _references_of(group) / part.rate)
    chance = min(0.9, ENDS * requests / max(1, part.requests) / places)
    return float(np.clip((found - chance) / (1.0 - chance), 0.0, 1.0))


def _references_of(group: Sequence[_Own]) -> float:
    return sum(own.sum_of("references") for own in group)


def _time(group: Sequence[_Own]) -> float:
    weights = [own.sum_of("references") for own in group]
    times = [own.component.time for own in group]
    return float(np.average(times, weights=weights))


def _pages(group: Sequence[_Own], part: Part) -> float:
    """Pages: as many as are used between two uses of one; of what is used once every one."""
    references = [own.sum_of("references") / part.rate for own in group]
    if group[0].component.kind == "once":
        return sum(references)
    shares = [each / max(1, part.references) for each in references]
    pages = sum(share * own.component.time for share, own in zip(shares, group, strict=True))
    return max(1.0, pages)


def _size_mean(group: Sequence[_Own]) -> float | None:
    requests = sum(own.sum_of("requests") for own in group)
    return sum(own.sum_of("bytes") for own in group) / requests if requests > 0 else None


def _sizes(group: Sequence[_Own], part: Part) -> tuple[SizeCount, ...]:
    counts: dict[int, float] = {}
    for own in group:
        for cell, owned in zip(own.cells, own.owned, strict=True):
            counts[cell.size] = counts.get(cell.size, 0.0) + owned * cell.requests / part.rate
    return tuple(
        SizeCount(bytes=size, requests=round(count))
        for size, count in sorted(counts.items())
        if round(count) > 0
    )


def _moved(made: list[Stream], groups: list[list[_Own]], part: Part) -> list[Stream]:
    """Mark streams whose data moves on; first touches there are theirs, and no data used once.

    A standing stream of U pages uses no more than U again at its own pace. One that touches more
    passes over its data.
    """
    found = list(made)
    for place, stream in enumerate(made):
        passed = _pages_passed(place, groups, part) if stream.kind == "uniform" else None
        if passed is None or passed < MOVING_OVER * stream.unique_bytes / PAGE_BYTES:
            continue
        found[place] = _replaced(stream, kind="moving")
        for other, single in enumerate(found):
            like = single.kind == "once-only" and abs(single.read_frac - stream.read_frac) < 0.5
            if like:
                taken = min(1.0, passed * PAGE_BYTES / max(single.unique_bytes, 1.0))
                own, found[other] = found[place], _scaled(single, 1 - taken)
                found[place] = _replaced(
                    own,
                    weight=own.weight + taken * single.weight,
                    bytes_weight=own.bytes_weight + taken * single.bytes_weight,
                )
    return found


def _pages_passed(place: int, groups: Sequence[Sequence[_Own]], part: Part) -> float | None:
    """Pages that a stream used again at its own pace, an octave wide; None where few were.

    Those that the others touched at that pace are taken away: of U pages, used m times,
    U (1 - exp(-m / U)).
    """
    octave = int(np.log2(max(1.0, _time(groups[place]))))
    if octave >= len(part.pages_by_octave):
        return None
    used = [
        sum(_in_octave(each.cells, octave, each.owned) for each in group) / part.rate
        for group in groups
    ]
    if used[place] * part.rate < OVER_ALL_USES_MIN or used[place] < max(used):
        return None
    passed = part.pages_by_octave[octave] / part.rate
    for other, (group, uses) in enumerate(zip(groups, used, strict=True)):
        if other != place and uses > 0:
            pages = max(1.0, _pages(group, part))
            passed -= pages * (1 - np.exp(-uses / pages))
    return float(passed)


def _in_octave(cells: Sequence[Cell], octave: int, owned: Array) -> float:
    inside = [
        cell.references if cell.again and 2**octave <= cell.least < 2 ** (octave + 1) else 0.0
        for cell in cells
    ]
    return float(owned @ np.array(inside))


def _replaced(stream: Stream, **fields: object) -> Stream:
    return msgspec.structs.replace(stream, **fields)


def _scaled(stream: Stream, share: float) -> Stream:
    fields = ("weight", "bytes_weight", "unique_bytes")
    return _replaced(stream, **{name: getattr(stream, name) * share for name in fields})


def _weighed(made: Sequence[Stream]) -> tuple[Stream, ...]:
    """Make weights of counts; what is too small goes."""
    requests, moved = (
        sum(getattr(each, name) for each in made) for name in ("weight", "bytes_weight")
    )
    kept = [
        each
        for each in made
        if each.weight > SHARE_MIN * requests or each.bytes_weight > SHARE_MIN * moved
    ]
    requests, moved = (
        sum(getattr(each, name) for each in kept) for name in ("weight", "bytes_weight")
    )
    weighed = [
        _replaced(
            each,
            weight=each.weight / max(requests, 1e-9),
            bytes_weight=each.bytes_weight / max(moved, 1e-9),
        )
        for each in kept
    ]
    return tuple(sorted(weighed, key=lambda each: -each.weight))


# The phases of a trace, each described.

MATTERS = np.array([0.2, 0.2, 0.08, 0.08, 0.02, 0.15, 0.15, 0.15])
"""Of each feature the least change that makes another phase: a fifth in size, 8% of the requests,
of the references 15%, 2 syncs in a hundred requests."""


def describe_phases(trace: Trace, study_id: str) -> tuple[PhaseFound, ...]:
    """Return the phases in their order."""
    starts = phase_starts(trace.features(), MATTERS)
    ends = [*starts[1:], trace.slices]
    return tuple(
        _phase(order, trace.part(start, end), trace.facts, study_id)
        for order, (start, end) in enumerate(zip(starts, ends, strict=True))
    )


def five_of(part: Part, facts: TraceFacts) -> FiveParameters:
    """Return CP94's five of a part."""
    requests = max(1, part.requests)
    random_reads, reads, _, writes = part.by_class
    return FiveParameters(
        unique_bytes=part.unique_pages * PAGE_BYTES,
        size_mean=(part.read_bytes + part.written_bytes) / requests,
        read_frac=(random_reads + reads) / requests,
        seq_frac=(reads + writes) / requests,
        process_num=_process_num(part, facts),
    )


def _process_num(part: Part, facts: TraceFacts) -> float | None:
    on_their_way = time_in_io(part, facts).on_their_way
    if on_their_way is not None:
        return on_their_way
    return float(part.processes) if facts.processes_known else None


def _phase(order: int, part: Part, facts: TraceFacts, study_id: str) -> PhaseFound:
    found, timed = find_streams(part), facts.times != "none"
    in_io, on_their_way = time_in_io(part, facts)
    loop, because = closed_or_open(part, facts)
    durations = has_durations(part, facts)
    (_, read_s), (_, write_s) = part.timed
    syncs = [each for each in part.calls if each.name in SYNC_CALLS]
    rest_s = sum(each.seconds for each in part.calls if each.name not in SYNC_CALLS)
    return PhaseFound(
        order=order,
        item_id=point_id(study_id, order),
        from_s=part.from_s if timed else None,
        to_s=part.to_s if timed else None,
        requests=part.requests,
        read_bytes=part.read_bytes,
        written_bytes=part.written_bytes,
        workload=five_of(part, facts),
        read_sizes=_sizes_of_phases(part.sizes[0]),
        write_sizes=_sizes_of_phases(part.sizes[1]),
        streams=found.streams,
        streams_error=found.error,
        used_before=part.used_before,
        syncs=part.syncs,
        dirty_at_sync_bytes=part.dirty_at_sync if part.syncs else None,
        sync_s=sum(each.seconds for each in syncs) if durations else None,
        calls=tuple(
            CallCount(name=each.name, calls=each.calls, seconds=each.seconds)
            for each in sorted(part.calls, key=lambda each: -each.calls)
        ),
        gaps=gaps_of(part, facts),
        loop=loop,
        loop_because=because,
        read_s=read_s if durations else None,
        write_s=write_s if durations else None,
        metadata_s=rest_s if durations else None,
        in_io=in_io,
        on_their_way=on_their_way,
    )


def _sizes_of_phases(bins: list[tuple[int, int]]) -> tuple[SizeCount, ...]:
    return tuple(SizeCount(bytes=least, requests=count) for least, count in bins)


# An application as rows: one for each stream of each phase.


def stream_rows(study: Application) -> list[dict[str, Any]]:
    """Return flat rows with units in their names."""
    return [
        {
            "study": study.start.study_id,
            "system": study.start.system,
            "phase": phase.order,
            "from_s": phase.from_s,
            "to_s": phase.to_s,
            "phase_requests": phase.requests,
            "phase_syncs": phase.syncs,
            "stream": place,
            "kind": stream.kind,
            "weight": stream.weight,
            "bytes_weight": stream.bytes_weight,
            "unique_bytes": stream.unique_bytes,
            "size_mean_bytes": stream.size_mean,
            "read_frac": stream.read_frac,
            "seq_frac": stream.seq_frac,
            "uses_apart": stream.uses_apart,
            "seen_again": stream.seen_again,
        }
        for phase in study.phases
        for place, stream in enumerate(phase.streams)
    ]
