"""Streaming studies of machines whose truth is known: what the engine would have answered.

A phase takes as long as the resource that is busiest (all overlap), and a little noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import msgspec
import numpy as np

from leadline.record import Status
from leadline.record.finding import Finding
from leadline.record.streaming import (
    BLOCK_BYTES,
    KERNELS,
    RECORD_BYTES,
    Capacities,
    CheckResult,
    DiskCapacity,
    KernelName,
    PhaseResult,
    Platform,
    StreamOptions,
    StreamResult,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from survey_fixture import interval

RECORDS = 21_474_836
DATA_BYTES = {
    "scan": RECORDS * RECORD_BYTES,
    "sort": RECORDS * RECORD_BYTES,
    "transpose": 512 * 1024 * BLOCK_BYTES,
}
"""2 GiB of whole records or blocks."""
MEMORY_BYTES = 1 << 30
PLATFORMS: tuple[Platform, ...] = ("process", "threads", "cluster")
HOSTILE = "</script><img src=x onerror=alert(1)> & \x1b[31mred"
"""A name that tries to leave its place in a page or on a terminal."""
NOT_COUNTED = {
    "instructions": "perf_event_open: ENOENT; this virtual machine has no counters",
    "cycles": "perf_event_open: ENOENT; this virtual machine has no counters",
    "memory_bus_bytes": "neither resctrl nor an uncore memory controller is there",
}
_FACTS = {
    "host_name": "atlas",
    "kernel_release": "6.18.44",
    "cpu_model": "AMD EPYC 7B13",
    "cpu_count": 2,
    "memory_bytes": 25_232_932_864,
    "fs_type": "ext4",
}
Costs = dict[tuple[str, str], tuple[float, float]]

_COSTS: Costs = {
    ("scan", "read"): (0.42, 0.16),
    ("scan", "write"): (0.02, 0.34),
    ("sort", "read"): (1.28, 0.24),
    ("sort", "write"): (1.36, 0.36),
    ("sort", "runs"): (1.62, 0.42),
    ("sort", "merge"): (0.88, 0.36),
    ("transpose", "read"): (0.46, 0.20),
    ("transpose", "write"): (0.02, 0.32),
    ("transpose", "tiles"): (0.30, 0.30),
}
"""Processor nanoseconds per byte read and written, user and kernel."""
_MEMORY = {
    ("scan", "read"): 3.2,
    ("sort", "read"): 6.9,
    ("sort", "write"): 4.3,
    ("sort", "runs"): 5.2,
    ("sort", "merge"): 3.9,
    ("transpose", "read"): 4.1,
}
"""Bytes over the memory bus per byte of disk, where it is not 1.1."""
_COPIED = {
    ("scan", "read"): 0.5,
    ("sort", "write"): 1.0,
    ("sort", "runs"): 0.5,
    ("sort", "merge"): 0.5,
    ("transpose", "read"): 1.0,
    ("transpose", "tiles"): 0.5,
}
_COPIED_TO_SEND = {("sort", "read"): 2.0, ("transpose", "read"): 1.0}
"""Bytes that the program copies for each that it reads or writes; more in a cluster. Kernel time
can be on any processor, user time is the threads' own."""


@dataclass(frozen=True)
class Machine:
    """A machine with a known truth."""

    system: str = "atlas"
    processors: int = 2
    disk_read_mb_s: float = 520.0
    disk_write_mb_s: float = 430.0
    shared_path_mb_s: float = math.inf
    """What all disks together can give."""
    memory_copy_mb_s: float = 9000.0
    network_mb_s: float = 2600.0
    costs: Costs = field(default_factory=lambda: dict(_COSTS))
    counted: bool = False
    """Whether it has counters of instructions, cycles and the memory bus."""
    noise_frac: float = 0.01
    seed: int = 1998

    @property
    def memory_bus_mb_s(self) -> float:
        """A copied byte crosses the bus twice."""
        return 2 * self.memory_copy_mb_s


ATLAS = Machine()
"""Two processors; sorting stops at three disks because of them, nothing else stops at four."""
BOREAS = Machine(
    system="boreas",
    processors=4,
    disk_read_mb_s=210.0,
    disk_write_mb_s=190.0,
    shared_path_mb_s=520.0,
    memory_copy_mb_s=5200.0,
    counted=True,
    seed=1970,
)
"""Four processors with counters; all disks share a path that two and a half of them fill."""


def moved(kernel: str, phase: str) -> tuple[int, int]:
    """Bytes read and written by a phase."""
    size = DATA_BYTES[kernel]
    match phase:
        case "read":
            return size, 0
        case "write":
            return 0, size // 2 // RECORD_BYTES * RECORD_BYTES if kernel == "scan" else size
        case _:
            return size, size


