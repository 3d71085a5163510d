"""Claims about streams: throttled disks are as fast as they should be, together and alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from functools import partial
from pathlib import Path

from stream_throttle import loop_disks, throttle, why_no_throttles

from check_claims import MIB, Claim, Found, cannot_if, told_by
from leadline.engine.streams.disks import DATA_MULTIPLE_BYTES, Effort, open_stream_disks
from leadline.fio import read_job
from leadline.studies.streaming.study import ScalingOptions, options_of

THROTTLE_MB_S = 60.0
SIZE_BYTES = 40 * DATA_MULTIPLE_BYTES


def throttled_disks(folder: Path) -> Found:
    """Transpose on one and on two disks of known speed."""
    cannot_if(why_no_throttles())
    rates = []
    with loop_disks(folder, 2, 3 * SIZE_BYTES) as made, throttle() as held:
        held.limit_disks(made, THROTTLE_MB_S)
        homes = [str(disk.directory) for disk in made]
        with open_stream_disks(homes, command=held.command) as disks:
            effort = Effort(
                data_bytes=SIZE_BYTES, memory_bytes=128 * MIB, threads=1, seed=1, total_s_max=60.0
            )
            options = options_of(
                "transpose",
                ScalingOptions(system="s", data_bytes=SIZE_BYTES, memory_bytes=128 * MIB),
            )
            for count in (1, 2):
                disks.lay(count, effort)
                result = disks.run(options, count, seed=1, total_s_max=60.0)
                rates.append(result.phases[-1].mb_s)
    one, two = rates
    return Found(
        0.8 * THROTTLE_MB_S < one < 1.2 * THROTTLE_MB_S and 1.6 * one < two < 2.4 * THROTTLE_MB_S,
        f"{one:.0f} MB/s on one, {two:.0f} MB/s on two",
    )


def constant_rate(rate_per_s: float, folder: Path) -> Found:
    """Measure a directory at a rate that is easy."""
    target = folder / "target"
    target.mkdir()
    answer = told_by(
        "measure",
        str(target),
        "--workload",
        "unique_bytes=8MiB,size_mean=4KiB,read_frac=1",
        "--rate",
        f"{rate_per_s:g}",
        "--arrivals",
        "constant",
        "--seconds",
        "2",
        "--runs",
        "1",
        folder=folder,
    )
    iops = answer["result"]["iops"]["value"]
    return Found(abs(iops / rate_per_s - 1) <= 0.02, f"{iops:.0f}/s")


def two_processors_beat_one(folder: Path) -> Found:
    """Sort in memory with one thread and with two."""
    cannot_if(None if len(os.sched_getaffinity(0)) > 1 else "there is one processor")
    source = folder / "in"
    told_by("stream", "generate", str(source), "--records", "2000000", folder=folder)
    seconds = [
        told_by(
            "stream",
            "sort",
            str(source),
            str(folder / f"out-{threads}"),
            "--memory",
            "700MiB",
            "--threads",
            str(threads),
            "--no-bound",
            folder=folder,
        )["seconds"]
        for threads in (1, 2)
    ]
    return Found(
        seconds[1] < seconds[0], f"{seconds[0]:.2f} s with one, {seconds[1]:.2f} s with two"
    )


LINEAR = (
    "rate_iops=500",
    "rate=2m",
    "rate_iops=500\nbssplit=4k/50:8k/50",
    "rate=2m\nbssplit=4k/50:8k/50",
    "rw=randrw\nrwmixread=80\nrate_iops=200",
    "rw=randrw\nrate_iops=300,100",
)


def fios_rates(folder: Path) -> Found:
    """Let fio keep each linear rate as Leadline reads it from the job."""
    cannot_if(None if shutil.which("fio") else "fio is not installed (tests/packages)")
    head = "[job]\nsize=4m\nrw=randread\nnorandommap\ntime_based\nruntime=1\n"
    off, off_share = [], []
    for options in LINEAR:
        (read,) = read_job(head + options)
        done = subprocess.run(
            ["fio", "--output-format=json", "-"],
            input=f"{head}ioengine=null\n{options}\n",
            capture_output=True,
            text=True,
            check=True,
            cwd=folder,
            timeout=60,
        )
        answer = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
        kinds = [answer[kind]["iops"] for kind in ("read", "write")]
        off.append(abs(sum(kinds) / (read.arrivals.rate_per_s or 1.0) - 1))
        off_share.append(abs(read.workload.read_frac - kinds[0] / sum(kinds)))
    return Found(
        max(off) <= 0.06 and max(off_share) <= 0.03,
        f"rates off by {max(off):.1%}, shares of reads by {max(off_share):.3f}",
    )


CLAIMS = (
    Claim("fio keeps a linear rate as it was read", "within 6% and 0.03", fios_rates),
    Claim(
        f"disks throttled to {THROTTLE_MB_S:g} MB/s do that, and two do twice that",
        "within 20%",
        throttled_disks,
    ),
    Claim("a constant rate is kept", "2000/s within 2%", partial(constant_rate, 2000.0)),
    Claim("two threads sort sooner than one", "less time", two_processors_beat_one),
)
