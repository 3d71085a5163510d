"""A workload run through fio itself, as a cross-check of Leadline's own engine.

Both go to the same data file, which Leadline's engine lays out and brings into the cache before fio
runs, in the same claimed directory and the same memory cgroup. fio gets its job on its stdin, which
is sent only once the process is inside the group; it makes no file, and dies with this process.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from leadline.engine.child import GRACE_S, OnEvent
from leadline.engine.pace import until_completed
from leadline.engine.process import ProcessEngine
from leadline.engine.targets.claim import DATA, Claim
from leadline.errors import EngineFault, NothingCompleted, PointFailed, TargetRefused
from leadline.fio import FioRun, fitting_ramp_s, read_job, write_job
from leadline.machine.cgroup import MemoryCgroup
from leadline.machine.facts import granule_bytes
from leadline.machine.stop import shielded
from leadline.record import (
    EngineResult,
    Interval,
    LatencyUs,
    MovedBytes,
    OperationSummary,
    Placed,
    Realised,
    SpansUs,
    WarmUp,
    Workload,
    WrittenBytes,
)
from leadline.record.access import Access
from leadline.record.finding import Finding
from leadline.record.job import CLOSED, WIRE_VERSION, Arrivals, Limits, LoadAsked
from leadline.record.jobs.streams import StreamAsked

PROGRAM = "fio"
# 1 is PR_SET_PDEATHSIG: a load generator must not outlive whoever asked for it.
_START = (
    "import ctypes, os, signal, sys; ctypes.CDLL(None).prctl(1, signal.SIGKILL); "
    "os.execvp(sys.argv[1], sys.argv[1:])"
)
_LAUNCHER = (sys.executable, "-I", "-c", _START)
_TUNABLES = "glibc.malloc.hugetlb=1"
"""Huge pages for fio's buffers where they are large enough, as Leadline's have: a direct read into
scattered pages is up to twice as slow."""
_PERCENTILES = (50.0, 90.0, 99.0, 99.9)
_REPORT: dict[str, str | int] = {
    "allow_file_create": 0,
    "unified_rw_reporting": "both",
    "lat_percentiles": 1,
    "clat_percentiles": 0,
    "percentile_list": ":".join(map(str, _PERCENTILES)),
}
"""What every job gets: no file but the one that is there, and the answer in full."""
_ITS_FILE = re.compile(r"\s*(filename|directory)\s*=")
"""fio adds a second filename to the first."""
_LAST_SECTION = re.compile(r"^\s*\[(.*)\]", flags=re.MULTILINE)
_RAMP_SHARE = 0.5
"""fio's ramp time, as a share of the longest warm-up: the cache has been filled before."""
_RAMP_S_MAX = 60.0
_POLITE_S = 2.0
_KILL_S = 30.0
_VERSION_S = 30.0
_SAID_BYTES = 2000
_SUB_BUCKETS = 128
"""Buckets per octave of the engine's histogram (crates/base/src/histogram.rs)."""


