"""The real engine through the client: small runs on this machine's disk, and simulated ones."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import msgspec
import pytest
from test_cgroup import here

from leadline.engine import Limits, Target, TargetRefused, open_engine, profile_names
from leadline.record import Access, EngineResult, Workload

MIB = 2**20
WORKLOAD = Workload(unique_bytes=64 * MIB, size_mean=32 * 1024)
SHORT = Limits(
    warm_up_s_max=1.0, measure_s_min=0.2, measure_s_max=5.0, accuracy=0.2, total_s_max=30.0
)
pytestmark = pytest.mark.skipif(
    not list(Path(sys.modules["leadline"].__path__[0]).glob("_engine*.so")),
    reason="the native module is not built",
)


@here
@pytest.mark.real
def test_a_run_in_a_small_cgroup(tmp_path: Path) -> None:
    """64 MiB of data in a group of 64 MiB, where the engine itself needs some of it."""
    seen: list[str] = []
    with open_engine(Target.parse(str(tmp_path)), Access(cache_limit_bytes=64 * MIB)) as engine:
        result = engine.run(
            WORKLOAD, seed=1, limits=SHORT, on_event=lambda event: seen.append(event["event"])
        )
        group = engine._child._group  # type: ignore[attr-defined]
        assert group.usage_bytes() <= 64 * MIB
        data = list(tmp_path.glob(".leadline/run-*/data.bin"))
        assert len(data) == 1
        assert data[0].stat().st_size >= 64 * MIB
        assert data[0].stat().st_blocks * 512 >= 64 * MIB, "really written, not a hole"
    assert result.throughput_mb_s.value > 0
    assert result.read.operations > 0
    assert result.write.operations > 0
    assert result.cache_resident_bytes is None or result.cache_resident_bytes <= 64 * MIB
    assert "phase" in seen
    assert not group.path.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
def test_two_runs_in_one_child(tmp_path: Path) -> None:
    with open_engine(Target.parse(str(tmp_path))) as engine:
        first = engine.run(WORKLOAD.with_value("unique_bytes", 8 * MIB), seed=1, limits=SHORT)
        second = engine.run(WORKLOAD.with_value("unique_bytes", 4 * MIB), seed=2, limits=SHORT)
    assert first.job_id != second.job_id
    assert list(tmp_path.iterdir()) == []


@pytest.mark.real
@pytest.mark.parametrize("read_frac", [1.0, 0.5], ids=["laid out", "written"])
@pytest.mark.parametrize("ratio", [1.0, 2.0, 10.0])
def test_data_compress_to_the_ratio_asked_for(
    tmp_path: Path, read_frac: float, ratio: float
) -> None:
    workload = Workload(unique_bytes=2**20, size_mean=4096, read_frac=read_frac, seq_frac=1.0)
    with open_engine(Target.parse(str(tmp_path)), Access(compress=ratio)) as engine:
        engine.run(workload, seed=1, limits=SHORT)
        (data,) = tmp_path.glob(".leadline/run-*/data.bin")
        content = data.read_bytes()
    records = [content[at : at + 2**17] for at in range(0, len(content), 2**17)]
    found = len(content) / sum(len(zlib.compress(record, 1)) for record in records)
    assert found == pytest.approx(ratio, rel=0.03)


@pytest.mark.parametrize("target", ["null:", "sim:two-level"])
def test_what_has_no_data_has_no_content(target: str) -> None:
    with pytest.raises(TargetRefused, match="--compress and --dedup say what data are"):
        open_engine(Target.parse(target), Access(dedup=0.5)).__enter__()


def test_the_null_target() -> None:
    with open_engine(Target.parse("null:")) as engine:
        assert engine.run(WORKLOAD, seed=1, limits=SHORT).iops.value > 0


def test_a_job_that_makes_no_sense_is_refused() -> None:
    with open_engine(Target.parse("null:")) as engine, pytest.raises(TargetRefused):
        engine.run(WORKLOAD, seed=1, limits=msgspec.structs.replace(SHORT, measure_s_max=-1.0))


SURVEYOR = """
import sys
import zlib
from leadline.engine import Limits, Stopped, Target, open_engine, stop_on_signals
from leadline.record import Workload
limits = Limits(measure_s_min=60, measure_s_max=60, total_s_max=120)
try:
    with stop_on_signals(), open_engine(Target.parse(sys.argv[1])) as engine:
        workload = Workload(unique_bytes=8 * 2**20, size_mean=32 * 1024)
        engine.run(
            workload, seed=1, limits=limits, on_event=lambda e: print(engine._child.pid, flush=True)
        )
except Stopped as stopped:
    raise SystemExit(stopped.exit_code)
"""


@pytest.mark.real
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_the_child_dies_with_its_controller(tmp_path: Path, number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SURVEYOR, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as controller:
        assert controller.stdout is not None
        child = os.pidfd_open(int(controller.stdout.readline()))
        controller.send_signal(number)
        controller.stdout.read()
    assert controller.returncode == (-9 if number == signal.SIGKILL else 3)
    # waitid refuses a child that is not ours; readable means ended.
    assert select.select([child], [], [], 60)[0], "the engine still runs"
    os.close(child)
    with open_engine(Target.parse(str(tmp_path))):
        assert len(list(tmp_path.glob(".leadline/run-*"))) == 1
    assert list(tmp_path.iterdir()) == []


def simulate(name: str, run_seed: int) -> list[EngineResult]:
    with open_engine(Target.parse(f"sim:{name}"), run_seed=run_seed) as engine:
        return [engine.run(WORKLOAD, seed=seed, limits=SHORT) for seed in (1, 2)]


def test_a_simulated_system_answers_by_its_seed() -> None:
    first = simulate("two-level", 1)
    assert simulate("two-level", 1) == first
    assert simulate("two-level", 2) != first
    assert first[0].simulated is not None
    assert first[1].simulated is not None
    assert 0 < first[0].simulated.clock_s < first[1].simulated.clock_s


def test_every_profile_is_taken() -> None:
    names = profile_names()
    assert len(names) == 26
    for name in names:
        target = Target.parse(f"sim:{name}")
        assert target.name == name
        with open_engine(target) as engine:
            assert 2**20 < engine.capacity_bytes < 2**40


@pytest.mark.parametrize(
    "spoil", ["[survey]\nunique_bytes_max = 'big'\n", "title = 1\n", "", "[device]\ndisks = -1\n"]
)
def test_a_profile_that_makes_no_sense(tmp_path: Path, spoil: str) -> None:
    (tmp_path / "mine.toml").write_text(spoil)
    with pytest.raises(TargetRefused, match=r"mine.toml: ") as refused:
        Target.parse(f"sim:{tmp_path}/mine.toml")
    assert "\n" not in str(refused.value)
