"""The contenders of bench/engine.py: one run of Leadline's engine, of fio, or of the bare loop."""

from __future__ import annotations

import json
import mmap
import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import without_io_uring
from leadline.engine.child import ENGINE_COMMAND, Child
from leadline.errors import EngineFault, PointFailed, TargetRefused
from leadline.record import Access, Limits, Workload
from leadline.record.job import DirectoryTarget, MeasureJob, NullTarget

FIO_RAMP_S = 0.3
"""fio's share of what Leadline does in its warm-up: page tables filled, processor awake."""
WARM_UP_S_MAX = 1.5
"""Leadline's longest warm-up; a third of it may go into reading the file once."""


class NotAvailable(Exception):
    """A contender cannot run here; the message says why."""


@dataclass(frozen=True)
class Setting:
    """What all runs of one row share."""

    directory: Path
    file_bytes: int
    cpus: tuple[int, ...]
    seconds: float

    @property
    def data_file(self) -> Path:
        """The file every contender reads; the engine laid it out."""
        return self.directory / "data.bin"

    @property
    def cpu_list(self) -> str:
        """The processors as taskset and fio spell them."""
        return ",".join(map(str, self.cpus))


@dataclass(frozen=True)
class Reading:
    """One run."""

    operations_per_s: float
    cpu_us_per_operation: float
    """User and system time of the measured window, by the contender's own account."""
    foreign_cpu: float = 0.0
    """CPU seconds per second used by everybody else, over the whole process."""
    process_cpu_s: float = 0.0
    """CPU seconds of the whole process, start and warm-up included, by the kernel's account."""


@dataclass(frozen=True)
class Contender:
    """Something that reads the file."""

    name: str
    run: Callable[[Setting], Reading]


def watched(contender: Contender, setting: Setting) -> Reading:
    """Run once; adds what the process and everybody else used meanwhile."""
    began_s, busy_s, own_s = time.monotonic(), machine_busy_s(), own_cpu_s()
    reading = contender.run(setting)
    wall_s = time.monotonic() - began_s
    process_s = own_cpu_s() - own_s
    foreign = max(0.0, machine_busy_s() - busy_s - process_s) / wall_s
    return replace(reading, foreign_cpu=foreign, process_cpu_s=process_s)


