"""Opening a target and running workloads, with a fake engine on the wire."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from test_cgroup import here

import leadline
from leadline.engine import (
    CacheLimitRefused,
    EngineFault,
    Limits,
    Simulated,
    Stopped,
    Target,
    TargetRefused,
    child,
    open_engine,
    stop_on_signals,
)
from leadline.machine.facts import host_facts, target_facts
from leadline.record import Access, SimulatedFacts, Workload
from places import TESTS
from proving.samples import sample_result

FAKE = TESTS / "fake_child.py"
WORKLOAD = Workload(unique_bytes=2**20, size_mean=4096)
LIMITS = Limits(total_s_max=30)


def command(mode: str) -> list[str]:
    return [sys.executable, str(FAKE), mode]


def test_a_directory_from_open_to_close(tmp_path: Path) -> None:
    seen: list[dict[str, Any]] = []
    with open_engine(
        Target.parse(str(tmp_path)), max_bytes=2**30, command=command("writes")
    ) as engine:
        assert engine.capacity_bytes == 2**30
        assert engine.access.cache_limit_bytes is None
        result = engine.run(WORKLOAD, seed=1, limits=LIMITS, on_event=seen.append)
        data = list(tmp_path.glob(".leadline/run-*/data.bin"))
        assert [path.stat().st_size for path in data] == [2**20]
        assert 0 < engine.clock_s < 60
        engine.skip_to(1000.0)
        assert 1000.0 <= engine.clock_s < 1060
        assert engine.facts["filesystem_type"]
    assert result.throughput_mb_s.value == 100.0
    assert len(seen) == 2
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_left_after_a_fault_and_another_child_takes_over(tmp_path: Path) -> None:
    with open_engine(Target.parse(str(tmp_path)), command=command("dies")) as engine:
        for _ in range(2):
            with pytest.raises(EngineFault, match="exit code 7"):
                engine.run(WORKLOAD, seed=1, limits=LIMITS)
    assert list(tmp_path.iterdir()) == []


def test_a_signal_while_the_child_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A child that nobody knows of could not be ended."""
    started: list[child.EngineChild] = []

    engine_child = child.EngineChild

    def start(*arguments: Any) -> child.EngineChild:
        started.append(engine_child(*arguments))
        os.kill(os.getpid(), signal.SIGTERM)
        return started[-1]

    monkeypatch.setattr(child, "EngineChild", start)
    target = Target.parse(str(tmp_path))
    with (
        pytest.raises(Stopped),
        stop_on_signals(),
        open_engine(target, command=command("answers")) as engine,
    ):
        engine.run(WORKLOAD, seed=1, limits=LIMITS)
    assert [one.alive for one in started] == [False]
    assert list(tmp_path.iterdir()) == []


def test_a_result_that_is_not_whole() -> None:
    with (
        open_engine(Target.parse("null:"), command=command("half")) as engine,
        pytest.raises(EngineFault, match=r"does not fit the record: .*missing required field"),
    ):
        engine.run(WORKLOAD, seed=1, limits=LIMITS)


def test_more_than_the_capacity_is_refused(tmp_path: Path) -> None:
    with (
        open_engine(
            Target.parse(str(tmp_path)), max_bytes=2**20, command=command("answers")
        ) as engine,
        pytest.raises(TargetRefused, match="2 MiB is more than the 1 MiB that may be used"),
    ):
        engine.run(WORKLOAD.with_value("unique_bytes", 2**21), seed=1, limits=LIMITS)


@pytest.mark.parametrize(("target", "backend"), [("null:", "pread"), ("{place}", "null")])
def test_a_backend_that_does_not_fit(tmp_path: Path, target: str, backend: str) -> None:
    parsed = Target.parse(target.replace("{place}", str(tmp_path)))
    with (
        pytest.raises(TargetRefused, match=f"--backend {backend} does not work on"),
        open_engine(parsed, Access(backend=backend)),
    ):
        pytest.fail("opened")
    assert list(tmp_path.iterdir()) == []


def test_direct_needs_a_file() -> None:
    with (
        pytest.raises(TargetRefused, match="null: has no file: leave it out"),
        open_engine(Target.parse("null:"), Access(direct=True)),
    ):
        pytest.fail("opened")


@here
def test_the_child_is_in_its_group_before_the_first_job(tmp_path: Path) -> None:
    limit = 64 * 2**20
    with open_engine(
        Target.parse(str(tmp_path)), Access(cache_limit_bytes=limit), command=command("writes")
    ) as engine:
        engine.run(WORKLOAD.with_value("unique_bytes", 160 * 2**20), seed=1, limits=LIMITS)
        group = engine._child._group  # type: ignore[attr-defined]
        assert engine._child.pid in {  # type: ignore[attr-defined]
            int(pid) for pid in (group.path / "cgroup.procs").read_text().split()
        }
        assert limit / 2 < group.usage_bytes() <= limit
        assert engine.facts["cache_limit_bytes"] == engine.access.cache_limit_bytes == limit
    assert not group.path.exists()
    assert list(tmp_path.iterdir()) == []


@here
def test_want_of_memory_is_named(tmp_path: Path) -> None:
    with (
        open_engine(
            Target.parse(str(tmp_path)),
            Access(cache_limit_bytes=32 * 2**20),
            command=command("hog"),
        ) as engine,
        pytest.raises(EngineFault, match="more memory than its cgroup has; raise --cache-limit"),
    ):
        engine.run(WORKLOAD, seed=1, limits=LIMITS)
    assert list(tmp_path.iterdir()) == []