def busy_s(machine: Machine, options: StreamOptions, disks: int, phase: str) -> dict[str, float]:
    """The seconds that a phase keeps each resource busy, by its name in `record.balance`."""
    read, written = moved(options.kernel, phase)
    parties = min(options.parties, machine.processors)
    user_ns, kernel_ns = machine.costs[options.kernel, phase]
    cost_ns = max(user_ns / parties, (user_ns + kernel_ns) / machine.processors)
    ratio = _MEMORY.get((options.kernel, phase), 1.1)
    alone = read / machine.disk_read_mb_s + written / machine.disk_write_mb_s
    return {
        "disks": alone / disks / 1e6,
        "io_path": (read + written) / machine.shared_path_mb_s / 1e6,
        "cpu": (read + written) * cost_ns / 1e9,
        "memory": (read + written) * ratio / machine.memory_bus_mb_s / 1e6,
        "network": 2 * sent_bytes(options, phase) / machine.network_mb_s / options.ranks / 1e6,
    }


def sent_bytes(options: StreamOptions, phase: str) -> int:
    """Bytes that go to other ranks: (P-1)/P of what a cluster's sort or transpose reads."""
    if options.kernel == "scan" or phase in ("write", "merge"):
        return 0
    read, _ = moved(options.kernel, phase)
    return read * (options.ranks - 1) // options.ranks


def phases_of(kernel: KernelName, passes: int = 1) -> tuple[str, ...]:
    if passes == 1:
        return ("read", "write")
    return ("runs", "merge") if kernel == "sort" else ("tiles",)


def phase_of(
    machine: Machine, options: StreamOptions, disks: int, phase: str, rng: np.random.Generator
) -> PhaseResult:
    read, written = moved(options.kernel, phase)
    both = read + written
    seconds = max(busy_s(machine, options, disks, phase).values())
    seconds *= math.exp(machine.noise_frac * rng.standard_normal())
    user, kernel = machine.costs[options.kernel, phase]
    wobble = math.exp(machine.noise_frac * rng.standard_normal())
    instructions = round(both * (2.6 * user + 1.1 * kernel) * wobble)
    sent = sent_bytes(options, phase)
    copied = _COPIED.get((options.kernel, phase), 0.0)
    to_send = _COPIED_TO_SEND.get((options.kernel, phase), 0.0)
    return PhaseResult(
        name=phase,
        seconds=seconds,
        bytes_read=read,
        bytes_written=written,
        cpu_user_s=both * user * wobble / 1e9,
        cpu_system_s=both * kernel * wobble / 1e9,
        instructions=instructions if machine.counted else None,
        cycles=round(instructions * (1.05 + 0.06 * disks)) if machine.counted else None,
        switches_voluntary=both // 1_638_400 * 2,
        switches_involuntary=round(40 * seconds),
        faults_minor=both // (2 << 20),
        faults_major=0,
        block_read_bytes=read + 4096 * 12 if read else 4096 * 12,
        block_written_bytes=round(written * 1.001),
        memory_bus_bytes=round(both * _MEMORY.get((options.kernel, phase), 1.1) * wobble)
        if machine.counted
        else None,
        network_sent_bytes=sent,
        network_received_bytes=sent,
        copied_bytes=round(both * (copied + (to_send if sent else 0.0))),
        first_done_s=seconds * (0.97 if options.parties > 1 else 1.0),
        last_done_s=seconds,
    )


def options_of(machine: Machine, kernel: KernelName, platform: Platform) -> StreamOptions:
    """As many threads as processors; four ranks of a cluster."""
    return StreamOptions(
        kernel=kernel,
        memory_bytes=MEMORY_BYTES,
        threads=machine.processors if platform == "threads" else 1,
        ranks=4 if platform == "cluster" else 1,
        rows=512 if kernel == "transpose" else None,
        columns=1024 if kernel == "transpose" else None,
    )


