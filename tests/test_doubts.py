"""Warnings in two groups, and answers in one sentence: what a page says before anything else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from leadline.report.drawing.doubts import in_two_groups

HONESTY = Path(__file__).parent.parent / "docs" / "concepts" / "honesty.md"

_INFORMS = {
    "idle cache reclaimed",
    "frequency governor",
    "loop device",
    "read-ahead",
    "sparse file",
    "unwritten extent",
    "precondition",
}
"""Findings that are good to know, or that are refused before anything is measured."""


def test_every_named_finding_is_in_the_group_it_belongs_to() -> None:
    names = re.findall(r"^\| `([^`]+)`", HONESTY.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(names) > 15
    told = {name: in_two_groups([f"{name}: 3 of 12 points"]) for name in names}
    serious = {name for name, doubts in told.items() if doubts.serious}
    assert set(names) - serious == _INFORMS


@pytest.mark.parametrize(
    ("text", "serious"),
    [
        ("The system drifted: the repeated points became 12 % slower", True),
        ("Stopped after 3 of 34 planned points", True),
        ("3 of 34 points are not admissible and carry no curve", True),
        ("extrapolated: process_num=1 lies outside", True),
        ("atlas: Other programs used more than 25% of a processor", True),
        ("No border was found up to 16 GiB", False),
        ("the drives of the made file systems are loop devices of one directory", False),
        ("The cache was capped at 512 MiB.", False),
    ],
)
def test_what_speaks_against_the_numbers_is_told_from_what_informs(
    text: str, serious: bool
) -> None:
    doubts = in_two_groups([text, text])
    assert (doubts.serious, doubts.notes) == (((text,), ()) if serious else ((), (text,)))
