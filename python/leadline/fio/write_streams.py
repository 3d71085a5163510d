"""An application's streams as fio jobs over one file, weighted by flow, and what that loses."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from leadline.fio.errors import FioJobRefused
from leadline.fio.write import ENGINES, FioRun, access_lines, fitting_ramp_s
from leadline.record import Workload
from leadline.record.access import fsync_each
from leadline.record.finding import Finding
from leadline.record.jobs.streams import Loop, Moving, Once, StreamAsked, Uniform

FLOW_MAX = 1000
"""Largest of the whole numbers that stand for weights."""


def write_streams(
    workload: Workload,
    streams: Sequence[StreamAsked],
    run: FioRun,
    *,
    losses: Sequence[Finding] = (),
) -> str:
    """Write a fio job file (fio 3.33) of one job for each stream; comments say what differs.

    Args:
        workload: the streams' data, workers and pauses.
        streams: what is asked.
        run: how.
        losses: what the streams have lost already.

    Raises:
        FioJobRefused: a backend that fio lacks, or arrivals by a clock.

    """
    if run.backend not in ENGINES:
        raise FioJobRefused(
            f"backend {run.backend} has no equal in fio; write a job for {', '.join(ENGINES)}"
        )
    differs = [*map(str, losses), *_in_all(workload, streams, run)]
    total = sum(stream.weight for stream in streams)
    jobs = [
        [*_job(number, each, differs), *_rate(each, each.weight / total, run), ""]
        for number, each in enumerate(streams)
    ]
    head = ["# An application's streams for fio, which Leadline runs as one:"]
    head.append("# What fio does differently:")
    for difference in dict.fromkeys(differs):
        first, *rest = textwrap.wrap(difference, 92)
        head += [f"# - {first}", *(f"#   {line}" for line in rest)]
    return "\n".join(
        [*head, *_global(workload, streams, run), *(line for job in jobs for line in job), ""]
    )


def _in_all(workload: Workload, streams: Sequence[StreamAsked], run: FioRun) -> list[str]:
    """What every such file loses."""
    warming = (
        "the cache is warmed by ramp_time at most; Leadline first reads the file once and then "
        "waits until the rate is steady"
    )
    differs = [warming]
    if len(streams) > 1:
        at_once = workload.process_num * workload.queue_depth
        differs.append(
            f"{len(streams)} jobs have a request outstanding each; Leadline's {at_once} workers "
            "draw each request's stream by the weights"
        )
        differs.append(
            "shares of the requests are kept by flow, in whole numbers and within its watermark"
        )
    elif workload.process_num > 1:
        differs.append(f"one job for {workload.process_num} workers")
    if workload.think_time_s > 0 and len(streams) > 1:
        differs.append(
            "a pause is between requests of one stream; it is as long as that stream's share of "
            "the requests makes it"
        )
    if fsync_each(run.sync) is not None and len(streams) > 1:
        differs.append("a sync comes after so many writes of one stream, not of all")
    if run.arrivals.kind != "closed":
        differs.append(
            f"the rate of {run.arrivals.rate_per_s:g} requests/s is each job's share of it, kept "
            "by the job alone; Leadline counts from when a request was due"
        )
    return differs


def _global(workload: Workload, streams: Sequence[StreamAsked], run: FioRun) -> list[str]:
    ramp_s = fitting_ramp_s(run.ramp_s, workload, run.arrivals, run.seconds)
    return [
        "[global]",
        "filename=" + run.filename.replace(":", "\\:"),
        "# The file is written once in full before the run, never a hole.",
        "overwrite=1",
        "fallocate=none",
        f"filesize={workload.unique_bytes}",
        "invalidate=0",
        *access_lines(run),
        "fadvise_hint=0",
        "random_generator=tausworthe64",
        "randrepeat=0",
        "thread=1",
        *_pauses(workload, streams),
        "time_based=1",
        f"runtime={round(1e3 * run.seconds)}ms",
        *([f"ramp_time={round(1e3 * ramp_s)}ms"] if ramp_s > 0 else []),
        "",
    ]


def _pauses(workload: Workload, streams: Sequence[StreamAsked]) -> list[str]:
    if workload.think_time_s <= 0:
        return []
    each_us = 1e6 * workload.think_time_s * len(streams) / workload.process_num
    return [f"thinktime={max(1, round(each_us))}us"]


def _job(number: int, stream: StreamAsked, differs: list[str]) -> list[str]:
    reads = round(100 * stream.read_frac)
    if abs(stream.read_frac - reads / 100) > 1e-9:
        differs.append(
            f"stream {number + 1}: read_frac is {reads / 100:g} instead of "
            f"{stream.read_frac:.4g}: whole percent"
        )
    kind = {0: "write", 100: "read"}.get(reads, "rw")
    return [
        f"[stream-{number + 1}]",
        f"offset={stream.from_bytes}",
        f"size={stream.unique_bytes}",
        *_places(number, stream, kind, differs),
        *([f"rwmixread={reads}"] if kind == "rw" else []),
        *_sizes(number, stream, differs),
        "flow_id=1",
        f"flow={max(1, round(FLOW_MAX * stream.weight))}",
    ]


def _rate(stream: StreamAsked, share: float, run: FioRun) -> list[str]:
    """Return a job's part of a rate that the application's requests came at."""
    rate_per_s = run.arrivals.rate_per_s
    if rate_per_s is None:
        return []
    parts = [rate_per_s * share * part for part in (stream.read_frac, 1 - stream.read_frac)]
    rates = [str(max(1, round(part))) for part in parts if part > 0]
    process = "poisson" if run.arrivals.kind == "poisson" else "linear"
    return [f"rate_process={process}", f"rate_iops={','.join(rates)}"]


def _places(number: int, stream: StreamAsked, kind: str, differs: list[str]) -> list[str]:
    match stream.places:
        case Uniform(seq_frac):
            sequential = round(100 * seq_frac)
            if sequential >= 100:
                return [f"rw={kind}"]
            share = [f"percentage_random={100 - sequential}"] if sequential else []
            return [f"rw=rand{kind}", "norandommap=1", *share]
        case Loop(scattered, pieces) | Once(scattered, pieces):
            if isinstance(stream.places, Once):
                differs.append(f"stream {number + 1}: data used once begin again at their end")
            if pieces is not None:
                differs.append(
                    f"stream {number + 1}: gone through in one piece, not in those of the "
                    "application's files"
                )
            if not scattered:
                return [f"rw={kind}"]
            differs.append(
                f"stream {number + 1}: each round through its data is in another random order; "
                "Leadline's is the same each time"
            )
            return [f"rw=rand{kind}", "norandommap=0"]
        case Moving():
            differs.append(
                f"stream {number + 1}: a window that moves is none to fio; requests go anywhere "
                "in all that it passes"
            )
            return [f"rw=rand{kind}", "norandommap=1"]


def _sizes(number: int, stream: StreamAsked, differs: list[str]) -> list[str]:
    total = sum(size.weight for size in stream.sizes)
    if len(stream.sizes) == 1:
        return [f"bs={stream.sizes[0].bytes}"]
    shares = {size.bytes: round(100 * size.weight / total) for size in stream.sizes}
    kept = {size: share for size, share in shares.items() if share > 0}
    largest = max(kept, key=lambda size: kept[size])
    kept[largest] += 100 - sum(kept.values())
    left = len(shares) - len(kept)
    rare = f", and {left} rare sizes are left out" if left else ""
    differs.append(f"stream {number + 1}: shares of its sizes are whole percent{rare}")
    entries = ":".join(f"{size}/{share}" for size, share in sorted(kept.items()))
    return [f"bssplit={entries}", "bs_unaligned=1", "ba=512"]
