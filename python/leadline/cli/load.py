"""Find what is stored; explain surveys and validations, finished or not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline.engine import Target, TargetRefused
from leadline.record import Status, Survey, Validation
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import Store, Stored, StoreError
from leadline.studies.survey.stored import load_survey


def find_study(store: Store, ref: str) -> Stored[Any, Any]:
    """Return a study of any kind; a name means a survey where one has it.

    Raises:
        StoreError: no study, or several, go by this reference.

    """
    try:
        return store.find(ref, SURVEY)
    except StoreError as not_a_survey:
        try:
            return store.find(ref)
        except StoreError:
            raise not_a_survey from None


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
            f"survey {start.study_id[:8]} is of {start.target!r}, relative to a directory that an "
            "earlier Leadline did not keep: survey it again to measure on it"
        )
    return Target.parse(start.target)


def explained_validation(store: Store, ref: str) -> Validation:
    """Return a validation: a finished one as it was stored, another as what it has explains it.

    Raises:
        StoreError: no validation, or several, go by this reference.

    """
    from leadline.studies.validation import explain_validation  # noqa: PLC0415 - most loads need none

    found = store.find(ref, VALIDATION)
    if found.answer is not None and found.status is Status.DONE:
        return found.answer
    survey, survey_points = load_survey(store, found.start.parent)
    points = store.items(found.start.study_id)
    return explain_validation(found.start, survey, survey_points, points)


def load_validation(store: Store, survey_id: str) -> Validation | None:
    """Return the newest validation of a survey that scores something; None without any point.

    While none of them does, the newest that has a point: it says how far it is.
    """
    known = [item for item in store.list(VALIDATION, survey_id) if item.items]
    found = (explained_validation(store, item.study_id) for item in known)
    newest = next(found, None)
    if newest is None or newest.scores:
        return newest
    return next((item for item in found if item.scores), newest)
