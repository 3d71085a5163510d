"""What the engine is asked to do: a struct for each kind of job, encoded as the wire has it.

A job says its `kind` and knows what its answer is (`Job.read`). The wire's own types are Rust's
(crates/wire); `tests/conformance/` holds these, and the ranges below, against the schema that is
made from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from leadline.errors import EngineFault, WorkloadError
from leadline.record.access import Access, Backend
from leadline.record.jobs.file_test import FileProgram, FileTestResult
from leadline.record.jobs.nfs import NfsAsked, NfsData, NfsLoadAnswer, NfsServerAddress
from leadline.record.jobs.streams import StreamAsked
from leadline.record.result import EngineResult
from leadline.record.streaming import StreamResult, Way
from leadline.record.workbench import Measured
from leadline.record.workload import Workload

WIRE_VERSION = 1
RATE_MIN_PER_S, RATE_MAX_PER_S = 1e-3, 1e7
"""Range of an open loop's rate."""
TRIAL_RATE_MAX_PER_S = 1e8
"""Most requests per second that a trial may offer; a load on an NFS server takes less."""
TEST_RUNS_MAX = 1000
"""Most runs of each program of a file test."""
STREAM_MEMORY_BYTES_MIN = 32 * 2**20
"""What a kernel's buffers of every kind need at least."""
STREAM_THREADS_MAX = 1024
STREAM_DEPTH_MAX = 256
STRIPE_BYTES_MIN, STRIPE_BYTES_MAX = 4096, 2**30
SKEW_MAX = 10
"""Largest exponent of a Zipf distribution over the keys."""

ASK_S_MAX = 60.0

Answer = TypeVar("Answer")


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When a job ends (ARCHITECTURE.md, the wire)."""

    warm_up_s_max: float = 10.0
    warm_up_s_min: float = 0.0
    """A rate is steady, too, while a buffer fills."""
    measure_s_min: float = 1.0
    measure_s_max: float = 5.0
    accuracy: float = 0.05
    """Measuring ends when the 95% interval's half-width is below this share of the mean; at 0 the
    window is the longest."""
    total_s_max: float = 60.0
    """Bound of the whole job, prepare included."""
    operations_max: int | None = None
    """The run ends after so many requests, if not before, and none of them is a warm-up's: a
    program from its beginning to its end. With `warm_up_s_max` 0 it begins with nothing of its
    data in the page cache; else with what a pass over them leaves there. Of a directory."""


class Arrivals(msgspec.Struct, frozen=True):
    """What makes a request due: the completion of an earlier one (closed), or a clock."""

    kind: Literal["closed", "constant", "poisson"] = "closed"
    rate_per_s: float | None = None
    """Requests due per second, all workers together; only with a clock."""

    def __post_init__(self) -> None:
        """Reject a clock without a rate, and a rate without a clock."""
        if self.kind == "closed":
            if self.rate_per_s is not None:
                raise WorkloadError("a closed loop has no rate; say constant or poisson arrivals")
        elif self.rate_per_s is None or not RATE_MIN_PER_S <= self.rate_per_s <= RATE_MAX_PER_S:
            raise WorkloadError(
                f"the rate is {self.rate_per_s}, it must be between {RATE_MIN_PER_S:g} and "
                f"{RATE_MAX_PER_S:g} requests per second"
            )


CLOSED = Arrivals()


class Job(msgspec.Struct, Generic[Answer], frozen=True, kw_only=True):
    """One thing asked of the engine; `Answer` is the type of what comes back."""

    version: int = WIRE_VERSION
    kind: str
    job_id: str

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer."""
        raise NotImplementedError

    def read(self, event: dict[str, Any]) -> Answer:
        """Return the record of its result or answer event.

        Raises:
            msgspec.ValidationError: it does not fit the record.
            EngineFault: another version of the wire.

        """
        raise NotImplementedError


class DirectoryTarget(msgspec.Struct, frozen=True, tag_field="kind", tag="directory"):
    """A run's own directory in a claimed one."""

    path: str


class NfsTarget(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="nfs"):
    """A run's own directory in a claimed one of a server."""

    server: NfsServerAddress
    run: str


class NullTarget(msgspec.Struct, frozen=True, tag_field="kind", tag="null"):
    """Nothing: what the generator itself can do."""


class SimulatedTarget(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="simulated"):
    """A system in virtual time."""

    system: dict[str, Any]
    clock_s: float
    run_seed: int


