"""The contract that every store keeps; `leadline.testing.store_conformance` checks it."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

import msgspec

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
from leadline.record.workbench import (
    Experiment,
    ExperimentStart,
    PeakRate,
    Prior,
    Sample,
    Trial,
)


class SurveySummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of surveys."""

    survey_id: str
    system: str
    target: str
    started_at: str
    """UTC, ISO 8601."""
    status: SurveyStatus
    points: int
    wall_s: float | None
    """None until the survey ended or stopped."""


class ValidationSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of a survey's validations."""

    validation_id: str
    survey_id: str
    started_at: str
    """UTC, ISO 8601."""
    status: SurveyStatus
    points: int


class CacheStudySummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of studies of file caches."""

    study_id: str
    system: str
    target: str
    started_at: str
    """UTC, ISO 8601."""
    status: SurveyStatus
    points: int


class GrowingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of studies that are one document each: of plain files, or of streams."""

    study_id: str
    system: str
    started_at: str
    """UTC, ISO 8601."""
    status: SurveyStatus


class ExperimentSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One line of the list of experiments."""

    experiment_id: str
    name: str
    started_at: str
    """UTC, ISO 8601."""
    status: SurveyStatus
    trials: int


class Store(Protocol):
    """Keeps surveys, validations of them and studies of file caches, with the points of all.

    Studies of plain files and of streams are kept too, as one document each; experiments of the
    workbench with their samples and trials.

    Durability: when a method that starts, adds or finishes something returns, the document
    survives a kill of the process and a loss of power (as far as the device keeps its promises).
    When one raises, nothing of it is kept.

    Threading: every method may be called from any thread, and from several processes at once.

    Ownership: documents are immutable, those given and those returned; nothing is shared.

    Immutability: a point is never changed or removed. A survey or validation whose status is `done`
    takes neither points nor another end; one that is `stopped` may go on and end again. Breaking
    either raises `UpdateFinishedError`, whatever the document says.

    References: `ref` is a survey's id, its system's name (which means its newest survey), or the
    first four or more characters of exactly one id; tried in this order.

    Every method raises `StoreError` when the store is damaged or cannot be reached.
    """

    def start_survey(self, start: SurveyStart) -> None:
        """Record what decides a survey, before its first point."""

    def add_point(self, point: Measurement) -> None:
        """Record a finished point, of a survey or validation that was started, or of none.

        Raises:
            UpdateFinishedError: the point is there already, or its survey or validation is done.
            StoreError: its survey or validation was never started, or has a point of the same
                order.

        """

    def finish_survey(self, survey: Survey) -> None:
        """Record the answer, `stopped` or `done`.

        Raises:
            UpdateFinishedError: it is done already.
            StoreError: it was never started, or its status is `running`.

        """

    def survey_start(self, ref: str) -> SurveyStart:
        """Return the start record. Raises `StoreError` for an unknown or ambiguous reference."""

    def points(self, survey_id: str) -> tuple[Measurement, ...]:
        """Return a survey's points in their order of execution; none for an unknown id."""

    def survey(self, ref: str) -> Survey | None:
        """Return the answer; None while it has none. Raises `StoreError` as `survey_start`."""

    def surveys(self) -> tuple[SurveySummary, ...]:
        """Return a summary of every survey, the newest first."""

    def measurement(self, point_id: str) -> Measurement:
        """Return a point by its id or an unambiguous beginning (at least 4 characters) of it."""

    def start_validation(self, start: ValidationStart) -> None:
        """Record what decides a validation, before its first point.

        Raises:
            UpdateFinishedError: it was started already.
            StoreError: its survey was never started.

        """

    def finish_validation(self, validation: Validation) -> None:
        """Record the answer of a validation, `stopped` or `done`; raises as `finish_survey`."""

    def validation_start(self, ref: str) -> ValidationStart:
        """Return the start record of a validation by its id or an unambiguous beginning of it."""

    def validation(self, ref: str) -> Validation | None:
        """Return the answer; None while it has none. Raises `StoreError` as `validation_start`."""

    def validation_points(self, validation_id: str) -> tuple[Measurement, ...]:
        """Return a validation's points in their order of execution; none for an unknown id."""

    def validations(self, survey_id: str) -> tuple[ValidationSummary, ...]:
        """Return a summary of every validation of a survey, the newest first."""

    def start_cache_study(self, start: CacheStart) -> None:
        """Record what decides a study of a file cache, before its first point.

        Raises:
            UpdateFinishedError: it was started already.

        """

    def finish_cache_study(self, study: CacheStudy) -> None:
        """Record the answer of a study, `stopped` or `done`; raises as `finish_survey`."""

    def cache_start(self, ref: str) -> CacheStart:
        """Return the start record of a study by its id, its system, or a beginning of its id."""

    def cache_study(self, ref: str) -> CacheStudy | None:
        """Return the answer; None while it has none. Raises `StoreError` as `cache_start`."""

    def study_points(self, study_id: str) -> tuple[Measurement, ...]:
        """Return a study's points in their order of execution; none for an unknown id."""

    def cache_studies(self) -> tuple[CacheStudySummary, ...]:
        """Return a summary of every study of a file cache, the newest first."""

    def save_files(self, study: FilesStudy) -> None:
        """Keep a study of plain files: once its size is known, after each cell, and at its end.

        Raises:
            UpdateFinishedError: it is done already, began otherwise, or lacks runs that are stored.

        """

    def files_study(self, ref: str) -> FilesStudy:
        """Return a study of plain files by its id, its system (the newest) or a beginning of it."""

    def files_studies(self) -> tuple[GrowingSummary, ...]:
        """Return a summary of every study of plain files, the newest first."""

    def save_stream(self, study: StreamStudy) -> None:
        """Keep a stream study: before its first run, after each, and at its end.

        Raises:
            UpdateFinishedError: it is done already, began otherwise, or lacks runs that are stored.

        """

    def stream_study(self, ref: str) -> StreamStudy:
        """Return a stream study by its id, its system (the newest) or a beginning of its id."""

    def stream_studies(self) -> tuple[GrowingSummary, ...]:
        """Return a summary of every stream study, the newest first."""

    def start_experiment(self, start: ExperimentStart) -> None:
        """Record what decides an experiment, before its first trial.

        Raises:
            UpdateFinishedError: it was started already.

        """

    def begin_sample(self, experiment_id: str, sample: Sample, prior: Prior | None = None) -> None:
        """Record that the search for a sample's peak begins, and what was known before it.

        Raises:
            UpdateFinishedError: the experiment is done.
            StoreError: it was never started, has no such sample, or began it already.

        """

    def add_trial(self, experiment_id: str, sample: Sample, trial: Trial) -> None:
        """Record a trial that ended, whatever its state; it is never changed.

        Raises:
            UpdateFinishedError: the experiment is done, or the sample has its peak.
            StoreError: the sample was never begun, or has a trial of the same order.

        """

    def end_sample(self, experiment_id: str, sample: Sample, peak: PeakRate) -> None:
        """Record the answer of a sample's search; raises as `add_trial`."""

    def finish_experiment(self, experiment: Experiment) -> None:
        """Record the answer, `stopped` or `done`. One that is stopped may go on.

        Raises:
            UpdateFinishedError: it is done already, began otherwise, or has other trials.
            StoreError: it was never started, or its status is `running`.

        """

    def experiment(self, ref: str) -> Experiment:
        """Return an experiment by its id, its name (the newest) or a beginning of its id.

        It has all samples that were begun, in that order, with their trials; and its answer once
        it ended or stopped.
        """

    def experiments(self) -> tuple[ExperimentSummary, ...]:
        """Return a summary of every experiment, the newest first."""

    def close(self) -> None:
        """Let go of the connections; further calls open new ones."""

    def __enter__(self) -> Self:
        """Return the store itself."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Close."""