def run_of(
    machine: Machine, options: StreamOptions, disks: int, *, repetition: int = 0, passes: int = 1
) -> StreamRun:
    """One run; the same arguments give the same run."""
    key = (machine.seed, KERNELS.index(options.kernel), options.parties, disks, repetition)
    rng = np.random.default_rng(key)
    phases = tuple(
        phase_of(machine, options, disks, phase, rng) for phase in phases_of(options.kernel, passes)
    )
    bytes_in = DATA_BYTES[options.kernel]
    bytes_out = moved(options.kernel, "write")[1]
    check = None
    if options.kernel != "transpose":
        ordered = options.kernel == "sort"
        check = CheckResult(
            records=bytes_out // RECORD_BYTES,
            checksum="a3b1c4d9e2f07",
            duplicate_keys=0,
            unordered=0 if ordered else bytes_out // RECORD_BYTES // 2,
            first_unordered=None if ordered else 1,
        )
    result = StreamResult(
        version=1,
        kind="stream",
        job_id=f"{options.kernel}-{disks}-{repetition}",
        kernel=options.kernel,
        passes=passes,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        seconds=sum(phase.seconds for phase in phases),
        phases=phases,
        not_measurable={} if machine.counted else NOT_COUNTED,
        memory_bus_counter="resctrl" if machine.counted else "none",
        memory_peak_bytes=round(0.98 * options.memory_bytes),
        verified=True,
        verify_s=bytes_out / 1.9e9,
        check=check,
        capacity=None,
    )
    return StreamRun(
        options=options,
        disks=disks,
        repetition=repetition,
        started_at="2026-11-21T06:50:12+00:00",
        result=result,
    )


def capacities_of(machine: Machine, disks: int = 4, *, network: bool = False) -> Capacities:
    """Five readings of everything."""
    rng = np.random.default_rng((machine.seed, 7))

    def read(mb_s: float) -> tuple[float, ...]:
        return tuple(mb_s * np.exp(machine.noise_frac * rng.standard_normal(5)))

    r, w = machine.disk_read_mb_s, machine.disk_write_mb_s
    most = machine.shared_path_mb_s
    return Capacities(
        processors=float(machine.processors),
        memory_copy_mb_s=interval(read(machine.memory_copy_mb_s)),
        memory_read_mb_s=interval(read(1.6 * machine.memory_copy_mb_s)),
        disks=tuple(
            DiskCapacity(
                directory=f"/disk{n + 1}",
                devices=(f"nvme{n}n1",),
                read_mb_s=interval(read(r)),
                write_mb_s=interval(read(w)),
            )
            for n in range(disks)
        ),
        all_read_mb_s=interval(read(min(r * disks, most))),
        all_write_mb_s=interval(read(min(w * disks, most))),
        all_both_mb_s=interval(read(min(2 * disks / (1 / r + 1 / w), most))),
        network_mb_s=interval(read(machine.network_mb_s)) if network else None,
    )


def _study(
    machine: Machine, runs: Sequence[StreamRun], purpose: str, *, network: bool, disks: int
) -> StreamStudy:
    start = StreamStart(
        study_id=f"{machine.seed:032x}",
        system=machine.system,
        purpose="scaling" if purpose == "scaling" else "run",
        directories=tuple(f"/disk{n + 1}" for n in range(disks)),
        started_at="2026-11-21T06:50:12+00:00",
        seed=machine.seed,
        facts=_FACTS | {"host_name": machine.system},
    )
    return StreamStudy(
        start=start,
        status=Status.DONE,
        capacities=capacities_of(machine, disks, network=network),
        runs=tuple(runs),
        wall_s=sum(run.result.seconds + run.result.verify_s for run in runs),
    )


def run_study(
    machine: Machine = ATLAS,
    kernel: KernelName = "sort",
    platform: Platform = "process",
    *,
    disks: int = 2,
    passes: int = 1,
) -> StreamStudy:
    """One kernel over the user's data."""
    options = options_of(machine, kernel, platform)
    runs = [run_of(machine, options, disks, passes=passes)]
    return _study(machine, runs, "run", network=platform == "cluster", disks=disks)


def each_kernel_and_platform(machine: Machine = ATLAS) -> tuple[StreamStudy, ...]:
    """Nine studies of one run each."""
    return tuple(
        run_study(machine, kernel, platform) for platform in PLATFORMS for kernel in KERNELS
    )


def scaling_study(
    machine: Machine = ATLAS,
    platform: Platform = "threads",
    *,
    disks: int = 4,
    repetitions: int = 3,
    kernels: Sequence[KernelName] = KERNELS,
) -> StreamStudy:
    """Every kernel on 1 to `disks` disks."""
    runs = [
        run_of(machine, options_of(machine, kernel, platform), count, repetition=repetition)
        for repetition in range(repetitions)
        for kernel in kernels
        for count in range(1, disks + 1)
    ]
    return _study(machine, runs, "scaling", network=platform == "cluster", disks=disks)


def hostile_study() -> StreamStudy:
    """Everything that a stranger controls tries to leave its place."""
    study = scaling_study(replace(ATLAS, system=HOSTILE), disks=2, repetitions=2, kernels=("sort",))
    start = msgspec.structs.replace(
        study.start, facts={HOSTILE: HOSTILE}, notes=(Finding.of("one_disk", directory=HOSTILE),)
    )
    return msgspec.structs.replace(
        study, start=start, findings=(Finding.of("no_bound", why=HOSTILE),), sentences=(HOSTILE,)
    )
