"""Several runs of one workload as one answer, with the interval that their spread supports.

A run knows its own noise only. On a shared machine the same run a second later differs by more
(measured here: 8% between runs that each claim 4%), so an interval from within one run covers
the truth less than half the time. Several runs show the spread between them; the interval is the
one of `intervals.reading_interval`, widened because runs in a row are alike. Everything counted
adds up, response times come from the merged histograms, and what one run found wrong is said of
the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from msgspec import UNSET

from leadline.record import (
    CacheEvents,
    EngineResult,
    Generator,
    Interval,
    LatencyUs,
    Level,
    MovedBytes,
    Network,
    OperationSummary,
    OtherLoad,
    Provenance,
    Realised,
    SpansUs,
    WarmUp,
    WrittenBytes,
)
from leadline.record.jobs.streams import StreamCount
from leadline.record.result import NUMBERS
from leadline.stats.intervals import own_error, runs_interval

Struct = TypeVar("Struct", bound=msgspec.Struct)

_SUB_BUCKETS = 128
"""Buckets per octave of the engine's histogram (crates/base/src/histogram.rs)."""


class _Runs:
    """The runs to pool, and what several fields of the whole are made of."""

    def __init__(self, runs: Sequence[EngineResult]) -> None:
        self.all = runs
        self.read = _summary([run.read for run in runs])
        self.write = _summary([run.write for run in runs])
        self.latency = _latency([self.read, self.write])

    def __iter__(self) -> Iterator[EngineResult]:
        return iter(self.all)


Rules = Mapping[str, Callable[[Any], Any]]
"""How each field of a record is made of the runs, by its name."""


def by_field(kind: type[Struct], rules: Rules, runs: Any) -> Struct:
    """Make a record by a rule for each of its fields; one without a rule is a KeyError.

    A field that nobody thought of must not silently keep its default, or the last run's value.
    """
    return kind(**{name: rules[name](runs) for name in kind.__struct_fields__})


def pooled_result(runs: Sequence[EngineResult]) -> EngineResult:
    """Return one result for closed-loop runs of the same workload on the same target.

    Raises:
        ValueError: there is no run.

    """
    if not runs:
        raise ValueError("no run to pool")
    if len(runs) == 1:
        return runs[0]
    return by_field(EngineResult, RESULT, _Runs(runs))


def _spread(intervals: Sequence[Interval]) -> Interval:
    return runs_interval(
        [interval.value for interval in intervals], [own_error(interval) for interval in intervals]
    )


def _summary(parts: Sequence[OperationSummary]) -> OperationSummary:
    counts: dict[int, int] = {}
    for part in parts:
        for bucket, count in part.histogram:
            counts[bucket] = counts.get(bucket, 0) + count
    whole = OperationSummary(
        operations=sum(part.operations for part in parts),
        bytes=sum(part.bytes for part in parts),
        latency_us=None,
        histogram=tuple(sorted(counts.items())),
    )
    if whole.operations == 0:
        return whole
    return msgspec.structs.replace(whole, latency_us=_merged(parts, whole.histogram))


def _syncs(runs: Sequence[EngineResult]) -> OperationSummary | None:
    known = [run.syncs for run in runs if run.syncs is not None]
    return _summary(known) if known else None


def _latency(parts: Sequence[OperationSummary]) -> LatencyUs:
    both = _summary(parts).latency_us
    if both is None:
        raise ValueError("runs without any request")
    return both


def _merged(parts: Sequence[OperationSummary], histogram: Sequence[tuple[int, int]]) -> LatencyUs:
    """Mean and maximum are exact; percentiles are bucket middles, off by 0.4% at most."""
    known = [(part.operations, part.latency_us) for part in parts if part.latency_us is not None]
    operations = sum(count for count, _ in known)
    most = max(latency.max for _, latency in known)
    p50, p90, p99, p99_9 = (
        min(_quantile_us(histogram, share), most) for share in (0.5, 0.9, 0.99, 0.999)
    )
    mean = sum(count * latency.mean for count, latency in known) / operations
    return LatencyUs(mean, p50, p90, p99, p99_9, most)


def _quantile_us(histogram: Sequence[tuple[int, int]], share: float) -> float:
    wanted = share * sum(count for _, count in histogram)
    seen = 0
    for bucket, count in histogram:
        seen += count
        if seen >= wanted:
            return _middle_ns(bucket) / 1e3
    return 0.0


def _middle_ns(bucket: int) -> float:
    """Middle of a bucket of the engine's histogram."""
    if bucket < 2 * _SUB_BUCKETS:
        return float(bucket)
    shift = bucket // _SUB_BUCKETS - 1
    low = (bucket % _SUB_BUCKETS + _SUB_BUCKETS) << shift
    return low + ((1 << shift) - 1) / 2


def _weighted(pairs: Iterable[tuple[float, float | None]]) -> float | None:
    known = [(weight, value) for weight, value in pairs if value is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * value for weight, value in known) / total if total > 0 else None


