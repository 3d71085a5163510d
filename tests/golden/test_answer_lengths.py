"""Answers fit a terminal of 100 columns: at most 25 lines, everything else behind --verbose."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from golden_cases import HERE

from command import environment
from forked_command import run_forked

LINES_MOST = 25
COLUMNS = 100
STORED = (
    "application/show",
    "balance/of-one-run",
    "balance/text",
    "files-study/show",
    "measurement-directory/show",
    "measurement-simulated/show",
    "peak/show",
    "prediction/text",
    "stream-run/show",
    "stream-scaling/show",
    "surface/show",
    "survey/show",
)


def lines_of(answer: str) -> list[str]:
    lines = answer.strip("\n").splitlines()
    assert max(map(len, lines)) <= COLUMNS
    return lines


@pytest.mark.parametrize("name", STORED)
def test_what_is_stored_is_told_in_25_lines(name: str) -> None:
    text = (HERE / "expected" / f"{name}.txt").read_text(encoding="utf-8")
    (answer,) = re.findall(r"--- stdout\n(.*?)(?:\n--- stderr|\Z)", text, re.DOTALL)
    assert 5 < len(lines_of(answer)) <= LINES_MOST


def test_a_study_of_a_page_cache_is_told_in_25_lines(tmp_path: Path) -> None:
    asked = ("cache", "sim:hp-730", "--budget", "30m")
    own = environment(tmp_path / "store.sqlite") | {"COLUMNS": str(COLUMNS)}
    done = run_forked(asked, own, 100)
    assert 5 < len(lines_of(done.stdout)) <= LINES_MOST
