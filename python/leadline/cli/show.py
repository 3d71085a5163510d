"""`leadline show ID`: a survey, a validation, a study, an experiment, or a single point."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from leadline.cli.cache import load_study, tell_study
from leadline.cli.context import Context
from leadline.cli.experiment_run import tell_experiment
from leadline.cli.files import tell_files
from leadline.cli.load import explained_validation, load_survey
from leadline.cli.measure import measurement_document
from leadline.cli.options import Json
from leadline.cli.stream_run import tell_stream
from leadline.cli.survey import survey_document
from leadline.cli.talk import put_json, show, talk
from leadline.cli.validate import tell_validation
from leadline.file_cache import find_in_survey
from leadline.record import Measurement, Survey
from leadline.record.wording import say_count
from leadline.report import render_measurement, render_terminal
from leadline.store import Store, StoreError
from leadline.workbench.mapping import experiment_of


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
        survey_id = store.survey_start(ref).survey_id
    except StoreError as not_a_survey:
        _show_other(store, ref, not_a_survey, json=json)
        return
    _show_survey(store, *load_survey(store, survey_id), json=json)


def _show_survey(
    store: Store, survey: Survey, points: Sequence[Measurement], *, json: bool
) -> None:
    validations = store.validations(survey.start.survey_id)
    if json:
        put_json(survey_document(survey, points) | {"validations": validations})
        return
    show(render_terminal(survey, find_in_survey(survey, points)))
    for item in validations:
        name = item.validation_id[:8]
        talk(
            f"validation {name}: {item.status.value}, {say_count(item.points, 'point')}; "
            f"leadline show {name}"
        )


def _show_other(store: Store, ref: str, not_a_survey: StoreError, *, json: bool) -> None:
    try:
        validation_id = store.validation_start(ref).validation_id
    except StoreError:
        _show_study(store, ref, not_a_survey, json=json)
        return
    tell_validation(explained_validation(store, validation_id), json=json)


def _show_study(store: Store, ref: str, not_a_survey: StoreError, *, json: bool) -> None:
    try:
        study = load_study(store, ref)
    except StoreError:
        _show_files(store, ref, not_a_survey, json=json)
        return
    tell_study(study, json=json)


def _show_files(store: Store, ref: str, not_a_survey: StoreError, *, json: bool) -> None:
    try:
        study = store.files_study(ref)
    except StoreError:
        _show_stream(store, ref, not_a_survey, json=json)
        return
    tell_files(study, json=json)


def _show_stream(store: Store, ref: str, not_a_survey: StoreError, *, json: bool) -> None:
    try:
        study = store.stream_study(ref)
    except StoreError:
        _show_experiment(store, ref, not_a_survey, json=json)
        return
    tell_stream(study, json=json)


def _show_experiment(store: Store, ref: str, not_a_survey: StoreError, *, json: bool) -> None:
    try:
        experiment = experiment_of(store, ref)
    except StoreError:
        _show_point(store, ref, not_a_survey, json=json)
        return
    tell_experiment(experiment, json=json)


def _show_point(store: Store, ref: str, not_a_survey: StoreError, *, json: bool) -> None:
    try:
        point = store.measurement(ref)
    except StoreError:
        raise not_a_survey from None
    if json:
        put_json(measurement_document(point))
    else:
        show(render_measurement(point))
