"""The ranges that Python knows before it asks are those that Rust states (crates/wire)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leadline.errors import WorkloadError
from leadline.record import access, job
from leadline.record.job import (
    AskJob,
    FileTestJob,
    Job,
    MeasureJob,
    NfsLoadJob,
    StreamJob,
    TrialJob,
)
from leadline.record.jobs import skew, streams
from leadline.record.workload import QUANTITIES, Workload
from leadline.studies.workbench.conversation import HIGHEST_PER_S

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "protocol/job.schema.json").read_text(encoding="utf-8")
)


def named(name: str) -> Any:
    """A type of the wire, by the name it has in Rust."""
    return SCHEMA["$defs"][name]


def of_kind(kind: str, within: Any = SCHEMA) -> Any:
    """The one of several shapes that has this kind, or this name."""
    (found,) = [
        shape
        for shape in within["oneOf"]
        if kind in (shape["properties"].get(tag, {}).get("const") for tag in ("kind", "name"))
    ]
    return found["properties"]


WORKLOAD = named("Workload")["properties"]
STREAM = of_kind("stream")
GENERATE = of_kind("generate", named("Kernel"))
STRIPES = named("Output")["properties"]["stripe_bytes"]["enum"]
POISSON = of_kind("poisson", named("Arrivals"))["rate_per_s"]
TRIAL = named("TrialOrder")["properties"]["rate_per_s"]
LOAD = of_kind("load", named("Action"))["rate_per_s"]
FSYNC = of_kind("fsync", named("WriteSync"))["each"]
KNOWN = {
    "RATE_MIN_PER_S": (job.RATE_MIN_PER_S, POISSON["minimum"]),
    "RATE_MIN_PER_S of a trial": (job.RATE_MIN_PER_S, TRIAL["minimum"]),
    "RATE_MAX_PER_S": (job.RATE_MAX_PER_S, POISSON["maximum"]),
    "TRIAL_RATE_MAX_PER_S": (job.TRIAL_RATE_MAX_PER_S, TRIAL["maximum"]),
    "HIGHEST_PER_S": (HIGHEST_PER_S, LOAD["maximum"]),
    "TEST_RUNS_MAX": (job.TEST_RUNS_MAX, of_kind("file_test")["runs"]["maximum"]),
    "STREAM_MEMORY_BYTES_MIN": (job.STREAM_MEMORY_BYTES_MIN, STREAM["memory_bytes"]["minimum"]),
    "STREAM_THREADS_MAX": (job.STREAM_THREADS_MAX, STREAM["threads"]["maximum"]),
    "STREAM_DEPTH_MAX": (job.STREAM_DEPTH_MAX, named("Io")["properties"]["depth"]["maximum"]),
    "STRIPE_BYTES_MIN": (job.STRIPE_BYTES_MIN, min(STRIPES)),
    "STRIPE_BYTES_MAX": (job.STRIPE_BYTES_MAX, max(STRIPES)),
    "SKEW_MAX": (job.SKEW_MAX, GENERATE["skew"]["maximum"]),
    "THETA_MAX": (skew.THETA_MAX, of_kind("zipf", named("Spread"))["theta"]["maximum"]),
    "ZONES_MAX": (skew.ZONES_MAX, of_kind("zoned", named("Spread"))["zones"]["maxItems"]),
    "ZONE_SHARE_MIN": (skew.ZONE_SHARE_MIN, named("Zone")["properties"]["size_frac"]["minimum"]),
    "FSYNC_EACH_MAX": (access.FSYNC_EACH_MAX, FSYNC["maximum"]),
    "COMPRESS_MAX": (access.COMPRESS_MAX, named("Content")["properties"]["compress"]["maximum"]),
    "STREAMS_MAX": (streams.STREAMS_MAX, of_kind("measure")["streams"]["maxItems"]),
    "STREAMS_MAX of sizes": (
        streams.STREAMS_MAX,
        named("StreamAsked")["properties"]["sizes"]["maxItems"],
    ),
    "WIRE_VERSION": (job.WIRE_VERSION, STREAM["version"]["const"]),
}
"""What Python knows, and what the wire says of the same."""


@pytest.mark.parametrize("name", KNOWN)
def test_a_bound_is_the_wires(name: str) -> None:
    here, wire = KNOWN[name]
    assert here == wire


def test_no_bound_of_a_job_is_left_out() -> None:
    """A number beside `Job` is a bound that this file compares, or a timeout of Python's own."""
    numbers = {name for name, value in vars(job).items() if isinstance(value, int | float)}
    assert {name for name in numbers if name.isupper()} - {"ASK_S_MAX"} <= {*KNOWN}


def test_a_workload_has_the_fields_and_the_ranges_of_the_wire() -> None:
    assert {*WORKLOAD} == {*Workload.__struct_fields__} == {*QUANTITIES}
    told = {
        name: (quantity.low, quantity.high)
        for name, (_, quantity) in QUANTITIES.items()
        if quantity.high is not None
    }
    said = {
        name: (of["minimum"], of["maximum"]) for name, of in WORKLOAD.items() if "minimum" in of
    }
    assert told == said
    assert len(told) == 7


@pytest.mark.parametrize("name", [name for name, of in WORKLOAD.items() if "minimum" in of])
def test_a_workload_outside_its_ranges_is_refused_before_anything_is_asked(name: str) -> None:
    for bound in (WORKLOAD[name]["minimum"] - 1, WORKLOAD[name]["maximum"] + 1):
        values = {"unique_bytes": 1 << 20, "size_mean": 4096, name: bound}
        with pytest.raises(WorkloadError, match=name):
            Workload(**values)


JOBS: tuple[type[Job[Any]], ...] = (
    MeasureJob,
    FileTestJob,
    NfsLoadJob,
    TrialJob,
    StreamJob,
    AskJob,
)


@pytest.mark.parametrize("kind", JOBS, ids=lambda kind: kind.__name__)
def test_a_job_has_the_fields_of_the_wire(kind: type[Job[Any]]) -> None:
    tag = {each.name: each.default for each in msgspec.structs.fields(kind)}["kind"]
    assert {*of_kind(tag)} == {*kind.__struct_fields__}


def test_there_is_a_job_for_every_kind_of_the_wire() -> None:
    assert len(SCHEMA["oneOf"]) == len(JOBS)
