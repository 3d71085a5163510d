"""`leadline export S`: the points as data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.options import Ref
from leadline.cli.talk import talk
from leadline.store import FORMATS, export_points


def command(
    context: typer.Context,
    survey: Ref,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Default: stdout.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(metavar="json|csv|parquet|arrow", help="Default: by FILE's ending."),
    ] = None,
) -> None:
    """Write every point of a survey as JSON, CSV, Parquet or Arrow."""
    own: Context = context.obj
    store = own.open_store()
    start = store.survey_start(survey)
    chosen = format or (output.suffix.lstrip(".") if output else "json")
    if chosen not in FORMATS:
        raise typer.BadParameter(f"{chosen!r} is not one of {', '.join(FORMATS)}")
    data = export_points(store.points(start.survey_id), chosen)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    output.write_bytes(data)
    talk(f"wrote {output}")
