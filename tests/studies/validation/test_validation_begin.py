"""What a validation may begin on: a whole survey, of this very system, with room and time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

import survey_fixture as made
from leadline.record import Access, Survey
from leadline.studies.validation.plan import (
    ValidationOptions,
    ValidationRefused,
    begin_validation,
    drawn_ranges,
    require_as_surveyed,
)

SURVEY = made.two_region(facts={"scheduler": "none", "free_bytes": 5})
ASKED = ValidationOptions(count=10, seed=1, seconds=None, budget_s=None, rivals=False)


@dataclass
class Surveyed:
    """As much of an engine as a beginning asks for: what the survey found, unless told else."""

    capacity_bytes: int = 2**40
    facts: dict[str, Any] = field(default_factory=lambda: dict(SURVEY.start.facts))
    access: Access = Access(backend="pread")  # noqa: RUF009 - frozen
    virtual: bool = False
    prepared: bool = False

    def prepare(self) -> None:
        self.prepared = True


def begin(engine: Any, survey: Survey = SURVEY, asked: ValidationOptions = ASKED) -> Any:
    return begin_validation(engine, survey, made.points(survey), asked)


def test_an_unchanged_system_is_prepared_and_planned() -> None:
    engine = Surveyed(facts=SURVEY.start.facts | {"free_bytes": 9})
    start = begin(engine)
    assert engine.prepared
    assert start.ranges == drawn_ranges(SURVEY)


@pytest.mark.parametrize(
    ("engine", "message"),
    [
        (Surveyed(facts={"scheduler": "bfq"}), "scheduler: none then, bfq now"),
        (Surveyed(capacity_bytes=2**30), "only 1 GiB may be used on /srv/data now: free some"),
    ],
    ids=["changed", "full"],
)
def test_another_system_or_a_full_one_is_refused_at_the_start_and_on_resuming(
    engine: Any, message: str
) -> None:
    with pytest.raises(ValidationRefused, match=message):
        begin(engine)
    assert not engine.prepared
    with pytest.raises(ValidationRefused, match=message):
        require_as_surveyed(engine, SURVEY, drawn_ranges(SURVEY))


@pytest.mark.parametrize(("mode", "said"), [("75%", ", without --focal 75%"), ("middle", "data)")])
def test_a_survey_without_a_curve_of_every_parameter_everywhere_is_refused(
    mode: str, said: str
) -> None:
    families = tuple(
        msgspec.structs.replace(family, curves=family.curves[index:])
        for index, family in enumerate(SURVEY.families)
    )
    start = msgspec.structs.replace(SURVEY.start, focal_mode=mode)
    lacking = msgspec.structs.replace(SURVEY, start=start, families=families)
    with pytest.raises(ValidationRefused, match="no curve of every parameter") as refused:
        drawn_ranges(lacking)
    assert str(refused.value).endswith(said)


def test_a_point_too_short_to_measure_anything_is_refused_up_front() -> None:
    hurried = ValidationOptions(count=10, seed=1, seconds=0.1, budget_s=None, rivals=False)
    with pytest.raises(ValidationRefused, match=r"--seconds 0\.1 is too short.*0\.3 or more"):
        begin(Surveyed(), asked=hurried)
