"""`leadline export S`: points of a survey or validation, phases of streams, trials, as data."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from leadline.errors import UsageRefused
from leadline.outputs import write_whole
from leadline.store import FORMATS, export_rows
from leadline.studies.registry import KINDS, find_study
from leadline.terminal.bundles import SUFFIX
from leadline.terminal.context import Context
from leadline.terminal.options import study_argument, with_output
from leadline.terminal.talk import put_bytes, talk


@with_output("Default: stdout.")
def command(
    context: typer.Context,
    *,
    survey: Annotated[
        str, study_argument("ID", "A survey, a system, a validation, a study, an experiment.")
    ],
    output: Path | None = None,
    format: Annotated[  # noqa: A002 - the option's name
        str | None,
        typer.Option(
            metavar="json|csv|parquet|arrow|leadline|text",
            help="Default: by FILE's ending. `text` is a bundle that passes through a log.",
        ),
    ] = None,
) -> None:
    """Export points or trials as data, or a study as a bundle.

    FILE.leadline holds the study and those it is about: `leadline import` takes it on another
    machine, and compare, predict, report and show take it in place of a name.

    Example: leadline export 3f2a5b58 -o points.csv
    """
    own: Context = context.obj
    store = own.read_store()
    chosen = format or (output.suffix.lstrip(".") if output else "json")
    bundle = SUFFIX.removeprefix(".")
    if chosen not in {*FORMATS, bundle, "text"}:
        raise typer.BadParameter(
            f"{chosen!r} is not one of {', '.join([*FORMATS, bundle, 'text'])}"
        )
    found = find_study(store, survey)
    if chosen in {bundle, "text"}:
        from leadline.store.bundle import make_bundle, to_text  # noqa: PLC0415 - it loads SQLAlchemy

        data = make_bundle(store, found.start.study_id)
        data = to_text(data) if chosen == "text" else data
    else:
        data = export_rows(KINDS[found.kind].rows(store, found.start.study_id), chosen)
    if output is None:
        put_bytes(data)
        return
    try:
        write_whole(output, data)
    except OSError as error:
        raise UsageRefused(
            f"{output} cannot be written: {error.strerror}; give another file"
        ) from error
    talk(f"wrote {output}")