class FioEngine:
    """fio on a directory; see `Engine` for what every engine offers."""

    def __init__(self, own: ProcessEngine, claimed: Claim, group: MemoryCgroup | None) -> None:
        """Take over an opened directory.

        Raises:
            TargetRefused: fio is not installed, or does not run.

        """
        self.own = own
        """Leadline's engine on the same file."""
        self._claim = claimed
        self._group = group
        self._runs = 0
        self.virtual = False
        self.access = own.access
        self.capacity_bytes = own.capacity_bytes
        self.memory_bytes = own.memory_bytes
        self.process_num_max = own.process_num_max
        self.l3_cache_bytes = own.l3_cache_bytes
        self.facts = own.facts | {"engine": fio_version()}

    @property
    def clock_s(self) -> float:
        """Wall seconds since it was opened (plus what was skipped)."""
        return self.own.clock_s

    def skip_to(self, clock_s: float) -> None:
        """Set the clock forward."""
        self.own.skip_to(clock_s)

    def set_access(self, access: Access) -> None:
        """Refuse: fio's job is written for one."""
        raise TargetRefused(f"fio cannot change to {access.discipline} writes between two runs")

    def prepare(self) -> None:
        """Do nothing: fio's own limit is not measured."""

    def time_calls(self) -> dict[str, Interval]:
        """Time calls about files where the data lie."""
        return self.own.time_calls()

    def run(
        self,
        workload: Workload,
        *,
        seed: int,
        limits: Limits,
        arrivals: Arrivals = CLOSED,
        precondition_bytes_max: int | None = None,
        on_event: OnEvent | None = None,
        streams: Sequence[StreamAsked] = (),
        load: LoadAsked | None = None,
    ) -> EngineResult:
        """Lay out with Leadline's engine, then run fio for `measure_s_max`."""
        if load is not None:
            raise TargetRefused("--engine fio keeps no parts of a window: search with Leadline's")
        if streams:
            raise TargetRefused(
                "--engine fio runs one workload of five parameters; write the streams' jobs with "
                "--write-fio and run them with fio"
            )
        if precondition_bytes_max is not None:
            raise TargetRefused("--precondition is Leadline's; leave it or --engine fio out")

        def job(measure_s: float, ramp_s: float, placement: Placed | None) -> str:
            return write_job(
                workload,
                FioRun(
                    filename=DATA,
                    **self.access.stored_in(FioRun),
                    arrivals=arrivals,
                    seconds=measure_s,
                    ramp_s=ramp_s,
                    granule_bytes=self._granule_bytes(),
                    options=_options(seed, placement),
                ),
            )

        return self._run(job, workload, arrivals, seed=seed, limits=limits, on_event=on_event)

    def run_text(self, text: str, workload: Workload, *, seed: int, limits: Limits) -> EngineResult:
        """Run a person's own job of one section, its file and its times replaced.

        Args:
            text: the job file.
            workload: the workload that it was read as, for laying out the file.
            seed: of the layout; the job keeps its own.
            limits: how long to warm up and to measure.

        Raises:
            TargetRefused: it has several sections, or ends with `[global]`.
            FioJobRefused: it cannot be read.

        """
        read = read_job(text, environment=os.environ)
        if len(read) != 1 or _LAST_SECTION.findall(text)[-1].startswith("global"):
            raise TargetRefused(
                f"the job file has {len(read)} jobs, or ends with [global]: one job at a time is "
                "run here, and its section comes last"
            )

        def job(measure_s: float, ramp_s: float, _placement: Placed | None) -> str:
            replaced = {
                "filename": DATA,
                "overwrite": 1,
                "time_based": 1,
                "group_reporting": 1,
                "thread": 1,
                "runtime": f"{round(1e3 * measure_s)}ms",
                "ramp_time": f"{round(1e3 * ramp_s)}ms",
                **_REPORT,
            }
            kept = [line for line in text.splitlines() if not _ITS_FILE.match(line)]
            return "\n".join([*kept, *(f"{key}={value}" for key, value in replaced.items()), ""])

        return self._run(job, workload, read[0].arrivals, seed=seed, limits=limits, on_event=None)

    def _run(
        self,
        job: Callable[[float, float, Placed | None], str],
        workload: Workload,
        arrivals: Arrivals,
        *,
        seed: int,
        limits: Limits,
        on_event: OnEvent | None,
    ) -> EngineResult:
        job(limits.measure_s_max, 0.0, None)  # what cannot be written is refused before the layout
        self.own.wear.begin(workload)
        began_s = time.monotonic()
        laid_out = self._lay_out(workload, seed, limits, on_event)
        prepare_s = time.monotonic() - began_s
        measure_s, ramp_s = _times(limits, prepare_s, workload, arrivals)
        answer = run_fio(
            job(measure_s, ramp_s, laid_out.placement),
            directory=f"/proc/self/fd/{self._claim.folder.fd}",
            deadline_s=ramp_s + measure_s + GRACE_S + workload.think_time_s,
            group=self._group,
        )
        self._runs += 1
        result = read_result(answer, workload, f"fio-{self._runs}", ramp_s=ramp_s)
        told = msgspec.structs.replace(
            result,
            findings=(*result.findings, *_cut_short(measure_s, limits)),
            prepare_s=prepare_s,
            total_s=time.monotonic() - began_s,
            cache_resident_bytes=self._group.usage_bytes() if self._group else None,
            placement=laid_out.placement,
            written_bytes=WrittenBytes(
                layout=laid_out.written_bytes.layout, workload=result.workload_bytes.write
            ),
        )
        self.own.wear.add_requests(told)
        return told

    def _lay_out(
        self, workload: Workload, seed: int, limits: Limits, on_event: OnEvent | None
    ) -> EngineResult:
        """Read with Leadline's engine for a moment: the file is then real, settled and cached."""
        warm_up_s = 0.1 if self.access.direct else limits.warm_up_s_max
        reading = msgspec.structs.replace(workload, read_frac=1.0, think_time_s=0.0)
        result = until_completed(
            partial(self.own.lay_out, reading, seed=seed, on_event=on_event),
            msgspec.structs.replace(
                limits,
                warm_up_s_max=warm_up_s,
                warm_up_s_min=0.0,
                measure_s_min=0.01,
                measure_s_max=0.05,
            ),
        )
        self.own.close()  # its memory counts against the group's limit
        return result

    def _granule_bytes(self) -> int:
        return granule_bytes(self.facts, direct=self.access.direct)


