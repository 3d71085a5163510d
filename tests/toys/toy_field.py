"""The toy field `throttled_share` of a result, from the engine's event to the exported row."""

from __future__ import annotations

import csv
import io
import json

import pytest
from talking import answer_with, said

from leadline.studies.measurement.text import measurement_rows
from proving.samples import sample_point

ASKED = ("measure", "null:", "--workload", "unique_bytes=1MiB,size_mean=4KiB", "--json")

with pytest.MonkeyPatch.context() as patch:
    answer_with(patch)
    older = json.loads(said(*ASKED, "--runs", "1"))
    assert older["result"]["throttled_share"] is None
    answer_with(patch, throttled_share=0.25)
    patch.setattr("leadline.studies.measurement.run.PAUSE_S", 0.0)
    told = json.loads(said(*ASKED, "--runs", "2"))
assert len(told["runs"]) == 2
assert told["result"]["throttled_share"] == 0.25
assert json.loads(said("show", told["point"], "--json"))["result"]["throttled_share"] == 0.25
assert "held back by its own heat  0.25" in said("show", told["point"])
assert "held back" not in said("show", older["point"])
(row,) = csv.DictReader(io.StringIO(said("export", told["point"], "--format", "csv")))
assert row["throttled_share"] == "0.25"
assert "held back by its own heat" not in dict(measurement_rows(sample_point("a" * 32)))
