"""Leadline as a Python package: survey, open, predict, show, frame."""

from __future__ import annotations

import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import leadline
import survey_fixture as made
from leadline.api.frames import FramesMissing
from leadline.api.systems import SurveyedSystem
from leadline.engine import BudgetSpent
from leadline.errors import LeadlineError
from leadline.models.model import PredictionRefused
from leadline.record import Status
from leadline.studies.survey.plan import PlanRefused

TEXT = "unique_bytes=10MiB,size_mean=32KiB"
WORK = leadline.Workload(unique_bytes=10 * 2**20, size_mean=32768)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(tmp_path_factory.mktemp("api") / "store.sqlite")


@pytest.fixture(scope="module")
def system(store: str) -> SurveyedSystem:
    return leadline.survey("sim:hp-730", name="hp", budget="14h", store=store)


def test_the_sentence_of_the_design_works(system: SurveyedSystem) -> None:
    found = system.predict(WORK)
    assert found.throughput_mb_s.covers(found.throughput_mb_s.value)
    assert found.throughput_mb_s == system.predict(TEXT).throughput_mb_s
    assert found.iops.value * found.response_us.value == pytest.approx(1e6)


def test_a_stored_survey_is_opened_by_name(system: SurveyedSystem, store: str) -> None:
    again = leadline.open("hp", store=store)
    assert again.survey == system.survey
    assert again.predict(TEXT).throughput_mb_s == system.predict(TEXT).throughput_mb_s


def test_the_verb_is_a_function_and_its_kind_lives_with_the_studies() -> None:
    assert inspect.isfunction(leadline.survey)
    assert leadline.survey.__module__ == "leadline.api.systems"
    assert inspect.ismodule(leadline.studies.survey)


def test_a_prediction_beyond_the_survey_is_refused(system: SurveyedSystem) -> None:
    beyond = leadline.Workload(unique_bytes=2**40, size_mean=4096)
    with pytest.raises(PredictionRefused):
        system.predict(beyond)
    assert system.predict(beyond, extrapolate=True).prediction.extrapolated


def test_objects_show_themselves_in_a_notebook(system: SurveyedSystem) -> None:
    page = system._repr_html_()
    assert "page cache" in page
    assert page.count("<tr>") == 1 + len(system.survey.regions)
    several = system.predict_all([WORK, TEXT])
    assert several._repr_html_().count("<tr>") == 3
    assert "32 KiB requests" in repr(several[0])
    assert several[1:][0] is several[1]
    assert several[0] is not several[1]


def test_a_name_with_markup_cannot_break_out(system: SurveyedSystem) -> None:
    from survey_fixture import hostile, points  # noqa: PLC0415 - only here

    survey = hostile()
    assert "<img" not in SurveyedSystem(survey, points(survey))._repr_html_()
    assert system.survey.start.system == "hp"


def test_frames_have_a_row_for_each(
    system: SurveyedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[dict[str, Any]] = []
    pandas = ModuleType("pandas")
    vars(pandas)["DataFrame"] = rows.extend
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    system.to_frame()
    assert len(rows) == system.survey.points
    rows.clear()
    system.predict_all([WORK, TEXT]).to_frame()
    assert rows[0] == rows[1]
    assert rows[0]["throughput_mb_s_low"] < rows[0]["throughput_mb_s"]
    assert rows[0]["unique_bytes"] == WORK.unique_bytes


def test_without_pandas_it_is_said_what_to_install(
    system: SurveyedSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(FramesMissing, match=r"leadline\[frames\]"):
        system.predict(TEXT).to_frame()


def test_the_package_root_stays_light() -> None:
    # The engine child imports it inside a memory cgroup.
    code = "import leadline, sys; print(*sorted(m for m in sys.modules if 'numpy' in m))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == ""
    assert not hasattr(leadline, "nothing")


def test_a_budget_that_is_too_small_is_refused(tmp_path: Path) -> None:
    with pytest.raises(PlanRefused, match=r"too small"):
        leadline.survey("sim:hp-730", budget=5, store=str(tmp_path / "s"))


def test_a_survey_goes_on_and_what_decided_it_decides_it_still(tmp_path: Path) -> None:
    store, told = str(tmp_path / "store.sqlite"), list[str]()
    options: dict[str, Any] = {"budget": "60s", "store": store, "say": told.append}
    whole = leadline.survey("sim:two-level", name="whole", **options)
    half = whole.survey.written_bytes // 2
    with pytest.raises(BudgetSpent, match="--max-written"):
        leadline.survey("sim:two-level", name="cut", max_written=half, **options)
    waits = leadline.Access(sync="fsync=8")
    with pytest.raises(LeadlineError, match="has --sync none, not fsync=8"):
        leadline.survey("sim:two-level", name="cut", access=waits, resume=True, **options)
    again = leadline.survey("sim:two-level", name="cut", max_written="1TiB", resume=True, **options)
    assert [point.result.throughput_mb_s for point in again.points] == [
        point.result.throughput_mb_s for point in whole.points
    ]
    with pytest.raises(LeadlineError, match="leave out --resume"):
        leadline.survey("sim:two-level", name="cut", resume=True, **options)


def test_a_survey_is_validated(system: SurveyedSystem, store: str) -> None:
    del system
    found = leadline.validate("hp", count=4, rivals=False, store=store)
    assert (found.study.start.count, found.study.status) == (4, Status.DONE)
    with pytest.raises(LeadlineError, match="--count 3 is too few"):
        leadline.validate("hp", count=3, store=store)


def test_a_model_is_fitted_once_for_all_questions_to_one_object() -> None:
    survey = made.two_region()
    disk = SurveyedSystem(survey, made.points(survey))
    first = disk._predictor("product", extrapolate=False)
    assert disk._predictor("product", extrapolate=False) is first
    assert disk._predictor("product", extrapolate=True) is not first
    assert disk == SurveyedSystem(survey, disk.points)
