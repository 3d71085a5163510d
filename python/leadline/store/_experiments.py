"""Experiments in the database; see `Store` for the contract."""

from __future__ import annotations

from typing import Any

import msgspec
from sqlalchemy import Connection, func, select, update

from leadline.record.survey import SurveyStatus
from leadline.record.workbench import (
    Experiment,
    ExperimentStart,
    PeakRate,
    Prior,
    Sample,
    SamplePeak,
    Trial,
)
from leadline.store._base import ExperimentSummary
from leadline.store._database import Database, encode
from leadline.store._experiment_tables import experiments, samples, trials
from leadline.store.errors import StoreError, UpdateFinishedError


class ExperimentRows(Database):
    """The part of the store that keeps experiments."""

    def start_experiment(self, start: ExperimentStart) -> None:
        """Record what decides an experiment."""
        with self._transaction() as connection:
            if _row(connection, start.experiment_id) is not None:
                raise UpdateFinishedError(f"experiment {start.experiment_id} was started already")
            connection.execute(
                experiments.insert().values(
                    experiment_id=start.experiment_id,
                    name=start.name,
                    started_at=start.started_at,
                    status=SurveyStatus.RUNNING.value,
                    start_document=encode(start),
                )
            )

    def begin_sample(self, experiment_id: str, sample: Sample, prior: Prior | None = None) -> None:
        """Record that a sample's search begins, and what was known before it."""
        with self._transaction(taken="this sample was begun already") as connection:
            row = self._going(connection, experiment_id)
            if sample not in self._decode(row.start_document, ExperimentStart).samples:
                raise StoreError(f"experiment {experiment_id} has no sample {_say(sample)}")
            connection.execute(
                samples.insert().values(
                    experiment_id=experiment_id,
                    sample=_key(sample),
                    prior_document=None if prior is None else encode(prior),
                )
            )

    def add_trial(self, experiment_id: str, sample: Sample, trial: Trial) -> None:
        """Record a trial that ended; durable when this returns."""
        taken = f"trial {trial.order} of the sample {_say(sample)} is stored already"
        with self._transaction(taken=taken) as connection:
            self._going(connection, experiment_id)
            self._open_sample(connection, experiment_id, sample)
            connection.execute(
                trials.insert().values(
                    experiment_id=experiment_id,
                    sample=_key(sample),
                    position=trial.order,
                    document=encode(trial),
                )
            )

    def end_sample(self, experiment_id: str, sample: Sample, peak: PeakRate) -> None:
        """Record the answer of a sample's search."""
        with self._transaction() as connection:
            self._going(connection, experiment_id)
            row = self._open_sample(connection, experiment_id, sample)
            own = samples.c.sequence == row.sequence
            connection.execute(update(samples).where(own).values(peak_document=encode(peak)))

    def finish_experiment(self, experiment: Experiment) -> None:
        """Record the answer of an experiment."""
        name = experiment.start.experiment_id
        if experiment.status is SurveyStatus.RUNNING:
            raise StoreError(f"experiment {name} still runs; only an end can be recorded")
        with self._transaction() as connection:
            row = self._going(connection, name)
            if row.start_document != encode(experiment.start):
                raise UpdateFinishedError(
                    f"experiment {name} began otherwise than its answer says; a start is never "
                    "changed"
                )
            if self._peaks(connection, name) != experiment.peaks:
                raise UpdateFinishedError(
                    f"experiment {name} has other trials stored than its answer says; what was "
                    "measured never changes"
                )
            answer = msgspec.structs.replace(experiment, peaks=())
            connection.execute(
                update(experiments)
                .where(experiments.c.experiment_id == name)
                .values(status=experiment.status.value, answer_document=encode(answer))
            )

    def experiment(self, ref: str) -> Experiment:
        """Return an experiment with all its trials, whether it ended or not."""
        with self._transaction() as connection:
            row = self._find_experiment(connection, ref)
            peaks = self._peaks(connection, row.experiment_id)
        if row.answer_document is not None:
            answer = self._decode(row.answer_document, Experiment)
            return msgspec.structs.replace(answer, peaks=peaks)
        start = self._decode(row.start_document, ExperimentStart)
        return Experiment(start=start, status=SurveyStatus(row.status), peaks=peaks)

    def experiments(self) -> tuple[ExperimentSummary, ...]:
        """Return a summary of every experiment, the newest first."""
        own = experiments.c.experiment_id
        count = select(func.count()).select_from(trials).where(trials.c.experiment_id == own)
        wanted = (experiments.c[name] for name in ("experiment_id", "name", "started_at", "status"))
        query = select(*wanted, count.scalar_subquery().label("trials"))
        with self._transaction() as connection:
            rows = connection.execute(query.order_by(experiments.c.sequence.desc())).mappings()
            return tuple(
                ExperimentSummary(**(dict(row) | {"status": SurveyStatus(row["status"])}))
                for row in rows
            )

    def _going(self, connection: Connection, experiment_id: str) -> Any:
        """Return and lock the row of an experiment that may still change.

        One that was stopped runs again from its next change, and its answer is no more.
        """
        row = _row(connection, experiment_id)
        if row is None:
            raise StoreError(f"experiment {experiment_id} was never started in {self._shown}")
        if row.status == SurveyStatus.DONE.value:
            raise UpdateFinishedError(
                f"experiment {experiment_id} is done; a finished one never changes"
            )
        if row.status == SurveyStatus.STOPPED.value:
            connection.execute(
                update(experiments)
                .where(experiments.c.experiment_id == experiment_id)
                .values(status=SurveyStatus.RUNNING.value, answer_document=None)
            )
        return row

    def _open_sample(self, connection: Connection, experiment_id: str, sample: Sample) -> Any:
        query = select(samples).where(
            samples.c.experiment_id == experiment_id, samples.c.sample == _key(sample)
        )
        row = connection.execute(query.with_for_update()).first()
        if row is None:
            raise StoreError(f"the sample {_say(sample)} was never begun in {experiment_id}")
        if row.peak_document is not None:
            raise UpdateFinishedError(
                f"the sample {_say(sample)} has its peak; a finished one never changes"
            )
        return row

    def _peaks(self, connection: Connection, experiment_id: str) -> tuple[SamplePeak, ...]:
        """Return the samples in the order in which they were begun, each with its trials."""
        begun = (
            select(samples)
            .where(samples.c.experiment_id == experiment_id)
            .order_by(samples.c.sequence)
        )
        ended = (
            select(trials.c.sample, trials.c.document)
            .where(trials.c.experiment_id == experiment_id)
            .order_by(trials.c.position)
        )
        kept: dict[str, list[Trial]] = {}
        for row in connection.execute(ended):
            kept.setdefault(row.sample, []).append(self._decode(row.document, Trial))
        return tuple(
            SamplePeak(
                sample=self._sample(row.sample),
                trials=tuple(kept.get(row.sample, ())),
                peak=row.peak_document and self._decode(row.peak_document, PeakRate),
                prior=row.prior_document and self._decode(row.prior_document, Prior),
            )
            for row in connection.execute(begun)
        )

    def _sample(self, text: str) -> Sample:
        try:
            return msgspec.json.decode(text, type=Sample)
        except msgspec.MsgspecError as error:
            raise self._damaged(f"a sample in it cannot be read: {error}") from error

    def _find_experiment(self, connection: Connection, ref: str) -> Any:
        query = select(experiments)
        newest = query.order_by(experiments.c.sequence.desc())
        row = (
            connection.execute(query.where(experiments.c.experiment_id == ref)).first()
            or connection.execute(newest.where(experiments.c.name == ref)).first()
            or self._by_prefix(connection, query, experiments.c.experiment_id, ref)
        )
        if row is None:
            raise StoreError(
                f"no experiment {ref!r} in {self._shown}; `leadline peak EXPERIMENT.toml` makes one"
            )
        return row


def _row(connection: Connection, experiment_id: str) -> Any:
    query = select(experiments).where(experiments.c.experiment_id == experiment_id)
    return connection.execute(query.with_for_update()).first()


def _key(sample: Sample) -> str:
    return msgspec.json.encode(sample, order="sorted").decode()


def _say(sample: Sample) -> str:
    return ", ".join(f"{name}={level}" for name, level in sample.items()) or "without factors"
