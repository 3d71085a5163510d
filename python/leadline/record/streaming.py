"""Streaming kernels (AD98): what the engine answers, and studies of runs as one document."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from leadline.record.finding import Finding
from leadline.record.study import Records, Status, StudyStart, TextAnswer
from leadline.record.workload import Interval

KernelName = Literal["scan", "sort", "transpose"]
"""The kernels of AD98 §4."""
KERNELS: tuple[KernelName, ...] = ("scan", "sort", "transpose")
Platform = Literal["process", "threads", "cluster"]
"""AD98's workstation, SMP and cluster."""
RECORD_BYTES = 100
KEY_BYTES = 10
BLOCK_BYTES = 4096
"""Of a transpose (AD98 §4.3)."""


class PhaseResult(msgspec.Struct, frozen=True, kw_only=True):
    """One phase of a kernel; None is what this machine does not count."""

    name: str
    """`read`, `write`; of two passes `runs`, `merge`; of tiles that do not fit memory `tiles`."""
    seconds: float
    bytes_read: int
    """Of the data set, or of runs; all ranks together."""
    bytes_written: int
    cpu_user_s: float
    cpu_system_s: float
    instructions: int | None
    cycles: int | None
    switches_voluntary: int
    switches_involuntary: int
    faults_minor: int
    faults_major: int
    block_read_bytes: int | None
    """What the block layer read for it."""
    block_written_bytes: int | None
    memory_bus_bytes: int | None
    network_sent_bytes: int
    """Payload handed to other ranks."""
    network_received_bytes: int
    copied_bytes: int
    """Copied by the program itself; each crosses the memory bus twice."""
    first_done_s: float
    """When the first thread or rank was done, from the phase's beginning."""
    last_done_s: float

    @property
    def bytes_moved(self) -> int:
        """Bytes read and written, the base of every ratio of a phase that does both."""
        return self.bytes_read + self.bytes_written

    @property
    def cpu_s(self) -> float:
        """Processor seconds, user and kernel."""
        return self.cpu_user_s + self.cpu_system_s

    @property
    def mb_s(self) -> float:
        """Disk bandwidth of the phase, reading and writing together, in MB/s."""
        return self.bytes_moved / self.seconds / 1e6 if self.seconds > 0 else 0.0


class CapacityResult(msgspec.Struct, frozen=True, kw_only=True):
    """Readings of what memory and disks can do, in bytes per second, each reading by itself."""

    memory_copy_bytes_s: tuple[float, ...]
    """Copied; each crosses the bus twice."""
    memory_read_bytes_s: tuple[float, ...]
    disk_read_bytes_s: tuple[tuple[float, ...], ...]
    disk_write_bytes_s: tuple[tuple[float, ...], ...]
    all_read_bytes_s: tuple[float, ...]
    all_write_bytes_s: tuple[float, ...]
    all_both_bytes_s: tuple[float, ...]
    disk_devices: tuple[tuple[str, ...], ...]
    processors: float
    """A quota of the cgroup included."""


class CheckResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of records found (as valsort)."""

    records: int
    checksum: str
    """Sum of the records' CRC-32 in hexadecimal digits, as valsort prints it."""
    duplicate_keys: int
    unordered: int
    first_unordered: int | None


class StreamResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one streaming job (crates/wire/src/event/stream.rs)."""

    version: int
    kind: Literal["stream"]
    job_id: str
    kernel: str
    passes: int
    bytes_in: int
    bytes_out: int
    seconds: float
    """All phases, without the verification."""
    phases: tuple[PhaseResult, ...]
    not_measurable: dict[str, str]
    """Why a counter is None, by its field's name."""
    memory_bus_counter: str
    """`imc`, `resctrl` or `none`."""
    memory_peak_bytes: int
    verified: bool
    verify_s: float
    check: CheckResult | None
    capacity: CapacityResult | None


