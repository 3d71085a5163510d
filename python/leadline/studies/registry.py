"""What can be done with a study of any kind: a line a kind, and nobody asks which it is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Group, RenderableType

from leadline.late import late
from leadline.record import Measurement, Status, Survey
from leadline.record.application import APPLICATION
from leadline.record.file_cache import CACHE
from leadline.record.files import FILES
from leadline.record.measurement import MEASUREMENT, Measured
from leadline.record.streaming import STREAM
from leadline.record.study import Records, Summary
from leadline.record.survey import SURVEY, SurveyStart
from leadline.record.validation import VALIDATION
from leadline.record.wording import say_count
from leadline.record.workbench import EXPERIMENT
from leadline.store import NotStored, Store, Stored

Row = dict[str, Any]

# Loaded when they are called: a command needs one kind, and all of them take a second.
load_survey = late("leadline.studies.survey.study:load_survey")
load_validation = late("leadline.studies.validation.run:load_validation")
load_files = late("leadline.studies.files.run:load_files")
load_stream = late("leadline.studies.streaming.run:load_stream")
load_measured = late("leadline.studies.measurement.plan:load_measured")
load_application = late("leadline.studies.application.characterize:load_application")
experiment_of = late("leadline.studies.workbench.stored:experiment_of")
find_in_survey = late("leadline.studies.cache:find_in_survey")
survey_document = late("leadline.studies.survey.text:survey_document")
point_rows = late("leadline.store:rows")
render_terminal = late("leadline.studies.survey.text:render_terminal")
save_application = late("leadline.studies.application.charts:save_application")
save_cache = late("leadline.studies.cache.charts:save_cache")
save_measurement = late("leadline.studies.measurement.charts:save_measurement")
save_report = late("leadline.studies.survey.page:save_report")
checked_by = late("leadline.studies.validation.charts:checked_by")
save_validation = late("leadline.studies.validation.charts:save_validation")


class StoredSurvey(NamedTuple):
    """A survey with what belongs to it."""

    survey: Survey
    points: tuple[Measurement, ...]
    validations: tuple[Summary, ...] = ()

    @property
    def start(self) -> SurveyStart:
        """What decides it."""
        return self.survey.start

    @property
    def status(self) -> Status:
        """How far it is."""
        return self.survey.status


@dataclass(frozen=True)
class Kind:
    """What can be done with one kind of study."""

    records: Records[Any, Any]
    load: Callable[[Store, str], Any]
    """Find a study by its id or name and explain it, finished or not."""
    document: Callable[[Any], Any]
    """What `--json` puts on stdout."""
    render: Callable[[Any], RenderableType]
    """What a terminal shows."""
    rows: Callable[[Store, str], list[Row]]
    """What `export` writes: a flat row for each thing that was measured."""
    save: Callable[[Store, Any, Path, Sequence[str]], None]
    """Draw a study to a file, with others beside it."""
    ending: str
    """How a file's usual name ends."""
    require_format: Callable[[Path], None] = lambda _: None
    """Refuse what it cannot be drawn as, before anything is measured."""
    headline: Callable[[Any], str] = lambda _: ""
    """The answer in a sentence, as its page begins; empty when there is none yet."""


def find_study(store: Store, ref: str) -> Stored[Any, Any]:
    """Return a study of any kind; a name means a survey where one has it.

    Raises:
        StoreError: no study, or several, go by this reference.

    """
    try:
        return store.find(ref, SURVEY)
    except NotStored as not_a_survey:
        try:
            return store.find(ref)
        except NotStored:
            raise not_a_survey from None


def _survey(store: Store, ref: str) -> StoredSurvey:
    survey, points = load_survey(store, ref)
    return StoredSurvey(survey, points, store.list(VALIDATION, survey.start.study_id))


def _survey_document(study: StoredSurvey) -> Row:
    listed = [
        {
            "validation_id": item.study_id,
            "survey_id": item.parent,
            "started_at": item.started_at,
            "status": item.status,
            "points": item.items,
        }
        for item in study.validations
    ]
    document: Row = survey_document(study.survey, study.points)
    return document | {"validations": listed}


def _render_survey(study: StoredSurvey) -> RenderableType:
    shown = render_terminal(study.survey, find_in_survey(study.survey, study.points))
    return Group(shown, *map(_say_validation, study.validations))


def _say_validation(item: Summary) -> str:
    name, points = item.study_id[:8], say_count(item.items, "point")
    return f"validation {name}: {item.status.value}, {points}; leadline show {name}"


def _save_survey(store: Store, study: StoredSurvey, path: Path, beside: Sequence[str]) -> None:
    others = [load_survey(store, ref)[0] for ref in beside]
    newest = checked_by(load_validation(store, study.start.study_id))
    save_report(study.survey, study.points, path, others, newest)


def _measured_rows(study: Measured) -> list[Row]:
    rows: list[Row] = point_rows(study.points, MEASUREMENT.kind, study.start.study_id)
    return rows


def _rows(
    load: Callable[[Store, str], Any], rows: Callable[[Any], list[Row]]
) -> Callable[[Store, str], list[Row]]:
    return lambda store, study_id: rows(load(store, study_id))


def _save_beside(
    load: Callable[[Store, str], Any], save: Callable[..., None]
) -> Callable[[Store, Any, Path, Sequence[str]], None]:
    """Draw a study with others of its kind."""
    return lambda store, study, path, beside: save(
        study, path, [load(store, ref) for ref in beside]
    )


