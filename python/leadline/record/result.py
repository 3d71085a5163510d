"""What the engine's `result` event says of one run."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from leadline.record.finding import Finding, Severity
from leadline.record.jobs.streams import StreamCount
from leadline.record.workbench import Measured
from leadline.record.workload import Interval, declared

SUM, MEAN, WORST, LAST = (Meta(extra={"runs": how}) for how in ("sum", "mean", "worst", "last"))
"""How several runs of a workload become one number; a title shows it, under that, to people."""


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
    """Sparse (bucket, count) pairs; the bucket bounds are derived in crates/base's histogram."""


class MovedBytes(msgspec.Struct, frozen=True):
    """Bytes read and written."""

    read: int
    write: int


class Realised(msgspec.Struct, frozen=True):
    """What the drawn requests really were, to hold against what was asked."""

    size_mean: float
    size_cv: float | None
    """None, as below, when another engine than Leadline's does not tell."""
    read_frac: float
    seq_frac: float | None


class IntervalRecord(msgspec.Struct, frozen=True):
    """One slice of the run; warm-up slices are kept too."""

    start_s: float
    seconds: float
    operations: int
    bytes: int


class WarmUp(msgspec.Struct, frozen=True):
    """How the run became steady, or that it did not."""

    seconds: float
    steady: bool | None
    """None when nobody looked, as with another engine, or too few requests ended to say."""
    intervals: tuple[IntervalRecord, ...] = ()


class SimulatedFacts(msgspec.Struct, frozen=True):
    """What only a simulated system can tell."""

    truth_mb_s: float | None
    """Expected throughput over this very window (drift included), exact under the model; None for
    a machine made of parts, whose truth is a long run of it."""
    clock_s: float
    """Virtual time when the run ended."""

    @property
    def law_mb_s(self) -> float:
        """The law's throughput over this window.

        Raises:
            ValueError: it was a machine made of parts.

        """
        if self.truth_mb_s is None:
            raise ValueError("a machine made of parts has no law that could be asked")
        return self.truth_mb_s


class SpansUs(msgspec.Struct, frozen=True):
    """Response times by span; a closed loop has no due time, hence only the middle one."""

    due_to_submitted: LatencyUs | None
    submitted_to_completed: LatencyUs
    """The target's own time."""
    due_to_completed: LatencyUs | None
    """What a user waits."""


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """What an open-loop run offered and what became of it."""

    rate_per_s: float
    due: int
    """Requests that became due within the window; the next three count some of them."""
    late_target: int
    """Sent more than a millisecond late: every worker was waiting for the target."""
    late_generator: int
    """Sent more than a millisecond late although a worker was free."""
    missed: int
    """Not sent when the window closed."""
    completed_per_s: float
    shortfall_frac: float
    """Share of the rate that was not kept, 0 or more."""
    fell_short: Literal["target", "generator"] | None
    """Who, when more than 3% are missing."""


class CacheEvents(msgspec.Struct, frozen=True, kw_only=True):
    """Page-cache events of the engine's own memory cgroup, or of the machine without one."""

    charged_pages: int | None
    uncharged_pages: int | None
    refaulted_pages: int | None
    """File pages that came back after having been evicted."""
    major_faults: int | None


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """Where the bytes came from, and what could not be checked."""

    process_bytes: MovedBytes | None = None
    """Bytes the engine made the block layer move."""
    probed: int = 0
    """Reads whose bytes were looked up in the page cache just before they were made."""
    found_share: float | None = None
    """Share of those bytes found there, read-ahead's work included."""
    probed_random: int = 0
    """Requests at places drawn at random that were looked up, writes too."""
    found_random_share: float | None = None
    """Share of their bytes found there: nothing fetches ahead of such a request, so that with
    places drawn uniformly it is the share of the data that the page cache held."""
    cached_share_from: Literal["residency", "device"] | None = None
    cache_events: CacheEvents | None = None
    unchecked: tuple[str, ...] = ()


