"""What Leadline asks of fio, and what it makes of the answer; no fio is needed here."""

from __future__ import annotations

import argparse
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leadline.engine import Limits, NothingCompleted, TargetRefused
from leadline.engine import fio as fio_engine
from leadline.engine.fio import FioEngine, fio_result
from leadline.engine.wear import Wear
from leadline.fio import FioJobRefused, FioRun, write_job
from leadline.record import Access, Arrivals, Workload, WrittenBytes
from places import ROOT

WORKLOAD = Workload(unique_bytes=2**20, size_mean=4096, read_frac=0.5)
RATE = Arrivals("poisson", 200.0)
PERCENTILES = {f"{share:.6f}": 1000 for share in (50, 90, 99, 99.9)}


def direction(operations: int, timed: int) -> dict[str, Any]:
    """One direction of fio's answer, of which some requests were timed."""
    latency: dict[str, Any] = {"N": timed, "mean": 1e3 * bool(timed), "max": 1000 * bool(timed)}
    if timed:
        latency |= {"percentile": PERCENTILES, "bins": {"1000": timed}}
    return {
        "total_ios": operations,
        "io_bytes": 4096 * operations,
        "runtime": 500,
        "lat_ns": latency,
    }


def answer(read: dict[str, Any], write: dict[str, Any]) -> dict[str, Any]:
    timed = read["lat_ns"]["N"] + write["lat_ns"]["N"]
    mixed = direction(read["total_ios"] + write["total_ios"], timed)
    return {
        "read": read,
        "write": write,
        "mixed": mixed,
        "job_runtime": 500,
        "usr_cpu": 1.0,
        "sys_cpu": 1.0,
    }


def test_requests_that_nobody_timed_are_no_defect_of_leadline() -> None:
    with pytest.raises(NothingCompleted, match="timed no request; raise --seconds"):
        fio_result(answer(direction(90, 0), direction(0, 0)), WORKLOAD, "a", ramp_s=1.0)
    half = fio_result(answer(direction(90, 90), direction(3, 0)), WORKLOAD, "a", ramp_s=1.0)
    assert half.read.latency_us is not None
    assert (half.write.operations, half.write.latency_us) == (3, None)


Asked = Callable[..., tuple[list[str], FioEngine]]


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """Return the jobs that an engine without a target gives to fio, and that engine."""

    def lay_out(*_: Any, **__: Any) -> Any:
        return SimpleNamespace(placement=None, written_bytes=WrittenBytes(0, 0))

    own: Any = SimpleNamespace(
        access=Access(backend="pread"),
        wear=Wear(),
        capacity_bytes=2**40,
        memory_bytes=None,
        facts={},
        process_num_max=4,
        l3_cache_bytes=None,
        lay_out=lay_out,
        close=lambda: None,
    )
    jobs: list[str] = []

    def run_fio(job: str, **_: Any) -> dict[str, Any]:
        jobs.append(job)
        return answer(direction(90, 90), direction(90, 90))

    monkeypatch.setattr(fio_engine, "fio_version", lambda: "fio-3.33")
    monkeypatch.setattr(fio_engine, "run_fio", run_fio)
    claimed: Any = SimpleNamespace(run_directory=Path("/nowhere"), folder=SimpleNamespace(fd=99))
    return lambda: (jobs, FioEngine(own, claimed, None))


def times_ms(job: str) -> tuple[int, int]:
    """Of a job: runtime and ramp_time, as said last."""
    found = [re.findall(rf"\n{key}=(\d+)ms", job) for key in ("runtime", "ramp_time")]
    runtime, ramp = (int(values[-1]) if values else 0 for values in found)
    return runtime, ramp


