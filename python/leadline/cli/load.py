"""Find a stored survey or validation and explain it, finished or not."""

from __future__ import annotations

from pathlib import Path

from leadline.engine import Target, TargetRefused
from leadline.record import Measurement, Survey, SurveyStatus, Validation
from leadline.store import Store
from leadline.survey import explain


def load_survey(store: Store, ref: str) -> tuple[Survey, tuple[Measurement, ...]]:
    """Return a survey and its points; an unfinished one is explained from what it has."""
    start = store.survey_start(ref)
    points = store.points(start.survey_id)
    return store.survey(start.survey_id) or explain(start, points), points


def is_relative(stored: str) -> bool:
    """Whether a stored target is a directory as it was typed: earlier Leadlines kept no more."""
    return ":" not in stored and not Path(stored).expanduser().is_absolute()


def surveyed_target(survey: Survey) -> Target:
    """Return the target of a survey; of a simulated one the very system that was surveyed.

    Raises:
        TargetRefused: it cannot be used now, or nobody can say which directory it was.

    """
    start = survey.start
    if start.system_profile is not None:
        return Target(text=start.target, kind="simulated", profile=start.system_profile)
    if is_relative(start.target):
        raise TargetRefused(
            f"survey {start.survey_id[:8]} is of {start.target!r}, relative to a directory that an "
            "earlier Leadline did not keep: survey it again to measure on it"
        )
    return Target.parse(start.target)


def explained_validation(store: Store, ref: str) -> Validation:
    """Return a validation: a finished one as it was stored, another as what it has explains it.

    Raises:
        StoreError: no validation, or several, go by this reference.

    """
    from leadline.validate import explain_validation  # noqa: PLC0415 - most loads need none

    start = store.validation_start(ref)
    stored = store.validation(start.validation_id)
    if stored is not None and stored.status is SurveyStatus.DONE:
        return stored
    survey, survey_points = load_survey(store, start.survey_id)
    points = store.validation_points(start.validation_id)
    return explain_validation(start, survey, survey_points, points)


def load_validation(store: Store, survey_id: str) -> Validation | None:
    """Return the newest validation of a survey that scores something; None without any point.

    While none of them does, the newest that has a point: it says how far it is.
    """
    known = [item for item in store.validations(survey_id) if item.points]
    found = (explained_validation(store, item.validation_id) for item in known)
    newest = next(found, None)
    if newest is None or newest.scores:
        return newest
    return next((item for item in found if item.scores), newest)
