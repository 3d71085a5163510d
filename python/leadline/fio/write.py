"""Any workload as a fio job that does as nearly the same as fio can."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping

from msgspec import UNSET

from leadline.fio.errors import FioJobRefused
from leadline.fio.sizes import law_split, mean_of_fitting
from leadline.fio.skew import split_of, write_distribution, zipf_differs
from leadline.record import Arrivals, Workload
from leadline.record.access import NO_SYNC, AccessKept, fsync_each
from leadline.record.jobs.skew import Histogram, Zipf

ENGINES = {"pread": "psync", "uring": "io_uring", "mmap": "mmap"}
"""fio's engine for each of Leadline's backends."""
IN_STEP_RANDOM_PERCENT = 1
"""Share of random requests given to several processes that would otherwise walk in step."""
_NOT_IN_A_FILE = re.compile(r"[;#\n\r]")
_NAME = re.compile(r"[^\]\[;#\n\r]{1,200}")


class FioRun(AccessKept, frozen=True, kw_only=True):
    """How a workload is run, beside what it is."""

    name: str = "leadline"
    filename: str = "leadline-fio.bin"
    """Relative to where fio is started, or absolute. fio makes the file if it is missing."""
    backend: str = "pread"
    arrivals: Arrivals = Arrivals()
    seconds: float = 30.0
    ramp_s: float = 10.0
    granule_bytes: int = 512
    """Smallest transfer, of which sizes and places are multiples; with `direct` the logical block
    of the device."""
    options: Mapping[str, str | int] = {}
    """More options of fio, as they are."""

    def __post_init__(self) -> None:
        """Refuse what a job file cannot hold, whoever writes it.

        Raises:
            FioJobRefused: a name that fio would read as something else.

        """
        if _NOT_IN_A_FILE.search(self.filename) or not self.filename.strip():
            raise FioJobRefused(
                f"{self.filename!r}: a job file cannot hold this name, because fio takes ; and # "
                "for comments; choose another directory"
            )
        if not _NAME.fullmatch(self.name) or self.name.startswith("global"):
            raise FioJobRefused(f"{self.name!r} is no name of a fio job; write letters and digits")


def fitting_ramp_s(ramp_s: float, workload: Workload, arrivals: Arrivals, seconds: float) -> float:
    """Return the ramp time in seconds, of at most `ramp_s`, with which fio 3.33 counts right.

    Beside a think time it counts the requests of the ramp but not its seconds: none then. With a
    rate it ends inside a ramp as long as the run, having timed nothing: half of it at most.
    """
    if workload.think_time_s > 0:
        return 0.0
    return ramp_s if arrivals.kind == "closed" else min(ramp_s, seconds / 2)


def write_job(workload: Workload, run: FioRun | None = None) -> str:
    """Write a fio job file (fio 3.33); comments at the top say what differs.

    Rounding: fractions to 1% (and 1% random for several processes that would all be sequential),
    normal sizes to at most 64 lengths of the same mean (see `normal_split`), think time to 1 µs,
    rates to whole requests (Poisson) or bytes (constant) per second, process and direction.

    Raises:
        FioJobRefused: a backend that fio lacks or that cannot do this, a think time beside a rate,
            or a file name that a job file cannot hold.

    """
    run = run or FioRun()
    _check(workload, run)
    differences: list[str] = []
    lines = [
        *_place(workload, run),
        *_pattern(workload, differences),
        *_sizes(workload, run, differences),
        *_pacing(workload, run, differences),
        "time_based=1",
        f"runtime={_milliseconds(run.seconds)}ms",
        *_ramp(workload, run),
        "group_reporting=1",
        *(f"{key}={value}" for key, value in run.options.items()),
    ]
    differences.append(
        "the cache is warmed by ramp_time at most; Leadline first reads the file once and then "
        "waits until the rate is steady"
    )
    return "\n".join([*_head(workload, differences), f"[{run.name}]", *lines, ""])


def _check(workload: Workload, run: FioRun) -> None:
    if run.backend not in ENGINES:
        raise FioJobRefused(
            f"backend {run.backend} has no equal in fio; write a job for {', '.join(ENGINES)}"
        )
    if run.direct and run.backend == "mmap":
        raise FioJobRefused(
            "backend mmap reads through the page cache by its nature, and direct goes past it: "
            "leave --direct out, or use --backend pread or uring"
        )
    if run.backend == "mmap" and run.sync == "dsync":
        raise FioJobRefused(
            "a write to a mapping waits for nothing in fio, whatever the file was opened with: use "
            "--sync fsync=1, or --backend pread or uring"
        )
    for said in workload.beyond("size_dist", "queue_depth", "think_time_s", "access"):
        raise FioJobRefused(f"{said} is Leadline's: no fio job can say it; leave it out")
    if workload.queue_depth > 1 and run.backend != "uring":
        raise FioJobRefused(
            f"queue_depth={workload.queue_depth} needs --backend uring: a worker of {run.backend} "
            "waits for each request before it makes the next"
        )
    if workload.think_time_s > 0 and run.arrivals.kind != "closed":
        raise FioJobRefused(
            f"think_time_s={workload.think_time_s:g} and a rate exclude each other: requests that "
            "arrive by a clock wait for nothing; leave the think time or the rate out"
        )
    if workload.unique_bytes < run.granule_bytes:
        raise FioJobRefused(
            f"unique_bytes={workload.unique_bytes} is below the smallest transfer of "
            f"{run.granule_bytes} bytes; ask for more"
        )


def _head(workload: Workload, differences: list[str]) -> list[str]:
    fields = {field: getattr(workload, field) for field in workload.__struct_fields__}
    asked = ",".join(f"{field}={value}" for field, value in fields.items() if value is not UNSET)
    lines = ["# Leadline's workload for fio:"]
    lines += [f"#   {line}" for line in textwrap.wrap(asked.replace(",", ", "), 92)]
    lines.append("# What fio does differently:")
    for difference in differences:
        first, *rest = textwrap.wrap(difference, 92)
        lines += [f"# - {first}", *(f"#   {line}" for line in rest)]
    return lines


def _place(workload: Workload, run: FioRun) -> list[str]:
    return [
        "filename=" + run.filename.replace(":", "\\:"),
        f"size={workload.unique_bytes // run.granule_bytes * run.granule_bytes}",
        "# The file is written once in full before the run, never a hole.",
        "overwrite=1",
        "fallocate=none",
        "invalidate=0",
        *access_lines(run),
        "# Neither hints nor a map of places: as Leadline asks.",
        "fadvise_hint=0",
        "norandommap=1",
        "random_generator=tausworthe64",
        "randrepeat=0",
        "thread=1",
        f"numjobs={workload.process_num}",
        *([f"iodepth={workload.queue_depth}"] if workload.queue_depth > 1 else []),
    ]


def access_lines(run: FioRun) -> list[str]:
    """Return the lines that say how storage is reached, and in whole percent what data are.

    Raises:
        FioJobRefused: some of it is Leadline's alone.

    """
    for said in run.access.beyond("backend", "direct", "sync", "compress", "dedup"):
        raise FioJobRefused(f"--{said} is Leadline's: no fio job can say it; leave it out")
    lines = [f"ioengine={ENGINES[run.backend]}", f"direct={int(run.direct)}"]
    if fsync_each(run.sync) is not None:
        lines.append(run.sync)  # spelled as fio does
    elif run.sync != NO_SYNC:
        lines.append(f"sync={run.sync}")
    if run.access.fills:
        zeros = 100 * (1 - 1 / (run.compress or 1))
        lines.append("refill_buffers=1")
        lines.append(f"buffer_compress_percentage={zeros:.0f}")
        lines.append(f"dedupe_percentage={100 * run.dedup:.0f}")
    return lines


def _pattern(workload: Workload, differences: list[str]) -> list[str]:
    reads, sequential = round(100 * workload.read_frac), round(100 * workload.seq_frac)
    for name, percent in (("read_frac", reads), ("seq_frac", sequential)):
        asked = getattr(workload, name)
        if abs(asked - percent / 100) > 1e-9:
            differences.append(f"{name} is {percent / 100:g} instead of {asked:g}: whole percent")
    if sequential > 0 and 0 < reads < 100:
        differences.append(
            "a sequential request continues the last one of its own kind, read or write; in "
            "Leadline the last one of either"
        )
    if sequential == 100 and workload.process_num > 1:
        sequential -= IN_STEP_RANDOM_PERCENT
        differences.append(
            f"{IN_STEP_RANDOM_PERCENT}% of the requests are random, because fio's processes all "
            "begin at byte 0 and would walk in step; Leadline's begin at places of their own"
        )
    kind = {0: "write", 100: "read"}.get(reads, "rw")
    random = sequential < 100
    lines = [f"rw={'rand' if random else ''}{kind}"]
    if kind == "rw":
        lines.append(f"rwmixread={reads}")
    if 0 < sequential < 100:
        lines.append(f"percentage_random={100 - sequential}")
    return [*lines, *(write_distribution(workload.access) if random else [])]


def _sizes(workload: Workload, run: FioRun, differences: list[str]) -> list[str]:
    granule = run.granule_bytes
    if workload.size_dist == "fixed":
        if isinstance(workload.access, Zipf):
            smallest = workload.size_mean
            differences += zipf_differs(workload.unique_bytes, smallest, smallest)
        return [f"bs={min(workload.size_mean, workload.unique_bytes // granule * granule)}"]
    if isinstance(workload.size_dist, Histogram):
        split = split_of(workload.size_dist, differences)
    else:
        split = law_split(workload.size_dist, workload.size_mean, workload.unique_bytes, granule)
    if len(split) == 1:
        return [f"bs={split[0][0]}"]
    mean = sum(size * percent for size, percent in split) / 100
    differences.append(
        f"sizes are one of {len(split)} lengths with a mean of {mean:.0f} bytes for the asked "
        f"{workload.size_mean}; Leadline draws every multiple of {granule}"
    )
    drawn = mean_of_fitting(split, workload.unique_bytes)
    short = f", so that the mean is {drawn:.0f} bytes" if drawn < 0.99 * mean else ""
    differences.append(
        "a place is any multiple of the smallest transfer, and a request that would reach past "
        f"the end is made shorter{short}; Leadline favours no part of the file"
    )
    if isinstance(workload.access, Zipf):
        differences += zipf_differs(workload.unique_bytes, granule, workload.size_mean)
    # fio takes the next entry that fits when the drawn one does not: the longest that does.
    entries = ":".join(f"{size}/{percent}" for size, percent in reversed(split))
    return [f"bssplit={entries}", "bs_unaligned=1", f"ba={granule}"]


def _pacing(workload: Workload, run: FioRun, differences: list[str]) -> list[str]:
    lines = []
    if workload.think_time_s > 0:
        lines.append(f"thinktime={max(1, round(1e6 * workload.think_time_s))}us")
        if workload.queue_depth > 1:
            differences.append("a think time leaves one request outstanding, whatever iodepth says")
    rate_per_s = run.arrivals.rate_per_s
    if rate_per_s is None:
        return lines
    poisson = run.arrivals.kind == "poisson"
    read_frac = round(100 * workload.read_frac) / 100
    each = rate_per_s / workload.process_num * (1 if poisson else workload.size_mean)
    rates = [
        str(max(1, round(each * share))) if share else "" for share in (read_frac, 1 - read_frac)
    ]
    if read_frac in (0.0, 1.0):
        rates = [next(filter(None, rates))]
    differences.append(
        "each process and direction has a rate of its own, and one that falls behind asks later: "
        "response times leave the wait out; Leadline counts from when a request was due"
    )
    lines += [f"rate_process={'poisson' if poisson else 'linear'}"]
    return [*lines, f"{'rate_iops' if poisson else 'rate'}={','.join(rates)}"]


def _ramp(workload: Workload, run: FioRun) -> list[str]:
    fitting = fitting_ramp_s(run.ramp_s, workload, run.arrivals, run.seconds)
    return [f"ramp_time={_milliseconds(fitting)}ms"] if fitting > 0 else []


def _milliseconds(seconds: float) -> int:
    return max(0, round(1e3 * seconds))
