"""A store in a database, through SQLAlchemy Core: SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, ColumnElement, Connection, Label, func, select, update

from leadline.record import (
    CacheStart,
    CacheStudy,
    Measurement,
    Survey,
    SurveyStart,
    SurveyStatus,
    Validation,
    ValidationStart,
)
from leadline.record.files import FilesStudy
from leadline.record.streaming import StreamStudy
from leadline.store import _growing
from leadline.store._base import (
    CacheStudySummary,
    GrowingSummary,
    SurveySummary,
    ValidationSummary,
)
from leadline.store._database import PREFIX_MIN, encode
from leadline.store._experiments import ExperimentRows
from leadline.store._growing import FILES, STREAMS, Kind, Study
from leadline.store._tables import points, studies, surveys, validations
from leadline.store.errors import StoreError, UpdateFinishedError


class SqlStore(ExperimentRows):
    """See `Store` for the contract."""

    def start_survey(self, start: SurveyStart) -> None:
        """Record what decides a survey."""
        with self._transaction() as connection:
            if self._row(connection, surveys.c.survey_id, start.survey_id) is not None:
                raise UpdateFinishedError(f"survey {start.survey_id} was started already")
            connection.execute(
                surveys.insert().values(
                    survey_id=start.survey_id,
                    system=start.system,
                    target=start.target,
                    started_at=start.started_at,
                    status=SurveyStatus.RUNNING.value,
                    start_document=encode(start),
                )
            )

    def add_point(self, point: Measurement) -> None:
        """Record a finished point; durable when this returns."""
        owner = "validation" if point.validation_id else "study" if point.study_id else "survey"
        with self._transaction(
            taken=f"place {point.order} of a point in its {owner} is taken already"
        ) as connection:
            known = select(points.c.point_id).where(points.c.point_id == point.point_id)
            if connection.execute(known).first() is not None:
                raise UpdateFinishedError(f"point {point.point_id} is stored already")
            if point.survey_id is not None:
                self._open(connection, surveys.c.survey_id, point.survey_id)
            if point.validation_id is not None:
                self._open(connection, validations.c.validation_id, point.validation_id)
            if point.study_id is not None:
                self._open(connection, studies.c.study_id, point.study_id)
            connection.execute(
                points.insert().values(
                    point_id=point.point_id,
                    survey_id=point.survey_id,
                    validation_id=point.validation_id,
                    study_id=point.study_id,
                    position=point.order,
                    document=encode(point),
                )
            )

    def finish_survey(self, survey: Survey) -> None:
        """Record the answer."""
        self._finish(
            surveys.c.survey_id,
            survey.start.survey_id,
            survey,
            wall_s=survey.wall_s,
            survey_document=encode(survey),
        )

    def survey_start(self, ref: str) -> SurveyStart:
        """Return the start record of a survey."""
        with self._transaction() as connection:
            return self._decode(self._find(connection, ref).start_document, SurveyStart)

    def points(self, survey_id: str) -> tuple[Measurement, ...]:
        """Return a survey's points in their order of execution."""
        return self._points(points.c.survey_id, survey_id)

    def survey(self, ref: str) -> Survey | None:
        """Return the answer of a survey; None while it has none."""
        with self._transaction() as connection:
            document = self._find(connection, ref).survey_document
        return None if document is None else self._decode(document, Survey)

    def surveys(self) -> tuple[SurveySummary, ...]:
        """Return a summary of every survey, the newest first."""
        wanted = ("survey_id", "system", "target", "started_at", "status", "wall_s")
        count = _count_points(points.c.survey_id == surveys.c.survey_id)
        query = select(*(surveys.c[name] for name in wanted), count)
        with self._transaction() as connection:
            rows = connection.execute(query.order_by(surveys.c.sequence.desc())).mappings().all()
        return tuple(
            SurveySummary(**(dict(row) | {"status": SurveyStatus(row["status"])})) for row in rows
        )

    def measurement(self, point_id: str) -> Measurement:
        """Return a point by its id or an unambiguous beginning of it."""
        query = select(points.c.document, points.c.point_id)
        with self._transaction() as connection:
            row = connection.execute(query.where(points.c.point_id == point_id)).first()
            row = row or self._by_prefix(connection, query, points.c.point_id, point_id)
        if row is None:
            raise StoreError(
                f"no point {point_id!r} in {self._shown}; `leadline export ID` lists those of a "
                "survey or validation"
            )
        return self._decode(row.document, Measurement)

    def start_validation(self, start: ValidationStart) -> None:
        """Record what decides a validation."""
        with self._transaction() as connection:
            known = self._row(connection, validations.c.validation_id, start.validation_id)
            if known is not None:
                raise UpdateFinishedError(f"validation {start.validation_id} was started already")
            if self._row(connection, surveys.c.survey_id, start.survey_id) is None:
                raise StoreError(f"survey {start.survey_id} was never started in {self._shown}")
            connection.execute(
                validations.insert().values(
                    validation_id=start.validation_id,
                    survey_id=start.survey_id,
                    started_at=start.started_at,
                    status=SurveyStatus.RUNNING.value,
                    start_document=encode(start),
                )
            )

    def finish_validation(self, validation: Validation) -> None:
        """Record the answer of a validation."""
        self._finish(
            validations.c.validation_id,
            validation.start.validation_id,
            validation,
            validation_document=encode(validation),
        )

    def validation_start(self, ref: str) -> ValidationStart:
        """Return the start record of a validation."""
        with self._transaction() as connection:
            return self._decode(self._find_validation(connection, ref).start_document,
                                ValidationStart)  # fmt: skip

    def validation(self, ref: str) -> Validation | None:
        """Return the answer of a validation; None while it has none."""
        with self._transaction() as connection:
            document = self._find_validation(connection, ref).validation_document
        return None if document is None else self._decode(document, Validation)

    def validation_points(self, validation_id: str) -> tuple[Measurement, ...]:
        """Return a validation's points in their order of execution."""
        return self._points(points.c.validation_id, validation_id)

    def validations(self, survey_id: str) -> tuple[ValidationSummary, ...]:
        """Return a summary of every validation of a survey, the newest first."""
        wanted = ("validation_id", "survey_id", "started_at", "status")
        count = _count_points(points.c.validation_id == validations.c.validation_id)
        query = (
            select(*(validations.c[name] for name in wanted), count)
            .where(validations.c.survey_id == survey_id)
            .order_by(validations.c.sequence.desc())
        )
        with self._transaction() as connection:
            rows = connection.execute(query).mappings().all()
        return tuple(
            ValidationSummary(**(dict(row) | {"status": SurveyStatus(row["status"])}))
            for row in rows
        )

    def start_cache_study(self, start: CacheStart) -> None:
        """Record what decides a study of a file cache."""
        with self._transaction() as connection:
            if self._row(connection, studies.c.study_id, start.study_id) is not None:
                raise UpdateFinishedError(f"study {start.study_id} was started already")
            connection.execute(
                studies.insert().values(
                    study_id=start.study_id,
                    system=start.system,
                    target=start.target,
                    started_at=start.started_at,
                    status=SurveyStatus.RUNNING.value,
                    start_document=encode(start),
                )
            )

    def finish_cache_study(self, study: CacheStudy) -> None:
        """Record the answer of a study."""
        self._finish(studies.c.study_id, study.start.study_id, study, study_document=encode(study))

    def cache_start(self, ref: str) -> CacheStart:
        """Return the start record of a study."""
        with self._transaction() as connection:
            return self._decode(self._find_study(connection, ref).start_document, CacheStart)

    def cache_study(self, ref: str) -> CacheStudy | None:
        """Return the answer of a study; None while it has none."""
        with self._transaction() as connection:
            document = self._find_study(connection, ref).study_document
        return None if document is None else self._decode(document, CacheStudy)

    def study_points(self, study_id: str) -> tuple[Measurement, ...]:
        """Return a study's points in their order of execution."""
        return self._points(points.c.study_id, study_id)

    def cache_studies(self) -> tuple[CacheStudySummary, ...]:
        """Return a summary of every study, the newest first."""
        wanted = ("study_id", "system", "target", "started_at", "status")
        count = _count_points(points.c.study_id == studies.c.study_id)
        query = select(*(studies.c[name] for name in wanted), count)
        with self._transaction() as connection:
            rows = connection.execute(query.order_by(studies.c.sequence.desc())).mappings().all()
        return tuple(
            CacheStudySummary(**(dict(row) | {"status": SurveyStatus(row["status"])}))
            for row in rows
        )

    def save_files(self, study: FilesStudy) -> None:
        """Keep a study of plain files, or what is new of it; durable when this returns."""
        self._save(FILES, study)

    def files_study(self, ref: str) -> FilesStudy:
        """Return a study of plain files by its id, its system or the beginning of its id."""
        return self._grown(FILES, ref)

    def files_studies(self) -> tuple[GrowingSummary, ...]:
        """Return a summary of every study of plain files, the newest first."""
        return self._growing_summaries(FILES)

    def save_stream(self, study: StreamStudy) -> None:
        """Keep a stream study, or what is new of it; durable when this returns."""
        self._save(STREAMS, study)

    def stream_study(self, ref: str) -> StreamStudy:
        """Return a stream study by its id, its system or the beginning of its id."""
        return self._grown(STREAMS, ref)

    def stream_studies(self) -> tuple[GrowingSummary, ...]:
        """Return a summary of every stream study, the newest first."""
        return self._growing_summaries(STREAMS)

    def _save(self, kind: Kind[Study], study: Study) -> None:
        document = encode(study)
        with self._transaction() as connection:
            row = connection.execute(_growing.by_id(kind, study.start.study_id)).first()
            if row is not None:
                stored = self._decode(row.document, kind.document)
                _growing.require_growth(kind, stored, study)
            _growing.keep(connection, kind, study, document, new=row is None)

    def _grown(self, kind: Kind[Study], ref: str) -> Study:
        with self._transaction() as connection:
            row = _growing.find(connection, kind, ref, PREFIX_MIN)
        if row is None:
            raise StoreError(f"no {kind.said} {ref!r} in {self._shown}; `{kind.made_by}` makes one")
        return self._decode(row.document, kind.document)

    def _growing_summaries(self, kind: Kind[Any]) -> tuple[GrowingSummary, ...]:
        with self._transaction() as connection:
            rows = connection.execute(_growing.newest_first(kind)).mappings().all()
        return tuple(
            GrowingSummary(**(dict(row) | {"status": SurveyStatus(row["status"])})) for row in rows
        )

    def _row(self, connection: Connection, key: Column[Any], owner_id: str) -> Any:
        query = select(key.table).where(key == owner_id)
        return connection.execute(query.with_for_update()).first()

    def _open(self, connection: Connection, key: Column[Any], owner_id: str) -> Any:
        """Return and lock the row of a survey or validation that may still change."""
        row, owner = self._row(connection, key, owner_id), _owner(key)
        if row is None:
            raise StoreError(f"{owner} {owner_id} was never started in {self._shown}")
        if row.status == SurveyStatus.DONE.value:
            raise UpdateFinishedError(f"{owner} {owner_id} is done; a finished one never changes")
        return row

    def _finish(
        self,
        key: Column[Any],
        owner_id: str,
        answer: Survey | Validation | CacheStudy,
        **columns: Any,
    ) -> None:
        owner = _owner(key)
        if answer.status is SurveyStatus.RUNNING:
            raise StoreError(f"{owner} {owner_id} still runs; only an end can be recorded")
        with self._transaction() as connection:
            row = self._open(connection, key, owner_id)
            if row.start_document != encode(answer.start):
                raise UpdateFinishedError(
                    f"{owner} {owner_id} began otherwise than its answer says; a start is never "
                    "changed"
                )
            connection.execute(
                update(key.table)
                .where(key == owner_id)
                .values(status=answer.status.value, **columns)
            )

    def _points(self, owner: Column[Any], owner_id: str) -> tuple[Measurement, ...]:
        query = select(points.c.document).where(owner == owner_id).order_by(points.c.position)
        with self._transaction() as connection:
            documents = connection.execute(query).scalars().all()
        return tuple(self._decode(document, Measurement) for document in documents)

    def _find_validation(self, connection: Connection, ref: str) -> Any:
        query = select(validations)
        known = query.where(validations.c.validation_id == ref)
        row = connection.execute(known).first() or self._by_prefix(
            connection, query, validations.c.validation_id, ref
        )
        if row is None:
            raise StoreError(
                f"no validation {ref!r} in {self._shown}; `leadline validate S` makes one"
            )
        return row

    def _find_study(self, connection: Connection, ref: str) -> Any:
        query = select(studies)
        newest = query.order_by(studies.c.sequence.desc())
        row = (
            connection.execute(query.where(studies.c.study_id == ref)).first()
            or connection.execute(newest.where(studies.c.system == ref)).first()
            or self._by_prefix(connection, query, studies.c.study_id, ref)
        )
        if row is None:
            raise StoreError(
                f"no study of a file cache {ref!r} in {self._shown}; `leadline cache TARGET` "
                "makes one"
            )
        return row

    def _find(self, connection: Connection, ref: str) -> Any:
        query = select(surveys)
        newest = query.order_by(surveys.c.sequence.desc())
        row = (
            connection.execute(query.where(surveys.c.survey_id == ref)).first()
            or connection.execute(newest.where(surveys.c.system == ref)).first()
            or self._by_prefix(connection, query, surveys.c.survey_id, ref)
        )
        if row is None:
            systems = select(surveys.c.system).distinct().order_by(surveys.c.system).limit(10)
            known = ", ".join(connection.execute(systems).scalars()) or "none yet"
            raise StoreError(
                f"no survey or system {ref!r} in {self._shown}; it holds the systems: {known} "
                "(`leadline systems` lists all)"
            )
        return row


def _owner(key: Column[Any]) -> str:
    return key.name.removesuffix("_id")


def _count_points(own: ColumnElement[bool]) -> Label[int]:
    """Number of points of each row that `own` joins them to, under the name `points`."""
    query = select(func.count()).select_from(points).where(own)
    return query.scalar_subquery().label("points")
