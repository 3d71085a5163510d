"""`leadline show ID`: a survey, a validation, a study, an experiment, or a single point."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

import typer

from leadline.cli.cache import load_study, tell_study
from leadline.cli.context import Context
from leadline.cli.files import tell_files
from leadline.cli.load import explained_validation, find_study
from leadline.cli.measure import measurement_document
from leadline.cli.options import Json
from leadline.cli.stream.run import tell_stream
from leadline.cli.survey import survey_document
from leadline.cli.talk import put_json, show, talk
from leadline.cli.validate import tell_validation
from leadline.cli.workbench.run import tell_experiment
from leadline.record import Measurement
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.record.measurement import MEASUREMENT
from leadline.record.streaming import STREAM
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.record.wording import say_count
from leadline.record.workbench import EXPERIMENT
from leadline.report import render_measurement, render_terminal
from leadline.store import Store, StoredItem, StoreError
from leadline.studies.cache import find_in_survey
from leadline.studies.files.stored import load_files
from leadline.studies.streaming.stored import load_stream
from leadline.studies.survey.stored import load_survey
from leadline.studies.workbench.stored import experiment_of


def command(
    context: typer.Context,
    ref: Annotated[
        str,
        typer.Argument(
            metavar="ID",
            help="A survey, a system, a validation, a study, an experiment, or a point.",
        ),
    ],
    json: Json = False,
) -> None:
    """Show what is stored under an id: a survey, a study, an experiment, or one point."""
    own: Context = context.obj
    store = own.open_store()
    try:
        found = find_study(store, ref)
    except StoreError as no_study:
        _show_point(_point(store, ref, no_study), json=json)
        return
    _SHOW[found.kind](store, found.start.study_id, json)


def _point(store: Store, ref: str, no_study: StoreError) -> StoredItem:
    try:
        item = store.item(ref)
    except StoreError:
        raise no_study from None
    if not isinstance(item.document, Measurement):
        raise no_study
    return item


def _show_point(item: StoredItem, *, json: bool) -> None:
    if json:
        put_json(measurement_document(item.document, item.kind, item.study_id))
    else:
        show(render_measurement(item.document))


def _show_survey(store: Store, study_id: str, json: bool) -> None:
    survey, points = load_survey(store, study_id)
    validations = store.list(VALIDATION, study_id)
    if json:
        listed = [
            {
                "validation_id": item.study_id,
                "survey_id": item.parent,
                "started_at": item.started_at,
                "status": item.status,
                "points": item.items,
            }
            for item in validations
        ]
        put_json(survey_document(survey, points) | {"validations": listed})
        return
    show(render_terminal(survey, find_in_survey(survey, points)))
    for item in validations:
        name = item.study_id[:8]
        talk(
            f"validation {name}: {item.status.value}, {say_count(item.items, 'point')}; "
            f"leadline show {name}"
        )


def _show_measurement(store: Store, study_id: str, json: bool) -> None:
    for point in store.items(study_id):
        _show_point(StoredItem(MEASUREMENT.kind, study_id, point), json=json)


_SHOW: dict[str, Callable[[Store, str, bool], None]] = {
    SURVEY.kind: _show_survey,
    VALIDATION.kind: lambda *of: tell_validation(explained_validation(*of[:2]), json=of[2]),
    CACHE.kind: lambda *of: tell_study(load_study(*of[:2]), json=of[2]),
    FILES.kind: lambda *of: tell_files(load_files(*of[:2]), json=of[2]),
    STREAM.kind: lambda *of: tell_stream(load_stream(*of[:2]), json=of[2]),
    EXPERIMENT.kind: lambda *of: tell_experiment(experiment_of(*of[:2]), json=of[2]),
    MEASUREMENT.kind: _show_measurement,
}
