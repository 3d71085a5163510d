"""docs/papers.md says of every figure of the five papers what its command does today."""

from __future__ import annotations

import json

import msgspec
import pytest

import papers
from figures.stored import load
from papers import AGREES, DIFFERS, NOT_HERE, WRONG, Check, Figure, read_rows, row_of, rows_of

PAPERS = ("CP94", "CP93", "KM83", "AD98", "SH08")
CACHE = Check(what="cache", at="cache/value", scale=1e-6, unit="MB", paper=21, within=0.1)
FIGURE = Figure(paper="X", figure="Fig. 1", says="it ends", command="true", check=(CACHE,))
DOCUMENT = {
    "cache": {"value": 20e6},
    "policy": "write-through",
    "none": None,
    "curves": [
        {"region": 0, "parameter": "size", "points": [{"x": 1, "y": {"value": 2.0}}]},
        {"region": 1, "parameter": "size", "points": [{"x": 1, "y": {"value": 8.0}}, {"x": 2}]},
    ],
    "loads": [{"rate": 5.0, "ms": 3.0}, {"rate": 9.0, "ms": 12.0}],
}

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
        assert not str(row.cells["verdict"]).startswith(WRONG)


def test_the_table_has_every_row_once_and_no_other() -> None:
    figures = read_rows()
    assert papers.papers(figures) == PAPERS
    keys = [row_of(figure, "{}").key for figure in figures]
    assert keys == [row.key for row in load("papers").rows]
    assert len(set(keys)) == len(keys)


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("cache/value", 20e6),
        ("policy", "write-through"),
        ("curves/#", 2),
        ("curves/-1/region", 1),
        ("curves/region=1,parameter=size/points/0/y/value", 8.0),
        ("loads/max:rate/ms", 12.0),
        ("loads/min:rate/ms", 3.0),
    ],
)
def test_a_place_names_one_value_of_a_document(place: str, value: object) -> None:
    assert papers.value_at(DOCUMENT, place) == value


@pytest.mark.parametrize("place", ["other", "none", "curves/7", "curves/region=9/points"])
def test_a_place_without_a_value_is_an_error(place: str) -> None:
    with pytest.raises((LookupError, TypeError)):
        papers.value_at(DOCUMENT, place)
    figure = msgspec.structs.replace(FIGURE, check=(Check(what="it", at=place, least=0),))
    assert str(row_of(figure, json.dumps(DOCUMENT)).cells["verdict"]).startswith(WRONG)


@pytest.mark.parametrize(
    ("check", "holds"),
    [
        (Check(what="it", at="x", paper=21, within=0.1), [19.0, 23.0]),
        (Check(what="it", at="x", paper=2), [2.0]),
        (Check(what="it", at="x", paper=10, least=3, most=10), [3.0, 10.0]),
        (Check(what="it", at="x", least=0.9, most=1.1), [0.9, 1.0, 1.1]),
        (Check(what="it", at="x", paper="write-back"), ["write-back"]),
    ],
)
def test_a_value_agrees_within_its_tolerance_and_its_bounds(
    check: Check, holds: list[float | str]
) -> None:
    tried: tuple[float | str, ...] = (0.0, 0.9, 1.0, 1.1, 2.0, 3.0, 10.0, 18.0, 19.0, 23.0, 24.0)
    tried += ("write-back", "write-through")
    assert [value for value in tried if check.holds(value)] == holds


def test_a_check_that_cannot_fail_is_refused() -> None:
    with pytest.raises(ValueError, match="neither a value nor a bound"):
        Check(what="it", at="x")
    with pytest.raises(ValueError, match="needs a number"):
        Check(what="it", at="x", paper="write-back", within=0.1)


@pytest.mark.parametrize(
    ("value", "because", "verdict"),
    [
        (20e6, "", AGREES),
        (30e6, "the profile ends", f"{DIFFERS}: the profile ends"),
        (30e6, "", f"{WRONG}: cache 30"),
        (20e6, "the profile ends", f"{WRONG}: it agrees, against what the row says"),
    ],
)
def test_the_verdict_is_what_the_values_are(value: float, because: str, verdict: str) -> None:
    figure = msgspec.structs.replace(FIGURE, because=because)
    row = row_of(figure, f"warning: busy\n{json.dumps({'cache': {'value': value}}, indent=1)}")
    assert row.cells["verdict"] == verdict
    assert row.cells["paper"] == "cache 21 ± 10% MB"
    assert row.cells["here"] == f"{value / 1e6:g} MB"


def test_a_command_that_prints_no_document_is_wrong() -> None:
    assert str(row_of(FIGURE, "error: no").cells["verdict"]).startswith(f"{WRONG}: nothing to")


def test_without_a_command_a_reason_stands_there() -> None:
    row = row_of(Figure(paper="X", figure="Fig. 1", says="it falls", because="lost"), "")
    assert row.cells["verdict"] == f"{NOT_HERE}: lost"
    with pytest.raises(ValueError, match=r"X Fig\. 1"):
        Figure(paper="X", figure="Fig. 1", says="it falls", command="true")
    with pytest.raises(ValueError, match=r"X Fig\. 1"):
        Figure(paper="X", figure="Fig. 1", says="it falls")
