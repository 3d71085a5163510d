"""The phases of a trace, each described."""

from __future__ import annotations

import numpy as np

from leadline.record.application import (
    SYNC_CALLS,
    CallCount,
    FiveParameters,
    PhaseFound,
    SizeCount,
    TraceFacts,
)
from leadline.record.study import point_id
from leadline.stats.phases import phase_starts
from leadline.studies.application.streams import find_streams
from leadline.studies.application.times import closed_or_open, gaps_of, has_durations, time_in_io
from leadline.studies.application.trace import PAGE_BYTES, Part, Trace

MATTERS = np.array([0.2, 0.2, 0.08, 0.08, 0.02, 0.15, 0.15, 0.15])
"""Of each feature the least change that makes another phase: a fifth in size, 8 % of the requests,
of the references 15 %, 2 syncs in a hundred requests."""


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
        read_sizes=_sizes(part.sizes[0]),
        write_sizes=_sizes(part.sizes[1]),
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


def _sizes(bins: list[tuple[int, int]]) -> tuple[SizeCount, ...]:
    return tuple(SizeCount(bytes=least, requests=count) for least, count in bins)
