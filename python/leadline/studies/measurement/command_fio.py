"""What `measure` and `predict` share about fio's job files: options, reading, writing."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from leadline.engine import Target, granule_bytes, target_facts
from leadline.fio import FioJobRefused, FioRun, FioWorkload, read_job, write_job
from leadline.fio.words import Typed, read_alone
from leadline.outputs import write_whole
from leadline.record import Workload
from leadline.record.discipline import NO_SYNC, say_discipline
from leadline.record.finding import Finding
from leadline.record.measurement import WorkloadAsked
from leadline.record.wording import say_workload
from leadline.studies.measurement.plan import ACCURACY, limits_of
from leadline.terminal.options import with_output
from leadline.terminal.talk import talk

DATA_NAME = "leadline-fio.bin"
"""The file that a written job makes and keeps in the target; not in `.leadline`, which is ours."""

FioFile = Annotated[
    Path | None,
    typer.Option(
        "--fio", metavar="JOB.fio", help="The workloads of a fio job file, one after the other."
    ),
]
with_write_fio = with_output(
    "Write the workload as a fio job for TARGET instead of measuring it.",
    "--write-fio",
    parameter="write_fio",
)
EngineName = Annotated[
    str, typer.Option(metavar="leadline|fio", help="Who makes the requests; fio as a cross-check.")
]


def read_file(path: Path, *, tell: bool, direct: bool = False) -> tuple[FioWorkload, ...]:
    """Read a job file, `${NAME}` from the environment; `tell` says what does not map.

    `direct` is the command's --direct, which goes over the jobs' own.
    """
    jobs = read_job(path, environment=os.environ, direct=direct)
    for job in jobs if tell else ():
        for found in job.findings:
            talk(f"warning: [{job.name}] {found}")
    return jobs


def without_files(job: FioWorkload, target: Target) -> FioWorkload:
    """Return the job as a target without files takes it; what that leaves out is said."""
    sync = NO_SYNC if target.has_device else job.sync
    if job.backend == "pread" and not job.direct and sync == NO_SYNC:
        return job
    left_out = f"{job.backend}, {say_discipline(sync, direct=job.direct)}"
    what = f"the job goes by {left_out}; {target.text} has one way, which is taken"
    found = Finding.of("not_mapped", what=what)
    talk(f"warning: [{job.name}] {found}")
    return msgspec.structs.replace(job, findings=(*job.findings, found))


def one_of(
    words: Sequence[str], fio: Path | None, application: str | None = None
) -> Sequence[str] | Path:
    """Return what says what to run; refuse two, and take no words as the usual workload."""
    if (len(words) > 0) + (fio is not None) + (application is not None) > 1:
        raise typer.BadParameter(
            "say what to run once: either in words, unique_bytes=2GiB size_mean=32KiB …, or with "
            "--fio JOB.fio, or with --application A"
        )
    return words if fio is None else fio


def read_workload(text: str) -> Workload:
    """Read a workload that nobody runs, of Leadline's words or fio's.

    Raises:
        WorkloadError: some of the words say how storage is reached, or when.

    """
    typed = read_alone(text)
    for found in typed.findings:
        talk(f"warning: {found}")
    return typed.workload


def tell_words(typed: Typed) -> None:
    """Say what runs where its size was left open, and what of fio's words differs here."""
    if {"unique_bytes", "size_mean"} & {*typed.usual}:
        workload = typed.workload
        talk(f"workload: {say_workload(workload)}; as usual: {', '.join(typed.usual)}")
    for found in typed.findings:
        talk(f"warning: {found}")


def write_workload(
    path: Path, workloads: Sequence[WorkloadAsked], target: Target, *, source: Path | None
) -> None:
    """Write the only workload as a job file whose data file lies in the target's directory.

    Args:
        path: of the file.
        workloads: one.
        target: the job is for.
        source: the job file that it was read from, if it was.

    """
    if source is not None and path.exists() and path.samefile(source):
        raise typer.BadParameter(
            f"--write-fio {path} would overwrite the job that --fio reads; give another file"
        )
    if len(workloads) != 1:
        raise typer.BadParameter(
            f"--write-fio writes one workload, and the file has {len(workloads)} jobs; "
            "give one with --workload"
        )
    (asked,) = workloads
    for said in asked.access.beyond(*FioRun.__struct_fields__):
        raise typer.BadParameter(f"--{said} does not go with --write-fio: leave it out")
    facts = target_facts(target.path) if target.path and Path(target.path).is_dir() else {}
    run = FioRun(
        filename=f"{target.path}/{DATA_NAME}" if target.path else DATA_NAME,
        backend=asked.access.backend or "pread",
        direct=asked.access.direct,
        sync=asked.access.sync,
        arrivals=asked.arrivals,
        seconds=asked.seconds,
        ramp_s=limits_of(asked.seconds, ACCURACY).warm_up_s_max,
        granule_bytes=granule_bytes(facts, direct=asked.access.direct),
    )
    text = write_job(asked.workload, run)
    try:
        write_whole(path, text)
    except OSError as error:
        raise FioJobRefused(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error
    talk(f"wrote {path}; run it with: fio {path} (it makes {run.filename} and leaves it there)")
