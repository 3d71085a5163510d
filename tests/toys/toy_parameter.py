"""The toy parameter `burst_num` of a workload, from the command line to the exported row."""

from __future__ import annotations

import csv
import io
import json

import msgspec
import pytest
from talking import answer_with, last_job, said

from leadline.fio import FioJobRefused, write_job
from leadline.models.model import PredictionRefused
from leadline.models.predictor import Predictor
from leadline.record import Measurement, Workload, WorkloadError
from proving.samples import sample_point, sample_start, sample_survey

PLAIN = "unique_bytes=1MiB,size_mean=4KiB"
BURSTS = f"{PLAIN},burst_num=4"


def measure(workload: str) -> str:
    return said("measure", "null:", "--runs", "1", "--json", "--workload", workload)


with pytest.MonkeyPatch.context() as patch:
    answer_with(patch)
    assert json.loads(measure(PLAIN))["workload"]["burst_num"] == 1
    told = json.loads(measure(BURSTS))
assert told["workload"]["burst_num"] == 4
assert last_job()["workload"]["burst_num"] == 4
assert json.loads(said("show", told["point"], "--json"))["workload"]["burst_num"] == 4
(row,) = csv.DictReader(io.StringIO(said("export", told["point"], "--format", "csv")))
assert row["burst_num"] == "4"

bursts = Workload.parse(BURSTS)
with pytest.raises(WorkloadError, match="burst_num is 65, it must be between 1 and 64"):
    Workload.parse(f"{PLAIN},burst_num=65")
with pytest.raises(FioJobRefused, match="burst_num=4 is Leadline's"):
    write_job(bursts)
with pytest.raises(PredictionRefused, match="burst_num=4: no survey has it"):
    Predictor(sample_survey(sample_start()), [sample_point("a" * 32)]).predict(bursts)
older = msgspec.to_builtins(sample_point("a" * 32))
del older["workload"]["burst_num"]
assert msgspec.convert(older, Measurement) == sample_point("a" * 32)
