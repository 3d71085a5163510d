"""From what the user wants streamed to a job that can be run, or a refusal."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import cast

import msgspec

from leadline.engine import Directory, available_memory_bytes
from leadline.engine.streams.jobs import record_format_of, scan_of_share
from leadline.engine.streams.places import (
    DataSet,
    absolute,
    absolute_directory,
    find_data_set,
    require_possible,
)
from leadline.errors import UsageRefused
from leadline.machine.resources import free_memory_bytes
from leadline.record import Interval
from leadline.record.job import (
    STREAM_MEMORY_BYTES_MIN,
    Check,
    Generate,
    Kernel,
    Output,
    RecordFormat,
    Sort,
    StreamJob,
    Transpose,
)
from leadline.record.streaming import (
    BLOCK_BYTES,
    KERNELS,
    RECORD_BYTES,
    Capacities,
    CapacityResult,
    DiskCapacity,
    KernelName,
    StreamOptions,
    Way,
)
from leadline.stats import Noise, pooled_noise, reading_interval
from leadline.stats.arithmetic import exactly

BUDGET_S = 3600.0


class Wanted(msgspec.Struct, frozen=True, kw_only=True):
    """What a kernel is to do and how; paths as people write them."""

    source: str | None = None
    destination: str | None = None
    memory_bytes: int | None = None
    """None takes half of what is free."""
    threads: int = 1
    ranks: int = 1
    read: str = "uring"
    stripes: tuple[str, ...] = ()
    stripe_bytes: int = 65536
    buffered: bool = False
    """Through the page cache."""
    depth: int = 8
    temporary: tuple[str, ...] = ()
    replace: bool = False
    runs: int = 1
    seed: int = 1
    budget_s: float = BUDGET_S


class Planned(msgspec.Struct, frozen=True, kw_only=True):
    """A run that can begin."""

    system: str
    job: StreamJob
    options: StreamOptions
    data_bytes: int
    output_bytes: int
    """How much it is expected to write."""
    directories: tuple[str, ...]
    """Of the input's files and the output's."""
    capacities: bool = True
    """Whether capacities are measured first, without which there is no bound."""
    runs: int = 1
    """How often the same is run; each after the first replaces the output of the one before."""


def plan_run(
    kernel: KernelName,
    wanted: Wanted,
    *,
    name: str | None = None,
    match_frac: float = 0.5,
    rows: int | None = None,
    columns: int | None = None,
    capacities: bool = True,
) -> Planned:
    """Look at everything, touch nothing.

    Raises:
        TargetRefused: what is wrong, why, and what to type instead.

    """
    if kernel not in KERNELS:
        raise UsageRefused(f"the kernels are {', '.join(KERNELS)}; there is no {kernel!r}")
    source = find_data_set(absolute(wanted.source or ""))
    chosen = _kernel(kernel, source, match_frac, rows, columns)
    job = job_of(chosen, wanted)
    size = source.size_bytes
    written = math.ceil(size * match_frac) if kernel == "scan" else size
    require_possible(job, written)
    options = _options(kernel, wanted, job)
    if kernel == "scan":
        options = msgspec.structs.replace(options, match_frac=match_frac)
    if isinstance(chosen, Transpose):
        options = msgspec.structs.replace(options, rows=chosen.rows, columns=chosen.columns)
    homes = source.directories + output_directories(job)
    usual = Directory(text=homes[-1], path=homes[-1]).name
    return Planned(
        system=name or usual,
        job=job,
        options=options,
        data_bytes=size,
        output_bytes=written,
        directories=homes,
        capacities=capacities,
        runs=wanted.runs,
    )


def plan_records(wanted: Wanted, records: int, record_format: str, skew: float) -> StreamJob:
    """Return the job that makes records.

    Raises:
        TargetRefused: as `plan_run`.

    """
    if record_format not in ("binary", "ascii"):
        raise UsageRefused(f"--format is binary or ascii, not {record_format!r}")
    kernel = Generate(records=records, format=cast("RecordFormat", record_format), skew=skew)
    job = job_of(kernel, wanted)
    require_possible(job)
    return job


def plan_check(wanted: Wanted) -> StreamJob:
    """Return the job that checks records.

    Raises:
        TargetRefused: as `plan_run`.

    """
    job = job_of(Check(), wanted)
    require_possible(job)
    return job


def job_of(kernel: Kernel, wanted: Wanted) -> StreamJob:
    """Return the job, its paths absolute."""
    if wanted.read not in ("mmap", "uring"):
        raise UsageRefused(f"--io is mmap or uring, not {wanted.read!r}")
    output = None
    if wanted.destination is not None:
        output = Output(
            path=absolute(wanted.destination),
            stripes=tuple(absolute_directory(directory) for directory in wanted.stripes),
            stripe_bytes=wanted.stripe_bytes,
            replace=wanted.replace,
        )
    return StreamJob(
        kernel=kernel,
        memory_bytes=wanted.memory_bytes or usual_memory_bytes(wanted.ranks),
        input=absolute(wanted.source) if wanted.source is not None else None,
        output=output,
        temporary=tuple(absolute_directory(directory) for directory in wanted.temporary),
        threads=wanted.threads,
        io=Way(
            read="mmap" if wanted.read == "mmap" else "uring",
            read_direct=wanted.read == "uring" and not wanted.buffered,
            write_direct=not wanted.buffered,
            depth=wanted.depth,
        ),
        seed=wanted.seed,
        total_s_max=wanted.budget_s,
    )


def usual_memory_bytes(ranks: int = 1) -> int:
    """Return half of the memory that is free, of the machine or of the own cgroup.

    Ranks must all come to the same answer, so for them it is half of all there is.
    """
    known = (available_memory_bytes(), free_memory_bytes() if ranks == 1 else None)
    free = min((size for size in known if size is not None), default=2 * STREAM_MEMORY_BYTES_MIN)
    return max(STREAM_MEMORY_BYTES_MIN, free // 2)


def output_directories(job: StreamJob) -> tuple[str, ...]:
    """Return where the output's bytes go."""
    if job.output is None:
        return ()
    return job.output.stripes or (job.output.path.rpartition("/")[0] or "/",)


