"""What the client sends to the engine: new fields only when they say something, ceilings first."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from leadline.engine import Engine, Limits, Target, TargetRefused, open_engine
from leadline.engine.ceiling import Ceiling
from leadline.record import Access, Arrivals, Workload, WorkloadError
from places import ROOT

SCHEMA = json.loads((ROOT / "protocol/job.schema.json").read_text(encoding="utf-8"))
ARRIVALS = SCHEMA["$defs"]["Arrivals"]
LIMITS = Limits(total_s_max=30)
WORKLOAD = Workload(unique_bytes=2**20, size_mean=4096)
NEW_FIELDS = {"arrivals", "placement", "precondition", "ceiling_iops"}
RECORDER = """
import json, sys
import msgspec
from proving.samples import sample_result
for line in sys.stdin:
    job = json.loads(line)
    with open(sys.argv[1], "a") as file:
        file.write(line)
    work = job["workload"]
    result = msgspec.to_builtins(sample_result(job["job_id"]))
    if job["backend"]["name"] == "null":
        iops = 1e6 * work["process_num"] / (2 if work["queue_depth"] > 1 else 1)
        result["iops"] = {"value": iops, "low": None, "high": None, "n": 1}
    for event in ("phase", "result"):
        said = result if event == "result" else {"job_id": job["job_id"]}
        print(json.dumps({"event": event, **said}), flush=True)
