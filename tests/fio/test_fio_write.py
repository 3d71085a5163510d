"""A workload written as a fio job comes back as the same workload, within the stated rounding."""

from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leadline.fio import FioJobRefused, FioRun, read_job, write_job
from leadline.fio.sizes import SPLIT_MAX, normal_split
from leadline.record import Arrivals, Workload

MIB = 2**20
SHARES = st.floats(0, 1)


@st.composite
def workloads(draw: st.DrawFn) -> Workload:
    unique_bytes = draw(st.integers(64, 2**22)) * 512
    dist = draw(st.sampled_from(["normal", "fixed"]))
    most = unique_bytes // 4 if dist == "normal" else unique_bytes
    size = draw(st.integers(4096, max(most, 4096)))
    return Workload(
        unique_bytes=unique_bytes,
        size_mean=size // 512 * 512 if dist == "fixed" else size,
        read_frac=draw(SHARES),
        seq_frac=draw(SHARES),
        process_num=draw(st.integers(1, 64)),
        size_dist=dist,  # type: ignore[arg-type]
        queue_depth=draw(st.integers(1, 64)),
        think_time_s=draw(st.sampled_from([0.0, 0.0, 1e-5, 0.25])),
    )


@settings(max_examples=150, deadline=None)
@given(workloads(), st.booleans())
def test_reading_what_was_written_gives_the_workload_back(asked: Workload, direct: bool) -> None:
    backend = "uring" if asked.queue_depth > 1 else "pread"
    (job,) = read_job(write_job(asked, FioRun(backend=backend, direct=direct, seconds=7)))
    got = job.workload
    assert (got.unique_bytes, got.process_num) == (asked.unique_bytes, asked.process_num)
    assert got.size_dist == asked.size_dist
    assert got.size_mean == asked.size_mean or (
        asked.size_dist == "normal" and abs(got.size_mean - asked.size_mean) <= 0.01 * 512 + 1
    )
    assert got.read_frac == pytest.approx(asked.read_frac, abs=0.005001)
    in_step = 0.01 if asked.process_num > 1 and asked.seq_frac >= 0.995 else 0.0
    assert got.seq_frac == pytest.approx(asked.seq_frac, abs=0.005001 + in_step)
    assert got.think_time_s == pytest.approx(asked.think_time_s, abs=1e-6)
    depth = 1 if asked.think_time_s else asked.queue_depth
    assert got.queue_depth == depth
    assert (job.access.backend, job.access.direct, job.seconds) == (backend, direct, 7.0)
    assert not [each for each in job.findings if each.code not in ("differs", "own_files")]


@settings(max_examples=100, deadline=None)
@given(st.integers(512, 2**24), st.integers(13, 34), st.sampled_from([512, 4096]))
def test_the_split_has_the_mean_and_is_one_that_fio_takes(
    size_mean: int, log2_bytes: int, granule: int
) -> None:
    unique_bytes = 2**log2_bytes
    split = normal_split(size_mean, unique_bytes, granule)
    assert len(split) <= SPLIT_MAX
    assert sum(percent for _, percent in split) == 100
    assert all(size % granule == 0 and granule <= size <= unique_bytes for size, _ in split)
    assert all(percent >= 1 for _, percent in split)
    wanted = min(max(size_mean, granule), unique_bytes)
    mean = sum(size * percent for size, percent in split) / 100
    if len(split) > 1:
        assert abs(mean - wanted) <= 0.01 * granule


@pytest.mark.parametrize("size_mean", [2048, 32768, MIB])
def test_the_split_has_the_engines_variation_and_quantiles(size_mean: int) -> None:
    """sizes.rs derives a CV of 0.6163 far from both ends; near one granule it is smaller."""
    split = normal_split(size_mean, 256 * MIB, 512)
    square = sum(size**2 * percent for size, percent in split) / 100
    cv = (square / size_mean**2 - 1) ** 0.5
    assert cv == pytest.approx(0.6163, abs=0.06 if size_mean < 4096 else 0.01)
    # The median of a normal (s, s) cut at 0, of mean 1.2876 s, is 1.2002 s.
    below, median = 0, 0
    for size, percent in split:
        below += percent
        if below >= 50:
            median = size
            break
    assert median / size_mean == pytest.approx(
        1.2002 / 1.2876, abs=0.1 if size_mean < 4096 else 0.03
    )


@pytest.mark.parametrize("size_mean", [512, 100_000])
def test_requests_that_are_all_alike_need_no_split(size_mean: int) -> None:
    text = write_job(Workload(unique_bytes=65536, size_mean=size_mean))
    assert f"\nbs={min(size_mean, 65536)}\n" in text
    assert "bssplit" not in text


@pytest.mark.parametrize(
    ("arrivals", "line"),
    [
        (Arrivals("poisson", 1000.0), "rate_iops=175,75"),
        (Arrivals("constant", 1000.0), f"rate={175 * 4096},{75 * 4096}"),
    ],
)
def test_a_rate_is_shared_out_and_comes_back(arrivals: Arrivals, line: str) -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096, read_frac=0.7, process_num=4)
    text = write_job(asked, FioRun(arrivals=arrivals))
    assert f"\n{line}\n" in text
    (job,) = read_job(text)
    assert job.arrivals.kind == arrivals.kind
    assert job.arrivals.rate_per_s == pytest.approx(1000.0, rel=1e-3)
    assert job.workload.read_frac == pytest.approx(0.7)