class DiskCapacity(msgspec.Struct, frozen=True, kw_only=True):
    """One disk by itself."""

    directory: str
    devices: tuple[str, ...]
    read_mb_s: Interval
    write_mb_s: Interval


class Way(msgspec.Struct, frozen=True, kw_only=True):
    """How bytes are moved."""

    read: Literal["mmap", "uring"] = "uring"
    read_direct: bool = True
    write_direct: bool = True
    depth: int = 8
    """Reads, and writes, outstanding on each disk."""


class CapacityRun(msgspec.Struct, frozen=True, kw_only=True):
    """How capacities were measured."""

    at: str
    """UTC, ISO 8601."""
    laid_bytes: int
    """On each disk."""
    memory_bytes: int
    """Of the kernel beside which they were measured."""
    way: Way


class Capacities(msgspec.Struct, frozen=True, kw_only=True):
    """What the machine can do, measured before the kernels or within the day before."""

    processors: float
    memory_copy_mb_s: Interval
    """Bytes copied; the bus carries twice as many."""
    memory_read_mb_s: Interval
    disks: tuple[DiskCapacity, ...]
    all_read_mb_s: Interval
    """All disks at once."""
    all_write_mb_s: Interval
    all_both_mb_s: Interval
    """Read and written together, half each."""
    network_mb_s: Interval | None = None
    """Of one rank, in and out together; None without a cluster."""
    run: CapacityRun | None = None
    """None in studies of earlier versions, and of disks added one by one."""


class StreamOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What decides a run beside its data."""

    kernel: KernelName
    memory_bytes: int
    threads: int = 1
    ranks: int = 1
    read: Literal["mmap", "uring"] = "uring"
    read_direct: bool = True
    write_direct: bool = True
    depth: int = 8
    stripe_bytes: int = 65536
    match_frac: float = 0.5
    """Share of the records that a scan is to select."""
    rows: int | None = None
    columns: int | None = None

    @property
    def platform(self) -> Platform:
        """AD98's three platforms."""
        if self.ranks > 1:
            return "cluster"
        return "threads" if self.threads > 1 else "process"

    @property
    def parties(self) -> int:
        """Threads of all ranks together."""
        return self.ranks * self.threads


class StreamRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a kernel."""

    options: StreamOptions
    disks: int
    """Disks its data was striped over."""
    repetition: int
    started_at: str
    """UTC, ISO 8601."""
    result: StreamResult


class StreamStart(StudyStart, frozen=True, kw_only=True):
    """What decides a study, before its first run."""

    purpose: Literal["run", "scaling"]
    """One kernel over the user's data; or every kernel on 1 to n disks."""
    directories: tuple[str, ...]
    """The disks, in the order in which a scaling adds them."""
    seed: int
    facts: dict[str, Any]
    notes: tuple[Finding, ...] = ()

    @property
    def target(self) -> str:
        """The disks."""
        return ", ".join(self.directories)


class CapacitiesKnown(msgspec.Struct, frozen=True, kw_only=True, tag="capacities"):
    """What the machine can do was measured; a later one takes the place of an earlier."""

    order: int
    item_id: None = None
    wall_s: float
    """Of the study so far, here and below."""
    capacities: Capacities | None
    doubts: tuple[Finding, ...] = ()
    """Why there are none."""


class RunEnded(msgspec.Struct, frozen=True, kw_only=True, tag="run"):
    """A run of a kernel ended."""

    order: int
    item_id: str
    wall_s: float
    run: StreamRun


class StreamStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study as it is told: start, items and answer together."""

    version: int = 1
    start: StreamStart
    status: Status
    capacities: Capacities | None = None
    runs: tuple[StreamRun, ...] = ()
    sentences: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    wall_s: float = 0.0


STREAM = Records(
    "stream",
    StreamStart,
    CapacitiesKnown | RunEnded,
    TextAnswer,
    said="stream study",
    made_by="leadline stream sort SRC DST",
)
