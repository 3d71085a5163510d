"""A stored validation is shown, exported, reported and resumed by what it is."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from leadline.app import app
from leadline.engine import BudgetSpent
from leadline.record import Status, Validation
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import Store, open_store
from leadline.studies.measurement.text import measurement_document
from leadline.studies.validation import run as stored
from leadline.studies.validation import run as study
from leadline.studies.validation.explain import explain_validation
from leadline.studies.validation.plan import ValidationRefused
from proving.simulation import (
    SimulatedSurvey,
    SimulatedValidation,
    simulate_survey,
    simulate_validation,
)


@pytest.fixture(scope="module")
def surveyed() -> SimulatedSurvey:
    return simulate_survey("hp-730", 3, budget_s=3600.0)


@pytest.fixture(scope="module")
def validated(surveyed: SimulatedSurvey) -> SimulatedValidation:
    return simulate_validation(surveyed, 5, count=6)


def keep(
    store: Store, surveyed: SimulatedSurvey, validated: SimulatedValidation, *, points: int
) -> None:
    """Store the survey, and the beginning of its validation; all of it when nothing is cut off."""
    store.begin(SURVEY, surveyed.survey.start)
    for point in surveyed.points:
        store.add(surveyed.survey.start.study_id, point)
    store.end(surveyed.survey.start.study_id, surveyed.survey, Status.DONE)
    begin(store, validated.validation, validated, points=points)


def begin(
    store: Store, validation: Validation, validated: SimulatedValidation, *, points: int
) -> None:
    own = validation.start.study_id
    store.begin(VALIDATION, validation.start)
    for point in validated.points[:points]:
        store.add(own, msgspec.structs.replace(point, point_id=f"{own}-{point.order}"))
    if points == validation.start.plan.points:
        store.end(own, validation, Status.DONE)


def another(validated: SimulatedValidation, name: str) -> Validation:
    found = validated.validation
    start = msgspec.structs.replace(found.start, study_id=name)
    return msgspec.structs.replace(found, start=start)


@pytest.fixture
def path(surveyed: SimulatedSurvey, validated: SimulatedValidation, tmp_path: Path) -> Path:
    path = tmp_path / "store.sqlite"
    with open_store(str(path)) as store:
        keep(store, surveyed, validated, points=len(validated.points))
    return path


def call(path: Path, *words: str) -> None:
    app(["--store", str(path), *words], standalone_mode=False)


def test_show_gives_the_answer_of_a_validation(
    path: Path, validated: SimulatedValidation, capsys: pytest.CaptureFixture[str]
) -> None:
    call(path, "show", "validation-5", "--json")
    answer = json.loads(capsys.readouterr().out)
    assert answer["validation"] == "validation-5"
    assert answer["sentences"] == list(validated.validation.sentences)
    call(path, "show", "valid")
    assert "median error" in capsys.readouterr().out


def test_show_names_the_validations_of_a_survey(
    path: Path, validated: SimulatedValidation, capsys: pytest.CaptureFixture[str]
) -> None:
    call(path, "show", "hp-730", "--json")
    (listed,) = json.loads(capsys.readouterr().out)["validations"]
    points = len(validated.points)
    assert (listed["validation_id"], listed["points"]) == ("validation-5", points)
    call(path, "show", "hp-730")
    assert f"done, {points} points; leadline show validati" in " ".join(
        capsys.readouterr().out.split()
    )


def test_export_gives_the_points_of_a_validation_with_its_id(
    path: Path, validated: SimulatedValidation, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    call(path, "export", "validation-5")
    rows = json.loads(capsysbinary.readouterr().out)
    assert len(rows) == len(validated.points)
    assert {(row["survey_id"], row["validation_id"]) for row in rows} == {(None, "validation-5")}


def test_a_point_names_the_survey_or_validation_it_is_of(validated: SimulatedValidation) -> None:
    document = measurement_document(validated.points[0], "validation", "validation-5")
    assert (document["survey"], document["validation"]) == (None, "validation-5")


@pytest.mark.parametrize(("points", "wanted"), [(0, "validation-5"), (3, "validation-5")])
def test_a_validation_just_begun_does_not_hide_one_with_scores(
    path: Path, surveyed: SimulatedSurvey, validated: SimulatedValidation, points: int, wanted: str
) -> None:
    survey_id = surveyed.survey.start.study_id
    with open_store(str(path)) as store:
        begin(store, another(validated, "later"), validated, points=points)
        found = stored.load_validation(store, survey_id)
    assert found is not None
    assert found.start.study_id == wanted


def test_without_scores_the_newest_with_a_point_says_how_far_it_is(
    surveyed: SimulatedSurvey, validated: SimulatedValidation
) -> None:
    survey_id = surveyed.survey.start.study_id
    with open_store("sqlite://") as store:
        keep(store, surveyed, validated, points=2)
        for name, points in (("second", 3), ("third", 0)):
            begin(store, another(validated, name), validated, points=points)
        found = stored.load_validation(store, survey_id)
    assert found is not None
    assert (found.start.study_id, found.points, found.scores) == ("second", 3, ())


def unfinished(path: Path, surveyed: SimulatedSurvey, validated: SimulatedValidation) -> Path:
    with open_store(str(path)) as store:
        keep(store, surveyed, validated, points=len(validated.points) - 2)
    return path


def test_options_of_the_beginning_are_said_to_be_unused_on_resuming(
    surveyed: SimulatedSurvey,
    validated: SimulatedValidation,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = unfinished(tmp_path / "store.sqlite", surveyed, validated)
    call(path, "validate", "hp-730", "--resume", "--count", "50", "--seed", "5", "--rivals")
    notes = [line for line in capsys.readouterr().err.splitlines() if line.startswith("note:")]
    assert notes == [
        "note: --count is not used: with --resume it goes on as it began (6)",
        "note: --rivals is not used: with --resume it goes on as it began (without them)",
    ]


def test_another_system_is_not_resumed(
    surveyed: SimulatedSurvey, validated: SimulatedValidation, tmp_path: Path
) -> None:
    start = surveyed.survey.start
    facts = start.facts | {"simulated_system": "another"}
    changed = msgspec.structs.replace(start, facts=facts)
    survey = msgspec.structs.replace(surveyed.survey, start=changed)
    other = SimulatedSurvey(survey, surveyed.points, 0, ())
    path = unfinished(tmp_path / "store.sqlite", other, validated)
    with pytest.raises(ValidationRefused, match="simulated_system: another then"):
        call(path, "validate", "hp-730", "--resume")


def test_nothing_that_fails_in_telling_hides_why_a_validation_stopped(
    surveyed: SimulatedSurvey,
    validated: SimulatedValidation,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(*_: object, **__: object) -> Validation:
        raise ValueError("a defect")

    path = unfinished(tmp_path / "store.sqlite", surveyed, validated)
    for each in (study, stored):
        monkeypatch.setattr(each, "explain_validation", broken)
    with pytest.raises(BudgetSpent):
        call(path, "validate", "hp-730", "--resume", "--budget", "100ms")
    planned = len(validated.points)
    assert f"{planned - 2} of {planned} points are kept" in capsys.readouterr().err


def test_an_unfinished_validation_is_explained_from_what_it_has(
    surveyed: SimulatedSurvey, validated: SimulatedValidation
) -> None:
    start, some = validated.validation.start, len(validated.points) - 2
    with open_store("sqlite://") as store:
        keep(store, surveyed, validated, points=some)
        found = stored.explained_validation(store, "validation-5")
        points = store.items("validation-5")
    assert found == explain_validation(start, surveyed.survey, surveyed.points, points)
