"""The contract that every store keeps; `leadline.testing.store_conformance` checks it."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

import msgspec

from leadline.record import Measurement, Survey, SurveyStart, SurveyStatus


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


class Store(Protocol):
    """Keeps surveys and their points.

    Durability: when `start_survey`, `add_point` or `finish_survey` returns, the document survives a
    kill of the process and a loss of power (as far as the device keeps its promises). When one
    raises, nothing of it is kept.

    Threading: every method may be called from any thread, and from several processes at once.

    Ownership: documents are immutable, those given and those returned; nothing is shared.

    Immutability: a point is never changed or removed. A survey whose status is `done` takes neither
    points nor another end; one that is `stopped` may go on and end again. Breaking either raises
    `UpdateFinishedError`, whatever the document says.

    References: `ref` is a survey's id, its system's name (which means its newest survey), or the
    first four or more characters of exactly one id; tried in this order.

    Every method raises `StoreError` when the store is damaged or cannot be reached.
    """

    def start_survey(self, start: SurveyStart) -> None:
        """Record what decides a survey, before its first point."""

    def add_point(self, point: Measurement) -> None:
        """Record a finished point, of a survey that was started or of none (`measure`).

        Raises:
            UpdateFinishedError: the point is there already, or its survey is done.
            StoreError: its survey was never started, or has a point of the same order.

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
