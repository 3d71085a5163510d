"""What `measure` and `predict` share about fio's job files: options, reading, writing."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from leadline.cli.talk import talk

if TYPE_CHECKING:
    from leadline.engine import Target
    from leadline.fio import FioRun, FioWorkload
    from leadline.record import Workload

DATA_NAME = "leadline-fio.bin"
"""The file that a written job makes and keeps in the target; not in `.leadline`, which is ours."""

FioFile = Annotated[
    Path | None,
    typer.Option(
        "--fio", metavar="JOB.fio", help="The workloads of a fio job file, one after the other."
    ),
]
WriteFio = Annotated[
    Path | None,
    typer.Option(
        "--write-fio",
        metavar="FILE",
        help="Write the workload as a fio job for TARGET instead of measuring it.",
    ),
]
EngineName = Annotated[
    str, typer.Option(metavar="leadline|fio", help="Who makes the requests; fio as a cross-check.")
]


def read_file(path: Path, *, tell: bool) -> tuple[FioWorkload, ...]:
    """Read a job file, `${NAME}` from the environment; `tell` says what does not map."""
    from leadline.fio import read_job  # noqa: PLC0415 - it loads scipy, and most runs need no fio

    jobs = read_job(path, environment=os.environ)
    for job in jobs if tell else ():
        for warning in job.warnings:
            talk(f"warning: [{job.name}] {warning}")
    return jobs


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
    from leadline.fio import FioJobRefused, FioRun, write_job  # noqa: PLC0415 - as above

    name = f"{target.path}/{DATA_NAME}" if target.path else DATA_NAME
    text = write_job(workload, FioRun(
        filename=name, backend=run.backend, direct=run.direct, arrivals=run.arrivals,
        seconds=run.seconds, ramp_s=run.ramp_s,
    ))  # fmt: skip
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise FioJobRefused(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error
    talk(f"wrote {path}; run it with: fio {path} (it makes {name} and leaves it there)")
