"""A stored survey, as it is told."""

from __future__ import annotations

from leadline.engine import Wear, bytes_written
from leadline.record import Measurement, Survey, SurveyStart
from leadline.record.survey import SURVEY
from leadline.store import Store, Stored
from leadline.studies.survey.explain import explain


def load_survey(store: Store, ref: str) -> tuple[Survey, tuple[Measurement, ...]]:
    """Return a survey and its points; an unfinished one is explained from what it has.

    Raises:
        StoreError: no survey, or several, go by this reference.

    """
    found = store.find(ref, SURVEY)
    points = store.items(found.start.study_id)
    return found.answer or explain(found.start, points), points


def wear_before(store: Store, found: Stored[SurveyStart, Survey], bytes_max: int | None) -> Wear:
    """Return the count of what an unfinished survey wrote, with its limit or a new one."""
    points = sum(bytes_written(point.result) for point in store.items(found.start.study_id))
    told = found.answer.written_bytes if found.answer else 0
    return Wear(bytes_max or found.start.written_bytes_max, max(points, told))
