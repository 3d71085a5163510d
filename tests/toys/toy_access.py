"""The toy option `--urgency W` of how storage is reached, from the command line to a comparison."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import msgspec
import pytest
from talking import answer_with, last_job, said

from leadline.engine import Target, TargetRefused, open_engine
from leadline.fio import FioJobRefused, FioRun, write_job
from leadline.record import Access, Workload
from leadline.studies.comparison.facts import differing_facts
from leadline.studies.survey.text import run_rows, survey_document
from proving.samples import sample_start, sample_survey

WORKLOAD = "unique_bytes=1MiB,size_mean=4KiB"

for command in ("survey", "measure", "cache"):
    assert "--urgency W" in " ".join(said(command, "--help").split()), command
with pytest.MonkeyPatch.context() as patch:
    answer_with(patch)
    one = ("measure", "null:", "--workload", WORKLOAD, "--runs", "1", "--json")
    usual = json.loads(said(*one))
    assert usual["urgency"] == "usual"
    assert "urgency" not in last_job()["backend"]
    told = json.loads(said(*one, "--urgency", "low"))
    assert told["urgency"] == "low"
    assert last_job()["backend"]["urgency"] == "low"
assert json.loads(said("show", told["point"], "--json"))["urgency"] == "low"
(row,) = csv.DictReader(io.StringIO(said("export", told["point"], "--format", "csv")))
assert row["urgency"] == "low"

plain = sample_start()
urgent = msgspec.structs.replace(plain, urgency="low")
assert survey_document(sample_survey(urgent), ())["urgency"] == "low"
assert dict(run_rows(sample_survey(urgent), ()))["Backend"].endswith(", urgency low")
(difference,) = differing_facts([plain, urgent])
assert (difference.name, difference.title) == ("urgency", "How soon")
assert difference.values == ("usual", "low")
low: dict[str, Any] = {"urgency": "low"}
with pytest.raises(FioJobRefused, match="--urgency low is Leadline's: no fio job can say it"):
    write_job(Workload.parse(WORKLOAD), FioRun(**low))
with pytest.raises(TargetRefused, match="--urgency low is Leadline's"):
    open_engine(Target.parse("."), Access(**low), engine="fio").__enter__()
