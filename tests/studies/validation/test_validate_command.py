"""The validate command on simulated systems: its JSON, its store, its budget and resuming it."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from statistics import mean, median

import msgspec
import pytest

import shared_surveys
from command import ended_after, leadline
from leadline.record import Status, Validation
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import open_store
from leadline.studies.same_system import changed_facts
from leadline.studies.validation.plan import ValidationRefused, require_same_system
from proving.simulation import SimulatedSurvey, SimulatedValidation, simulate_validation


@pytest.fixture(scope="module")
def surveyed() -> SimulatedSurvey:
    return shared_surveys.surveyed("hp-730")


@pytest.fixture(scope="module")
def validated(surveyed: SimulatedSurvey) -> SimulatedValidation:
    return simulate_validation(surveyed, 5, count=30, model="product")


def stored(surveyed: SimulatedSurvey, path: Path) -> Path:
    """A store that holds the survey."""
    with open_store(str(path)) as store:
        shared_surveys.keep(store, surveyed)
    return path


def kept(path: Path, survey_id: str) -> int:
    """Points stored so far of the newest validation."""
    with open_store(str(path)) as store:
        found = store.list(VALIDATION, survey_id)
        return found[0].items if found else 0


@pytest.mark.parametrize("flags", [("--no-rivals",), pytest.param((), marks=pytest.mark.long)])
def test_the_promised_keys_are_there_and_the_answer_is_stored(
    surveyed: SimulatedSurvey, tmp_path: Path, flags: tuple[str, ...]
) -> None:
    path = stored(surveyed, tmp_path / "store.sqlite")
    done = leadline("validate", "hp-730", "--count", "12", *flags, "--json", store=path)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    promised = {
        "n",
        "median_error",
        "p75_error",
        "p90_error",
        "enhanced_median_error",
        "inherent_error",
        "amplification",
        "coverage",
        "models",
    }
    assert promised <= answer.keys()
    assert answer["n"] == 12
    assert set(answer["coverage"]) == {"50", "90", "95"}
    assert {"value", "low", "high", "n"} == answer["intervals"]["median_error"].keys()
    assert answer["intervals"]["median_error"]["value"] == answer["median_error"]
    names = set(answer["models"])
    assert {"product", "Andrew-like", "IOStone-like", "Bonnie-like", "survey median"} <= names
    rivals = sum(name.startswith("orthogonal") for name in names)
    assert rivals == (0 if flags else 2), "they are the default on a simulation"
    assert all(item["median_error"] >= 0 for item in answer["models"].values())
    assert len(answer["workloads"]) == 12
    with open_store(str(path)) as store:
        summary = store.list(VALIDATION, surveyed.survey.start.study_id)[0]
        found = store.find(summary.study_id, VALIDATION).answer
    assert found is not None
    assert found.n == 12
    assert found.points == answer["points"] == answer["planned_points"]


@pytest.mark.long
def test_a_killed_validation_resumes_to_the_very_same_answer(
    surveyed: SimulatedSurvey, tmp_path: Path
) -> None:
    survey_id = surveyed.survey.start.study_id
    whole = stored(surveyed, tmp_path / "whole.sqlite")
    cut = stored(surveyed, tmp_path / "cut.sqlite")
    options = ["validate", "hp-730", "--count", "20", "--seed", "9", "--no-rivals", "--json"]
    expected = json.loads(leadline(*options, store=whole).stdout)
    ended_after(5, signal.SIGKILL, *options, store=cut)
    before = kept(cut, survey_id)
    assert before == 5 < expected["points"]
    resumed = leadline("validate", "hp-730", "--resume", "--json", store=cut)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{before} points kept" in resumed.stderr
    found = json.loads(resumed.stdout)
    for key in ("points", "seed", "workloads", "models", "drift_frac", "sentences"):
        assert found[key] == expected[key], key


def test_a_spent_budget_keeps_what_was_measured_and_more_time_goes_on(
    surveyed: SimulatedSurvey, tmp_path: Path
) -> None:
    path = stored(surveyed, tmp_path / "store.sqlite")
    options = ["validate", "hp-730", "--count", "16", "--no-rivals"]
    short = leadline(*options, "--budget", "16s", store=path)
    assert short.returncode == 3, short.stderr
    assert "--resume --budget" in short.stderr
    before = kept(path, surveyed.survey.start.study_id)
    assert before > 0
    again = leadline("validate", "hp-730", "--resume", "--budget", "5h", "--json", store=path)
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["planned_points"] > before


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--count", "2"], "give 4 or more"),
        (["--budget", "2s"], "give --budget"),
        (["--resume"], "leave out --resume"),
        (["--model", "oracle"], "is one of"),
    ],
)
def test_what_cannot_be_validated_is_refused_with_what_to_type(
    surveyed: SimulatedSurvey, tmp_path: Path, options: list[str], message: str
) -> None:
    path = stored(surveyed, tmp_path / "store.sqlite")
    refused = leadline("validate", "hp-730", *options, store=path)
    assert refused.returncode == 2
    assert message in " ".join(refused.stderr.split())
    assert refused.stdout == ""


def test_an_unfinished_survey_is_refused(surveyed: SimulatedSurvey, tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with open_store(str(path)) as store:
        store.begin(SURVEY, surveyed.survey.start)
        for point in surveyed.points[:60]:
            store.add(surveyed.survey.start.study_id, point)
    refused = leadline("validate", "hp-730", store=path)
    assert refused.returncode == 2
    assert "--resume" in refused.stderr


def test_another_system_is_refused_by_the_facts_that_changed() -> None:
    before = {
        "kernel_release": "6.1",
        "memory_bytes": 1000,
        "free_bytes": 5,
        "scheduler": "none",
        "device_model": None,
        "host_name": "a",
    }
    now = before | {"memory_bytes": 1005, "free_bytes": 9, "device_model": "disk", "host_name": "b"}
    assert changed_facts(before, now) == ()
    now["scheduler"] = "mq-deadline"
    with pytest.raises(ValidationRefused, match="scheduler: none then, mq-deadline now") as refused:
        require_same_system(before, now)
    assert "kernel" not in str(refused.value)
    assert refused.value.exit_code == 2


def test_the_readings_are_about_the_truth_and_so_the_scores_are(
    validated: SimulatedValidation,
) -> None:
    truths = {
        point.workload: point.result.simulated.law_mb_s
        for point in validated.points
        if point.result.simulated is not None
    }
    found = validated.validation
    for row in found.workloads:
        assert row.measured_mb_s == pytest.approx(truths[row.workload], rel=0.25)
    true_errors, scored_errors = [], []
    for row in found.workloads:
        [forecast] = [forecast for forecast in row.forecasts if forecast.model == "product"]
        true_errors.append(abs(forecast.throughput_mb_s / truths[row.workload] - 1))
        assert row.measured_mb_s is not None
        scored_errors.append(abs(forecast.throughput_mb_s / row.measured_mb_s - 1))
    # Readings have 2% of noise: the mean of thirty moves by 0.004, a median by several times that.
    assert mean(scored_errors) == pytest.approx(mean(true_errors), abs=0.02)
    score = found.score("product")
    assert score is not None
    assert score.median_error.value == pytest.approx(median(scored_errors))
    assert score.median_error.low is not None
    assert score.median_error.high is not None
    assert score.median_error.low <= median(true_errors) <= score.median_error.high
    drift = found.drift_frac
    assert drift is not None
    assert drift.low is not None
    # One of twenty 95% intervals leaves out what is true; of such twice as wide one of 10,000.
    assert abs(drift.value) < 2 * (drift.value - drift.low)


def test_a_validation_survives_being_written_and_read(validated: SimulatedValidation) -> None:
    text = msgspec.json.encode(validated.validation)
    assert msgspec.json.decode(text, type=Validation) == validated.validation


def test_the_page_tells_of_the_newest_validation(
    surveyed: SimulatedSurvey, validated: SimulatedValidation, tmp_path: Path
) -> None:
    path, page = stored(surveyed, tmp_path / "store.sqlite"), tmp_path / "page.html"
    with open_store(str(path)) as store:
        own = validated.validation.start.study_id
        store.begin(VALIDATION, validated.validation.start)
        for point in validated.points:
            store.add(own, point)
        store.end(own, validated.validation, Status.DONE)
    assert leadline("report", "hp-730", "-o", str(page), store=path).returncode == 0
    text = page.read_text(encoding="utf-8")
    assert "How good its predictions are" in text
    assert 'id="chart-validation-scatter"' in text
