"""`leadline peak` and `leadline surface` as a user has them: killed, resumed, shown, exported."""

from __future__ import annotations

import csv
import io
import json
import signal
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from command import ended_after, leadline
from leadline.app import app
from leadline.errors import LeadlineError
from leadline.record import Status
from leadline.record.workbench import Trial, TrialOrder, TrialState
from leadline.store import open_store
from leadline.studies.workbench.answer import stored_experiment
from workbench_fixture import TEXT


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    path = tmp_path / "tiny.toml"
    path.write_text(TEXT)
    return str(path)


def run(*arguments: str, store: Path) -> Any:
    """Run the command in this process, which has loaded everything already."""
    return CliRunner().invoke(app, ["--store", str(store), *arguments], catch_exceptions=True)


def document(*arguments: str, store: Path) -> dict[str, Any]:
    done = run(*arguments, "--json", store=store)
    assert done.exit_code == 0, done.exception
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def trials_kept(store: Path) -> int:
    if not store.exists():
        return 0
    with open_store(str(store)) as kept:
        return sum(item.items for item in kept.list())


def decided(found: dict[str, Any]) -> list[Any]:
    """What the seed decides of a peak, for the comparison of two."""
    trials = [
        {name: trial[name] for name in ("order", "request", "seed", "state", "measured", "cost_s")}
        for trial in found["trial_records"]
    ]
    return [found["peak_rate"], found["verdict"], found["cost_s"], found["loads"], trials]


def test_a_peak_has_the_promised_keys(experiment: str, store: Path) -> None:
    found = document("peak", experiment, store=store)
    assert found["verdict"] == "found"
    rate = found["peak_rate"]
    assert 170 < rate["low"] <= rate["value"] <= rate["high"] < 200
    assert found["accuracy"] > 0.9
    assert (found["confidence"], found["limited_by"]) == (0.95, "server")
    assert (
        found["trials"] == len(found["trial_records"]) == sum(x["trials"] for x in found["loads"])
    )
    assert found["cost_s"] == pytest.approx(35.0 * found["trials"])
    for load in found["loads"]:
        assert set(load) >= {"rate", "trials", "response_ms", "saturated"}
        assert set(load["response_ms"]) == {"value", "low", "high", "n"}
    assert found["sample"] == {"workers": 2}
    assert found["sentences"][0].startswith("tiny (workers=2): peak rate ")
    assert {"binary", "linear"} <= {fare["policy"] for fare in found["policies"]}
    assert found["policies_on"].startswith("a simulated server fitted to ")


def test_people_are_told_in_sentences(experiment: str, store: Path) -> None:
    done = run("peak", experiment, "--at", "workers=1", store=store)
    assert done.exit_code == 0
    said = " ".join(done.stdout.split())
    assert "tiny (workers=1): peak rate " in said
    assert "], at mean response time 40 ms" in said
    assert "Bottleneck: server." in said
    assert "policy binary" in done.stderr
    assert "40 requests/s for 20 s" in done.stderr
    assert "mean 35.1 ms" in done.stderr


