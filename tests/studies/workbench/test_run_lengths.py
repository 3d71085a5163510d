"""`leadline peak … --run-lengths`: spread over run length, trials needed, the cheapest length."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import altair as alt
import msgspec
import pytest
from scipy.stats import t
from typer.testing import CliRunner

from leadline.app import app
from leadline.engine import Stopped
from leadline.record import Interval, Status
from leadline.record.workbench import Experiment, RunLengths, SamplePeak, Trial, TrialRequest
from leadline.servers import run_trial
from leadline.stats import sd_interval
from leadline.store import open_store
from leadline.studies.workbench.answer import stored_experiment
from leadline.studies.workbench.conversation import ExperimentRefused
from leadline.studies.workbench.page import experiment_charts, render_experiment_html
from leadline.studies.workbench.run_lengths import (
    read_run_lengths,
    run_length_rows,
    run_length_sentences,
    trials_needed,
)
from proving.samples import sample_experiment_start, sample_peak, sample_trial

ONE_QUEUE = """
name = "one-queue"

[server]
kind = "simulated"

[server.system]
workers = 1
service_ms = 10.0
service = { kind = "exponential" }

[threshold]
mean = "40ms"

[goal]
run_length = "60s"
"""
LENGTHS = ("--run-lengths", "20s,80s,320s")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "store.sqlite"


@pytest.fixture
def experiment(tmp_path: Path) -> str:
    path = tmp_path / "one-queue.toml"
    path.write_text(ONE_QUEUE)
    return str(path)


def run(*arguments: str, store: Path) -> Any:
    return CliRunner().invoke(app, ["--store", str(store), "peak", *arguments, "--no-compare"])


def code_of(result: Any) -> int:
    """The exit code that `main` gives a refusal."""
    code: int = getattr(result.exception, "exit_code", result.exit_code)
    return code


def found(*arguments: str, store: Path) -> dict[str, Any]:
    result = run(*arguments, "--json", store=store)
    assert result.exit_code == 0, result.stderr
    answer: dict[str, Any] = json.loads(result.stdout)
    return answer


# ---- the numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sd_frac", "accuracy", "confidence", "needed"),
    [
        (0.1, 0.9, 0.95, 7),  # 2.447 * 0.1 / sqrt(7) = 0.0925; of six 0.105
        (0.1, 0.9, 0.75, 4),  # 1.423 * 0.1 / 2 = 0.0711; of three 0.0926, but see below
        (0.0, 0.9, 0.95, 2),
        (0.01, 0.9, 0.95, 2),  # 12.706 * 0.01 / sqrt(2) = 0.0898
        (0.008, 0.95, 0.95, 3),
        (1.0, 0.9, 0.95, 387),
        (20.0, 0.9, 0.95, None),
    ],
)
def test_trials_needed_are_the_fewest_by_students_t(
    sd_frac: float, accuracy: float, confidence: float, needed: int | None
) -> None:
    got = trials_needed(sd_frac, accuracy, confidence)
    fits = [
        count
        for count in range(2, 600)
        if t.ppf((1 + confidence) / 2, count - 1) * sd_frac / math.sqrt(count) <= 1 - accuracy
    ]
    assert got == (fits[0] if fits else None)
    if (sd_frac, confidence) != (0.1, 0.75):
        assert got == needed


def test_the_interval_of_a_spread_is_chi_squares_and_covers_as_often_as_it_says() -> None:
    known = sd_interval([-1.0, 1.0] * 5)
    assert known.value == pytest.approx(math.sqrt(10 / 9))
    assert known.low == pytest.approx(0.7251, abs=1e-3)
    assert known.high == pytest.approx(1.9244, abs=1e-3)
    draw = random.Random(20)
    covered = sum(
        sd_interval([draw.gauss(7.0, 2.0) for _ in range(8)], 0.9).covers(2.0) for _ in range(2000)
    )
    assert covered / 2000 == pytest.approx(0.9, abs=0.02)
    with pytest.raises(ValueError, match="two values"):
        sd_interval([1.0])


# ---- what is said --------------------------------------------------------------------------------


def trial_of(seconds: float, mean_ms: float, cost_s: float, rate_per_s: float = 90.0) -> Trial:
    usual = sample_trial()
    assert usual.measured is not None
    assert usual.measured.response_ms is not None
    response = msgspec.structs.replace(usual.measured.response_ms, mean=mean_ms)
    return msgspec.structs.replace(
        usual,
        request=TrialRequest(rate_per_s=rate_per_s, seconds=seconds, purpose="length"),
        measured=msgspec.structs.replace(usual.measured, response_ms=response),
        cost_s=cost_s,
    )


def studied(
    means: dict[float, list[float]], over_s: float = 10.0, accuracy: float = 0.9
) -> Experiment:
    """An experiment with one load, and these means of trials of each length."""
    count = len(next(iter(means.values())))
    asked = RunLengths(seconds=tuple(means), parts=(0.9,), trials=count)
    start = sample_experiment_start()
    start = msgspec.structs.replace(
        start,
        samples=start.samples[:1],
        goal=msgspec.structs.replace(start.goal, accuracy=accuracy),
        run_lengths=asked,
    )
    lengths = tuple(
        trial_of(seconds, means[seconds][at], seconds + over_s)
        for at in range(count)
        for seconds in means
    )
    own = SamplePeak(sample=start.samples[0], trials=(), peak=sample_peak(2), lengths=lengths)
    return Experiment(start=start, status=Status.DONE, peaks=(own,))


def spread(mean: float, sd: float) -> list[float]:
    """Ten readings with exactly this mean and standard deviation."""
    unit = [-1.0, 1.0] * 5
    return [mean + sd * each / math.sqrt(10 / 9) for each in unit]


def test_the_cheapest_length_counts_what_a_trial_costs_beside_its_window() -> None:
    """Of 30 s: 7 trials, of 60 s: 4, of 240 s: 3."""
    means = {30.0: spread(20, 2.0), 60.0: spread(20, 1.1), 240.0: spread(20, 0.8)}
    for over_s, wanted in ((0.0, "7 trials of 30 s"), (3000.0, "3 trials of 4 min")):
        (said,) = run_length_sentences(studied(means, over_s))
        assert f"90% accuracy of the response at 95% is {wanted}" in said
        assert said.startswith("At 90% of the peak the cheapest way")
    rows = run_length_rows(studied(means, 30.0))
    assert [row.needed and row.needed.value for row in rows] == [7, 4, 3]
    assert [row.cost_s and row.cost_s.value for row in rows] == [7 * 60, 4 * 90, 3 * 270]
    assert rows[0].sd_frac is not None
    assert rows[0].sd_frac.value == pytest.approx(0.1)
    assert rows[0].needed == Interval(7, 5, 16, 10)


def test_lengths_that_cannot_be_told_from_the_cheapest_are_named() -> None:
    near = {30.0: spread(20, 2.0), 60.0: spread(20, 1.5), 3600.0: spread(20, 1.5)}
    (said,) = run_length_sentences(studied(near, 0.0))
    assert said.endswith("1 min cannot be told from it.")


def test_a_length_that_reads_another_response_is_left_out_however_cheap() -> None:
    short = {10.0: spread(15, 0.2), 60.0: spread(20, 1.1), 240.0: spread(20, 0.8)}
    rows = run_length_rows(studied(short))
    assert [row.reads_as_longest for row in rows] == [False, True, True]
    (said,) = run_length_sentences(studied(short))
    assert "is 4 trials of 1 min" in said
    assert said.endswith(
        "Trials of 10 s read another response than those of 4 min, and are left out."
    )


def test_an_accuracy_out_of_reach_is_said() -> None:
    (said,) = run_length_sentences(studied({30.0: spread(20, 15), 60.0: spread(20, 15)}, 0, 0.999))
    assert said.startswith("At 90% of the peak no run length that was tried reaches 99.9%"), said


# ---- the command ---------------------------------------------------------------------------------


def test_the_spread_of_one_queue_falls_with_length_and_rises_with_load(
    experiment: str, store: Path
) -> None:
    """Means over r seconds of a stationary queue scatter as 1/sqrt(r): by 4 from 20 to 320 s."""
    answer = found(experiment, *LENGTHS, "--trials", "40", store=store)
    rows = answer["run_lengths"]
    peak = answer["peak_rate"]["value"]
    assert [(row["part_of_peak"], row["seconds"]) for row in rows] == [
        (part, seconds) for part in (0.3, 0.9) for seconds in (20.0, 80.0, 320.0)
    ]
    spreads = [row["sd_frac"] for row in rows]
    for row, spread_of in zip(rows, spreads, strict=True):
        assert row["rate_per_s"] == pytest.approx(row["part_of_peak"] * peak)
        assert (row["trials"], spread_of["n"]) == (40, 40)
        assert spread_of["low"] < spread_of["value"] < spread_of["high"]
    for first, last in ((spreads[0], spreads[2]), (spreads[3], spreads[5])):
        # The interval of either spread is 20% at 40 trials, and a queue remembers.
        assert 2.2 < first["value"] / last["value"] < 7
    assert all(
        high["value"] > low["value"] for low, high in zip(spreads[:3], spreads[3:], strict=True)
    )
    assert [row["needed"]["value"] for row in rows] == [
        trials_needed(row["sd_frac"]["value"], 0.9, 0.95) for row in rows
    ]
    said = [words for words in answer["sentences"] if "the cheapest way to" in words]
    assert [words.split(" of the peak")[0] for words in said] == ["At 30%", "At 90%"]
    assert answer["trials"] == len(answer["trial_records"]), "the study's trials are its own"
    assert len(answer["length_records"]) == 6 * 40


def test_it_is_kept_shown_exported_and_drawn(experiment: str, store: Path) -> None:
    answer = found(experiment, *LENGTHS, "--trials", "4", "--load-factors", "50%,80%", store=store)
    call = ["--store", str(store)]
    shown = CliRunner().invoke(app, [*call, "show", "one-queue"]).stdout
    assert "How long a trial should be" in " ".join(shown.split())
    exported = json.loads(CliRunner().invoke(app, [*call, "export", "one-queue"]).stdout)
    lengths = [row for row in exported if row["purpose"] == "length"]
    assert {row["seconds_asked"] for row in lengths} == {20.0, 80.0, 320.0}
    assert len(lengths) == len(answer["length_records"]) == 2 * 3 * 4
    with open_store(str(store)) as opened:
        experiment_kept = stored_experiment(opened, answer["experiment"])
    charts = experiment_charts(experiment_kept)
    assert {"run-spread", "run-trials"} <= charts.keys()
    drawn = charts["run-spread"]
    assert isinstance(drawn, alt.LayerChart)
    (points,) = drawn.to_dict()["datasets"].values()
    assert len(points) == len(lengths)
    assert {point["which"] for point in points} == {"50% of the peak", "80% of the peak"}
    page = render_experiment_html(experiment_kept)
    assert "How long a trial should be" in page
    without = msgspec.structs.replace(
        experiment_kept, start=msgspec.structs.replace(experiment_kept.start, run_lengths=None)
    )
    assert "run-spread" not in experiment_charts(without)


def test_a_study_that_was_stopped_goes_on_to_the_answer_it_would_have_had(
    experiment: str, store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = (*LENGTHS, "--trials", "3")
    whole = found(experiment, *options, store=tmp_path / "other.sqlite")

    ran = 0
    at = whole["trials"] + 5

    def stopped(order: Any) -> Trial:
        nonlocal ran
        ran += 1
        if ran > at:
            raise Stopped("Ctrl-C")
        return run_trial(order)

    with monkeypatch.context() as patched:
        patched.setattr("leadline.studies.workbench.search.run_trial", stopped)
        run(experiment, *options, store=store)
    with open_store(str(store)) as kept:
        (left,) = kept.list()
        half = stored_experiment(kept, left.study_id)
    assert [len(own.lengths) for own in half.peaks] == [5]
    refused = run(experiment, "--run-lengths", "20s,40s", "--resume", store=store)
    assert code_of(refused) == 2
    assert "run lengths" in str(refused.exception)
    resumed = found(experiment, "--resume", store=store)
    assert resumed["run_lengths"] == whole["run_lengths"]
    assert resumed["peak_rate"] == whole["peak_rate"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--trials", "5"), "--trials goes with --run-lengths"),
        (("--load-factors", "50%"), "--load-factors goes with --run-lengths"),
        (("--run-lengths", "30s"), "2 to 12 run lengths, each once"),
        (("--run-lengths", "30s,30s"), "2 to 12 run lengths, each once"),
        (("--run-lengths", "30s,many"), "many"),
        (("--run-lengths", "30s,60s", "--trials", "2"), "3 to 200"),
        (("--run-lengths", "30s,60s", "--load-factors", "130%"), "above 0 to 1.2"),
        (("--run-lengths", "30s,60s", "--load-factors", "50%,0.5"), "1 to 6 load factors, each"),
    ],
)
def test_what_makes_no_study_is_refused(
    options: tuple[str, ...], words: str, experiment: str, store: Path
) -> None:
    result = run(experiment, *options, store=store)
    assert code_of(result) == 2
    assert words in " ".join((str(result.exception) + result.output).split())


def test_what_is_read_is_sorted_and_papers_load_factors_are_the_usual_ones() -> None:
    asked = read_run_lengths([180.0, 30.0], trials=5)
    assert asked == RunLengths(seconds=(30.0, 180.0), parts=(0.3, 0.9), trials=5)
    with pytest.raises(ExperimentRefused, match="run lengths"):
        read_run_lengths([float(each) for each in range(1, 14)])
