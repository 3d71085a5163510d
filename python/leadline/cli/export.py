"""`leadline export S`: the points of a survey or a validation as data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.talk import talk
from leadline.record import Measurement
from leadline.store import FORMATS, Store, StoreError, export_points


def command(
    context: typer.Context,
    survey: Annotated[
        str, typer.Argument(metavar="ID", help="A survey, a system, a validation, or a study.")
    ],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="FILE", help="Default: stdout.")
    ] = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(metavar="json|csv|parquet|arrow", help="Default: by FILE's ending."),
    ] = None,
) -> None:
    """Write every point of a survey, validation or study as JSON, CSV, Parquet or Arrow."""
    own: Context = context.obj
    store = own.open_store()
    chosen = format or (output.suffix.lstrip(".") if output else "json")
    if chosen not in FORMATS:
        raise typer.BadParameter(f"{chosen!r} is not one of {', '.join(FORMATS)}")
    data = export_points(_points(store, survey), chosen)
    if output is None:
        sys.stdout.buffer.write(data)
        return
    output.write_bytes(data)
    talk(f"wrote {output}")


def _points(store: Store, ref: str) -> tuple[Measurement, ...]:
    try:
        return store.points(store.survey_start(ref).survey_id)
    except StoreError as not_a_survey:
        try:
            return store.validation_points(store.validation_start(ref).validation_id)
        except StoreError:
            pass
        try:
            return store.study_points(store.cache_start(ref).study_id)
        except StoreError:
            raise not_a_survey from None
