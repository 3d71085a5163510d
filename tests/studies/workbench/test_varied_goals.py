"""`--vary accuracy=70%,90%`: what accuracy, confidence and width cost (SH08 Figs. 8, 9, 10)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leadline.app import app
from leadline.record import Status
from leadline.store import open_store
from leadline.studies.workbench.answer import stored_experiment
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.study import read_variations, varied_start
from workbench_fixture import TEXT, peak_start


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT.replace('{ kind = "fixed" }', '{ kind = "exponential" }'))
    return str(path)


def run(*arguments: str, store: Path) -> Any:
    return CliRunner().invoke(app, ["--store", str(store), *arguments])


def found(*arguments: str, store: Path) -> dict[str, Any]:
    result = run(*arguments, "--json", store=store)
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


def test_all_combinations_are_read_in_order() -> None:
    asked = read_variations(["accuracy=70%,0.9", "policy=binary,linear"])
    assert asked == (
        {"accuracy": 0.7, "policy": "binary"},
        {"accuracy": 0.7, "policy": "linear"},
        {"accuracy": 0.9, "policy": "binary"},
        {"accuracy": 0.9, "policy": "linear"},
    )


@pytest.mark.parametrize(
    ("texts", "words"),
    [
        (["accuracy"], "none of accuracy, confidence, width, policy"),
        (["run_length=1m,2m"], "none of accuracy"),
        (["accuracy=70%,0.7"], "a value is there twice"),
        (["accuracy=70%", "accuracy=80%"], "accuracy twice"),
        (["accuracy=10%"], "not between 50% and 99.9%"),
        (["confidence=much"], "confidence: "),
        (["width=0"], "not between 0.1% and 90%"),
        (["policy=quick"], "no policy 'quick'"),
        (
            [
                "accuracy=50%,55%,60%,65%,70%,75%,80%,85%,90%",
                "confidence=60%,65%,70%,75%,80%,85%,90%,95%",
            ],
            "more than 64 experiments",
        ),
    ],
)
def test_what_cannot_be_varied_is_refused(texts: list[str], words: str) -> None:
    with pytest.raises(ExperimentRefused, match=words) as refused:
        read_variations(texts)
    assert refused.value.exit_code == 2


def test_each_is_an_experiment_of_its_own_that_differs_in_what_was_said() -> None:
    start = peak_start()
    (variation,) = read_variations(
        ["accuracy=0.7", "confidence=0.8", "width=0.05", "policy=linear"]
    )
    own = varied_start(start, variation)
    assert own.study_id != start.study_id
    assert (own.goal.accuracy, own.goal.confidence, own.policy) == (0.7, 0.8, "linear")
    assert own.goal.threshold.width_frac == 0.05
    assert own.goal.threshold.mean_ms == start.goal.threshold.mean_ms
    same = varied_start(start, {"accuracy": 0.7})
    assert (same.policy, same.goal.confidence) == (start.policy, start.goal.confidence)


def test_cost_rises_with_accuracy_and_confidence_as_in_fig_9(experiment: str, store: Path) -> None:
    answer = found(
        "peak",
        experiment,
        "--vary",
        "accuracy=70%,95%",
        "--vary",
        "confidence=75%,95%",
        store=store,
    )
    rows = {(row["accuracy"], row["confidence"]): row for row in answer["varied"]}
    assert set(rows) == {(0.7, 0.75), (0.7, 0.95), (0.95, 0.75), (0.95, 0.95)}
    assert min(row["of_least"] for row in rows.values()) == 1
    for one, other in (((0.7, 0.95), (0.95, 0.95)), ((0.95, 0.75), (0.95, 0.95))):
        assert rows[one]["cost_s"] < rows[other]["cost_s"]
    assert answer["sentences"][0].startswith("Of 4 experiments accuracy 70%")
    with open_store(str(store)) as kept:
        for key, row in rows.items():
            own = stored_experiment(kept, row["experiment"])
            assert own.status is Status.DONE
            assert (own.start.goal.accuracy, own.start.goal.confidence) == key
            assert row["trials"] == len(own.peaks[0].trials)
            assert row["cost_s"] == sum(trial.cost_s for trial in own.peaks[0].trials)


def test_a_surface_is_mapped_for_each_width_and_the_page_draws_fig_10(
    experiment: str, store: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    words = ("surface", experiment, "--design", "full-grid", "--vary", "width=5%,20%", "-o")
    told = run(*words, str(page), store=store)
    assert told.exit_code == 0, told.stderr
    flat = " ".join(told.stdout.split())
    assert "Width Test time Of least Trials Found" in flat
    assert flat.count("3 of 3 measured") == 2
    assert "Cost against the peak-rate region" in page.read_text(encoding="utf-8")


def test_several_are_not_gone_on_with_at_once(experiment: str, store: Path) -> None:
    run("peak", experiment, store=store)
    refused = run("peak", experiment, "--vary", "accuracy=70%,80%", "--resume", store=store)
    assert refused.exit_code == 2
    assert "leave out --vary" in " ".join(refused.output.split())