def _times(
    limits: Limits, prepare_s: float, workload: Workload, arrivals: Arrivals
) -> tuple[float, float]:
    """Return how long to measure, and the ramp before it.

    Raises:
        TargetRefused: the layout has left no time.

    """
    longest_s = min(_RAMP_S_MAX, _RAMP_SHARE * limits.warm_up_s_max)
    ramp_s = fitting_ramp_s(longest_s, workload, arrivals, limits.measure_s_max)
    measure_s = min(limits.measure_s_max, limits.total_s_max - prepare_s - ramp_s)
    if measure_s <= 0:
        raise TargetRefused(
            f"the time limit of {limits.total_s_max:g} s was over after {prepare_s:.0f} s of "
            f"layout and {ramp_s:.0f} s of fio's ramp, nothing was measured; allow more time or a "
            "smaller unique_bytes"
        )
    return measure_s, fitting_ramp_s(ramp_s, workload, arrivals, measure_s)


def _cut_short(measure_s: float, limits: Limits) -> tuple[Finding, ...]:
    if measure_s >= limits.measure_s_max:
        return ()
    found = Finding.of(
        "fio_cut_short",
        total_s_max=limits.total_s_max,
        measure_s=measure_s,
        measure_s_max=limits.measure_s_max,
    )
    return (found,)


def _options(seed: int, placement: Placed | None) -> dict[str, str | int]:
    """What fio needs beside a job: the answer in full, the workers where Leadline has them."""
    options: dict[str, str | int] = {"randseed": seed % (2**31 - 1) + 1, **_REPORT}
    if placement is not None and placement.pinned:
        options["cpus_allowed"] = ",".join(map(str, placement.cpus))
        options["cpus_allowed_policy"] = "split"
    return options


