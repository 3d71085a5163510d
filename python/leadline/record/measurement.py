"""One measured point: what the engine's `result` event says, and where it belongs."""

from __future__ import annotations

import msgspec

from leadline.record.workload import Interval, Workload


class LatencyUs(msgspec.Struct, frozen=True):
    """Response times in microseconds, from one histogram of one run."""

    mean: float
    p50: float
    p90: float
    p99: float
    p99_9: float
    max: float


class OperationSummary(msgspec.Struct, frozen=True):
    """Reads or writes of one window, apart."""

    operations: int
    bytes: int
    latency_us: LatencyUs | None
    histogram: tuple[tuple[int, int], ...] = ()
    """Sparse (bucket, count) pairs; the bucket bounds are derived in crates/engine histogram."""


class MovedBytes(msgspec.Struct, frozen=True):
    """Bytes read and written."""

    read: int
    write: int


class Realised(msgspec.Struct, frozen=True):
    """What the drawn requests really were, to hold against what was asked."""

    size_mean: float
    size_cv: float
    read_frac: float
    seq_frac: float


class IntervalRecord(msgspec.Struct, frozen=True):
    """One slice of the run; warm-up slices are kept too."""

    start_s: float
    seconds: float
    operations: int
    bytes: int


class WarmUp(msgspec.Struct, frozen=True):
    """How the run became steady, or that it did not."""

    seconds: float
    steady: bool
    intervals: tuple[IntervalRecord, ...] = ()


class SimulatedFacts(msgspec.Struct, frozen=True):
    """What only a simulated system can tell."""

    truth_mb_s: float
    """Expected throughput over this very window (drift included), exact under the model."""
    clock_s: float
    """Virtual time when the run ended."""


class EngineResult(msgspec.Struct, frozen=True, kw_only=True):
    """The `result` event of the wire (protocol/result.schema.json)."""

    version: int
    job_id: str
    throughput_mb_s: Interval
    """Interval from batches within this one run: it knows nothing of run-to-run differences."""
    iops: Interval
    latency_us: LatencyUs
    read: OperationSummary
    write: OperationSummary
    wall_s: float
    """Length of the measured window."""
    total_s: float
    """Prepare, warm up, measure and drain together."""
    prepare_s: float
    cpu_user: float
    """CPU seconds in user mode per second of window; 2.0 is two processors busy."""
    cpu_system: float
    io_share: float
    """Share of the issuers' wall time spent inside I/O calls (CP94 Fig. 1)."""
    littles_law_error_frac: float
    """process_num x queue_depth against throughput x response time; 0 is perfect."""
    workload_bytes: MovedBytes
    device_bytes: MovedBytes | None
    """Bytes the block device moved in the window; None when it cannot be told."""
    cached_share: float | None
    """Share of the bytes read that did not come from the device, 0 to 1."""
    cache_resident_bytes: int | None
    """File cache charged to the engine's cgroup at the window's end."""
    foreign_cpu: float | None
    """CPU seconds per second used by everybody else during the window."""
    realised: Realised
    warm_up: WarmUp
    intervals: tuple[IntervalRecord, ...]
    admissible: bool
    reasons: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    simulated: SimulatedFacts | None = None


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """A finished point of a survey (or a lone `measure`); never edited once stored."""

    point_id: str
    survey_id: str | None
    order: int
    """Position in the order of execution, from 0."""
    stage: str
    """Stage of the plan this point was run for."""
    started_at: str
    """UTC, ISO 8601."""
    clock_s: float
    """Seconds since the survey began (virtual for a simulated system)."""
    seed: int
    workload: Workload
    backend: str
    result: EngineResult
