"""However a server or its generator behaves, a search for its peak ends, and says why.

The servers are commands (fake_generator.py): processes, started, answered, killed for real.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leadline.record import Status
from leadline.record.workbench import (
    CommandServer,
    Experiment,
    ExperimentStart,
    Goal,
    PeakRate,
    PeakVerdict,
    SamplePeak,
    Threshold,
)
from leadline.servers import run_trial
from leadline.studies.workbench.answer import explain
from leadline.studies.workbench.search import PeakSearch
from places import TESTS

FAKE = (sys.executable, "-I", "-S", str(TESTS / "fake_generator.py"))
TRUTH_PER_S = 175.0
"""An M/M/1 queue of 200/s has a mean response of 40 ms there: 1 / (200 - 175)."""
GOAL = Goal(
    threshold=Threshold(mean_ms=40), run_length_s=60, rate_start_per_s=40, rate_max_per_s=1000
)
TRIALS_MAX = 150
POLICIES = pytest.mark.parametrize("policy", ["curve", "mlrsearch", "binary"])
LONG = [pytest.param(policy, marks=pytest.mark.long) for policy in ("mlrsearch", "binary")]
EVERY_POLICY_LONG = pytest.mark.parametrize("policy", ["curve", *LONG])
"""What policies share (`conversation`) is held for all of them by test_policy_conformance."""


@pytest.fixture(autouse=True)
def own_temporary_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def search(mode: str, policy: str, time_out_s: float = 30.0, **goal: Any) -> tuple[PeakRate, str]:
    """Search for the peak of a server in this mode; return the answer and its words."""
    server = CommandServer(
        load=(*FAKE, mode, "{rate}", "{seconds}", "{seed}"), time_out_s=time_out_s
    )
    start = ExperimentStart(
        study_id="0" * 32,
        system="it",
        server=server,
        policy=policy,
        samples=({},),
        goal=msgspec.structs.replace(GOAL, **goal),
    )
    run = PeakSearch(start, {})
    while not isinstance(asked := run.ask(), PeakRate):
        assert len(run.trials) < TRIALS_MAX
        run.tell(run_trial(asked))
    own = SamplePeak(sample={}, trials=tuple(run.trials), peak=asked)
    told = explain(Experiment(start=start, status=Status.DONE, peaks=(own,)))
    return asked, " ".join((*told.sentences, *map(str, told.findings)))


@EVERY_POLICY_LONG
def test_the_peak_of_a_queue_is_found(policy: str) -> None:
    peak, words = search("queue", policy)
    assert peak.verdict is PeakVerdict.FOUND, words
    assert peak.rate_per_s is not None
    assert peak.rate_per_s.value == pytest.approx(TRUTH_PER_S, rel=0.1)
    assert "Bottleneck: server." in words


@EVERY_POLICY_LONG
@pytest.mark.parametrize(
    ("mode", "verdict", "said"),
    [
        ("never-saturated", PeakVerdict.NEVER_SATURATED, "not saturated at any load"),
        ("always-saturated", PeakVerdict.ALWAYS_SATURATED, "saturated at every load tried"),
        (
            "generator-ends-at-100",
            PeakVerdict.GENERATOR_LIMITED,
            "load generator is the bottleneck",
        ),
        ("dies-at-high-load", PeakVerdict.SERVER_LOST, "died or stopped answering under load"),
        ("dies", PeakVerdict.FAILED, "it said: first line / second: cannot connect"),
    ],
)
def test_whatever_is_the_matter_is_said(
    mode: str, policy: str, verdict: PeakVerdict, said: str
) -> None:
    peak, words = search(mode, policy)
    assert peak.verdict is verdict, (peak, words)
    assert said in words
    assert peak.rate_per_s is None


@EVERY_POLICY_LONG
def test_a_server_that_takes_the_same_400_ms_at_every_load_has_no_peak(policy: str) -> None:
    peak, words = search("always-400-ms", policy)
    assert peak.verdict is PeakVerdict.ALWAYS_SATURATED, words


@pytest.mark.parametrize("policy", ["curve", "mlrsearch"])
def test_two_modes_are_said(policy: str) -> None:
    """Every second trial the server is four times as fast; whatever is found, this is said."""
    peak, words = search("two-modes", policy, run_length_s=20.0, accuracy=0.7)
    assert "contradict each other" in words or "are of two kinds" in words, (peak, words)


@EVERY_POLICY_LONG
def test_a_stalled_generator_ends_the_search_with_what_it_was(policy: str) -> None:
    peak, words = search("hangs", policy, time_out_s=0.5, run_length_s=1.0)
    assert peak.verdict is PeakVerdict.FAILED, words
    assert "did not end within" in words


@EVERY_POLICY_LONG
def test_a_deadline_that_is_too_short_is_answered_with_what_was_reached(policy: str) -> None:
    peak, words = search("slow", policy, run_length_s=2.0, deadline_s=7.0)
    assert peak.verdict is PeakVerdict.DEADLINE, words
    assert peak.limited_by == "time"
    assert "time" in words
    assert peak.trials >= 1
