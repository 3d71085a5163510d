"""Find a stored survey and explain it, finished or not."""

from __future__ import annotations

from leadline.record import Measurement, Survey
from leadline.store import Store
from leadline.survey import explain


def load_survey(store: Store, ref: str) -> tuple[Survey, tuple[Measurement, ...]]:
    """Return a survey and its points; an unfinished one is explained from what it has."""
    start = store.survey_start(ref)
    points = store.points(start.survey_id)
    return store.survey(start.survey_id) or explain(start, points), points