def fio_version() -> str:
    """Return `fio-3.33`.

    Raises:
        TargetRefused: it is missing; the message says what to type.

    """
    program = shutil.which(PROGRAM)
    if program is None:
        raise TargetRefused(
            "--engine fio needs fio, which is not installed: apt-get install fio (or your "
            "system's package), or leave --engine out for Leadline's own engine"
        )
    try:
        done = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=False, timeout=_VERSION_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetRefused(f"{program} does not run: {error}") from error
    if done.returncode or not done.stdout.startswith("fio-"):
        raise TargetRefused(f"{program} does not run: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()


def run_fio(
    job: str, *, directory: str, deadline_s: float, group: MemoryCgroup | None = None
) -> dict[str, Any]:
    """Run one job file in `directory` and return the JSON of its only group of jobs.

    Raises:
        PointFailed: the job met an I/O error.
        EngineFault: fio refused the job, hung, died or spoke nonsense; it has been ended.

    """
    with tempfile.TemporaryFile() as said, tempfile.TemporaryFile() as written:
        process: subprocess.Popen[bytes] | None = None
        try:
            with shielded():  # a child that nobody knows could not be ended
                process = subprocess.Popen(
                    [*_LAUNCHER, PROGRAM, "--output-format=json+", "-"],
                    stdin=subprocess.PIPE,
                    stdout=written,
                    stderr=said,
                    start_new_session=True,
                    cwd=directory,
                    env=os.environ | {"GLIBC_TUNABLES": _TUNABLES},
                )
            if group is not None:
                group.adopt(process.pid)
            process.communicate(job.encode(), timeout=deadline_s)
        except subprocess.TimeoutExpired:
            raise EngineFault(
                f"fio gave no answer in {deadline_s:.0f} s and was ended; the device under the "
                "target may be stuck"
            ) from None
        finally:
            if process is not None:  # a stop may have come as it was started
                _end(process)
        said.seek(0)
        written.seek(0)
        text = written.read().decode("utf-8", "replace")
        complaint = (said.read() + text[: text.find("{")].encode())[-_SAID_BYTES:]
        return _answer(text, complaint.decode("utf-8", "replace").strip(), process.returncode)


def _end(process: subprocess.Popen[bytes]) -> None:
    with shielded():
        if process.poll() is not None:
            return
        for number, seconds in ((signal.SIGTERM, _POLITE_S), (signal.SIGKILL, _KILL_S)):
            process.send_signal(number)
            try:
                process.wait(seconds)
            except subprocess.TimeoutExpired:
                continue
            return
        raise EngineFault(
            f"fio (process {process.pid}) does not die: the device under the target does not "
            "answer; look at the kernel log"
        )


def _answer(text: str, complaint: str, code: int) -> dict[str, Any]:
    said = f"; it said: {complaint}" if complaint else ""
    start = text.find("{")
    try:
        document = json.loads(text[start:]) if start >= 0 else None
        jobs = document["jobs"] if document else []
        job: dict[str, Any] = jobs[0]
        failed = job["error"] and os.strerror(job["error"])
    except (ValueError, KeyError, IndexError, TypeError, OverflowError, RecursionError):
        raise EngineFault(f"fio ended with exit code {code} and no result{said}") from None
    if len(jobs) != 1:
        raise EngineFault(f"fio answered with {len(jobs)} groups of jobs instead of one{said}")
    if failed:
        raise PointFailed(f"fio: {failed}{said}")
    if code:
        raise EngineFault(f"fio ended with exit code {code}{said}")
    return job


def read_result(
    job: Mapping[str, Any], workload: Workload, job_id: str, *, ramp_s: float
) -> EngineResult:
    """Return fio's numbers as a result.

    Raises:
        NothingCompleted: it counted or timed no request.
        EngineFault: what it says is not what fio says, or no number.

    """
    try:
        result = fio_result(job, workload, job_id, ramp_s=ramp_s)
        # Numbers of another kind, and what is not finite, no store takes.
        return msgspec.json.decode(msgspec.json.encode(result), type=EngineResult)
    except (
        *(KeyError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError),
        msgspec.MsgspecError,
    ) as error:
        raise EngineFault(
            f"fio's answer cannot be understood ({type(error).__name__}: {error}); look whether "
            "`fio --version` says that it is fio 3"
        ) from error


def fio_result(
    job: Mapping[str, Any], workload: Workload, job_id: str, *, ramp_s: float
) -> EngineResult:
    """Return fio's numbers as a result; what fio cannot tell is None, and a warning says so."""
    both = job["mixed"]
    operations, moved = both["total_ios"], both["io_bytes"]
    wall_s = max(job[kind]["runtime"] for kind in ("read", "write")) / 1e3
    if not operations or wall_s <= 0:
        raise NothingCompleted("fio completed no request in its run time; raise --seconds")
    latency = _latency(both)
    if latency is None:
        raise NothingCompleted("fio timed no request; raise --seconds")
    outstanding = workload.process_num * workload.queue_depth
    waiting = operations * latency.mean * 1e-6 / (outstanding * wall_s)
    thinking = operations * workload.think_time_s / (outstanding * wall_s)
    cpu_s = job["job_runtime"] / 1e3 / wall_s
    return EngineResult(
        version=WIRE_VERSION,
        job_id=job_id,
        throughput_mb_s=Interval(moved / wall_s * 1e-6, None, None, operations),
        iops=Interval(operations / wall_s, None, None, operations),
        latency_us=latency,
        read=_operations(job["read"]),
        write=_operations(job["write"]),
        wall_s=wall_s,
        total_s=wall_s + ramp_s,
        prepare_s=0.0,
        cpu_user=job["usr_cpu"] / 100 * cpu_s,
        cpu_system=job["sys_cpu"] / 100 * cpu_s,
        io_share=min(1.0, waiting),
        littles_law_error_frac=abs(waiting + thinking - 1.0),
        workload_bytes=MovedBytes(job["read"]["io_bytes"], job["write"]["io_bytes"]),
        device_bytes=None,
        cached_share=None,
        cache_resident_bytes=None,
        foreign_cpu=None,
        realised=Realised(moved / operations, None, job["read"]["total_ios"] / operations, None),
        warm_up=WarmUp(ramp_s, None),
        intervals=(),
        admissible=True,
        findings=(Finding.of("measured_by_fio"),),
        spans_us=SpansUs(None, latency, None),
    )


def _operations(part: Mapping[str, Any]) -> OperationSummary:
    operations = part["total_ios"]
    if not operations:
        return OperationSummary(0, 0, None)
    counts: dict[int, int] = {}
    for value_ns, count in part["lat_ns"].get("bins", {}).items():
        bucket = _bucket(int(value_ns))
        counts[bucket] = counts.get(bucket, 0) + count
    return OperationSummary(
        operations, part["io_bytes"], _latency(part), tuple(sorted(counts.items()))
    )


def _latency(part: Mapping[str, Any]) -> LatencyUs | None:
    """None when requests were counted but none was timed: fio ended inside its ramp."""
    latency = part["lat_ns"]
    if not latency["N"]:
        return None
    quantiles = latency["percentile"]
    p50, p90, p99, p99_9 = (quantiles[f"{share:.6f}"] / 1e3 for share in _PERCENTILES)
    return LatencyUs(latency["mean"] / 1e3, p50, p90, p99, p99_9, latency["max"] / 1e3)


def _bucket(value_ns: int) -> int:
    """Return the bucket of the engine's histogram that holds a time in nanoseconds."""
    if value_ns < 2 * _SUB_BUCKETS:
        return value_ns
    shift = value_ns.bit_length() - _SUB_BUCKETS.bit_length()
    return shift * _SUB_BUCKETS + (value_ns >> shift)