JobTarget = DirectoryTarget | NfsTarget | NullTarget | SimulatedTarget


def kind_of(target: JobTarget) -> str:
    """Return `directory`, `nfs`, `null` or `simulated`."""
    return str(target.__struct_config__.tag)


class Precondition(msgspec.Struct, frozen=True):
    """What is written before the warm-up, until the rate is on its plateau."""

    bytes_max: int


class ReplayAsked(msgspec.Struct, frozen=True):
    """A trace that is made again."""

    path: str
    """The file with its steps (crates/base/src/replay.rs)."""
    at_times: bool
    memory_bytes: int = 0
    """Held meanwhile, with the engine's own, as the program did."""


class LoadAsked(msgspec.Struct, frozen=True, kw_only=True):
    """Asks an open loop for what a trial of the workbench keeps of it."""

    limits_ms: tuple[float, ...] = ()
    """Slower requests are counted per batch, for each."""
    abort_above_ms: float | None = None
    """Give up when the mean response is above this."""


class MeasureJob(Job[EngineResult], frozen=True, kw_only=True):
    """One workload on one target; `of` says only what differs from the wire's defaults."""

    kind: Literal["measure"] = "measure"
    target: JobTarget
    workload: Workload
    backend: Backend
    seed: int
    limits: Limits
    arrivals: Arrivals | UnsetType = UNSET
    placement: str | UnsetType = UNSET
    precondition: Precondition | UnsetType = UNSET
    ceiling_iops: float | UnsetType = UNSET
    streams: tuple[StreamAsked, ...] | UnsetType = UNSET
    """In place of the workload's sizes, places and shares."""
    replay: ReplayAsked | UnsetType = UNSET
    """In place of all of the workload."""
    load: LoadAsked | UnsetType = UNSET

    @classmethod
    def of(
        cls,
        job_id: str,
        target: JobTarget,
        access: Access,
        workload: Workload,
        *,
        seed: int,
        limits: Limits,
        arrivals: Arrivals = CLOSED,
        precondition_bytes_max: int | None = None,
        ceiling_iops: float | None = None,
        streams: Sequence[StreamAsked] = (),
        replay: ReplayAsked | None = None,
        load: LoadAsked | None = None,
    ) -> MeasureJob:
        """Return the job."""
        return cls(
            job_id=job_id,
            target=target,
            workload=workload,
            backend=access.wire_backend,
            seed=seed,
            limits=limits,
            arrivals=UNSET if arrivals.kind == "closed" else arrivals,
            placement=UNSET if access.placement == "auto" else access.placement,
            precondition=UNSET
            if precondition_bytes_max is None
            else Precondition(precondition_bytes_max),
            ceiling_iops=UNSET if ceiling_iops is None else ceiling_iops,
            streams=tuple(streams) or UNSET,
            replay=UNSET if replay is None else replay,
            load=UNSET if load is None else load,
        )

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer."""
        return self.limits.total_s_max

    def read(self, event: dict[str, Any]) -> EngineResult:
        """Return the record of the result event."""
        result = msgspec.convert(event, EngineResult)
        if result.version != WIRE_VERSION:
            raise EngineFault(f"the engine speaks version {result.version} of the wire, not 1")
        return result


NfsAsk = Literal["nfs_claim", "nfs_room", "nfs_release"]


class NfsQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """What is asked of a server."""

    kind: NfsAsk
    server: NfsServerAddress
    run: str
    timeout_s: float
    process: int | UnsetType = UNSET
    """Of a claim: the process that owns it."""


class AskJob(Job[NfsAsked], frozen=True, kw_only=True):
    """A question about a server's directory."""

    kind: Literal["ask"] = "ask"
    ask: NfsQuestion

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer: several calls, each with its own timeout."""
        return ASK_S_MAX

    def read(self, event: dict[str, Any]) -> NfsAsked:
        """Return the record of the answer event."""
        return msgspec.convert(event, NfsAsked)


class Drive(msgspec.Struct, frozen=True, kw_only=True):
    """Where one drive's files are tested."""

    directory: str
    mount: dict[str, Any] | UnsetType = UNSET
    """What to mount there; absent of a file system that is there."""
    raw: str | None
    """What its own rate is read from; None where there is no direct I/O."""


