"""A workload in words: Leadline's, fio's, and what is usual of those that nobody said."""

from __future__ import annotations

import pytest

from leadline.fio.words import USUAL, Typed, read_words
from leadline.record import Arrivals, Workload, WorkloadError

GIB = 2**30


def test_fios_words_mean_what_a_job_file_means_by_them() -> None:
    typed = read_words(
        ["bs=4k", "rw=randread", "iodepth=32", "numjobs=4", "direct=1", "size=2g"], USUAL
    )
    assert typed.workload == Workload(
        unique_bytes=8 * GIB,
        size_mean=4096,
        read_frac=1.0,
        seq_frac=0.0,
        process_num=4,
        size_dist="fixed",
        queue_depth=32,
    )
    assert (typed.access.direct, typed.access.backend, typed.usual) == (True, "uring", ())
    (found,) = typed.findings
    assert "its own file of 2 GiB; here they share one of 8 GiB" in str(found)


def test_what_nobody_named_is_usual_and_not_as_fio_has_it() -> None:
    assert read_words(["bs=64k"], USUAL) == Typed(
        workload=Workload(USUAL.unique_bytes, 65536, size_dist="fixed"),
        usual=("unique_bytes", "read_frac", "seq_frac", "process_num"),
    )
    assert read_words([], USUAL).workload == USUAL


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("rw=randrw rwmixread=80", {"read_frac": 0.8, "seq_frac": 0.0}),
        ("rw=write", {"read_frac": 0.0, "seq_frac": 1.0}),
        ("rw=randread,percentage_random=75", {"read_frac": 1.0, "seq_frac": 0.25}),
        ("blocksize=4KiB", {"size_mean": 4096}),
        ("bs=4KB", {"size_mean": 4096}),
        ("size=1.5g", {"unique_bytes": 3 * GIB // 2}),
        ("read_frac=80%", {"read_frac": 0.8}),
        ("thinktime=2ms", {"think_time_s": 0.002}),
        ("numjobs=4", {"process_num": 4, "unique_bytes": USUAL.unique_bytes}),
        ("size_mean=8KiB rw=randread", {"size_mean": 8192, "read_frac": 1.0}),
    ],
)
def test_each_word_decides_its_parameter(words: str, expected: dict[str, float]) -> None:
    work = read_words(words.split(), USUAL).workload
    assert {name: getattr(work, name) for name in expected} == expected


def test_words_that_are_not_of_the_workload_say_how_and_when() -> None:
    typed = read_words(["bs=4k", "ioengine=mmap", "fsync=8", "rw=randrw", "runtime=1m"], USUAL)
    assert (typed.access.backend, typed.access.sync, typed.seconds) == ("mmap", "fsync=8", 60.0)
    assert typed.beyond == ("backend mmap", "sync fsync=8", "runtime")
    paced = read_words(["bs=4k", "rw=randread", "rate_iops=500"], USUAL)
    assert paced.arrivals == Arrivals("constant", 500.0)
    assert paced.beyond == ("rate",)


def test_what_data_are_is_said_in_fios_words() -> None:
    typed = read_words(["bs=4k", "buffer_compress_percentage=50", "dedupe_percentage=25"], USUAL)
    assert (typed.access.compress, typed.access.dedup) == (2.0, 0.25)
    assert typed.beyond == ("compress 2", "dedup 0.25")
    most = read_words(["bs=4k", "buffer_compress_percentage=95"], USUAL)
    assert most.access.compress == pytest.approx(10.0)
    assert any("10th at most" in str(found) for found in most.findings)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("bs=4k size_mean=4k", "size_mean is given twice"),
        ("bs=4k blocksize=8k", "given twice"),
        ("read_frac=0.1 read_frac=0.2", "read_frac is given twice"),
        ("quick", "not key=value with a known key"),
        ("verify=crc32c", "not key=value with a known key"),
        ("rw=randrd", "rw=randrd: not one of read"),
        ("bs=fast", "bs: 'fast' is not a size"),
        ("read_frac=120%", "read_frac is 1.2"),
        ("read_frac=5x", "'5x' is not a share; write for example 0.8 or 80%"),
        ("process_num=many", "'many' is not a whole number"),
    ],
)
def test_what_cannot_be_read_is_refused_with_what_to_write(words: str, said: str) -> None:
    with pytest.raises(WorkloadError, match=said.replace("?", "[?]")):
        read_words(words.split(), USUAL)


def test_without_what_is_usual_the_sizes_must_be_said() -> None:
    with pytest.raises(WorkloadError, match="unique_bytes missing"):
        read_words(["bs=4k"])
    assert read_words(["bs=4k,size=1g,rw=randread"]).workload.unique_bytes == GIB
