"""`leadline export S`: points of a survey or validation, phases of streams, trials, as data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from leadline.cli.context import Context
from leadline.cli.load import find_study
from leadline.cli.talk import talk
from leadline.record.files import FILES
from leadline.record.streaming import STREAM
from leadline.record.workbench import EXPERIMENT
from leadline.store import FORMATS, Store, StoreError, export_rows, rows
from leadline.studies.streaming.phase_rows import phase_rows
from leadline.studies.streaming.stored import load_stream
from leadline.studies.workbench.stored import stored_experiment
from leadline.studies.workbench.trial_rows import trial_rows


def command(
    context: typer.Context,
    survey: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="A survey, a system, a validation, a study, an experiment."
        ),
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Default: stdout.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(metavar="json|csv|parquet|arrow", help="Default: by FILE's ending."),
    ] = None,
) -> None:
    """Write the points or trials of what is stored as JSON, CSV, Parquet or Arrow."""
    own: Context = context.obj
    store = own.open_store()
    chosen = format or (output.suffix.lstrip(".") if output else "json")
    if chosen not in FORMATS:
        raise typer.BadParameter(f"{chosen!r} is not one of {', '.join(FORMATS)}")
    data = export_rows(_rows(store, survey), chosen)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    output.write_bytes(data)
    talk(f"wrote {output}")


def _rows(store: Store, ref: str) -> list[dict[str, Any]]:
    """One row for every point, every phase of a stream study, or every trial."""
    found = find_study(store, ref)
    study_id = found.start.study_id
    if found.kind == FILES.kind:
        raise StoreError(f"{ref!r} is a {FILES.said}, whose rows cannot be exported yet")
    if found.kind == STREAM.kind:
        return phase_rows(load_stream(store, study_id))
    if found.kind == EXPERIMENT.kind:
        return trial_rows(stored_experiment(store, study_id))
    return rows(store.items(study_id), found.kind, study_id)
