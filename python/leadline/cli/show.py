"""`leadline show ID`: a survey, or a single measured point."""

from __future__ import annotations

from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.load import load_survey
from leadline.cli.measure import measurement_document
from leadline.cli.options import Json
from leadline.cli.survey import survey_document
from leadline.cli.talk import put_json, show
from leadline.report import render_measurement, render_terminal
from leadline.store import StoreError


def command(
    context: typer.Context,
    ref: Annotated[
        str, typer.Argument(metavar="ID", help="A survey, a system, or a measured point.")
    ],
    json: Json = False,
) -> None:
    """Show what is stored under an id: the survey's answer, or one point whole."""
    own: Context = context.obj
    store = own.open_store()
    try:
        survey, _ = load_survey(store, ref)
    except StoreError as not_a_survey:
        try:
            point = store.measurement(ref)
        except StoreError:
            raise not_a_survey from None
        if json:
            put_json(measurement_document(point))
        else:
            show(render_measurement(point))
        return
    if json:
        put_json(survey_document(survey))
    else:
        show(render_terminal(survey))
