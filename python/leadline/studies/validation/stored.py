"""Validations, as they are told."""

from __future__ import annotations

from leadline.record import Status, Validation
from leadline.record.validation import VALIDATION
from leadline.store import Store
from leadline.studies.survey.stored import load_survey
from leadline.studies.validation.explain import explain_validation


def explained_validation(store: Store, ref: str) -> Validation:
    """Return a validation: a finished one as it was stored, another as what it has explains it.

    Raises:
        StoreError: no validation, or several, go by this reference.

    """
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
