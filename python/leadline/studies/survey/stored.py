"""A stored survey, as it is told."""

from __future__ import annotations

from leadline.engine import Simulated, Target, Wear, bytes_written
from leadline.record import Measurement, Survey, SurveyStart
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


def wear_before(store: Store, start: SurveyStart, bytes_max: int | None) -> Wear:
    """Return the count of what an unfinished survey wrote, with its limit or a new one."""
    answer = store.find(start.study_id, SURVEY).answer
    points = sum(bytes_written(point.result) for point in store.items(start.study_id))
    return Wear(
        bytes_max or start.written_bytes_max, max(points, answer.written_bytes if answer else 0)
    )


def surveyed_target(survey: Survey) -> Target:
    """Return the target of a survey; of a simulated one the very system that was surveyed.

    Raises:
        TargetRefused: it cannot be used now.

    """
    start = survey.start
    if start.system_profile is not None:
        return Simulated(text=start.target, profile=start.system_profile)
    return Target.parse(start.target)