class Level(msgspec.Struct, frozen=True):
    """A stretch of the window with one rate."""

    start_s: float
    seconds: float
    throughput_mb_s: float


class Stall(msgspec.Struct, frozen=True):
    """A stretch of the window in which no request completed."""

    start_s: float
    seconds: float
    generator: bool
    """Whether the generator itself did not run."""


class Round(msgspec.Struct, frozen=True):
    """One round of preconditioning."""

    bytes: int
    throughput_mb_s: float


class Preconditioned(msgspec.Struct, frozen=True, kw_only=True):
    """What preconditioning did."""

    bytes: int
    seconds: float
    plateau: bool
    """Whether the rate reached its plateau before the bytes or the time were spent."""
    rounds: tuple[Round, ...]


class WrittenBytes(msgspec.Struct, frozen=True):
    """Bytes written by a job, by purpose: its wear."""

    layout: int = 0
    precondition: int = 0
    workload: int = 0


class OtherLoad(msgspec.Struct, frozen=True, kw_only=True):
    """What else the machine did during the window."""

    cpu_pressure: float | None = None
    """Share of the window in which some task waited for a processor (PSI)."""
    io_pressure: float | None = None
    """Share in which some task waited for I/O; our own waits count."""
    memory_pressure: float | None = None
    steal_cpu: float | None = None
    """CPU seconds per second that the hypervisor gave to others."""
    waited_cpu: float | None = None
    """Seconds per second that threads of the engine were ready to run and had no processor, all of
    them together."""
    runnable: int | None = None
    """Runnable tasks when the window closed, the workers included."""


class Placed(msgspec.Struct, frozen=True):
    """Where the workers ran."""

    pinned: bool
    cpus: tuple[int, ...]


class Generator(msgspec.Struct, frozen=True):
    """The load generator against its own limit."""

    ceiling_iops: float
    bound: bool
    """Whether this run is within 20% of it."""


class Network(msgspec.Struct, frozen=True, kw_only=True):
    """What went over the network for the requests counted: what an NFS client said and heard.

    Heads of calls and answers and their record marks count; those of TCP and below do not.
    """

    sent_bytes: int
    received_bytes: int
    payload_sent_bytes: int
    """Of those sent, the data of writes."""
    payload_received_bytes: int
    """Of those received, the data of reads."""
    lost_requests: int
    """Sent and never answered, because the server went away; nothing else counts them."""
    retransmitted_segments: int | None
    """Segments that TCP had to send again, warm-up included."""
    round_trip_us: float
    """The shortest of several empty calls before the run."""
    stable_share: float | None = None
    """Share of the WRITE calls of which the server said that they are on stable storage when it
    answered, asked for or not; None without writes."""
    commit_s: float | None = None
    """Time the server took after the window to put on stable storage what was written."""


LOST_SHARE_MAX = 0.99
"""Nobody measures beside programs that have more of the processors than this."""
CALM_FOREIGN_CPU_MAX = 0.1
"""Processors that other programs may use on a calm machine."""
CALM_STEAL_SHARE_MAX = 0.02
"""Share of its processors that the host of a calm virtual machine may take."""


