"""Find a stored survey and explain it, finished or not."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leadline.engine import Target, TargetRefused
from leadline.record import Measurement, Survey, Validation
from leadline.store import Store
from leadline.survey import explain


def load_survey(store: Store, ref: str) -> tuple[Survey, tuple[Measurement, ...]]:
    """Return a survey and its points; an unfinished one is explained from what it has."""
    start = store.survey_start(ref)
    points = store.points(start.survey_id)
    return store.survey(start.survey_id) or explain(start, points), points


def surveyed_target(survey: Survey) -> Target:
    """Return the target of a survey; of a simulated one the very system that was surveyed.

    Raises:
        TargetRefused: it cannot be used now, or nobody can say which directory it was.

    """
    start = survey.start
    if start.system_profile is not None:
        return Target(text=start.target, kind="simulated", profile=start.system_profile)
    if start.target != "null:" and not Path(start.target).expanduser().is_absolute():
        raise TargetRefused(
            f"survey {start.survey_id[:8]} is of {start.target!r}, relative to a directory that an "
            "earlier Leadline did not keep: survey it again to measure on it"
        )
    return Target.parse(start.target)


def load_validation(
    store: Store, survey: Survey, survey_points: Sequence[Measurement]
) -> Validation | None:
    """Return the newest validation of a survey that has any point; None without one.

    A finished one is as it was stored; another is explained from what it has.
    """
    for summary in store.validations(survey.start.survey_id):
        stored = store.validation(summary.validation_id)
        if stored is not None:
            return stored
        points = store.validation_points(summary.validation_id)
        if points:
            from leadline.validate import explain_validation  # noqa: PLC0415 - a rare case

            start = store.validation_start(summary.validation_id)
            return explain_validation(start, survey, survey_points, points)
    return None
