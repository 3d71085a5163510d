"""Stored points as rows and files."""

from __future__ import annotations

import csv
import io
import json
import sys

import pytest

from leadline.store import StoreError, export_rows, rows
from proving.samples import sample_point

POINTS = (sample_point("point-1"), sample_point("point-2", order=1, mb_s=50.0))
ROWS = rows(POINTS, "survey", "survey-a")


def test_rows_are_flat_and_keep_intervals() -> None:
    first, second = ROWS
    assert list(first) == list(second)
    assert all(value is None or isinstance(value, str | int | float) for value in first.values())
    assert first["throughput_mb_s"] == 100.0
    assert (first["throughput_mb_s_low"], first["throughput_mb_s_n"]) == (90.0, 20)
    assert first["iops_low"] is None
    assert first["latency_us_p99_9"] == 1500.0
    assert first["write_latency_us_mean"] is None
    assert first["unique_bytes"] == 64 * 2**20
    assert first["seed"] == str(2**64 - 1)


@pytest.mark.parametrize(
    ("kind", "column"),
    [("survey", "survey_id"), ("validation", "validation_id"), ("cache", "study_id")],
)
def test_a_row_names_the_study_that_its_point_is_of(kind: str, column: str) -> None:
    (row,) = rows(POINTS[:1], kind, "own")
    assert [name for name in ("survey_id", "validation_id", "study_id") if row[name]] == [column]
    assert row[column] == "own"


def test_json() -> None:
    assert json.loads(export_rows(ROWS, "json")) == ROWS
    assert json.loads(export_rows([], "json")) == []


def test_csv() -> None:
    read = list(csv.DictReader(io.StringIO(export_rows(ROWS, "csv").decode(), newline="")))
    assert [row["throughput_mb_s"] for row in read] == ["100.0", "50.0"]
    assert read[0]["warnings"].startswith("the window was too short for an interval; measured by")
    assert "hits, steadiness" in read[0]["warnings"], "a comma is no end of a cell"
    assert read[0]["iops_low"] == ""
    assert export_rows([], "csv") == b""


@pytest.mark.parametrize("format_name", ["parquet", "arrow"])
def test_columns(format_name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet  # noqa: PLC0415 - optional

    content = pa.BufferReader(export_rows(ROWS, format_name))
    read = (
        parquet.read_table(content)
        if format_name == "parquet"
        else pa.ipc.open_file(content).read_all()
    )
    assert read.to_pylist() == ROWS


def test_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StoreError, match=r"pip install 'leadline\[frames\]'"):
        export_rows(ROWS, "parquet")


def test_an_unknown_format() -> None:
    with pytest.raises(StoreError, match="'xlsx'; use json, csv, parquet, arrow"):
        export_rows(ROWS, "xlsx")