def test_a_ramp_beside_a_think_time_is_left_out() -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096)
    assert "ramp_time=10000ms" in write_job(asked)
    assert "ramp_time=" not in write_job(asked.with_value("think_time_s", 0.001)).split("[")[1]


def test_the_head_says_what_differs_and_nothing_else() -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096, size_dist="fixed", read_frac=1.0, seq_frac=0)
    head = write_job(asked).split("[")[0]
    assert "size_mean=4096" in head
    assert head.count("\n# - ") == 1, "only that the cache is warmed otherwise"
    odd = write_job(
        asked.with_value("read_frac", 0.123)
        .with_value("seq_frac", 1.0)
        .with_value("process_num", 2)
    ).split("[")[0]
    for said in (
        "read_frac is 0.12 instead of 0.123",
        "1% of the requests are random",
        "its own kind",
    ):
        assert said in " ".join(odd.split()).replace("# ", "")


def test_processes_that_would_walk_in_step_do_not() -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096, read_frac=1.0, seq_frac=1.0)
    assert "\nrw=read\n" in write_job(asked)
    assert "percentage_random=1\n" in write_job(asked.with_value("process_num", 2))


@pytest.mark.parametrize("sync", ["none", "dsync", "fsync=1", "fsync=32"])
def test_writes_wait_as_they_were_asked_to(sync: str) -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096, read_frac=0.5)
    (job,) = read_job(write_job(asked, FioRun(sync=sync)))
    assert job.access.sync == sync


def test_data_are_as_they_were_asked_for() -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096, read_frac=0.5)
    (job,) = read_job(write_job(asked, FioRun(compress=4.0, dedup=0.3)))
    assert (job.access.compress, job.access.dedup) == (4.0, 0.3)
    assert "buffer_compress" not in write_job(asked)


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (FioRun(backend="simulated"), "simulated"),
        (FioRun(backend="mmap", direct=True), "by its nature"),
        (FioRun(backend="mmap", sync="dsync"), "--sync fsync=1"),
    ],
)
def test_what_a_job_file_cannot_hold_is_refused(run: FioRun, said: str) -> None:
    with pytest.raises(FioJobRefused, match=said):
        write_job(Workload(unique_bytes=MIB, size_mean=4096), run)


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ({"filename": "/data/a;b"}, "comments"),
        ({"filename": "/data/a\nexec_prerun=touch x"}, "comments"),
        ({"filename": " "}, "cannot hold"),
        ({"name": "global"}, "name"),
        ({"name": "a]b"}, "name"),
        ({"name": "a\nexec_prerun=touch x"}, "name"),
    ],
)
def test_no_writer_of_job_files_can_be_given_such_a_name(names: dict[str, str], said: str) -> None:
    """`write_job` and `write_streams` take the same `FioRun`, which cannot be made."""
    with pytest.raises(FioJobRefused, match=said):
        FioRun(**names)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("change", "run", "said"),
    [
        ({"queue_depth": 8}, FioRun(), "needs --backend uring"),
        ({"queue_depth": 8}, FioRun(backend="mmap"), "needs --backend uring"),
        ({"think_time_s": 0.01}, FioRun(arrivals=Arrivals("poisson", 9.0)), "leave the think time"),
    ],
)
def test_what_a_measurement_refuses_is_not_written(
    change: dict[str, float], run: FioRun, said: str
) -> None:
    asked = Workload(unique_bytes=MIB, size_mean=4096)
    for name, value in change.items():
        asked = asked.with_value(name, value)
    with pytest.raises(FioJobRefused, match=said):
        write_job(asked, run)


@pytest.mark.parametrize(
    ("backend", "engine"), [("pread", "psync"), ("uring", "io_uring"), ("mmap", "mmap")]
)
def test_every_backend_is_written_as_its_engine(backend: str, engine: str) -> None:
    text = write_job(Workload(unique_bytes=MIB, size_mean=4096), FioRun(backend=backend))
    assert f"\nioengine={engine}\n" in text


@pytest.mark.parametrize(
    ("arrivals", "ramp_ms"), [(Arrivals(), 2000), (Arrivals("constant", 50.0), 250)]
)
def test_a_rate_does_not_end_inside_its_ramp(arrivals: Arrivals, ramp_ms: int) -> None:
    run = FioRun(arrivals=arrivals, seconds=0.5, ramp_s=2.0)
    text = write_job(Workload(unique_bytes=MIB, size_mean=4096), run)
    assert f"\nramp_time={ramp_ms}ms\n" in text


def test_a_colon_in_a_file_name_is_no_list_of_files() -> None:
    text = write_job(Workload(unique_bytes=MIB, size_mean=4096), FioRun(filename="/a:b/c"))
    assert "filename=/a\\:b/c\n" in text
    assert not [each for each in read_job(text)[0].findings if "files" in str(each)]


def test_reading_and_writing_jobs_is_not_paid_for_by_who_does_neither() -> None:
    code = "import sys, leadline.fio; sys.exit('scipy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0