def _over_time(
    runs: Sequence[EngineResult], of: Callable[[EngineResult], float | None]
) -> float | None:
    return _weighted((run.wall_s, of(run)) for run in runs)


def _over_reads(
    runs: Sequence[EngineResult], of: Callable[[EngineResult], float | None]
) -> float | None:
    return _weighted((run.read.bytes, of(run)) for run in runs)


def _moved(parts: Sequence[MovedBytes | None]) -> MovedBytes | None:
    known = [part for part in parts if part is not None]
    return _added(MovedBytes, known) if len(known) == len(parts) else None


def _added(kind: type[Struct], parts: Sequence[Struct]) -> Struct:
    """Add records of counts field by field; a field that one of them does not know is None."""
    names = msgspec.structs.fields(kind)
    columns = [[getattr(part, field.name) for part in parts] for field in names]
    return kind(
        **{
            field.name: None if None in column else sum(column)
            for field, column in zip(names, columns, strict=True)
        }
    )


def _over_operations(name: str) -> Callable[[Sequence[EngineResult]], float | None]:
    def of(runs: Sequence[EngineResult]) -> float | None:
        pairs = ((run.read.operations + run.write.operations, run.realised) for run in runs)
        return _weighted((weight, getattr(part, name)) for weight, part in pairs)

    return of


REALISED: Rules = {
    "size_mean": lambda runs: _over_operations("size_mean")(runs) or 0.0,
    "size_cv": _over_operations("size_cv"),
    "read_frac": lambda runs: _over_operations("read_frac")(runs) or 0.0,
    "seq_frac": _over_operations("seq_frac"),
}
"""Of `Realised`."""


def _steady(runs: Sequence[EngineResult]) -> bool | None:
    known = [run.warm_up.steady for run in runs]
    return None if None in known else all(known)


WARM_UP: Rules = {
    "seconds": lambda runs: sum(run.warm_up.seconds for run in runs),
    "steady": _steady,
    "intervals": lambda runs: runs[0].warm_up.intervals,
}
"""Of `WarmUp`."""


def _shifted(
    runs: Sequence[EngineResult], of: Callable[[EngineResult], tuple[Struct, ...]]
) -> tuple[Struct, ...]:
    """Put the runs' stretches one after the other on one clock of measured time."""
    joined: list[Struct] = []
    before_s = 0.0
    for run in runs:
        for part in of(run):
            start_s = getattr(part, "start_s") + before_s  # noqa: B009 - any record with a start
            joined.append(msgspec.structs.replace(part, start_s=start_s))
        before_s += run.wall_s
    return tuple(joined)


def _levels(runs: Sequence[EngineResult]) -> tuple[Level, ...]:
    """Levels within runs; that runs differ from each other is what the interval tells."""
    if any(len(run.levels) > 1 for run in runs):
        return _shifted(runs, lambda run: run.levels)
    seconds = sum(run.wall_s for run in runs)
    megabytes = sum((run.read.bytes + run.write.bytes) * 1e-6 for run in runs)
    return (Level(0.0, seconds, megabytes / seconds),)