def test_a_percentile_is_told_as_one(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "tail.toml"
    path.write_text(TEXT.replace('mean = "40ms"', 'percentile = "95%"\nlimit = "80ms"'))
    done = run("peak", str(path), "--no-compare", "--deadline", "3m", store=store)
    assert done.exit_code == 0
    assert "95% within 1" in done.stderr
    assert "mean" not in done.stderr


def test_a_deadline_is_a_normal_answer(experiment: str, store: Path) -> None:
    found = document("peak", experiment, "--deadline", "5m", "--no-compare", store=store)
    assert (found["verdict"], found["limited_by"], found["status"]) == ("deadline", "time", "done")
    assert found["cost_s"] <= 300


def test_a_search_killed_with_9_loses_at_most_the_trial_in_flight(
    experiment: str, store: Path
) -> None:
    """A real process, really killed; resumed, it finds what an undisturbed one finds."""
    killed = ended_after(4, signal.SIGKILL, "peak", experiment, store=store)
    assert killed.returncode == -signal.SIGKILL
    with open_store(str(store)) as kept:
        before = stored_experiment(kept, "tiny")
    assert before.status is Status.RUNNING
    assert before.peaks[0].peak is None
    assert len(before.peaks[0].trials) == 4
    resumed = leadline("peak", experiment, "--resume", "--json", "--no-compare", store=store)
    assert resumed.returncode == 0, resumed.stderr
    assert f"{len(before.peaks[0].trials)} trials kept from before" in resumed.stderr
    found = json.loads(resumed.stdout)
    assert found["experiment"] == before.start.study_id
    whole = document("peak", experiment, "--no-compare", store=store)
    assert decided(found) == decided(whole)


def test_a_surface_killed_with_9_goes_on(experiment: str, store: Path) -> None:
    ended_after(16, signal.SIGKILL, "surface", experiment, "--design", "full-grid", store=store)
    found = document("surface", experiment, "--resume", store=store)
    whole = document("surface", experiment, "--design", "full-grid", store=store)
    assert [decided(own) for own in found["samples"]] == [decided(own) for own in whole["samples"]]
    assert found["surface"] == whole["surface"]
    assert len(found["samples"]) == 3


def test_a_stop_keeps_what_was_measured_and_says_how_to_go_on(experiment: str, store: Path) -> None:
    stopped = ended_after(2, signal.SIGTERM, "peak", experiment, store=store)
    assert stopped.returncode == 3
    assert "with --resume goes on" in stopped.stderr
    shown = document("show", "tiny", store=store)
    assert shown["status"] == "stopped"
    assert len(shown["trial_records"]) == 2
    assert shown["peak_rate"] is None
    assert "--resume goes on" in shown["sentences"][0]


def test_resume_keeps_what_decided_the_search(experiment: str, store: Path) -> None:
    ended_after(
        1,
        signal.SIGKILL,
        "peak",
        experiment,
        "--policy",
        "linear",
        "--seed",
        "5",
        "--at",
        "workers=1",
        "--deadline",
        "7m",
        store=store,
    )
    other = run("peak", experiment, "--resume", "--seed", "6", store=store)
    assert "was begun with another seed" in str(other.exception)
    found = document("peak", experiment, "--resume", "--no-compare", store=store)
    assert (found["policy"], found["seed"], found["sample"]) == ("linear", 5, {"workers": 1})
    assert found["verdict"] == "deadline"
    none = run("peak", experiment, "--resume", store=store)
    assert "no unfinished peak search of 'tiny'" in str(none.exception)


REFUSED = [
    (["peak", "none.toml"], "there is no file none.toml"),
    (["peak", "{file}", "--policy", "linaer"], "there is no policy 'linaer'"),
    (["peak", "{file}", "--at", "workers"], "is not NAME=LEVEL"),
    (["peak", "{file}", "--at", "cores=2"], "no factor 'cores'"),
    (["peak", "{file}", "--deadline", "0s"], "no time at all"),
    (["peak", "{file}", "-o", "/nowhere/at/page.html"], "does not exist; create it first"),
    (["surface", "{file}", "--design", "latin"], "there is no design 'latin'"),
    (["show", "nothing-of-this-name"], "no survey or system"),
]


@pytest.mark.parametrize(("arguments", "message"), REFUSED, ids=[" ".join(r[0]) for r in REFUSED])
def test_what_cannot_be_is_refused_with_code_2(
    experiment: str, store: Path, arguments: list[str], message: str
) -> None:
    done = run(*(text.replace("{file}", experiment) for text in arguments), store=store)
    said = done.stderr
    if isinstance(done.exception, LeadlineError):
        assert done.exception.exit_code == 2
        said += str(done.exception)
    else:
        assert done.exit_code == 2
    assert message in said
    assert trials_kept(store) == 0


def test_a_mistake_in_a_file_names_its_line(tmp_path: Path, store: Path) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(TEXT.replace('mean = "40ms"', "mean = 40"))
    done = leadline("peak", str(path), store=store)
    assert done.returncode == 2
    assert f"{path}:14: threshold.mean is 40" in done.stderr
    assert "Traceback" not in done.stderr


def test_trials_that_fail_again_and_again_end_with_code_3(
    experiment: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(order: TrialOrder) -> Trial:
        return Trial(
            order=order.order,
            request=order.request,
            seed=order.seed,
            state=TrialState.FAILED,
            cost_s=1.0,
            measured=None,
            failure="the disk is full",
        )

    monkeypatch.setattr("leadline.studies.workbench.search.run_trial", fail)
    done = run("peak", experiment, store=store)
    assert isinstance(done.exception, LeadlineError)
    assert done.exception.exit_code == 3
    said = " ".join(done.stdout.split())
    assert "no answer, trials failed repeatedly." in said
    assert "warning: 3 trials failed and are not counted; last: the disk is full" in said
    assert trials_kept(store) == 3


def test_a_policy_that_gives_up_ends_with_code_3_and_its_answer(
    experiment: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After three trials here, not a thousand; what it reached is told and kept."""
    monkeypatch.setattr("leadline.studies.workbench.policies.algorithm2._TRIALS_MAX", 3)
    done = run("peak", experiment, "--no-compare", store=store)
    assert isinstance(done.exception, LeadlineError)
    assert done.exception.exit_code == 3
    assert "the policy gave up" in str(done.exception)
    assert "Gave up after 3 trials." in " ".join(done.stdout.split())
    kept = document("show", "tiny", store=store)
    assert (kept["verdict"], kept["limited_by"], kept["trials"]) == ("gave-up", "server", 3)
    assert kept["status"] == "done"


def test_stored_experiments_are_listed_shown_and_exported(experiment: str, store: Path) -> None:
    found = document("surface", experiment, "--design", "full-grid", store=store)
    name = found["experiment"][:8]
    listed = json.loads(run("systems", "--json", store=store).stdout)
    assert [(item["kind"], item["system"], item["items"]) for item in listed] == [
        ("experiment", "tiny", sum(own["trials"] for own in found["samples"]))
    ]
    assert "experiment" in run("systems", store=store).stdout
    assert document("show", name, store=store) == found
    exported = run("export", name, "--format", "csv", store=store)
    rows = list(csv.DictReader(io.StringIO(exported.stdout)))
    assert len(rows) == listed[0]["items"]
    assert {row["factor_workers"] for row in rows} == {"1", "2", "4"}
    assert all(float(row["response_ms_mean"]) > 9 for row in rows)
