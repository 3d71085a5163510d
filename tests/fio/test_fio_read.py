"""A fio job file means here what it means to fio, and what does not map is said by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.fio import FioJobRefused, FioWorkload, read_job
from leadline.fio.quantities import read_bytes, read_seconds
from leadline.record import Arrivals, Workload

QUIET = "norandommap\ninvalidate=0\nfadvise_hint=0\nfilename=f\n"
"""What takes away the warnings that fio's defaults deserve."""


def one(options: str, *, quiet: bool = True) -> FioWorkload:
    (job,) = read_job(f"[job]\nsize=64m\n{QUIET if quiet else ''}{options}")
    return job


def named(job: FioWorkload, text: str) -> str:
    """The only warning that holds the text."""
    (found,) = [said for said in map(str, job.findings) if text in said]
    return found


# ---- numbers ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "kb_base", "value"),
    [
        ("4096", 1024, 4096),
        ("4k", 1024, 4096),
        ("4K", 1024, 4096),
        ("4kb", 1024, 4096),
        ("4kB", 1024, 4096),
        ("4096B", 1024, 4096),
        ("1m", 1024, 2**20),
        ("1g", 1024, 2**30),
        ("2t", 1024, 2**41),
        ("0x1000", 1024, 4096),
        ("4kib", 1024, 4000),
        ("1MiB", 1024, 10**6),
        ("4ki", 1024, 4096),
        ("4kb", 1000, 4000),
        ("4k", 1000, 4000),
        ("4KiB", 1000, 4096),
        ("1gib", 1000, 2**30),
    ],
)
def test_a_size_is_read_as_fio_reads_it(text: str, kb_base: int, value: int) -> None:
    assert read_bytes("bs", text, kb_base) == value


@pytest.mark.parametrize(
    "text", ["1.5g", "4 k", " 4k", "k", "", "4x", "4kk", "(2*4k)", "50%", "1e3"]
)
def test_a_size_that_fio_reads_as_something_else_is_refused(text: str) -> None:
    with pytest.raises(FioJobRefused, match="write"):
        read_bytes("size", text)


@pytest.mark.parametrize("text", ["1.5g", "4 k", "1e3"])
def test_the_refusal_says_where_fio_stops_reading(text: str) -> None:
    with pytest.raises(FioJobRefused, match="stops at blanks"):
        read_bytes("size", text)


@pytest.mark.parametrize(
    ("text", "unit", "seconds"),
    [
        ("30", "s", 30),
        ("30", "us", 3e-5),
        ("2m", "s", 120),
        ("250ms", "us", 0.25),
        ("1h", "s", 3600),
        ("100usec", "s", 1e-4),
        ("1d", "s", 86400),
        ("5sec", "us", 5),
    ],
)
def test_a_time_without_a_unit_has_the_options_own(text: str, unit: str, seconds: float) -> None:
    assert read_seconds("runtime", text, default_unit=unit) == pytest.approx(seconds)


# ---- sections -----------------------------------------------------------------------------------


def test_a_job_inherits_the_globals_above_it_and_only_those() -> None:
    first, second = read_job(
        "; a comment\n[global]\nsize=1g ; here\nbs=8k\nrw=randread\n[a]\nbs=16k # there\n"
        "[global-too]\nbs=32k\n[b]\n"
    )
    assert (first.workload.size_mean, second.workload.size_mean) == (16384, 32768)
    assert first.workload.unique_bytes == second.workload.unique_bytes == 2**30
    assert first.workload.seq_frac == second.workload.seq_frac == 0.0
    assert (first.name, second.name) == ("a", "b")


@pytest.mark.parametrize(
    ("options", "files"), [("filename=b", 2), ("filename=b:c", 3), ("filename=b\nfilename=a", 3)]
)
def test_a_file_name_is_added_to_those_before_it(options: str, files: int) -> None:
    (job,) = read_job(f"[global]\nfilename=a\n[job]\nsize=1m\n{options}\n")
    assert named(job, f"{files} files")


