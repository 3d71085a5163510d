"""The wire as both languages see it: schemas, examples, and real runs decoded by the records."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest

from leadline import _engine
from leadline.record.job import (
    AskJob,
    FileTestJob,
    Job,
    MeasureJob,
    NfsLoadJob,
    StreamJob,
    TrialJob,
)
from leadline.record.jobs.file_test import FileTestResult
from leadline.record.jobs.nfs import NfsLoadAnswer
from leadline.record.result import EngineResult
from leadline.record.streaming import StreamResult
from leadline.record.workbench import Measured

PROTOCOL = Path(__file__).parents[2] / "protocol"
VALID = sorted((PROTOCOL / "examples/valid").glob("*.json"))
INVALID = sorted((PROTOCOL / "examples/invalid").glob("*.json"))
ASKS = sorted((PROTOCOL / "examples/asks").glob("*.json"))
ANSWERS = sorted((PROTOCOL / "examples/answers").glob("*.json"))
EVENTS = sorted((PROTOCOL / "examples/events").glob("*.json"))
FILE_TESTS = PROTOCOL / "examples/file_tests"
FILE_EVENTS = sorted((FILE_TESTS / "events").glob("*.json"))
NFS_LOADS = PROTOCOL / "examples/nfs_loads"
NFS_LOAD_EVENTS = sorted((NFS_LOADS / "events").glob("*.json"))
TRIALS = PROTOCOL / "examples/simulated_trials"
TRIAL_EVENTS = sorted((TRIALS / "events").glob("*.json"))
STREAMS = PROTOCOL / "examples/streams"
STREAM_EVENTS = sorted((STREAMS / "events").glob("*.json"))


def load(path: Path) -> Any:
    return json.loads(path.read_text())


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    schema = load(PROTOCOL / f"{name}.schema.json")
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def job(target: dict[str, Any], backend: str, *, direct: bool = False) -> dict[str, Any]:
    return {
        "version": 1,
        "kind": "measure",
        "job_id": "j",
        "target": target,
        "workload": {
            "unique_bytes": 1 << 20,
            "size_mean": 8192,
            "read_frac": 0.5,
            "seq_frac": 0.5,
            "process_num": 2,
        },
        "backend": {"name": backend, "direct": direct},
        "seed": 1,
        "limits": {
            "warm_up_s_max": 0.1,
            "measure_s_min": 0.05,
            "measure_s_max": 0.1,
            "accuracy": 0.5,
            "total_s_max": 10.0,
        },
    }


def serve(lines: list[str]) -> list[str]:
    """Run the engine child on these jobs; its event lines."""
    child = subprocess.run(
        [sys.executable, "-c", "from leadline._engine import serve; raise SystemExit(serve())"],
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return child.stdout.splitlines()


def decoded(line: str) -> EngineResult:
    validator("event").validate(json.loads(line))
    result = msgspec.json.decode(line, type=EngineResult)
    # Every key on the wire is a field of the record, and the other way round; only what a load
    # was asked for is there with one alone.
    fields = {*EngineResult.__struct_fields__, "event", "kind"}
    assert {*json.loads(line)} == (fields - {"load"} if result.load is msgspec.UNSET else fields)
    return result


@pytest.mark.parametrize("path", VALID, ids=lambda path: path.stem)
def test_a_valid_job_meets_the_schema(path: Path) -> None:
    validator("job").validate(load(path))


KINDS_OF_JOB = [
    *((MeasureJob, path) for path in VALID),
    *((AskJob, path) for path in ASKS),
    *((FileTestJob, path) for path in sorted((FILE_TESTS / "valid").glob("*.json"))),
    *((NfsLoadJob, path) for path in sorted((NFS_LOADS / "valid").glob("*.json"))),
    *((TrialJob, path) for path in sorted((TRIALS / "valid").glob("*.json"))),
    *((StreamJob, path) for path in sorted((STREAMS / "valid").glob("*.json"))),
]


@pytest.mark.parametrize(
    ("kind", "path"),
    KINDS_OF_JOB,
    ids=lambda each: each.stem if isinstance(each, Path) else each.__name__,
)
def test_a_valid_job_is_one_of_the_job_types_and_goes_out_as_it_came(
    kind: type[Job[Any]], path: Path
) -> None:
    asked = load(path)
    job = msgspec.convert(asked, kind)
    again = json.loads(msgspec.json.encode(job))
    assert says_all_of(again, asked)
    validator("job").validate(again)
    assert job.seconds_max > 0


def says_all_of(document: Any, asked: Any) -> bool:
    """Whether a document says what another does; it may say defaults beside it."""
    if isinstance(asked, dict):
        return all(key in document and says_all_of(document[key], asked[key]) for key in asked)
    if isinstance(asked, list):
        return len(document) == len(asked) and all(map(says_all_of, document, asked))
    return bool(document == asked)


@pytest.mark.parametrize("path", INVALID, ids=lambda path: path.stem)
def test_an_invalid_job_fails_the_schema_and_the_engine(path: Path) -> None:
    assert not validator("job").is_valid(load(path))
    (line,) = _engine.run_job(path.read_text())
    event = json.loads(line)
    assert (event["event"], event["kind"]) == ("error", "bad_job")
    validator("event").validate(event)


@pytest.mark.parametrize(
    "path", sorted((FILE_TESTS / "valid").glob("*.json")), ids=lambda p: p.stem
)
def test_a_valid_file_test_meets_its_schema(path: Path) -> None:
    validator("job").validate(load(path))


@pytest.mark.parametrize(
    "path", sorted((FILE_TESTS / "invalid").glob("*.json")), ids=lambda p: p.stem
)
def test_an_invalid_file_test_fails_the_schema_and_the_engine(path: Path) -> None:
    assert not validator("job").is_valid(load(path))
    event = json.loads(_engine.run_job(path.read_text())[-1])
    assert (event["event"], event["kind"]) == ("error", "bad_job")


@pytest.mark.parametrize("path", sorted((NFS_LOADS / "valid").glob("*.json")), ids=lambda p: p.stem)
def test_a_valid_nfs_load_meets_its_schema_and_runs_in_the_child(path: Path) -> None:
    validator("job").validate(load(path))
    with pytest.raises(ValueError, match="engine child"):
        _engine.run_job(path.read_text())


@pytest.mark.parametrize(
    "path", sorted((NFS_LOADS / "invalid").glob("*.json")), ids=lambda p: p.stem
)
def test_an_invalid_nfs_load_fails_the_schema_and_the_engine(path: Path) -> None:
    assert not validator("job").is_valid(load(path))
    event = json.loads(_engine.run_job(path.read_text())[-1])
    assert (event["event"], event["kind"]) == ("error", "bad_job")


@pytest.mark.parametrize("path", NFS_LOAD_EVENTS, ids=lambda path: path.stem)
def test_an_nfs_loads_result_is_read_by_the_record(path: Path) -> None:
    event = load(path)
    answer = msgspec.convert(event, NfsLoadAnswer)
    assert json.loads(msgspec.json.encode(answer)) | {"event": "result"} == event


@pytest.mark.parametrize("path", sorted((STREAMS / "valid").glob("*.json")), ids=lambda p: p.stem)
def test_a_valid_streaming_job_meets_its_schema(path: Path) -> None:
    validator("job").validate(load(path))


@pytest.mark.parametrize("path", sorted((STREAMS / "invalid").glob("*.json")), ids=lambda p: p.stem)
def test_an_invalid_streaming_job_fails_the_schema_and_the_engine(path: Path) -> None:
    assert not validator("job").is_valid(load(path))
    event = json.loads(_engine.run_job(path.read_text())[-1])
    assert (event["event"], event["kind"]) == ("error", "bad_job")


@pytest.mark.parametrize("path", sorted((STREAMS / "valid").glob("*.json")), ids=lambda p: p.stem)
def test_a_streaming_job_runs_in_the_child_alone(path: Path) -> None:
    with pytest.raises(ValueError, match="engine child"):
        _engine.run_job(path.read_text())


@pytest.mark.parametrize("path", sorted((TRIALS / "valid").glob("*.json")), ids=lambda p: p.stem)
def test_a_valid_trial_meets_its_schema_and_is_answered_as_its_example(path: Path) -> None:
    validator("job").validate(load(path))
    (line,) = _engine.run_job(path.read_text())
    event = json.loads(line)
    validator("event").validate(event)
    (example,) = TRIAL_EVENTS
    assert {*event} == {*load(example)}
    assert {*event["load"]} == {*load(example)["load"]}
    assert msgspec.convert(event["load"], Measured).due > 0


@pytest.mark.parametrize("path", sorted((TRIALS / "invalid").glob("*.json")), ids=lambda p: p.stem)
def test_an_invalid_trial_fails_the_schema_and_the_engine(path: Path) -> None:
    assert not validator("job").is_valid(load(path))
    event = json.loads(_engine.run_job(path.read_text())[-1])
    assert (event["event"], event["kind"]) == ("error", "bad_job")


@pytest.mark.parametrize("path", STREAM_EVENTS, ids=lambda path: path.stem)
def test_a_streaming_result_is_read_by_the_record(path: Path) -> None:
    event = load(path)
    result = msgspec.convert(event, StreamResult)
    assert json.loads(msgspec.json.encode(result)) | {"event": "result"} == event


def test_the_child_refuses_every_invalid_streaming_job_by_the_field() -> None:
    paths = sorted((STREAMS / "invalid").glob("*.json"))
    assert len(paths) >= 25
    lines = serve([json.dumps(load(path)) for path in paths])
    assert len(lines) == len(paths)
    for line, path in zip(lines, paths, strict=True):
        event = json.loads(line)
        validator("event").validate(event)
        assert (event["event"], event["kind"]) == ("error", "bad_job"), path.stem


@pytest.mark.parametrize("path", ASKS, ids=lambda path: path.stem)
def test_a_question_meets_the_schema(path: Path) -> None:
    validator("job").validate(load(path))


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_an_answer_meets_the_schema(path: Path) -> None:
    validator("event").validate(load(path))


@pytest.mark.parametrize(
    "path",
    EVENTS + FILE_EVENTS + NFS_LOAD_EVENTS + TRIAL_EVENTS + STREAM_EVENTS,
    ids=lambda path: str(path.parts[-2:]),
)
def test_an_example_event_meets_the_schema_and_no_other_does(path: Path) -> None:
    event = load(path)
    validator("event").validate(event)
    assert not validator("event").is_valid(event | {"unheard_of": 1})
    for name in event:
        less = {key: value for key, value in event.items() if key != name}
        assert not validator("event").is_valid(less), name


def test_a_null_run_is_read_by_the_records() -> None:
    lines = _engine.run_job(json.dumps(job({"kind": "null"}, "null")))
    for line in lines:
        validator("event").validate(json.loads(line))
    result = decoded(lines[-1])
    assert result.iops.value > 1000
    assert result.device_bytes is None
    assert result.simulated is None


def test_a_simulated_run_knows_its_truth() -> None:
    simulated = load(PROTOCOL / "examples/valid/simulated.json")
    lines = _engine.run_job(json.dumps(simulated))
    result = decoded(lines[-1])
    assert result.simulated is not None
    assert result.simulated.clock_s > simulated["target"]["clock_s"]
    system = json.dumps(simulated["target"]["system"])
    truth = _engine.simulated_truth(system, json.dumps(simulated["workload"]))
    assert result.simulated.truth_mb_s == pytest.approx(truth, rel=1e-9)
    assert result.throughput_mb_s.value == pytest.approx(truth, rel=0.2)
    assert lines == _engine.run_job(json.dumps(simulated)), "a seed gives the same answer"


@pytest.mark.real
def test_the_child_runs_a_file_test_as_the_schema_has_it(tmp_path: Path) -> None:
    asked = load(FILE_TESTS / "valid/existing.json")
    asked["drives"] = [{"directory": str(tmp_path)}]
    event = json.loads(serve([json.dumps(asked)])[-1])
    validator("event").validate(event)
    result = msgspec.convert(event, FileTestResult)
    assert {*event} == {*FileTestResult.__struct_fields__, "event"}
    assert [len(test.runs) for test in result.tests] == [3, 3, 3, 3]
    with pytest.raises(ValueError, match="engine child"):
        _engine.run_job(json.dumps(asked))


@pytest.mark.real
def test_the_child_measures_a_directory_and_answers_every_line(tmp_path: Path) -> None:
    target = {"kind": "directory", "path": str(tmp_path)}
    jobs = [
        json.dumps(job(target, "pread")),
        "this is no job",
        json.dumps(job(target, "pread", direct=True)),
    ]
    ends = [
        event for event in map(json.loads, serve(jobs)) if event["event"] in ("result", "error")
    ]
    assert [event["event"] for event in ends] == ["result", "error", "result"]
    for event in (ends[0], ends[2]):
        result = decoded(json.dumps(event))
        assert result.read.operations + result.write.operations > 0
    assert [path.name for path in tmp_path.iterdir()] == ["data.bin"]


def test_a_directory_is_not_measured_in_this_process(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="engine child"):
        _engine.run_job(json.dumps(job({"kind": "directory", "path": str(tmp_path)}, "pread")))
    assert not list(tmp_path.iterdir())


def test_a_window_in_which_no_request_ended_is_an_error_of_its_own_kind() -> None:
    slow = job({"kind": "null"}, "null") | {"arrivals": {"kind": "constant", "rate_per_s": 0.01}}
    lines = [json.loads(line) for line in _engine.run_job(json.dumps(slow))]
    assert (lines[-1]["event"], lines[-1]["kind"]) == ("error", "nothing_completed"), lines[-1]