class EngineResult(msgspec.Struct, frozen=True, kw_only=True):
    """The `result` event of the wire (crates/wire/src/event/measure.rs)."""

    version: int
    job_id: str
    throughput_mb_s: Interval
    """Interval from batches within this one run: it knows nothing of run-to-run differences."""
    iops: Interval
    latency_us: LatencyUs
    read: OperationSummary
    write: OperationSummary
    syncs: OperationSummary | None = None
    """Waits of a replay until what was written is on the device."""
    wall_s: Annotated[float, SUM]
    """Length of the measured window."""
    total_s: Annotated[float, SUM]
    """Prepare, warm up, measure and drain together."""
    prepare_s: Annotated[float, SUM]
    cpu_user: Annotated[float, MEAN]
    """CPU seconds in user mode per second of window; 2.0 is two processors busy."""
    cpu_system: Annotated[float, MEAN]
    io_share: Annotated[float, MEAN]
    """Share of the workers' wall time spent inside I/O calls (CP94 Fig. 1)."""
    littles_law_error_frac: Annotated[float, WORST]
    """process_num x queue_depth against throughput x response time; 0 is perfect."""
    workload_bytes: MovedBytes
    device_bytes: MovedBytes | None
    """Bytes the block device moved in the window; None when it cannot be told."""
    cached_share: float | None
    """Share of the bytes read that did not come from the device, 0 to 1."""
    cache_resident_bytes: Annotated[int | None, LAST]
    """Page cache charged to the engine's cgroup at the window's end."""
    foreign_cpu: Annotated[float | None, MEAN]
    """CPU seconds per second used by everybody else during the window."""
    realised: Realised
    warm_up: WarmUp
    intervals: tuple[IntervalRecord, ...]
    admissible: bool
    findings: tuple[Finding, ...] = ()
    simulated: SimulatedFacts | None = None
    spans_us: SpansUs | None = None
    offered: Offered | None = None
    """None in a closed loop."""
    provenance: Provenance = Provenance()
    levels: tuple[Level, ...] = ()
    """More than one when the rate changed within the window."""
    stalls: tuple[Stall, ...] = ()
    precondition: Preconditioned | None = None
    written_bytes: WrittenBytes = WrittenBytes()
    other_load: OtherLoad = OtherLoad()
    placement: Placed | None = None
    generator: Generator | None = None
    network: Network | None = None
    streams: tuple[StreamCount, ...] = ()
    """Of a job with several streams, in its order."""
    """None where no network is between."""
    clock: Annotated[Literal["tsc", "vdso", "virtual"] | None, LAST] = None
    load: Measured | UnsetType = UNSET
    """What a trial of the workbench keeps; only where it was asked for."""

    @property
    def server_lost(self) -> bool:
        """Whether the run ended because its server went away; then it is not valid."""
        return any(found.code == "server_lost" for found in self.findings)

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why it is not valid."""
        return tuple(str(each) for each in self.findings if each.severity is Severity.INVALID)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What else a reader must know."""
        return tuple(str(each) for each in self.findings if each.severity is not Severity.INVALID)

    @property
    def others_cpu(self) -> float:
        """CPU seconds per second that other programs, and other guests of the host, had."""
        return (self.foreign_cpu or 0.0) + (self.other_load.steal_cpu or 0.0)

    def is_calm(self, processors: float) -> bool | None:
        """Whether others left the machine alone (`make check-machine`); None if not known."""
        stolen = self.other_load.steal_cpu
        if self.foreign_cpu is None or stolen is None:
            return None
        alone = self.foreign_cpu <= CALM_FOREIGN_CPU_MAX
        return alone and stolen / processors <= CALM_STEAL_SHARE_MAX

    def idle_gain(self, processes: int, processors: float) -> float | None:
        """How many times as fast a closed loop would be if no other program used a processor.

        The lesser of two bounds of operational analysis: its workers wait for a processor no
        longer, or all processors are theirs. Without others there is no gain: what waits then waits
        for its own. None where the kernel does not count the waits, and of an open loop.
        """
        waited = self.other_load.waited_cpu
        if waited is None or self.foreign_cpu is None or self.offered is not None:
            return None
        if self.others_cpu <= CALM_FOREIGN_CPU_MAX:
            return 1.0
        used = self.cpu_user + self.cpu_system
        unwaiting = processes / max(processes - waited, 1e-9)
        return max(1.0, min(unwaiting, processors / used if used > 0 else unwaiting))

    def lost_share(self, processors: float) -> float:
        """Share of so many processors that others had, 0 to `LOST_SHARE_MAX`."""
        return min(self.others_cpu / processors, LOST_SHARE_MAX)


NUMBERS = declared(EngineResult)
"""What a result says in one number or word, of each its type and how runs are pooled."""