def test_what_a_job_says_again_counts_as_said_last() -> None:
    (job,) = read_job(
        "[global]\nsize=1m\nrw=randrw\nrwmixread=70\nrwmixwrite=20\n[a]\nrwmixread=60"
    )
    assert job.workload.read_frac == 0.6


def test_a_blank_after_the_equals_sign_of_a_bare_number_does_no_harm() -> None:
    assert one("rw=randrw\nrwmixread = 70\nnumjobs =2").workload.read_frac == 0.7


def test_a_path_and_the_environment_are_read(tmp_path: Path) -> None:
    path = tmp_path / "job.fio"
    path.write_text("[a]\nsize=${SIZE}\nnumjobs=2\nfilename=x\n", encoding="utf-8")
    assert read_job(path, environment={"SIZE": "8m"})[0].workload.unique_bytes == 8 * 2**20
    with pytest.raises(FioJobRefused, match="SIZE"):
        read_job(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no job"),
        ("[global]\nsize=1m\n", "no job"),
        ("size=1m\n", "line 1"),
        ("[a\nsize=1m\n", "section"),
        ("[a]\ninclude b.fio\n", "include"),
        ("[a]\nsize = 64m\n", "write size=64m"),
        ("[a]\nsize=8*$mb_memory\n", "keywords"),
        ("[a]\nsize=(1+1)\n", "expressions"),
        ("[a]\nrw=read\n", "size"),
        ("[a]\nsize=20%\n", "percentage"),
        ("[a]\nsize=1m\nrw=randtrim\n", "trim"),
        ("[a]\nsize=1m\nrw=backwards\n", "rw=backwards"),
        ("[a]\nsize=1m\nioengine=rbd\n", "ioengine=rbd"),
        ("[a]\nsize=1m\nrate=1m\nrate_iops=5\n", "exclude"),
        ("[a]\nsize=1m\nrw=randrw\nrwmixread=120\n", "0 to 100"),
        ("[a]\nsize=1m\nbssplit=4k/60:8k/60\n", "above 100"),
        ("[a]\nsize=1m\nnumjobs=5000\n", "numjobs"),
        ("[a]\nsize=100\nbs=64\n", "unique_bytes"),
        ("[a]\nsize=4k\nbs=8k\n", "do not fit"),
        ("[a]\nsize=1m\nfilesize=4k\nbssplit=8k/50:16k/50\n", "do not fit"),
        ("[a]\nsize=1m\nkb_base=1010\n", "1000 or 1024"),
        ("[a]\nsize=1m\nfilename=\n", "empty name"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_reason(text: str, said: str) -> None:
    with pytest.raises(FioJobRefused, match=said) as refusal:
        read_job(text)
    assert refusal.value.exit_code == 2


# ---- what maps ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "read_frac", "seq_frac"),
    [
        ("", 1.0, 1.0),
        ("rw=write", 0.0, 1.0),
        ("rw=randread", 1.0, 0.0),
        ("rw=randwrite", 0.0, 0.0),
        ("readwrite=rw", 0.5, 1.0),
        ("rw=randrw\nrwmixread=70", 0.7, 0.0),
        ("rw=randrw\nrwmixwrite=70", 0.3, 0.0),
        ("rw=randrw\nrwmixread=70\nrwmixwrite=60", 0.4, 0.0),
        ("rw=randrw\nrwmixwrite=60\nrwmixread=70", 0.7, 0.0),
        ("rw=read\nrwmixread=70", 1.0, 1.0),
        ("rw=randread\npercentage_random=30", 1.0, 0.7),
        ("rw=read\npercentage_random=30", 1.0, 1.0),
        ("rw=randwrite\npercentage_random=10,40", 0.0, 0.6),
        ("rw=randrw\npercentage_random=20,60", 0.5, 0.6),
        ("rw=randread:8", 1.0, 0.875),
        ("rw=randread:4\npercentage_random=50", 1.0, 0.875),
    ],
)
def test_the_pattern(options: str, read_frac: float, seq_frac: float) -> None:
    workload = one(options).workload
    assert workload.read_frac == pytest.approx(read_frac)
    assert workload.seq_frac == pytest.approx(seq_frac)


@pytest.mark.parametrize(
    ("options", "unique_mib", "process_num"),
    [
        ("numjobs=4\nfilename=f", 64, 4),
        ("numjobs=4", 256, 4),
        ("filesize=8m\nnrfiles=4", 32, 1),
        ("filesize=1g", 64, 1),
        ("filesize=8m\nfilename=a:b", 16, 1),
        ("filesize=4m-8m", 6, 1),
        ("nrfiles=16", 64, 1),
    ],
)
def test_the_bytes_are_those_of_all_files_together(
    options: str, unique_mib: int, process_num: int
) -> None:
    workload = one(options, quiet=False).workload
    assert workload.unique_bytes == unique_mib * 2**20
    assert workload.process_num == process_num


@pytest.mark.parametrize(
    ("options", "backend", "direct", "depth"),
    [
        ("", "pread", False, 1),
        ("ioengine=sync\ndirect=1", "pread", True, 1),
        ("ioengine=pvsync2\niodepth=32", "pread", False, 1),
        ("ioengine=io_uring\niodepth=32", "uring", False, 32),
        ("ioengine=libaio\niodepth=32\nbuffered=0", "uring", True, 32),
        ("ioengine=libaio\niodepth=32", "pread", False, 1),
        ("ioengine=mmap", "mmap", False, 1),
        ("direct=1\nbuffered=1", "pread", False, 1),
    ],
)
def test_the_engine_and_its_depth(options: str, backend: str, direct: bool, depth: int) -> None:
    job = one(options)
    assert (job.access.backend, job.access.direct, job.workload.queue_depth) == (
        backend,
        direct,
        depth,
    )
    ignored = "iodepth=32" in options and depth == 1
    assert any("does nothing" in str(each) for each in job.findings) == ignored


def test_a_write_that_fio_ends_after_one_pass_is_told() -> None:
    assert any("--max-written" in str(each) for each in one("rw=randwrite").findings)
    assert not one("rw=randwrite\ntime_based=1").findings


@pytest.mark.parametrize(
    ("options", "sync", "said"),
    [
        ("", "none", None),
        ("fsync=8", "fsync=8", None),
        ("fsync=0\nsync=0", "none", None),
        ("sync=none", "none", None),
        ("sync=dsync", "dsync", None),
        ("sync=1", "dsync", "O_SYNC in fio"),
        ("sync=sync\nfsync=8", "dsync", "fsync beside sync"),
        ("fdatasync=4", "fdatasync=4", None),
        ("fdatasync=4\nfsync=2", "fsync=2", "the more frequent one"),
        ("fdatasync=2\nfsync=2", "fsync=2", "the more frequent one"),
        ("fdatasync=1\nfsync=2", "fdatasync=1", "the more frequent one"),
    ],
)
def test_writes_wait_as_the_job_has_it(options: str, sync: str, said: str | None) -> None:
    job = one(f"rw=randrw\ntime_based=1\n{options}")
    assert job.access.sync == sync
    assert bool(job.findings) is (said is not None)
    assert said is None or any(said in str(each) for each in job.findings)
    reads = one(f"rw=randread\n{options}")
    assert (reads.access.sync, reads.findings) == ("none", ()), "nothing is written"


@pytest.mark.parametrize("option", ["sync=3", "fsync=-1", "fsync=2000000", "fdatasync=often"])
def test_a_wait_that_fio_does_not_take_is_refused(option: str) -> None:
    with pytest.raises(FioJobRefused, match=option.partition("=")[0]):
        one(f"rw=randwrite\n{option}")


@pytest.mark.parametrize(
    ("options", "mean", "dist"),
    [
        ("", 4096, "fixed"),
        ("bs=128k", 131072, "fixed"),
        ("bs=8k,32k", 8192, "fixed"),
        ("rw=randrw\nrwmixread=75\nbs=8k,32k", 14336, "normal"),
        ("rw=randrw\nbs=,8k", 6144, "normal"),
        ("bsrange=4k-16k", 10240, "normal"),
        ("bsrange=4k-18k", 11150, "normal"),
        ("bssplit=4k/50:8k/50", 6144, "4096/50:8192/50"),
        ("bssplit=4k/90:8k/10", 4506, "4096/90:8192/10"),
        ("bssplit=4k/10:64k/50:32k/", 46285, "4096/10:32768/40:65536/50"),
        ("bssplit=1000/50:8k/50\nbs_unaligned=1", 4596, "normal"),
        ("bssplit=3k/50:4k/50", 3072, "fixed"),
        ("rw=randwrite\nbssplit=4k/100,16k/100", 16384, "fixed"),
        ("kb_base=1000\nbs=4KiB", 4096, "fixed"),
        ("bs=4KiB", 4096, "fixed"),
    ],
)
def test_the_sizes_have_fios_mean(options: str, mean: int, dist: str) -> None:
    workload = one(options).workload
    assert workload.size_mean == pytest.approx(mean, abs=1)
    assert str(workload.size_dist) == dist


@pytest.mark.parametrize("options", ["bsrange=4k-16k", "bssplit=700/50:8k/50", "rw=rw\nbs=4k,8k"])
def test_sizes_without_an_exact_workload_are_named(options: str) -> None:
    assert "mean" in named(one(options), "approximated:")


def test_kib_is_a_thousand_bytes_to_fio_and_is_said() -> None:
    assert "kb_base=1000" in named(one("bs=4KiB"), "4000 bytes")


@pytest.mark.parametrize(
    ("options", "think_time_s", "depth"),
    [
        ("thinktime=500", 5e-4, 1),
        ("thinktime=2ms", 2e-3, 1),
        ("thinktime=1s\nthinktime_blocks=4", 0.25, 1),
        ("thinktime=1ms\nioengine=io_uring\niodepth=8", 1e-3, 1),
    ],
)
def test_think_time(options: str, think_time_s: float, depth: int) -> None:
    workload = one(options).workload
    assert workload.think_time_s == pytest.approx(think_time_s)
    assert workload.queue_depth == depth


@pytest.mark.parametrize(
    ("options", "kind", "rate_per_s"),
    [
        ("rate_iops=100\nnumjobs=4", "constant", 400),
        ("rate=1m\nbs=4k", "constant", 256),
        ("rate_iops=100\nrate_process=poisson", "poisson", 100),
        ("rate_iops=300\nbssplit=4k/50:8k/50", "constant", 200),
        ("rate_iops=300\nbssplit=4k/50:8k/50\nrate_process=poisson", "poisson", 300),
        ("rate=1m\nbssplit=4k/50:8k/50\nrate_process=poisson", "poisson", 256),
        ("rw=randrw\nrate_iops=100", "constant", 200),
        ("rw=randrw\nrate_iops=300,100", "constant", 400),
    ],
)
def test_a_rate_is_of_each_process_and_direction(
    options: str, kind: str, rate_per_s: float
) -> None:
    arrivals = one(options).arrivals
    assert arrivals.kind == kind
    assert arrivals.rate_per_s == pytest.approx(rate_per_s)


def test_rates_decide_the_mix() -> None:
    job = one("rw=randrw\nrwmixread=50\nrate_iops=300,100")
    assert job.workload.read_frac == pytest.approx(0.75)
    assert "rwmixread" in named(job, "75%")


def test_a_rate_of_one_direction_alone_is_not_mapped() -> None:
    job = one("rw=randrw\nrate=1m,")
    assert job.arrivals == Arrivals()
    assert "only" in named(job, "not mapped: rate=1m,")


def test_the_run_has_the_jobs_times() -> None:
    assert one("runtime=2m\nramp_time=500ms\ntime_based").seconds == 120.0
    assert one("timeout=90").seconds == 90.0
    assert one("").seconds is None


# ---- what does not map --------------------------------------------------------------------------


def test_a_clean_job_has_no_warning() -> None:
    job = one("rw=randrw\nbs=8k\ngroup_reporting\ntime_based\nruntime=10\ndescription=x\nthread")
    assert job.findings == ()
    assert job.workload == Workload(
        unique_bytes=64 * 2**20, size_mean=8192, read_frac=0.5, seq_frac=0.0, size_dist="fixed"
    )


@pytest.mark.parametrize(
    "option",
    [
        "sync_file_range=wait_after:8",
        "verify=crc32c",
        "zonemode=strided",
        "wait_for=other",
        "offset=1g",
        "number_ios=5",
        "zero_buffers=1",
        "iodepth_batch=8",
        "bs_is_seq_rand=1",
        "latency_target=5ms",
        "thinktime_spin=5",
        "create_only=1",
        "ba=64k\nrw=randread",
        "io_size=1m",
        "io_size=50%",
    ],
)
def test_an_option_that_makes_it_another_workload_is_said_strongly(option: str) -> None:
    key = option.split("\n", maxsplit=1)[0]
    assert "ANOTHER workload" in named(one(option), f"not mapped: {key}")


@pytest.mark.parametrize("option", ["prio=3", "nosuchoption=7", "hugepage-size=2m"])
def test_every_other_option_is_named(option: str) -> None:
    assert tuple(map(str, one(option).findings)) == (f"not mapped: {option}",)


@pytest.mark.parametrize(
    "option",
    [
        "fsync=0",
        "sync=none",
        "zonemode=none",
        "iodepth_batch=1",
        "create_only=0",
        "ba=64k",
        "ba=4k\nrw=randread",
        "io_size=1m\ntime_based",
        "io_size=64m",
        "io_size=100%",
    ],
)
def test_an_option_that_is_off_changes_nothing(option: str) -> None:
    assert one(option).findings == ()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("rw=randread", "norandommap"),
        ("rw=randread", "invalidate=0"),
        ("rw=randread\npre_read=0", "invalidate=0"),
        ("rw=read", "fadvise_hint=0"),
        ("rw=randread\npercentage_random=50", "fadvise_hint=0"),
        ("rw=read\nnumjobs=2\nfilename=x", "in step"),
        ("rw=rw", "their own last request"),
        ("rw=randread\nrandom_distribution=pareto:0.2", "random_distribution=pareto:0.2"),
        ("rw=randread\nrandom_distribution=zipf:1.2\nsize=1000k", "no power of two"),
        ("numjobs=2", "its own file of"),
        ("filename=/dev/nvme0n1", "raw device"),
        ("rw=read:4k", "ANOTHER workload"),
        ("rw=randread:8\nrw_sequencer=identical", "ANOTHER workload"),
        ("thinktime=1ms\nramp_time=5", "ramp_time"),
    ],
)
def test_a_default_of_fio_that_changes_the_answer_is_named(options: str, said: str) -> None:
    assert named(one(options, quiet=False), said)


def test_direct_io_knows_neither_cache_nor_map() -> None:
    assert one("rw=randread\ndirect=1", quiet=False).findings == ()


def test_jobs_at_the_same_time_are_named_unless_they_wait() -> None:
    text = f"[global]\nsize=1m\nrw=randread\ndirect=1\n{QUIET}[a]\n[b]\n"
    assert all("same time" in str(job.findings[0]) for job in read_job(text))
    assert all("same time" in str(job.findings[0]) for job in read_job(text + "stonewall=0\n"))
    assert not any(job.findings for job in read_job(text + "stonewall\n"))


def test_a_flag_of_the_command_is_as_one_of_the_job() -> None:
    """With direct I/O libaio keeps its depth."""
    text = "[a]\nsize=1m\ndirect=0\nbuffered=1\nioengine=libaio\niodepth=32\n"
    found = [read_job(text, direct=direct)[0] for direct in (False, True)]
    assert [(job.access.backend, job.access.direct, job.workload.queue_depth) for job in found] == [
        ("pread", False, 1),
        ("uring", True, 32),
    ]