"""

Open = Callable[..., Engine]


@pytest.fixture
def jobs(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    """Read the jobs that the engine was sent so far; each fits the schema."""

    def read() -> list[dict[str, Any]]:
        lines = (tmp_path / "jobs").read_text(encoding="utf-8").splitlines()
        found = [json.loads(line) for line in lines]
        for job in found:
            jsonschema.validate(job, SCHEMA)
        return found

    return read


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[Open]:
    """Open a directory (or another target) with an engine that writes its jobs down."""
    place = tmp_path / "place"
    place.mkdir()
    command = [sys.executable, "-c", RECORDER, str(tmp_path / "jobs")]
    contexts = []

    def start(target: str = str(place), **options: Any) -> Engine:
        context = open_engine(Target.parse(target), Access(**options), command=command)
        contexts.append(context)
        return context.__enter__()

    yield start
    for context in contexts:
        context.__exit__(None, None, None)
    assert not list(place.iterdir())


def test_a_plain_job_says_nothing_new_but_its_ceiling(
    opened: Open, jobs: Callable[[], list[dict[str, Any]]]
) -> None:
    opened().run(WORKLOAD, seed=1, limits=LIMITS)
    assert NEW_FIELDS & jobs()[-1].keys() == {"ceiling_iops"}


def test_an_open_loop_is_sent_with_its_rate(
    opened: Open, jobs: Callable[[], list[dict[str, Any]]]
) -> None:
    opened().run(WORKLOAD, seed=1, limits=LIMITS, arrivals=Arrivals("poisson", 2000.0))
    assert jobs()[-1]["arrivals"] == {"kind": "poisson", "rate_per_s": 2000.0}


def test_placement_and_preconditioning_are_sent_when_asked_for(
    opened: Open, jobs: Callable[[], list[dict[str, Any]]]
) -> None:
    engine = opened(placement="free", backend="uring", direct=True)
    engine.run(WORKLOAD, seed=1, limits=LIMITS, precondition_bytes_max=2**30)
    engine.run(WORKLOAD, seed=2, limits=LIMITS)
    first, second = jobs()[-2:]
    assert first["placement"] == second["placement"] == "free"
    assert first["precondition"] == {"bytes_max": 2**30}
    assert "precondition" not in second
    assert first["backend"] == {"name": "uring", "direct": True}
    assert engine.facts["placement"] == "free"


def test_the_ceiling_is_measured_once_before_the_first_run(
    opened: Open, jobs: Callable[[], list[dict[str, Any]]]
) -> None:
    engine, seen = opened(), list[dict[str, Any]]()
    cpus = engine.facts["cpu_count"]
    for _ in range(2):
        engine.run(WORKLOAD, seed=1, limits=LIMITS, on_event=seen.append)
    null = [job for job in jobs() if job["target"] == {"kind": "null"}]
    assert jobs()[: len(null)] == null, "before the first real run, and never again"
    assert [job["workload"]["process_num"] for job in null] == ([1, cpus] if cpus > 1 else [1])
    assert {job["workload"]["queue_depth"] for job in null} == {1}
    assert all(job["workload"]["size_dist"] == "fixed" for job in null)
    assert len(seen) == 2, "nobody hears the ceiling's events"
    assert engine.facts["generator_ceiling_iops_one_issuer"] == 1_000_000
    assert engine.facts["generator_ceiling_iops_all_processors"] == 1_000_000 * cpus
    assert jobs()[-1]["ceiling_iops"] == 1e6


def test_a_deep_queue_has_a_ceiling_of_its_own(
    opened: Open, jobs: Callable[[], list[dict[str, Any]]]
) -> None:
    engine = opened(backend="uring")
    engine.run(WORKLOAD.with_value("queue_depth", 8), seed=1, limits=LIMITS)
    engine.run(WORKLOAD, seed=1, limits=LIMITS)
    assert {job["workload"]["queue_depth"] for job in jobs()[:-2]} == {1, 32}
    assert [job["ceiling_iops"] for job in jobs()[-2:]] == [5e5, 1e6]


def test_the_null_target_has_no_ceiling(
    opened: Open, jobs: Callable[[], list[dict[str, Any]]]
) -> None:
    opened("null:").run(WORKLOAD, seed=1, limits=LIMITS)
    assert len(jobs()) == 1
    assert not NEW_FIELDS & jobs()[0].keys()


def test_more_issuers_than_processors_reach_no_more() -> None:
    ceiling = Ceiling(4, 10.0, 34.0, 6.0, 12.0)
    assert [ceiling.iops(workers) for workers in (1, 2, 3, 4, 64)] == [10, 18, 26, 34, 34]
    assert [ceiling.iops(workers, 8) for workers in (1, 4)] == [6, 12]
    assert Ceiling(1, 10.0, 10.0).iops(5, 32) == 10


@pytest.mark.parametrize("backend", ["pread", "mmap"])
def test_a_deep_queue_on_a_backend_without_one_is_refused(opened: Open, backend: str) -> None:
    with pytest.raises(TargetRefused, match=r"queue_depth=8 needs --backend uring: .* process_num"):
        opened(backend=backend).run(WORKLOAD.with_value("queue_depth", 8), seed=1, limits=LIMITS)


def test_mmap_past_the_file_cache_is_refused(opened: Open) -> None:
    with pytest.raises(TargetRefused, match=r"mmap .* leave --direct out"):
        opened(backend="mmap", direct=True)


def test_an_unknown_placement_is_refused(opened: Open) -> None:
    with pytest.raises(TargetRefused, match="auto or free, not 'near'"):
        opened(placement="near")


@pytest.mark.parametrize("target", ["null:", "sim:two-level"])
def test_only_a_directory_can_be_preconditioned(opened: Open, target: str) -> None:
    engine = opened(target)
    with pytest.raises(TargetRefused, match="--precondition writes to a real device"):
        engine.run(WORKLOAD, seed=1, limits=LIMITS, precondition_bytes_max=2**20)


@pytest.mark.parametrize(
    ("kind", "rate"),
    [
        ("poisson", None),
        ("constant", 0.0),
        ("poisson", -1.0),
        ("poisson", float("nan")),
        ("constant", 2e7),
        ("closed", 5.0),
    ],
)
def test_arrivals_that_make_no_sense(kind: Any, rate: float | None) -> None:
    with pytest.raises(WorkloadError, match="rate"):
        Arrivals(kind, rate)


@pytest.mark.parametrize("kind", ["constant", "poisson"])
@pytest.mark.parametrize("end", ["minimum", "maximum"])
def test_a_rate_may_be_what_the_engine_allows_and_no_more(kind: Any, end: str) -> None:
    """The range stands in the schema; whoever types a rate hears of it before a child starts."""
    shapes = {each["properties"]["kind"]["const"]: each for each in ARRIVALS["oneOf"]}
    bound = shapes[kind]["properties"]["rate_per_s"][end]
    assert Arrivals(kind, bound).rate_per_s == bound
    with pytest.raises(WorkloadError, match=r"between 0\.001 and 1e\+07"):
        Arrivals(kind, bound * (1.001 if end == "maximum" else 0.999))
