"""What `measure` and `predict` share about fio's job files: options, reading, writing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from leadline.cli.options import with_output
from leadline.cli.talk import talk
from leadline.engine import Target
from leadline.fio import FioJobRefused, FioRun, FioWorkload, read_job, write_job
from leadline.record import Workload
from leadline.record.discipline import NO_SYNC, say_discipline

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
        for warning in job.warnings:
            talk(f"warning: [{job.name}] {warning}")
    return jobs


def without_files(job: FioWorkload, target: Target) -> FioWorkload:
    """Return the job as a target without files takes it; what that leaves out is said."""
    sync = job.sync if target.kind == "null" else NO_SYNC
    if job.backend == "pread" and not job.direct and sync == NO_SYNC:
        return job
    left_out = f"{job.backend}, {say_discipline(sync, direct=job.direct)}"
    warning = f"not mapped: the job goes by {left_out}; {target.text} has one way, which is taken"
    talk(f"warning: [{job.name}] {warning}")
    return msgspec.structs.replace(job, warnings=(*job.warnings, warning))


def one_of(workload: str | None, fio: Path | None) -> str | Path:
    """Return the one that was given; refuse both and neither."""
    given = [each for each in (workload, fio) if each is not None]
    if len(given) != 1:
        raise typer.BadParameter(
            "say what to run: either --workload unique_bytes=2GiB,size_mean=32KiB,… or "
            "--fio JOB.fio"
        )
    return given[0]


def write_file(path: Path, workload: Workload, run: FioRun, target: Target) -> None:
    """Write a job file whose data file lies in the target's directory."""
    name = f"{target.path}/{DATA_NAME}" if target.path else DATA_NAME
    text = write_job(workload, msgspec.structs.replace(run, filename=name))
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FioJobRefused(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error
    talk(f"wrote {path}; run it with: fio {path} (it makes {name} and leaves it there)")
