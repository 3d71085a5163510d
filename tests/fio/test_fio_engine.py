"""fio itself: what it does with a job is what was read from it, and it runs as safely as ours."""

from __future__ import annotations

import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from test_cgroup import here

from leadline.engine import (
    EngineFault,
    Limits,
    PointFailed,
    Target,
    TargetRefused,
    memory_cgroup,
    open_engine,
)
from leadline.engine import fio as fio_engine
from leadline.errors import NothingCompleted
from leadline.fio import FioRun, read_job, write_job
from leadline.fio.options import ALIASES, ANOTHER_WORKLOAD, MAPPED, WITHOUT_CONSEQUENCE
from leadline.record import Access, Arrivals, EngineResult, Workload
from leadline.stats import pooled_result

MIB = 2**20
with_fio = pytest.mark.skipif(
    shutil.which("fio") is None, reason="fio is not installed: apt-get install fio"
)
pytestmark = [with_fio, pytest.mark.real]
SHORT = Limits(
    warm_up_s_max=0.2, measure_s_min=0.1, measure_s_max=0.3, accuracy=0.5, total_s_max=60.0
)
MIXED = Workload(unique_bytes=16 * MIB, size_mean=32768, read_frac=0.8, seq_frac=0.3, process_num=2)


def ask_fio(job: str, directory: Path) -> dict[str, Any]:
    """Run a job file whose sections all run; the numbers of its only job."""
    done = subprocess.run(
        ["fio", "--output-format=json", "-"],
        input=job,
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr or done.stdout
    answer: dict[str, Any] = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    return answer


@pytest.mark.parametrize(
    "options",
    [
        "bs=4ki",
        "bs=4KiB",
        pytest.param("bs=0x1000", marks=pytest.mark.long),
        pytest.param("kb_base=1000\nbs=4kb", marks=pytest.mark.long),
        "bs=,8k",
        "bs=8k,32k",
        "rw=randrw\nbs=8k,32k",
        "bsrange=4k-16k",
        pytest.param("bsrange=4k-18k", marks=pytest.mark.long),
        "bsrange=3k-18k",
        "bsrange=4k-18k\nbs_unaligned=1",
        "bsrange=1k-4k,2k-8k\nrw=randrw",
        "bssplit=4k/10:64k/50:32k/",
        "bssplit=3k/50:4k/50",
        "bssplit=4k/10:16k/20",
        "bssplit=2k/50:4k/50,4k/90:8k/10\nrw=randrw\nrwmixread=30",
        "rw=randrw\nrwmixwrite=20",
    ],
)
def test_sizes_and_mix_are_those_that_fio_draws(options: str, tmp_path: Path) -> None:
    head = "[job]\nsize=64m\nrw=randread\nnorandommap\nnumber_ios=40000\nio_size=1t\n"
    (read,) = read_job(head + options)
    answer = ask_fio(f"{head}ioengine=null\n{options}\n", tmp_path)
    operations = sum(answer[kind]["total_ios"] for kind in ("read", "write"))
    assert operations >= 40000
    mean = sum(answer[kind]["io_bytes"] for kind in ("read", "write")) / operations
    rounding = 256 if read.workload.size_dist == "fixed" else 1
    assert read.workload.size_mean == pytest.approx(mean, rel=0.015, abs=rounding)
    assert read.workload.read_frac == pytest.approx(
        answer["read"]["total_ios"] / operations, abs=0.012
    )


@pytest.mark.parametrize(
    "options",
    [
        "rate_iops=500",
        "rate=2m",
        "rate_iops=500\nbssplit=4k/50:8k/50",
        pytest.param("rate=2m\nbssplit=4k/50:8k/50", marks=pytest.mark.long),
        pytest.param("rw=randrw\nrwmixread=80\nrate_iops=200", marks=pytest.mark.long),
        "rw=randrw\nrate_iops=300,100",
    ],
)
def test_fio_is_no_faster_than_a_linear_rate_as_it_was_read(options: str, tmp_path: Path) -> None:
    """That it is no slower either, a calm machine says."""
    head = "[job]\nsize=4m\nrw=randread\nnorandommap\ntime_based\nruntime=1\n"
    (read,) = read_job(head + options)
    answer = ask_fio(f"{head}ioengine=null\n{options}\n", tmp_path)
    kinds = [answer[kind]["iops"] for kind in ("read", "write")]
    assert read.arrivals.rate_per_s is not None
    assert 0 < sum(kinds) < 1.06 * read.arrivals.rate_per_s


@pytest.mark.parametrize(
    "workload",
    [
        MIXED,
        Workload(unique_bytes=MIB + 512, size_mean=3000, read_frac=0.0, seq_frac=1.0),
        Workload(unique_bytes=4 * MIB, size_mean=65536, size_dist="fixed", think_time_s=0.001),
    ],
    ids=["mixed", "small, odd, sequential", "think time"],
)
def test_a_written_job_runs_as_it_is_for_its_whole_time(workload: Workload, tmp_path: Path) -> None:
    answer = ask_fio(write_job(workload, FioRun(seconds=0.5, ramp_s=0.1)), tmp_path)
    data = tmp_path / "leadline-fio.bin"
    assert data.stat().st_size >= workload.unique_bytes - 511
    assert data.stat().st_blocks * 512 >= workload.unique_bytes - 511, "written, not a hole"
    assert [path.name for path in tmp_path.iterdir()] == ["leadline-fio.bin"]
    kinds = [answer["read"], answer["write"]]
    operations = sum(kind["total_ios"] for kind in kinds)
    assert max(kind["runtime"] for kind in kinds) >= 450
    assert sum(kind["io_bytes"] for kind in kinds) / operations == pytest.approx(
        workload.size_mean, rel=0.15
    )
    drawn = 0.01 + 5 * (workload.read_frac * (1 - workload.read_frac) / operations) ** 0.5
    assert kinds[0]["total_ios"] / operations == pytest.approx(workload.read_frac, abs=drawn)


def test_a_file_of_writes_alone_is_laid_out_whole_too(tmp_path: Path) -> None:
    """Twenty writes into 16 MiB would leave the rest a hole."""
    asked = Workload(unique_bytes=16 * MIB, size_mean=4096, read_frac=0.0, size_dist="fixed")
    run = FioRun(arrivals=Arrivals("constant", 100.0), seconds=0.2, ramp_s=0)
    ask_fio(write_job(asked, run), tmp_path)
    assert (tmp_path / "leadline-fio.bin").stat().st_blocks * 512 >= asked.unique_bytes


def test_sizes_shortened_at_the_end_of_a_small_file_are_foretold(tmp_path: Path) -> None:
    """Places of few requests' length; so many requests (10,000) that their mean is known to 1%."""
    asked = Workload(unique_bytes=2 * MIB, size_mean=MIB // 4, read_frac=1.0, seq_frac=0.0)
    job = write_job(asked, FioRun(seconds=30, ramp_s=0))
    job = job.replace("time_based=1", "io_size=2500m")
    (told,) = re.findall(r"the mean is (\d+) bytes", " ".join(job.replace("#", "").split()))
    assert int(told) < 0.95 * asked.size_mean
    answer = ask_fio(job, tmp_path)["read"]
    assert int(told) == pytest.approx(answer["io_bytes"] / answer["total_ios"], rel=0.03)


def test_the_engine_runs_on_its_own_file_and_leaves_nothing(tmp_path: Path) -> None:
    seen: list[str] = []
    with open_engine(Target.parse(str(tmp_path)), engine="fio") as engine:
        assert engine.facts["engine"].startswith("fio-")
        results = [
            engine.run(MIXED, seed=seed, limits=SHORT, on_event=lambda e: seen.append(e["event"]))
            for seed in (1, 2)
        ]
        (data,) = tmp_path.glob(".leadline/run-*/*")
        assert data.name == "data.bin"
        assert data.stat().st_blocks * 512 >= MIXED.unique_bytes
    assert list(tmp_path.iterdir()) == []
    assert "phase" in seen
    pooled = pooled_result(results)
    for result in (*results, pooled):
        assert result.throughput_mb_s.value == pytest.approx(
            result.iops.value * result.realised.size_mean / 1e6, rel=0.02
        )
        assert result.realised.read_frac == pytest.approx(0.8, abs=0.05)
        assert result.realised.seq_frac is None
        assert result.warm_up.steady is None
        assert result.cached_share is None
        assert result.latency_us.p50 <= result.latency_us.p99 <= result.latency_us.max
        assert result.read.latency_us is not None
        assert sum(count for _, count in result.read.histogram) == result.read.operations
        assert any("measured by fio: " in warning for warning in result.warnings)
    assert results[0].throughput_mb_s.low is None, "one run of fio has no interval"
    assert pooled.throughput_mb_s.low is not None


def test_a_histogram_of_fio_gives_fios_own_percentiles(tmp_path: Path) -> None:
    with open_engine(Target.parse(str(tmp_path)), engine="fio") as engine:
        one = engine.run(MIXED.with_value("read_frac", 1.0), seed=1, limits=SHORT)
    twice = pooled_result([one, one])
    for name in ("p50", "p90", "p99"):
        # fio's buckets are 1/64 of an octave wide, and its percentile is a bucket's middle.
        ours = getattr(twice.latency_us, name)
        assert ours == pytest.approx(getattr(one.latency_us, name), rel=0.04), name


@here
def test_fio_runs_inside_the_memory_cgroup(tmp_path: Path) -> None:
    with open_engine(
        Target.parse(str(tmp_path)), Access(cache_limit_bytes=64 * MIB), engine="fio"
    ) as engine:
        result = engine.run(MIXED.with_value("unique_bytes", 96 * MIB), seed=1, limits=SHORT)
    assert result.cache_resident_bytes is not None
    assert 16 * MIB < result.cache_resident_bytes <= 64 * MIB


@pytest.mark.parametrize(
    ("backend", "direct", "change"),
    [("uring", True, {"queue_depth": 8}), ("mmap", False, {}), ("pread", True, {})],
)
def test_every_backend_has_its_engine_in_fio(
    backend: str, direct: bool, change: dict[str, int], tmp_path: Path
) -> None:
    workload = MIXED
    for name, value in change.items():
        workload = workload.with_value(name, value)
    with open_engine(
        Target.parse(str(tmp_path)), Access(backend=backend, direct=direct), engine="fio"
    ) as engine:
        assert engine.run(workload, seed=1, limits=SHORT).iops.value > 0


def test_a_window_that_opens_late_for_direct_reads_is_laid_out_for_at_once(tmp_path: Path) -> None:
    late = Limits(
        warm_up_s_max=1.0, warm_up_s_min=1.0, measure_s_min=0.1, measure_s_max=0.3, accuracy=0.5
    )
    access = Access(direct=True)
    with open_engine(Target.parse(str(tmp_path)), access, engine="fio") as engine:
        result = engine.run(MIXED, seed=1, limits=late)
    assert result.iops.value > 0


def test_arrivals_are_no_faster_than_asked(tmp_path: Path) -> None:
    with open_engine(Target.parse(str(tmp_path)), engine="fio") as engine:
        result = engine.run(
            MIXED,
            seed=1,
            limits=Limits(warm_up_s_max=0.1, measure_s_max=1.0),
            arrivals=Arrivals("constant", 200.0),
        )
    assert 0 < result.iops.value < 1.25 * 200


def test_a_short_run_at_a_rate_is_timed(tmp_path: Path) -> None:
    """As `--rate 200 --seconds 0.3`: the longest warm-up is longer than the run."""
    with open_engine(Target.parse(str(tmp_path)), engine="fio") as engine:
        result = engine.run(
            MIXED,
            seed=1,
            limits=Limits(warm_up_s_max=2.0, measure_s_max=0.3),
            arrivals=Arrivals("poisson", 200.0),
        )
    assert result.latency_us.mean > 0


@pytest.mark.long
def test_every_other_name_of_an_option_is_known() -> None:
    """`fio --cmdhelp=KEY` tells one other name of each."""
    known = {*MAPPED, *WITHOUT_CONSEQUENCE, *ANOTHER_WORKLOAD}
    found = {}
    for key in sorted(known):
        told = subprocess.run(
            ["fio", f"--cmdhelp={key}"], capture_output=True, text=True, check=False, timeout=60
        ).stdout
        alias = re.search(r"^\s*alias: (\S+)", told, flags=re.MULTILINE)
        if alias is not None:
            found[alias[1]] = key
    assert len(found) > 10
    assert found.items() <= ALIASES.items()


# ---- what goes wrong ----------------------------------------------------------------------------


def stand_in(folder: Path, body: str) -> Path:
    """A program called fio that says its version and then does as told."""
    folder.mkdir()
    program = folder / "fio"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && {{ echo fio-9.9; exit 0; }}\ncat >/dev/null\n{body}\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return folder


def test_a_missing_fio_says_what_to_type(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(TargetRefused, match="apt-get install fio"),
        open_engine(Target.parse(str(tmp_path)), engine="fio"),
    ):
        pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("echo no such option >&2; exit 1", "no such option"),
        ("echo '{\"jobs\": []}'", "no result"),
        ("kill -9 $$", "exit code -9"),
        ("echo nonsense", "nonsense"),
    ],
)
def test_a_fio_that_fails_is_a_fault_with_its_words(
    body: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', body)}:{os.environ['PATH']}")
    with pytest.raises(EngineFault, match=said):
        fio_engine.run_fio("[a]\n", directory=str(tmp_path), deadline_s=100)


def test_a_fio_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    body = "trap '' TERM; while :; do sleep 0.1; done"
    monkeypatch.setattr(fio_engine, "_POLITE_S", 0.2)
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', body)}:{os.environ['PATH']}")
    with pytest.raises(EngineFault, match="no answer"):
        fio_engine.run_fio("[a]\n", directory=str(tmp_path), deadline_s=1.0)
    assert not running(tmp_path)


@here
def test_fio_is_inside_the_group_before_it_reads_its_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = "cat /proc/self/cgroup >&2; exit 1"
    monkeypatch.setenv("PATH", f"{stand_in(tmp_path / 'bin', body)}:{os.environ['PATH']}")
    with memory_cgroup(64 * MIB) as group, pytest.raises(EngineFault, match=group.path.name):
        fio_engine.run_fio("[a]\n", directory=str(tmp_path), deadline_s=100, group=group)


def test_a_data_file_that_vanished_is_not_made_by_fio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without_file(job: str, **options: Any) -> dict[str, Any]:
        (Path(options["directory"]) / "data.bin").unlink()
        return run_fio(job, **options)

    run_fio = fio_engine.run_fio
    monkeypatch.setattr(fio_engine, "run_fio", without_file)
    with (
        open_engine(Target.parse(str(tmp_path)), engine="fio") as engine,
        pytest.raises((PointFailed, EngineFault), match="allow_file_create"),
    ):
        engine.run(MIXED, seed=1, limits=SHORT)


def test_a_persons_own_job_runs_on_our_file_with_our_times(tmp_path: Path) -> None:
    text = "[a]\nfilename=mine.bin\nsize=4m\nrw=randrw\nrwmixread=30\nbs=8k\nruntime=1h\n"
    (job,) = read_job(text)
    with open_engine(Target.parse(str(tmp_path)), engine="fio") as engine:
        assert isinstance(engine, fio_engine.FioEngine)
        result = engine.run_text(text, job.workload, seed=1, limits=SHORT)
    assert result.realised.size_mean == 8192
    assert result.realised.read_frac == pytest.approx(0.3, abs=0.05)
    assert list(tmp_path.iterdir()) == []


def test_a_layout_in_whose_window_nothing_ended_is_read_for_longer(tmp_path: Path) -> None:
    (job,) = read_job("[a]\nsize=4m\nrw=randread\nbs=8k\n")
    with open_engine(Target.parse(str(tmp_path)), engine="fio") as engine:
        assert isinstance(engine, fio_engine.FioEngine)
        lay_out, windows = engine.own.lay_out, list[float]()

        def stalled(workload: Workload, *, limits: Limits, **told: Any) -> EngineResult:
            windows.append(limits.measure_s_max)
            if len(windows) == 1:
                raise NothingCompleted("a stall")
            return lay_out(workload, limits=limits, **told)

        engine.own.lay_out = stalled  # type: ignore[method-assign]
        assert engine.run(job.workload, seed=1, limits=SHORT).realised.size_mean == 8192
    assert windows[1] > windows[0]


def test_a_job_that_fio_refuses_is_a_fault_with_its_words(tmp_path: Path) -> None:
    run = FioRun(filename="absent.bin", seconds=0.2, ramp_s=0, options={"allow_file_create": 0})
    with pytest.raises((PointFailed, EngineFault), match="allow_file_create"):
        fio_engine.run_fio(write_job(MIXED, run), directory=str(tmp_path), deadline_s=100)
    assert list(tmp_path.iterdir()) == []


STARTER = """
import sys
from leadline.engine import fio
from leadline.fio import FioRun, write_job
from leadline.record import Workload
job = write_job(Workload(unique_bytes=2**20, size_mean=4096), FioRun(seconds=60, ramp_s=0))
print("started", flush=True)
fio.run_fio(job, directory=sys.argv[1], deadline_s=90)
"""


def running(directory: Path) -> set[str]:
    """Processes called fio that work in a directory."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            name = (process / "comm").read_text().strip()
            if name == "fio" and (process / "cwd").resolve() == directory.resolve():
                found.add(process.name)
        except OSError:
            continue
    return found


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_fio_dies_with_whoever_asked_for_it(number: int, tmp_path: Path) -> None:
    asker = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert asker.stdout is not None
        assert asker.stdout.readline() == b"started\n"
        wait_until(lambda: bool(running(tmp_path)))
        asker.send_signal(number)
        asker.wait(60)
        wait_until(lambda: not running(tmp_path))
    finally:
        asker.kill()
        asker.wait(60)


def wait_until(condition: Any, tries: int = 1200) -> None:
    for _ in range(tries):
        if condition():
            return
        select.select([], [], [], 0.05)
    raise AssertionError("it did not come to pass")


@pytest.mark.parametrize("target", ["null:", "sim:two-level"])
def test_only_a_directory_is_for_fio(target: str) -> None:
    with (
        pytest.raises(TargetRefused, match="needs a directory"),
        open_engine(Target.parse(target), engine="fio"),
    ):
        pass


def test_preconditioning_is_refused(tmp_path: Path) -> None:
    with (
        open_engine(Target.parse(str(tmp_path)), engine="fio") as engine,
        pytest.raises(TargetRefused, match="--precondition"),
    ):
        engine.run(MIXED, seed=1, limits=SHORT, precondition_bytes_max=MIB)