def _options(kernel: KernelName, wanted: Wanted, job: StreamJob) -> StreamOptions:
    return StreamOptions(
        kernel=kernel,
        memory_bytes=job.memory_bytes,
        threads=job.threads,
        ranks=wanted.ranks,
        read=job.io.read,
        read_direct=job.io.read_direct,
        write_direct=job.io.write_direct,
        depth=job.io.depth,
        stripe_bytes=wanted.stripe_bytes,
    )


def _kernel(
    kernel: KernelName, source: DataSet, match_frac: float, rows: int | None, columns: int | None
) -> Kernel:
    if kernel == "sort":
        return Sort()
    if kernel == "transpose":
        return _transpose(source, rows, columns)
    if not 0 < match_frac <= 1:
        raise UsageRefused(
            f"--match {match_frac:g} is no share of the records: above 0, to 1 for all of them"
        )
    return scan_of_share(match_frac, record_format_of(source.first_bytes(RECORD_BYTES)))


def _transpose(source: DataSet, rows: int | None, columns: int | None) -> Transpose:
    """Return the shape asked for; a side that was not given follows from the other, or is equal."""
    blocks = source.size_bytes // BLOCK_BYTES
    side = math.isqrt(blocks)
    if rows is None and columns is None:
        if side * side != blocks:
            raise UsageRefused(
                f"{source.path} has {blocks} blocks of 4 KiB, which are no square; give --rows "
                "and --columns"
            )
        rows = columns = side
    rows = rows or max(1, blocks // (columns or 1))
    columns = columns or max(1, blocks // rows)
    return Transpose(rows=max(1, rows), columns=max(1, columns))


# What the machine can do: readings of the engine's capacity job with their intervals.

_MB = 1e6


def capacities_of(
    readings: CapacityResult, directories: Sequence[str], network_bytes_s: Sequence[float] = ()
) -> Capacities:
    """Return capacities in MB/s; noise is pooled over all disks, and over both uses of memory.

    Args:
        readings: of the capacity job.
        directories: of its disks, in its order.
        network_bytes_s: of one rank, in and out together, one for each reading.

    """
    disks = _noise(
        *readings.disk_read_bytes_s,
        *readings.disk_write_bytes_s,
        readings.all_read_bytes_s,
        readings.all_write_bytes_s,
        readings.all_both_bytes_s,
    )
    memory = _noise(readings.memory_copy_bytes_s, readings.memory_read_bytes_s)
    return Capacities(
        processors=readings.processors,
        memory_copy_mb_s=_mb_s(readings.memory_copy_bytes_s, memory),
        memory_read_mb_s=_mb_s(readings.memory_read_bytes_s, memory),
        disks=tuple(
            DiskCapacity(
                directory=directory,
                devices=devices,
                read_mb_s=_mb_s(read, disks),
                write_mb_s=_mb_s(write, disks),
            )
            for directory, devices, read, write in zip(
                directories,
                readings.disk_devices,
                readings.disk_read_bytes_s,
                readings.disk_write_bytes_s,
                strict=True,
            )
        ),
        all_read_mb_s=_mb_s(readings.all_read_bytes_s, disks),
        all_write_mb_s=_mb_s(readings.all_write_bytes_s, disks),
        all_both_mb_s=_mb_s(readings.all_both_bytes_s, disks),
        network_mb_s=_mb_s(network_bytes_s, _noise(network_bytes_s)) if network_bytes_s else None,
    )


def _noise(*groups: Sequence[float]) -> Noise | None:
    """None when no group has two readings: then there is no interval."""
    known = [group for group in groups if group]
    return pooled_noise(known) if any(len(group) > 1 for group in known) else None


def _mb_s(readings: Sequence[float], noise: Noise | None) -> Interval:
    values = [reading / _MB for reading in readings]
    if not values:
        return exactly(0.0, 0)
    if noise is None:
        return exactly(sum(values) / len(values), len(values))
    return reading_interval(values, None, noise)