def _once(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def _cache_events(runs: Sequence[EngineResult]) -> CacheEvents | None:
    known = [part for run in runs if (part := run.provenance.cache_events) is not None]
    return _added(CacheEvents, known) if len(known) == len(runs) else None


PROVENANCE: Rules = {
    "process_bytes": lambda runs: _moved([run.provenance.process_bytes for run in runs]),
    "probed": lambda runs: sum(run.provenance.probed for run in runs),
    "found_share": lambda runs: _weighted(
        (run.provenance.probed, run.provenance.found_share) for run in runs
    ),
    "probed_random": lambda runs: sum(run.provenance.probed_random for run in runs),
    "found_random_share": lambda runs: _weighted(
        (run.provenance.probed_random, run.provenance.found_random_share) for run in runs
    ),
    "cached_share_from": lambda runs: runs[-1].provenance.cached_share_from,
    "cache_events": _cache_events,
    "unchecked": lambda runs: _once(text for run in runs for text in run.provenance.unchecked),
}
"""Of `Provenance`."""


def _other_load_over_time(name: str) -> Callable[[Sequence[EngineResult]], float | None]:
    return lambda runs: _over_time(runs, lambda run: getattr(run.other_load, name))


def _most_runnable(runs: Sequence[EngineResult]) -> int | None:
    known = [run.other_load.runnable for run in runs if run.other_load.runnable is not None]
    return max(known, default=None)


OTHER_LOAD: Rules = {
    **{
        name: _other_load_over_time(name)
        for name in ("cpu_pressure", "io_pressure", "memory_pressure", "steal_cpu", "waited_cpu")
    },
    "runnable": _most_runnable,
}
"""Of `OtherLoad`."""


GENERATOR: Rules = {
    "ceiling_iops": lambda known: known[-1].ceiling_iops,
    "bound": lambda known: any(part.bound for part in known),
}
"""Of `Generator`, of the runs that have one."""


def _generator(runs: Sequence[EngineResult]) -> Generator | None:
    known = [run.generator for run in runs if run.generator is not None]
    return by_field(Generator, GENERATOR, known) if known else None


def _counted(name: str) -> Callable[[Sequence[EngineResult]], int | None]:
    def of(runs: Sequence[EngineResult]) -> int | None:
        counts = [getattr(run.network, name) for run in runs]
        return None if None in counts else sum(counts)

    return of


def _commit_s(runs: Sequence[EngineResult]) -> float | None:
    known = [run.network.commit_s for run in runs if run.network is not None]
    took = [each for each in known if each is not None]
    return sum(took) / len(took) if took else None


NETWORK: Rules = {
    "sent_bytes": _counted("sent_bytes"),
    "received_bytes": _counted("received_bytes"),
    "payload_sent_bytes": _counted("payload_sent_bytes"),
    "payload_received_bytes": _counted("payload_received_bytes"),
    "lost_requests": _counted("lost_requests"),
    "retransmitted_segments": _counted("retransmitted_segments"),
    "round_trip_us": lambda runs: min(run.network.round_trip_us for run in runs),
    "stable_share": lambda runs: _weighted(
        (run.write.bytes, run.network.stable_share) for run in runs
    ),
    "commit_s": _commit_s,
}
"""Of `Network`, where every run has one."""


def _network(runs: Sequence[EngineResult]) -> Network | None:
    if any(run.network is None for run in runs):
        return None
    return by_field(Network, NETWORK, runs)


def _streams(runs: Sequence[EngineResult]) -> tuple[StreamCount, ...]:
    """Add up each stream of a job with several."""
    each = zip(*(run.streams for run in runs), strict=True)
    return tuple(_added(StreamCount, list(counts)) for counts in each)


def _spans(runs: _Runs) -> SpansUs | None:
    last = runs.all[-1].spans_us
    return last and msgspec.structs.replace(last, submitted_to_completed=runs.latency)


def _last(name: str) -> Callable[[_Runs], Any]:
    """What has no sum and no mean, or cannot differ."""
    return lambda runs: getattr(runs.all[-1], name)


def _sum(name: str) -> Callable[[_Runs], float]:
    return lambda runs: sum(getattr(run, name) for run in runs)


def _mean(name: str) -> Callable[[_Runs], float | None]:
    return lambda runs: _over_time(runs.all, lambda run: getattr(run, name))


def _worst(name: str) -> Callable[[_Runs], float]:
    return lambda runs: max(getattr(run, name) for run in runs)


_POOLED = {"sum": _sum, "mean": _mean, "worst": _worst, "last": _last}

RESULT: Rules = {
    **{name: _POOLED[(told.extra or {})["runs"]](name) for name, (_, told) in NUMBERS.items()},
    "version": _last("version"),
    "job_id": _last("job_id"),
    "throughput_mb_s": lambda runs: _spread([run.throughput_mb_s for run in runs]),
    "iops": lambda runs: _spread([run.iops for run in runs]),
    "latency_us": lambda runs: runs.latency,
    "read": lambda runs: runs.read,
    "write": lambda runs: runs.write,
    "syncs": lambda runs: _syncs(runs.all),
    "workload_bytes": lambda runs: MovedBytes(runs.read.bytes, runs.write.bytes),
    "device_bytes": lambda runs: _moved([run.device_bytes for run in runs]),
    "cached_share": lambda runs: _over_reads(runs.all, lambda run: run.cached_share),
    "realised": lambda runs: by_field(Realised, REALISED, runs.all),
    "warm_up": lambda runs: by_field(WarmUp, WARM_UP, runs.all),
    "intervals": lambda runs: _shifted(runs.all, lambda run: run.intervals),
    "admissible": lambda runs: all(run.admissible for run in runs),
    "findings": lambda runs: _once(found for run in runs for found in run.findings),
    "simulated": _last("simulated"),
    "spans_us": _spans,
    "offered": _last("offered"),
    "provenance": lambda runs: by_field(Provenance, PROVENANCE, runs.all),
    "levels": lambda runs: _levels(runs.all),
    "stalls": lambda runs: _shifted(runs.all, lambda run: run.stalls),
    "precondition": lambda runs: runs.all[0].precondition,
    "written_bytes": lambda runs: _added(WrittenBytes, [run.written_bytes for run in runs]),
    "other_load": lambda runs: by_field(OtherLoad, OTHER_LOAD, runs.all),
    "placement": _last("placement"),
    "generator": lambda runs: _generator(runs.all),
    "network": lambda runs: _network(runs.all),
    "streams": lambda runs: _streams(runs.all),
    "load": lambda _: UNSET,  # only of an open loop, whose runs are not pooled
}
"""Of `EngineResult`."""
