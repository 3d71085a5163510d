"""`make measure` knows every stored result, and begins the shortest that is older than its code."""

from __future__ import annotations

import subprocess
import sys

import pytest

import measure
from figures.stored import ROOT, load, names
from measure import benches, stale


def test_every_stored_result_is_measured_by_one_row() -> None:
    measured = [name for each in benches() for name in each.results]
    assert sorted(measured) == sorted(set(measured))
    assert set(names()) == set(measured)


def test_the_rows_name_programs_that_take_their_words() -> None:
    """Words are held against the program's own help, which a bench that changed would not have."""
    for each in benches():
        program, *words = each.words.split()
        source = (ROOT / program).read_text("utf-8")
        for word in words:
            if word.startswith("--"):
                assert f'"{word}"' in source or word == "--keep", (each.name, word)
        assert load(each.results[0]).made_by in {program, None}, each.name


def test_a_virtual_bench_uses_no_disk() -> None:
    assert any(each.virtual for each in benches())
    assert not [each.name for each in benches() if each.virtual and "{folder}" in each.words]


def test_a_machine_that_stays_busy_is_not_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "why_not_calm", lambda _: "others use 2 processors")
    monkeypatch.setattr(measure, "commit_now", lambda _: "1234567")
    monkeypatch.setattr(measure, "CALM_TRIES", 2)
    papers = next(each for each in benches() if each.name == "papers")
    assert "others use 2 processors" in (measure.measure(papers, ROOT) or "")


def test_what_is_stale_comes_by_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measure, "_is_stale", lambda bench: bench.name in {"peak", "papers"})
    assert [each.name for each in stale(())] == ["papers", "peak"]
    assert [each.name for each in stale(("soak",))] == ["soak"]


def test_the_list_measures_nothing() -> None:
    words = [sys.executable, "bench/measure.py", "--list", "--only", "papers"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("papers: about ")
    unknown = subprocess.run(
        [*words, "ghost"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert unknown.returncode == 2
    assert "ghost" in unknown.stderr