def _first(sentences: Callable[[Any], Sequence[str]]) -> Callable[[Any], str]:
    """Return the first of an answer's sentences."""
    return lambda study: next(iter(sentences(study)), "")


def _points(kind: Records[Any, Any]) -> Callable[[Store, str], list[Row]]:
    return lambda store, study_id: point_rows(store.items(study_id), kind.kind, study_id)


KINDS = {
    kind.records.kind: kind
    for kind in (
        Kind(
            SURVEY,
            load=_survey,
            document=_survey_document,
            render=_render_survey,
            rows=_points(SURVEY),
            save=_save_survey,
            ending=".html",
            headline=_first(lambda study: study.survey.sentences),
        ),
        Kind(
            VALIDATION,
            load=late("leadline.studies.validation.run:explained_validation"),
            document=late("leadline.studies.validation.text:validation_document"),
            render=late("leadline.studies.validation.text:render_validation"),
            rows=_points(VALIDATION),
            save=lambda _, found, path, __: save_validation(found, path),
            ending="-validation.html",
            headline=_first(lambda study: study.sentences),
        ),
        Kind(
            CACHE,
            load=late("leadline.studies.cache.study:load_study"),
            document=late("leadline.studies.cache.text:study_document"),
            render=late("leadline.studies.cache.text:render_cache_study"),
            rows=_points(CACHE),
            save=lambda _, study, path, __: save_cache(study, path),
            ending="-cache.html",
            headline=_first(lambda study: study.cache.sentences),
        ),
        Kind(
            FILES,
            load=load_files,
            document=late("leadline.studies.files.text:files_document"),
            render=late("leadline.studies.files.text:render_files"),
            rows=_rows(load_files, late("leadline.studies.files.plan:number_rows")),
            save=_save_beside(load_files, late("leadline.studies.files.page:save_files")),
            ending="-files.html",
            headline=late("leadline.studies.files.text:headline"),
            require_format=late("leadline.studies.files.page:require_files_format"),
        ),
        Kind(
            STREAM,
            load=load_stream,
            document=late("leadline.studies.streaming.text:stream_document"),
            render=late("leadline.studies.streaming.text:render_stream"),
            rows=_rows(load_stream, late("leadline.studies.streaming.measured:phase_rows")),
            save=_save_beside(load_stream, late("leadline.studies.streaming.page:save_stream")),
            ending="-stream.html",
            headline=_first(late("leadline.studies.streaming.text:sentences_of_study")),
            require_format=late("leadline.studies.streaming.page:require_stream_format"),
        ),
        Kind(
            EXPERIMENT,
            load=experiment_of,
            document=late("leadline.studies.workbench.tables:experiment_document"),
            render=late("leadline.studies.workbench.tables:render_experiment"),
            rows=_rows(
                late("leadline.studies.workbench.stored:stored_experiment"),
                late("leadline.studies.workbench.tables:trial_rows"),
            ),
            save=_save_beside(
                experiment_of, late("leadline.studies.workbench.page:save_experiment")
            ),
            ending=".html",
            headline=_first(lambda experiment: experiment.sentences),
            require_format=late("leadline.studies.workbench.page:require_experiment_format"),
        ),
        Kind(
            MEASUREMENT,
            load=load_measured,
            document=late("leadline.studies.measurement.text:measured_document"),
            render=late("leadline.studies.measurement.text:render_measured"),
            rows=_rows(load_measured, _measured_rows),
            save=lambda _, study, path, __: save_measurement(study, path),
            ending="-measurement.html",
            headline=_first(late("leadline.studies.measurement.charts:sentences_of")),
        ),
        Kind(
            APPLICATION,
            load=load_application,
            document=late("leadline.studies.application.text:application_document"),
            render=late("leadline.studies.application.text:render_application"),
            rows=_rows(load_application, late("leadline.studies.application.streams:stream_rows")),
            save=lambda _, study, path, __: save_application(study, path),
            ending="-application.html",
            headline=_first(lambda study: study.found.sentences),
            require_format=late("leadline.studies.application.charts:require_application_format"),
        ),
    )
}
"""Every kind that there is, by its name in the store."""


# The charts of any study by name, for Python: those of its page.

balance_of = late("leadline.studies.streaming.answer:balance_of")
stream_charts = late("leadline.studies.streaming.use_charts:stream_charts")
survey_charts = late("leadline.studies.survey.charts:charts")

_CHARTS: dict[str, Callable[[Any], dict[str, Any]]] = {
    SURVEY.kind: lambda study: survey_charts(study.survey),
    VALIDATION.kind: late("leadline.studies.validation.charts:validation_charts"),
    CACHE.kind: late("leadline.studies.cache.charts:cache_charts"),
    FILES.kind: late("leadline.studies.files.page:files_charts"),
    STREAM.kind: lambda study: stream_charts(study, balance_of(study)),
    EXPERIMENT.kind: late("leadline.studies.workbench.charts:experiment_charts"),
    MEASUREMENT.kind: late("leadline.studies.measurement.charts:measurement_charts"),
    APPLICATION.kind: late("leadline.studies.application.charts:application_charts"),
}
"""Of each kind what draws it; Altair is loaded when one is called."""


def charts_of(kind: str, study: Any) -> dict[str, Any]:
    """Return every chart of a study, by name, the one to look at first before the others.

    Args:
        kind: as `leadline systems` names it.
        study: as its kind loads it.

    """
    return _CHARTS[kind](study)
