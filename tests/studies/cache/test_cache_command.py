"""`leadline cache` on simulated systems: its JSON, its store, its pictures, and resuming it."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from command import ended_after, leadline
from leadline.record.file_cache import CACHE
from leadline.store import open_store


def test_the_promised_keys_are_there_and_the_study_is_stored(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = leadline("cache", "sim:solbourne-5e905", "--name", "sol", "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    promised = {"system", "study", "read_cache", "write_cache", "policy", "evidence", "rates"}
    promised |= {"disciplines", "flusher", "left_out", "curves", "sentences", "findings"}
    assert promised <= answer.keys()
    assert answer["policy"] == "write-through"
    assert answer["write_cache"]["bytes"] is None
    assert answer["read_cache"]["bytes"]["low"] < 300e6 < answer["read_cache"]["bytes"]["high"]
    assert {rate["name"] for rate in answer["disciplines"]["rates"]} >= {"buffered", "O_DSYNC"}
    assert answer["flusher"]["verdict"] == "inconclusive"
    assert json.loads(leadline("show", "sol", "--json", store=store).stdout) == answer
    rows = leadline("export", "sol", "--format", "csv", store=store).stdout.splitlines()
    assert len(rows) == answer["points"] + 1
    text = leadline("show", answer["study"][:8], store=store)
    assert "write-through" in text.stdout
    assert "O_DSYNC" in text.stdout
    picture = tmp_path / "cache.svg"
    assert leadline("report", "sol", "-o", str(picture), store=store).returncode == 0
    drawn = picture.read_text(encoding="utf-8")
    assert "for reads" in drawn
    assert "Throughput (MB/s" in drawn
    page = tmp_path / "cache.html"
    assert leadline("report", "sol", "-o", str(page), store=store).returncode == 0
    assert "Sizes and rates" in page.read_text(encoding="utf-8")
    refused = leadline("report", "sol", "-o", str(tmp_path / "cache.txt"), store=store)
    assert refused.returncode == 2
    assert ".html, .svg, .png or .pdf" in refused.stderr


@pytest.mark.long
def test_a_killed_study_resumes_to_the_very_same_sizes(tmp_path: Path) -> None:
    whole, cut = tmp_path / "whole.sqlite", tmp_path / "cut.sqlite"
    options = ["cache", "sim:hp-730", "--seed", "9", "--sizes-only", "--json"]
    expected = json.loads(leadline(*options, store=whole).stdout)
    ended_after(12, signal.SIGKILL, *options, store=cut)
    assert _count(cut) == 12 < expected["points"]
    other = leadline("cache", "sim:hp-730", "--resume", "--sync", "dsync", store=cut)
    assert (other.returncode, "has --sync none, not dsync" in other.stderr) == (2, True)
    resumed = leadline("cache", "sim:hp-730", "--resume", "--json", store=cut)
    assert resumed.returncode == 0, resumed.stderr
    answer = json.loads(resumed.stdout)
    for key in ("read_cache", "write_cache", "policy", "rates", "points"):
        assert answer[key] == expected[key]
    assert answer["disciplines"] is None
    assert "not asked for" in answer["left_out"][0]


def _count(path: Path) -> int:
    if not path.exists():
        return 0
    with open_store(str(path)) as store:
        found = store.list(CACHE)
        return found[0].items if found else 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["sim:hp-730", "--resume"], "leave out --resume"),
        (["sim:hp-730", "--budget", "5s"], "--budget"),
        (["sim:hp-730", "--direct"], "leave it out"),
        (["sim:hp-730", "--sync", "often"], "fsync=8"),
        (["/no/such/place"], "/no/such/place"),
    ],
)
def test_what_cannot_be_studied_is_refused(tmp_path: Path, options: list[str], said: str) -> None:
    done = leadline("cache", *options, store=tmp_path / "store.sqlite")
    of_target = said in {"leave it out", "/no/such/place"}
    assert done.returncode == (5 if of_target else 2)
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_every_survey_says_what_it_knows_of_the_file_cache(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    asked = ("--verbose", "survey", "sim:decstation-5000-sprite", "--name", "sprite")
    done = leadline(*asked, store=store)
    assert done.returncode == 0, done.stderr
    words = " ".join(done.stdout.split())
    assert "Page cache, reads: " in words
    assert "Reads over writes: ×" in words
    assert "Write policy: write-back" in words
    found = json.loads(leadline("show", "sprite", "--json", store=store).stdout)["file_cache"]
    assert found["reads"]["bytes"]["value"] == pytest.approx(20e6, rel=0.15)
    assert found["writes"]["bytes"]["value"] == pytest.approx(5e6, rel=0.15)
