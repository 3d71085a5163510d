"""`leadline export S`: points of a survey or validation, phases of streams, trials, as data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.talk import talk
from leadline.report.kinds import KINDS, find_study
from leadline.store import FORMATS, export_rows


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
    found = find_study(store, survey)
    data = export_rows(KINDS[found.kind].rows(store, found.start.study_id), chosen)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    output.write_bytes(data)
    talk(f"wrote {output}")