def machine_busy_s() -> float:
    """CPU seconds this machine was busy since boot, time stolen by the hypervisor not counted."""
    words = Path("/proc/stat").read_text(encoding="ascii").splitlines()[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, _steal = map(int, words)
    return (user + nice + system + irq + softirq) / os.sysconf("SC_CLK_TCK")


def own_cpu_s() -> float:
    """CPU seconds of this process and of its children that have ended."""
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(used.ru_utime + used.ru_stime for used in map(resource.getrusage, whose))


@contextmanager
def pinned(path: Path) -> Iterator[None]:
    """Keep the file in memory: kernels that reclaim idle page cache leave mapped pages alone."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        flags = mmap.MAP_SHARED | mmap.MAP_POPULATE
        with closing(mmap.mmap(file.fileno(), size, flags=flags, prot=mmap.PROT_READ)):
            yield


def drop_from_cache(path: Path) -> None:
    """Forget the file's cached pages, so that direct reads meet none."""
    with path.open("rb") as file:
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def leadline(
    backend: str, request_bytes: int, *, depth: int = 1, direct: bool = False, ring: bool = True
) -> Contender:
    """Leadline's engine in a process of its own, as every peer has; latency is recorded.

    Without a `ring` io_uring is forbidden to it.
    """

    def run(setting: Setting) -> Reading:
        job = _job(setting, backend, request_bytes, depth, direct=direct)
        without = () if ring else (sys.executable, without_io_uring.__file__)
        command = ("taskset", "-c", setting.cpu_list, *without, *ENGINE_COMMAND)
        try:
            with closing(Child(command)) as child:
                result = child.run(job)
        except (EngineFault, PointFailed, TargetRefused) as error:
            raise NotAvailable(str(error)) from error
        operations = result.read.operations
        cpu_s = (result.cpu_user + result.cpu_system) * result.wall_s
        return Reading(operations / result.wall_s, 1e6 * cpu_s / operations)

    return Contender("Leadline", run)


def _job(
    setting: Setting, backend: str, request_bytes: int, depth: int, *, direct: bool
) -> MeasureJob:
    null = backend == "null"
    return MeasureJob.of(
        "bench",
        NullTarget() if null else DirectoryTarget(str(setting.directory)),
        Access(backend=backend, direct=direct),
        Workload(
            unique_bytes=setting.file_bytes,
            size_mean=request_bytes,
            size_dist="fixed",
            read_frac=1.0,
            seq_frac=0.0,
            process_num=len(setting.cpus),
            queue_depth=depth,
        ),
        seed=time.monotonic_ns() % 2**32,
        limits=Limits(
            warm_up_s_max=WARM_UP_S_MAX,
            measure_s_min=setting.seconds,
            measure_s_max=setting.seconds,
            accuracy=0.0,
            total_s_max=120.0,
        ),
    )


def fio(name: str, engine: str, request_bytes: int, *options: str) -> Contender:
    """Run one fio process; `options` go to fio as they are."""

    def run(setting: Setting) -> Reading:
        job = _fio_answer(fio_command(setting, engine, request_bytes, options))
        operations = job["read"]["total_ios"]
        # With several jobs fio sums their run times, so the shares are of that sum.
        cpu_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1e3
        return Reading(job["read"]["iops"], 1e6 * cpu_s / operations)

    return Contender(name, run)


def fio_command(
    setting: Setting, engine: str, request_bytes: int, options: Sequence[str]
) -> list[str]:
    """Return the command line of fio.

    - `norandommap` and no `randrepeat`: places drawn independently, as Leadline's are, without a
      map of the blocks read so far, and anew in every run.
    - `random_generator=tausworthe64`: independent draws as wide as Leadline's own generator's;
      `lfsr` would be a fixed order of all blocks, and the 32-bit default differs in rate by less
      than runs do.
    - `invalidate=0`: fio drops the file from the cache otherwise.
    """
    issuers = len(setting.cpus)
    file = [] if engine == "null" else [f"--filename={setting.data_file}", "--readonly"]
    several = (
        [
            f"--numjobs={issuers}",
            "--group_reporting",
            f"--cpus_allowed={setting.cpu_list}",
            "--cpus_allowed_policy=split",
        ]
        if issuers > 1
        else []
    )
    return [
        "taskset",
        "-c",
        setting.cpu_list,
        "fio",
        "--name=bench",
        *file,
        f"--ioengine={engine}",
        f"--size={setting.file_bytes}",
        f"--bs={request_bytes}",
        "--rw=randread",
        "--norandommap",
        "--randrepeat=0",
        "--random_generator=tausworthe64",
        "--invalidate=0",
        "--thread=0",
        "--time_based",
        f"--runtime={round(1e3 * setting.seconds)}ms",
        f"--ramp_time={round(1e3 * FIO_RAMP_S)}ms",
        "--output-format=json",
        *several,
        *options,
    ]


def _fio_answer(command: list[str]) -> dict[str, Any]:
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise NotAvailable(f"fio: {said[-1] if said else f'exit code {done.returncode}'}")
    job: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    if job["error"]:
        raise NotAvailable(f"fio: {os.strerror(job['error'])}")
    return job


def built(name: str, folder: Path) -> Path:
    """Compile a bare loop, `bare_pread` or `bare_uring`.

    Raises:
        NotAvailable: there is no C compiler, or it refuses.

    """
    program = folder / name
    source = Path(__file__).with_name(f"{name}.c")
    command = ["cc", "-O2", "-pthread", str(source), "-o", str(program)]
    try:
        subprocess.run(command, check=True, capture_output=True, text=True)
    except FileNotFoundError:
        raise NotAvailable("cc is missing: apt-get install gcc libc6-dev") from None
    except subprocess.CalledProcessError as error:
        raise NotAvailable(f"cc: {error.stderr.strip()}") from error
    return program


def bare_loop(program: Path, request_bytes: int) -> Contender:
    """Run the bare loop, one thread per processor."""

    def run(setting: Setting) -> Reading:
        return _bare(program, setting, request_bytes, *setting.cpus)

    return Contender("bare loop of pread", run)


def bare_ring(program: Path, request_bytes: int, depth: int) -> Contender:
    """Run the bare loop of direct reads through a ring with registered file and buffers."""

    def run(setting: Setting) -> Reading:
        pinned_there = ("taskset", "-c", setting.cpu_list)
        return _bare(program, setting, request_bytes, depth, before=pinned_there)

    return Contender("bare loop of io_uring", run)


def _bare(
    program: Path, setting: Setting, request_bytes: int, *last: int, before: Sequence[str] = ()
) -> Reading:
    words = [setting.data_file, setting.file_bytes, request_bytes, setting.seconds, *last]
    command = [*before, str(program), *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotAvailable(f"bare loop: {done.stderr.strip()}")
    operations_per_s, cpu_us = map(float, done.stdout.split())
    return Reading(operations_per_s, cpu_us)
