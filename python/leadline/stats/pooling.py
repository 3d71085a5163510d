"""Several runs of one workload as one answer, with the interval that their spread supports.

A run knows its own noise only. On a shared machine the same run a second later differs by more
(measured here: 8 % between runs that each claim 4 %), so an interval from within one run covers
the truth less than half the time. Several runs show the spread between them; the interval is the
one of `intervals.reading_interval`, widened because runs in a row are alike. Everything counted
adds up, response times come from the merged histograms, and what one run found wrong is said of
the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

import msgspec

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
    WarmUp,
    WrittenBytes,
)
from leadline.stats.intervals import Noise, pooled_noise, reading_interval

Struct = TypeVar("Struct", bound=msgspec.Struct)

_SUB_BUCKETS = 128
"""Buckets per octave of the engine's histogram (crates/engine/src/histogram.rs)."""


ALIKE = 0.5
"""Correlation taken to hold between a run and the next. What disturbs a shared machine lasts longer
than a run, so runs in a row scatter less around their own mean than around the truth, and too few
of them follow each other to tell by how much (docs/decisions/0005)."""


def pooled_result(runs: Sequence[EngineResult]) -> EngineResult:
    """Return one result for closed-loop runs of the same workload on the same target.

    Raises:
        ValueError: there is no run.

    """
    if not runs:
        raise ValueError("no run to pool")
    if len(runs) == 1:
        return runs[0]
    read, write = (_summary([getattr(run, kind) for run in runs]) for kind in ("read", "write"))
    latency = _latency([read, write])
    return msgspec.structs.replace(
        runs[-1],
        throughput_mb_s=_spread([run.throughput_mb_s for run in runs]),
        iops=_spread([run.iops for run in runs]),
        latency_us=latency,
        read=read,
        write=write,
        wall_s=sum(run.wall_s for run in runs),
        total_s=sum(run.total_s for run in runs),
        prepare_s=sum(run.prepare_s for run in runs),
        cpu_user=_over_time(runs, lambda run: run.cpu_user) or 0.0,
        cpu_system=_over_time(runs, lambda run: run.cpu_system) or 0.0,
        io_share=_over_time(runs, lambda run: run.io_share) or 0.0,
        foreign_cpu=_over_time(runs, lambda run: run.foreign_cpu),
        littles_law_error_frac=max(run.littles_law_error_frac for run in runs),
        workload_bytes=MovedBytes(read.bytes, write.bytes),
        device_bytes=_moved([run.device_bytes for run in runs]),
        cached_share=_over_reads(runs, lambda run: run.cached_share),
        realised=_realised(runs),
        warm_up=WarmUp(
            sum(run.warm_up.seconds for run in runs), _steady(runs), runs[0].warm_up.intervals
        ),
        intervals=_shifted(runs, lambda run: run.intervals),
        admissible=all(run.admissible for run in runs),
        reasons=_once(reason for run in runs for reason in run.reasons),
        warnings=_once(warning for run in runs for warning in run.warnings),
        spans_us=msgspec.structs.replace(runs[-1].spans_us, submitted_to_completed=latency)
        if runs[-1].spans_us
        else None,
        provenance=_provenance(runs),
        levels=_levels(runs),
        stalls=_shifted(runs, lambda run: run.stalls),
        precondition=runs[0].precondition,
        written_bytes=_added(WrittenBytes, [run.written_bytes for run in runs]),
        other_load=_other_load(runs),
        generator=_generator(runs),
        network=_network(runs),
    )


def _spread(intervals: Sequence[Interval]) -> Interval:
    values = [interval.value for interval in intervals]
    if min(values) <= 0:
        return Interval(sum(values) / len(values), None, None, len(values))
    widths = [interval.half_width_frac for interval in intervals]
    noise = pooled_noise([values])
    noise = Noise(noise.sd_frac * alike_factor(len(values)), noise.df)
    return reading_interval(values, widths, noise)


def alike_factor(runs: int, correlation: float = ALIKE) -> float:
    """By how much to widen the interval of `runs` >= 2 runs in a row, as for independent ones.

    For an AR(1) series the variance of the mean of n is v (1 + 2 S)/n with S = sum of (1 - k/n)
    r^k over k from 1 to n - 1, while the sample variance expects only v (1 - 2 S/(n - 1)).
    """
    lags = range(1, runs)
    double = 2 * sum((1 - lag / runs) * correlation**lag for lag in lags)
    return float(((1 + double) / (1 - double / (runs - 1))) ** 0.5)


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


def _latency(parts: Sequence[OperationSummary]) -> LatencyUs:
    both = _summary(parts).latency_us
    if both is None:
        raise ValueError("runs without any request")
    return both


def _merged(parts: Sequence[OperationSummary], histogram: Sequence[tuple[int, int]]) -> LatencyUs:
    """Mean and maximum are exact; percentiles are bucket middles, off by 0.4 % at most."""
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


def _realised(runs: Sequence[EngineResult]) -> Realised:
    def over_operations(name: str) -> float | None:
        pairs = ((run.read.operations + run.write.operations, run.realised) for run in runs)
        return _weighted((weight, getattr(part, name)) for weight, part in pairs)

    return Realised(
        size_mean=over_operations("size_mean") or 0.0,
        size_cv=over_operations("size_cv"),
        read_frac=over_operations("read_frac") or 0.0,
        seq_frac=over_operations("seq_frac"),
    )


def _steady(runs: Sequence[EngineResult]) -> bool | None:
    known = [run.warm_up.steady for run in runs]
    return None if None in known else all(known)


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


def _provenance(runs: Sequence[EngineResult]) -> Provenance:
    parts = [run.provenance for run in runs]
    events = [part.cache_events for part in parts if part.cache_events is not None]
    return Provenance(
        process_bytes=_moved([part.process_bytes for part in parts]),
        probed=sum(part.probed for part in parts),
        found_share=_weighted((part.probed, part.found_share) for part in parts),
        cached_share_from=parts[-1].cached_share_from,
        cache_events=_added(CacheEvents, events) if len(events) == len(parts) else None,
        unchecked=_once(text for part in parts for text in part.unchecked),
    )


def _other_load(runs: Sequence[EngineResult]) -> OtherLoad:
    def of(name: str) -> float | None:
        return _over_time(runs, lambda run: getattr(run.other_load, name))

    known = [run.other_load.runnable for run in runs if run.other_load.runnable is not None]
    return OtherLoad(
        cpu_pressure=of("cpu_pressure"),
        io_pressure=of("io_pressure"),
        memory_pressure=of("memory_pressure"),
        steal_cpu=of("steal_cpu"),
        runnable=max(known, default=None),
    )


def _generator(runs: Sequence[EngineResult]) -> Generator | None:
    known = [run.generator for run in runs if run.generator is not None]
    if not known:
        return None
    return msgspec.structs.replace(known[-1], bound=any(part.bound for part in known))


def _network(runs: Sequence[EngineResult]) -> Network | None:
    known = [run.network for run in runs if run.network is not None]
    if len(known) < len(runs):
        return None
    commits = [each.commit_s for each in known if each.commit_s is not None]
    added: Network = _added(Network, known)
    return msgspec.structs.replace(
        added,
        round_trip_us=min(each.round_trip_us for each in known),
        stable_share=_weighted(
            (run.write.bytes, each.stable_share) for run, each in zip(runs, known, strict=True)
        ),
        commit_s=sum(commits) / len(commits) if commits else None,
    )
