"""docs/papers.md says of every figure of the five papers what its command does today."""

from __future__ import annotations

import msgspec
import pytest

import papers
from figures.stored import load
from papers import IN_PART, NOT_SHOWN, NOT_THERE, SHOWN, Figure, read_rows, row_of, rows_of

PAPERS = ("CP94", "CP93", "KM83", "AD98", "SH08")
FIGURE = Figure(paper="X", figure="Fig. 1", says="it falls", command="true", prints=("falls",))


QUICK = ("CP93", "KM83")


@pytest.mark.parametrize(
    "paper", [pytest.param(each, marks=[pytest.mark.long] * (each not in QUICK)) for each in PAPERS]
)
@pytest.mark.parametrize(
    "dear", [pytest.param(False, id="cheap"), pytest.param(True, id="dear", marks=pytest.mark.long)]
)
def test_every_command_does_what_the_table_says(paper: str, dear: bool) -> None:
    """Of the rows of a paper: run `bench/papers.py --save`, then `make figures`."""
    stored = {row.key: row.cells for row in load("papers").rows}
    asked = [figure for figure in read_rows() if figure.paper == paper and figure.dear == dear]
    found = list(rows_of(paper, asked))
    assert len(found) == len(asked)
    for row in found:
        assert row.cells == stored[row.key], row.key
        assert not str(row.cells["state"]).startswith(NOT_SHOWN)


def test_no_paper_is_tried_by_its_dear_rows_alone() -> None:
    cheap = [figure.paper for figure in read_rows() if figure.command and not figure.dear]
    assert all(cheap.count(paper) >= 2 for paper in PAPERS)


def test_the_table_has_every_row_once_and_no_other() -> None:
    figures = read_rows()
    assert papers.papers(figures) == PAPERS
    keys = [row_of(figure, "").key for figure in figures]
    assert keys == [row.key for row in load("papers").rows]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("printed", "lacks", "state"),
    [("it\n falls", "", SHOWN), ("falls", "not far", IN_PART), ("it rises", "", NOT_SHOWN)],
)
def test_the_state_is_what_the_command_did(printed: str, lacks: str, state: str) -> None:
    row = row_of(msgspec.structs.replace(FIGURE, lacks=lacks), printed)
    assert str(row.cells["state"]).startswith(state)


def test_without_a_command_a_reason_stands_there() -> None:
    row = row_of(Figure(paper="X", figure="Fig. 1", says="it falls", lacks="lost"), "")
    assert row.cells["state"] == f"{NOT_THERE}: lost"
    with pytest.raises(ValueError, match=r"X Fig\. 1"):
        Figure(paper="X", figure="Fig. 1", says="it falls", command="true")
    with pytest.raises(ValueError, match=r"X Fig\. 1"):
        Figure(paper="X", figure="Fig. 1", says="it falls")
