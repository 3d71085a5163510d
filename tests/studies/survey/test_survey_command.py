"""The survey command on simulated systems: its JSON, its store, and resuming it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from command import ended_after, leadline
from leadline.store import open_store


def test_the_promised_keys_are_there_and_the_survey_is_stored(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = leadline("survey", "sim:hp-730", "--name", "hp", "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    promised = {
        "system",
        "survey",
        "wall_s",
        "points",
        "regions",
        "boundaries_bytes",
        "curves",
        "sentences",
        "findings",
    }
    assert promised <= answer.keys()
    assert answer["system"] == "hp"
    assert len(answer["regions"]) == 2
    assert {"value", "low", "high", "n"} == answer["boundaries_bytes"][0].keys()
    shown = json.loads(leadline("show", "hp", "--json", store=store).stdout)
    assert shown == answer | {"validations": []}
    assert "hp" in leadline("systems", store=store).stdout
    rows = leadline("export", "hp", "--format", "csv", store=store).stdout.splitlines()
    assert len(rows) == answer["points"] + 1


@pytest.mark.long
def test_an_interrupted_simulation_resumes_to_the_very_same_answer(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.sqlite", tmp_path / "cut.sqlite"
    options = ["survey", "sim:two-level", "--seed", "9", "--budget", "60s", "--json"]
    expected = json.loads(leadline(*options, store=whole).stdout)
    ended_after(5, signal.SIGKILL, *options, store=cut)
    assert _count(cut) == 5 < expected["points"]
    resumed = leadline("survey", "sim:two-level", "--resume", "--json", store=cut)
    assert resumed.returncode == 0, resumed.stderr
    found = json.loads(resumed.stdout)
    for key in ("points", "seed", "regions", "boundaries_bytes", "curves", "sentences"):
        assert found[key] == expected[key], key


def test_resuming_on_another_target_is_refused(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    ended_after(
        1,
        signal.SIGKILL,
        "survey",
        "sim:two-level",
        "--budget",
        "300s",
        "--name",
        "mine",
        store=store,
    )
    other = leadline("survey", "sim:hp-730", "--name", "mine", "--resume", store=store)
    assert other.returncode == 2
    assert "sim:two-level" in other.stderr


def _count(store: Path) -> int:
    """Points stored so far, of all surveys."""
    if not store.exists():
        return 0
    with open_store(str(store)) as opened:
        return sum(summary.items for summary in opened.list())
