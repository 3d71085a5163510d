"""A stored survey, as it is told."""

from __future__ import annotations

from leadline.record import Measurement, Survey
from leadline.record.survey import SURVEY
from leadline.store import Store
from leadline.studies.survey.explain import explain


def load_survey(store: Store, ref: str) -> tuple[Survey, tuple[Measurement, ...]]:
    """Return a survey and its points; an unfinished one is explained from what it has.

    Raises:
        StoreError: no survey, or several, go by this reference.

    """
    found = store.find(ref, SURVEY)
    points = store.items(found.start.study_id)
    return found.answer or explain(found.start, points), points