class FileTestJob(Job[FileTestResult], frozen=True, kw_only=True):
    """Programs of KM83 on drives."""

    kind: Literal["file_test"] = "file_test"
    drives: tuple[Drive, ...]
    tests: tuple[FileProgram, ...]
    file_bytes: int
    runs: int
    timing: Literal["program", "drive"]
    seed: int
    total_s_max: float

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer."""
        return self.total_s_max

    def read(self, event: dict[str, Any]) -> FileTestResult:
        """Return the record of the result event."""
        return msgspec.convert(event, FileTestResult)


class Prepare(msgspec.Struct, frozen=True, tag_field="kind", tag="prepare"):
    """Makes a data set, or finds it whole."""


class Remove(msgspec.Struct, frozen=True, tag_field="kind", tag="remove"):
    """Removes a data set, or all of them."""


class Load(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", tag="load"):
    """Offers one load to a server whose data set was prepared."""

    rate_per_s: float
    seconds: float
    warm_up_s: float
    seed: int
    connections: int = 4
    stable: bool | None = None
    """Whether writes ask for stable storage; None leaves it to the workload."""
    limit_ms: float | None = None
    abort_above_ms: float | None = None


class NfsLoadJob(Job[NfsLoadAnswer], frozen=True, kw_only=True):
    """SH08 Table 3 on an NFS server."""

    kind: Literal["nfs_load"] = "nfs_load"
    server: NfsServerAddress
    data: NfsData | None
    action: Prepare | Load | Remove
    total_s_max: float

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer."""
        return self.total_s_max

    def read(self, event: dict[str, Any]) -> NfsLoadAnswer:
        """Return the record of the result event."""
        return msgspec.convert(event, NfsLoadAnswer)


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """What one trial offers a simulated server."""

    rate_per_s: float
    seconds: float
    seed: int
    limit_ms: float | None = None
    abort_above_ms: float | None = None
    also_limits_ms: tuple[float, ...] = ()


class TrialJob(Job[Measured], frozen=True, kw_only=True):
    """One trial of a simulated server, answered within this process."""

    kind: Literal["simulated_trial"] = "simulated_trial"
    job_id: str = "trial"
    server: dict[str, Any]
    order: Offer

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer: it is simulated faster than it would run."""
        return self.order.seconds

    def read(self, event: dict[str, Any]) -> Measured:
        """Return the record of what was measured."""
        return msgspec.convert(event["load"], Measured)


RecordFormat = Literal["binary", "ascii"]


class Scan(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="scan"):
    """Writes the records with `low <= key < high`; keys are 20 hexadecimal digits."""

    low: str
    high: str | None = None


class Sort(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="sort"):
    """Orders the records by their keys."""


class Transpose(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="transpose"):
    """Blocks of 4 KiB from row-major into column-major order."""

    rows: int
    columns: int


class Generate(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="generate"):
    """Makes the sort benchmark's records."""

    records: int
    first: int | UnsetType = UNSET
    """Number of the first one, which is 0 where nothing is said."""
    format: RecordFormat = "binary"
    skew: float = 0.0


class Check(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="check"):
    """Counts the records, sums their checksums and says whether they are in order."""


class Capacity(msgspec.Struct, frozen=True, kw_only=True, tag_field="name", tag="capacity"):
    """What memory and disks can do by themselves."""

    directories: tuple[str, ...]
    bytes: int
    """Laid out on each."""


Kernel = Scan | Sort | Transpose | Generate | Check | Capacity


class Output(msgspec.Struct, frozen=True, kw_only=True):
    """Where a data set goes. It gets its name when it is whole and verified, never before."""

    path: str
    stripes: tuple[str, ...] = ()
    """Directories of its stripes, one for each disk; none: a plain file."""
    stripe_bytes: int = 65536
    replace: bool = False


class StreamJob(Job[StreamResult], frozen=True, kw_only=True):
    """One kernel over one input."""

    kind: Literal["stream"] = "stream"
    job_id: str = ""
    """Given when it is run."""
    kernel: Kernel
    memory_bytes: int
    input: str | None = None
    output: Output | None = None
    temporary: tuple[str, ...] = ()
    """Directories for the runs of a sort in two passes; none: the output's own."""
    threads: int = 1
    io: Way = Way()
    seed: int = 1
    total_s_max: float = 3600.0

    @property
    def name(self) -> str:
        """The kernel's name."""
        return str(self.kernel.__struct_config__.tag)

    @property
    def seconds_max(self) -> float:
        """Longest time to the answer."""
        return self.total_s_max

    def read(self, event: dict[str, Any]) -> StreamResult:
        """Return the record of the result event."""
        return msgspec.convert(event, StreamResult)