def simulated(monkeypatch: pytest.MonkeyPatch, jobs: list[dict[str, Any]]) -> Target:
    """Put an in-process engine in place that takes 2.5 virtual seconds for everything."""

    def run_job(text: str) -> list[str]:
        job = json.loads(text)
        jobs.append(job)
        facts = SimulatedFacts(truth_mb_s=100.0, clock_s=job["target"]["clock_s"] + 2.5)
        result = msgspec.structs.replace(sample_result(job["job_id"]), simulated=facts)
        phase = {"event": "phase", "job_id": job["job_id"]}
        return [json.dumps(phase), json.dumps({"event": "result"} | msgspec.to_builtins(result))]

    native = SimpleNamespace(run_job=run_job)
    monkeypatch.setitem(sys.modules, "leadline._engine", native)
    monkeypatch.setattr(leadline, "_engine", native, raising=False)
    profile = {"name": "two", "survey": {"unique_bytes_max": 2**24}}
    return Simulated(text="sim:two", profile=profile)


def noise(
    monkeypatch: pytest.MonkeyPatch, run_seed: int, seeds: list[int], skip_s: float = 0.0
) -> list[int]:
    jobs: list[dict[str, Any]] = []
    target = simulated(monkeypatch, jobs)
    with open_engine(target, run_seed=run_seed) as engine:
        engine.skip_to(skip_s)
        for seed in seeds:
            engine.run(WORKLOAD, seed=seed, limits=LIMITS)
        assert engine.clock_s == skip_s + 2.5 * len(seeds)
    return [job["target"]["run_seed"] for job in jobs]


def test_a_simulated_system_keeps_virtual_time(monkeypatch: pytest.MonkeyPatch) -> None:
    jobs: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []
    with open_engine(simulated(monkeypatch, jobs)) as engine:
        assert engine.capacity_bytes == 2**24
        for _ in range(3):
            engine.run(WORKLOAD, seed=1, limits=LIMITS, on_event=seen.append)
        assert engine.clock_s == 7.5
        assert engine.l3_cache_bytes is None
    assert [job["target"]["clock_s"] for job in jobs] == [0.0, 2.5, 5.0]
    assert jobs[0]["backend"] == {"name": "simulated", "direct": False}
    assert [event["event"] for event in seen] == ["phase"] * 3


def test_noise_follows_the_seed_and_survives_a_resume(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = noise(monkeypatch, 1, [7, 7, 7, 8])
    assert len(set(whole)) == 4, "replicates of one job differ"
    assert noise(monkeypatch, 1, [7, 7, 7, 8]) == whole
    assert noise(monkeypatch, 1, [7, 8], skip_s=5.0) == whole[2:], "a resume goes on alike"
    assert not set(noise(monkeypatch, 2, [7, 7, 7, 8])) & set(whole)
    assert noise(monkeypatch, 1, [8]) != noise(monkeypatch, 1, [7])


def test_a_cache_limit_on_a_simulated_system(monkeypatch: pytest.MonkeyPatch) -> None:
    target = simulated(monkeypatch, [])
    with (
        pytest.raises(CacheLimitRefused, match="its profile says"),
        open_engine(target, Access(cache_limit_bytes=2**30)),
    ):
        pytest.fail("opened")


def test_facts_are_plain_and_never_raise(tmp_path: Path) -> None:
    facts = host_facts() | target_facts(tmp_path) | target_facts("/proc")
    assert all(
        value is None or isinstance(value, str | int | float | bool) for value in facts.values()
    )
    assert facts["cpu_count"] > 0
    assert facts["memory_bytes"] > 2**26
    assert target_facts(tmp_path / "missing")["free_bytes"] is None
    assert msgspec.json.decode(msgspec.json.encode(facts)) == facts


def test_facts_of_the_mount(tmp_path: Path) -> None:
    facts = target_facts(tmp_path)
    lines = Path("/proc/mounts").read_text().splitlines()
    assert facts["filesystem_type"] in {line.split()[2] for line in lines}
    assert facts["mount_point"] in {line.split()[1] for line in lines}


def test_grace_is_shorter_than_what_a_budget_may_overrun() -> None:
    assert child.GRACE_S < 10


CONTROLLER = """
import sys
from leadline.engine import Limits, Target, open_engine
from leadline.record import Access, Workload
with open_engine(
    Target.parse(sys.argv[1]), Access(cache_limit_bytes=64 * 2**20), command=sys.argv[2:]
) as engine:
    workload = Workload(unique_bytes=2**20, size_mean=4096)
    engine.run(workload, seed=1, limits=Limits())
    print(engine._child._group.path, engine._child.pid, flush=True)
    sys.stdin.read()
"""


@here
def test_after_kill_the_next_start_removes_data_and_group(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CONTROLLER, str(tmp_path), *command("writes")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as controller:
        assert controller.stdout is not None
        group, pid = controller.stdout.readline().split()
        descriptor = os.pidfd_open(int(pid))
        controller.kill()
    assert select.select([descriptor], [], [], 30)[0], "the child still runs"
    os.close(descriptor)
    assert list(tmp_path.glob(".leadline/run-*/data.bin")), "the kill was meant to leave something"
    assert Path(group).is_dir()
    with open_engine(
        Target.parse(str(tmp_path)),
        Access(cache_limit_bytes=64 * 2**20),
        command=command("answers"),
    ):
        assert not Path(group).exists()
        assert not list(tmp_path.glob(".leadline/run-*/data.bin"))
    assert list(tmp_path.iterdir()) == []
