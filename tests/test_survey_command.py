"""The survey command on simulated systems: its JSON, its store, and resuming it."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command import LEADLINE, environment, leadline
from leadline.store import open_store


def test_the_promised_keys_are_there_and_the_survey_is_stored(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = leadline("survey", "sim:hp-730", "--name", "hp", "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    promised = {"system", "survey", "wall_s", "points", "regions", "borders_bytes", "curves",
                "sentences", "warnings"}  # fmt: skip
    assert promised <= answer.keys()
    assert answer["system"] == "hp"
    assert len(answer["regions"]) == 2
    assert {"value", "low", "high", "n"} == answer["borders_bytes"][0].keys()
    shown = json.loads(leadline("show", "hp", "--json", store=store).stdout)
    assert shown == answer | {"validations": []}
    assert "hp" in leadline("systems", store=store).stdout
    rows = leadline("export", "hp", "--format", "csv", store=store).stdout.splitlines()
    assert len(rows) == answer["points"] + 1


def test_an_interrupted_simulation_resumes_to_the_very_same_answer(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.sqlite", tmp_path / "cut.sqlite"
    options = ["survey", "sim:two-level", "--seed", "9", "--json"]
    expected = json.loads(leadline(*options, store=whole).stdout)
    child = subprocess.Popen([LEADLINE, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                             env=environment(cut))  # fmt: skip
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and child.poll() is None and _count(cut) < 5:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    kept = _count(cut)
    if kept == expected["points"]:
        pytest.skip("the survey was faster than the kill")
    resumed = leadline("survey", "sim:two-level", "--resume", "--json", store=cut)
    assert resumed.returncode == 0, resumed.stderr
    found = json.loads(resumed.stdout)
    for key in ("points", "seed", "regions", "borders_bytes", "curves", "sentences"):
        assert found[key] == expected[key], key


def test_resuming_on_another_target_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    child = subprocess.Popen(
        [LEADLINE, "survey", "sim:two-level", "--name", "mine"],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment(store),
    )  # fmt: skip
    while child.poll() is None and _count(store) < 1:
        time.sleep(0.02)
    child.send_signal(signal.SIGKILL)
    child.communicate(timeout=30)
    other = leadline("survey", "sim:hp-730", "--name", "mine", "--resume", store=store)
    assert other.returncode == 2
    assert "sim:two-level" in other.stderr


def _count(store: Path) -> int:
    """Points stored so far, of all surveys."""
    if not store.exists():
        return 0
    with open_store(str(store)) as opened:
        return sum(summary.points for summary in opened.surveys())