@pytest.mark.parametrize(
    ("seconds", "arrivals", "think_time_s", "asked_ms"),
    [
        (0.5, Arrivals(), 0.0, (500, 1000)),
        (0.5, RATE, 0.0, (500, 250)),
        (0.5, Arrivals(), 0.01, (500, 0)),
        (600.0, Arrivals(), 0.0, (600_000, 60_000)),
    ],
    ids=["closed", "a rate", "a think time", "long"],
)
def test_the_ramp_is_one_that_fio_counts_right(
    seconds: float,
    arrivals: Arrivals,
    think_time_s: float,
    asked_ms: tuple[int, int],
    opened: Asked,
) -> None:
    jobs, engine = opened()
    limits = Limits(warm_up_s_max=max(2.0, seconds), measure_s_max=seconds, total_s_max=3600.0)
    workload = WORKLOAD.with_value("think_time_s", think_time_s)
    engine.run(workload, seed=1, limits=limits, arrivals=arrivals)
    text = write_job(workload, FioRun(arrivals=arrivals))
    engine.run_text(text, workload, seed=1, limits=limits)
    assert [times_ms(job) for job in jobs] == [asked_ms, asked_ms]


def test_a_run_that_the_time_limit_cut_says_so(opened: Asked) -> None:
    _, engine = opened()
    limits = Limits(warm_up_s_max=2.0, measure_s_max=5.0, total_s_max=3.0)
    result = engine.run(WORKLOAD, seed=1, limits=limits)
    assert any("time limit of 3 s left fio" in warning for warning in result.warnings)
    assert any(" s of 5 s" in warning for warning in result.warnings)


def test_a_time_limit_that_leaves_nothing_is_named(opened: Asked) -> None:
    _, engine = opened()
    limits = Limits(warm_up_s_max=20.0, measure_s_max=5.0, total_s_max=3.0)
    with pytest.raises(TargetRefused, match="time limit of 3 s was over after 0 s of layout"):
        engine.run(WORKLOAD, seed=1, limits=limits)


def test_a_think_time_beside_a_rate_is_refused_before_the_layout(
    opened: Asked, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, engine = opened()
    monkeypatch.setattr(engine.own, "lay_out", None)
    with pytest.raises(FioJobRefused, match="leave the think time or the rate out"):
        engine.run(WORKLOAD.with_value("think_time_s", 0.1), seed=1, limits=Limits(), arrivals=RATE)


@pytest.mark.parametrize("end", ["[b]\nsize=1m\n", "[global]\n"])
def test_a_persons_own_job_has_one_section_and_that_last(end: str, opened: Asked) -> None:
    jobs, engine = opened()
    with pytest.raises(TargetRefused, match="one job at a time"):
        engine.run_text(f"[a]\nsize=1m\n{end}", WORKLOAD, seed=1, limits=Limits())
    assert not jobs


@pytest.mark.parametrize("body", ["no program", "#!/bin/sh\nsleep 5\n"])
def test_a_fio_that_does_not_start_is_refused(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "fio"
    program.write_bytes(b"\x7fELF" if body == "no program" else body.encode())
    program.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda _: str(program))
    monkeypatch.setattr(fio_engine, "_VERSION_S", 0.2)
    with pytest.raises(TargetRefused, match="does not run"):
        fio_engine.fio_version()


def test_a_fio_that_cannot_be_started_leaves_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise PermissionError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    with pytest.raises(PermissionError, match="no more processes"):
        fio_engine.run_fio("[a]\n", directory=str(tmp_path), deadline_s=5)


@pytest.mark.parametrize("store", [None, "mine.sqlite"])
def test_the_benchmark_looks_for_a_stored_survey_where_it_lies(
    store: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = ROOT / "bench" / "fio_prediction.py"
    spec = importlib.util.spec_from_file_location("fio_prediction", path)
    assert spec is not None
    assert spec.loader is not None
    bench = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "fio_prediction", bench)
    spec.loader.exec_module(bench)

    def opened(url: str | None) -> None:
        raise LookupError(f"opened {url}")

    monkeypatch.setattr(bench, "open_store", opened)
    with pytest.raises(LookupError, match=f"opened {store}"):
        bench.run(argparse.Namespace(store=store, survey="s"), "/nowhere")
