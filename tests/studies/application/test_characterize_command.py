"""`leadline characterize --trace`: its JSON, its store, its page, and what it refuses."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import msgspec
import pytest

from command import LEADLINE, environment, leadline
from leadline.record.application.reuse import AtDistance, MissRatio, Reuse
from leadline.studies.application.characterize import format_caches
from planted_traces import Planted, mixture, write_msr

MIB = 2**20
STREAMS = (Planted("uniform", 0.6, MIB, 4096, 0.5), Planted("loop", 0.4, MIB, 8192))
ALIBABA = "0,R,{offset},4096,{at}\n"


@pytest.fixture(scope="module")
def trace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("trace")
    return write_msr(mixture(STREAMS, 6000, 11), folder / "usr_0.csv")


def alibaba(path: Path, requests: int, **parts: str) -> Path:
    """Write a trace in which request n is n pages further on, n ms later; parts are put in."""
    lines = [
        ALIBABA.format(offset=n % 500 * 4096, at=1577808000000000 + 1000 * n)
        for n in range(requests)
    ]
    path.write_text(parts.get("before", "") + "".join(lines), encoding="ascii")
    return path


def test_the_promised_keys_are_there_and_the_study_is_stored(trace: Path, tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    done = leadline("characterize", "--trace", str(trace), "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    promised = {"application", "system", "trace", "workload", "in_io", "in_calls_s", "seconds"}
    promised |= {"miss_ratios", "reuse", "phases", "facts", "sentences", "findings"}
    assert promised <= answer.keys()
    assert answer["system"] == "usr_0"
    five = {"unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num"}
    assert answer["workload"].keys() == five
    assert answer["workload"]["size_mean"] == pytest.approx(0.6 * 4096 + 0.4 * 8192, rel=0.03)
    assert answer["workload"]["unique_bytes"] == pytest.approx(2 * MIB, rel=0.01)
    assert answer["facts"]["format"] == "msr-cambridge"
    (phase,) = answer["phases"]
    assert {stream["kind"] for stream in phase["streams"]} == {"uniform", "loop"}
    assert json.loads(leadline("show", "usr_0", "--json", store=store).stdout) == answer
    rows = leadline("export", "usr_0", "--format", "csv", store=store).stdout.splitlines()
    assert len(rows) == 1 + len(phase["streams"])


def test_the_answer_is_led_by_the_five_numbers_and_drawn_with_its_misses(
    trace: Path, tmp_path: Path
) -> None:
    store, page = tmp_path / "store.sqlite", tmp_path / "page.html"
    done = leadline("characterize", "--trace", str(trace), "-o", str(page), store=store)
    assert done.returncode == 0, done.stderr
    first = " ".join(done.stdout.split("\n\n")[1].split())
    for number in ("working set", "mean request", "reads", "sequential", "mean queue depth"):
        assert number in first
    assert "warning: block trace" in done.stdout
    drawn = page.read_text(encoding="utf-8")
    assert "What page caches miss of usr_0" in drawn
    assert "active/inactive LRU" in drawn
    picture = tmp_path / "misses.svg"
    assert leadline("report", "usr_0", "-o", str(picture), store=store).returncode == 0
    assert "References that miss" in picture.read_text(encoding="utf-8")
    assert leadline("report", "usr_0", "-o", str(tmp_path / "a.txt"), store=store).returncode == 2


def test_a_trace_comes_through_a_pipe(trace: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [LEADLINE, "characterize", "--trace", "-", "--name", "piped", "--json"],
        input=trace.read_bytes(),
        capture_output=True,
        env=environment(tmp_path / "store.sqlite"),
        check=True,
    )
    answer = json.loads(done.stdout)
    assert (answer["system"], answer["trace"]) == ("piped", "standard input")


def test_a_reading_that_is_stopped_keeps_nothing_and_says_so(tmp_path: Path) -> None:
    store = tmp_path / "store.sqlite"
    with subprocess.Popen(
        [LEADLINE, "characterize", "--trace", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(store),
    ) as reading:
        assert reading.stdin is not None
        reading.stdin.write(ALIBABA.format(offset=0, at=1).encode("ascii") * 100_000)
        reading.stdin.flush()  # more than the pipe holds: it reads
        reading.send_signal(signal.SIGTERM)
        assert reading.stderr is not None
        said = b" ".join(reading.stderr.read().split()).decode()
    assert reading.returncode == 3, said
    assert "a description is kept only when it is whole" in said
    assert json.loads(leadline("systems", "--json", store=store).stdout or "[]") == []


def test_a_sampled_miss_ratio_is_told_with_its_error() -> None:
    point = MissRatio(cache_bytes=4096 * 64, lru=0.5, lru_error=0.01, two_lists=None)
    whole = Reuse(
        page_bytes=4096,
        references=1000,
        rate=1.0,
        two_lists_rate=1.0,
        unique_pages=200,
        first_reads=10,
        first_writes=0,
        distances=(
            AtDistance(pages=64, reads=980, writes=0),
            AtDistance(pages=128, reads=10, writes=0),
        ),
        points=(msgspec.structs.replace(point, lru_error=None),),
    )
    assert ": LRU 50%;" in format_caches(whole)
    sampled = msgspec.structs.replace(whole, rate=0.1, points=(point,))
    assert ": LRU 50% ± 2.0%;" in format_caches(sampled)
    beyond = msgspec.structs.replace(point, cache_bytes=2**30)
    blind = msgspec.structs.replace(whole, rate=0.1, points=(beyond,))
    assert "the sample covers no cache so small" in format_caches(blind)


def refused(path: Path | str, said: str, tmp_path: Path) -> None:
    """The command must end with 2, say this in one message, and keep nothing."""
    store = tmp_path / "store.sqlite"
    done = leadline("characterize", "--trace", str(path), store=store)
    assert done.returncode == 2, (done.stdout, done.stderr)
    assert said in " ".join(done.stderr.split())
    assert "Traceback" not in done.stderr
    assert done.stdout == ""
    assert json.loads(leadline("systems", "--json", store=store).stdout or "[]") == []


def text(path: Path, content: str) -> Path:
    path.write_text(content, encoding="ascii")
    return path


def test_too_few_requests_are_refused(tmp_path: Path) -> None:
    path = alibaba(tmp_path / "few.csv", 999)
    refused(path, "it has 999 reads and writes", tmp_path)
    refused(path, "trace a longer run", tmp_path)
    enough = alibaba(tmp_path / "enough.csv", 1000)
    done = leadline("characterize", "--trace", str(enough), store=tmp_path / "store.sqlite")
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("hello\nworld\n", "it has no format that is known; what is known: fio's iolog"),
        ("", "no format that is known"),
        ("avg-cpu:  %user\n", "iostat's output: sums, in which no request has an offset"),
        ("% time     seconds  usecs/call     calls    errors syscall\n", "summary of strace -c"),
        ("POSIX\t0\t1\tPOSIX_OPENS\t1\tx\n", "print with darshan-dxt-parser"),
        ("0,R,0,4096,1\n" * 2000 + "nonsense\n" * 20, "20 of its 2020 lines are not of its format"),
        ("0,R,9000000000000000000,4096,1\n", "beyond what any file holds"),
        ('read(0, "x"..., 4096) = 4096\n' * 2000, "does not say where they lie"),
        (
            "# DXT, file_id: 1, file_name: /a\n X_MPIIO 0 read 0 0 1 0.1 0.2\n",
            "no request of POSIX",
        ),
    ],
)
def test_what_cannot_be_described_is_refused_with_what_to_do(
    content: str, said: str, tmp_path: Path
) -> None:
    refused(text(tmp_path / "trace", content), said, tmp_path)


def test_a_compressed_trace_is_refused_with_the_pipe_to_type(tmp_path: Path) -> None:
    path = tmp_path / "trace.gz"
    path.write_bytes(bytes([0x1F, 0x8B, 8, 0]) * 100)
    refused(path, "zcat FILE | leadline characterize --trace -", tmp_path)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "Is a directory", tmp_path)
    refused(tmp_path / "nothing", "there is no file", tmp_path)
    refused("/dev/zero", "is no regular file", tmp_path)


def test_times_that_go_backwards_are_refused(tmp_path: Path) -> None:
    path = alibaba(tmp_path / "one.csv", 9000)
    path.write_text(path.read_text(encoding="ascii") * 2, encoding="ascii")
    refused(path, "times go backwards", tmp_path)
    refused(path, "sort it by time first", tmp_path)


def warned(path: Path, tmp_path: Path) -> dict[str, str]:
    """Describe a trace; return its warnings by the words that they begin with."""
    done = leadline("characterize", "--trace", str(path), "--json", store=tmp_path / "s.sqlite")
    assert done.returncode == 0, done.stderr
    texts = [each["text"] for each in json.loads(done.stdout)["findings"]]
    return {text.partition(":")[0]: text for text in texts}


def test_whole_seconds_first_touches_and_block_traces_are_described_with_a_warning(
    tmp_path: Path,
) -> None:
    lines = "".join(f"{1538323200 + n // 100},{8 * n},8,{n % 2},1063\n" for n in range(3000))
    said = warned(text(tmp_path / "tencent.csv", lines), tmp_path)
    assert "gaps" in said["times in whole seconds"]
    assert "strace -f -y -ttt -T" in said["block trace"]
    assert "100% of the references are the first" in said["compulsory misses"]


def test_no_times_and_lines_that_make_no_sense_are_described_with_a_warning(tmp_path: Path) -> None:
    lines = "".join(f"/data/a read {n * 7919 % 400 * 4096} 4096\n" for n in range(20_000))
    head = "fio version 2 iolog\n/data/a add\n/data/a open\n"
    said = warned(text(tmp_path / "io.log", head + lines + "/data/a re"), tmp_path)
    assert "fio 3.31 or newer" in said["no times"]
    assert said["1 line of its 20,004 cannot be read, first line 20004"]


def test_little_io_and_what_is_not_seen_are_said(tmp_path: Path) -> None:
    lines = "".join(
        f'7 {1700000000 + n}.000100 pread64(3</data/a>, "x"..., 4096, {n % 300 * 4096}) = 4096 '
        "<0.000100>\n"
        for n in range(2000)
    )
    lines += "7 1700003000.0 mmap(NULL, 4096, PROT_READ, MAP_SHARED, 3</data/a>, 0) = 0x7f\n"
    lines += "7 1700003000.1 io_uring_enter(4<anon_inode:[io_uring]>, 1, 0, 0, NULL, 8) = 1\n"
    said = warned(text(tmp_path / "trace", lines), tmp_path)
    assert "faster storage hardly makes it faster" in said["little I/O"]
    assert "ten times too long" in next(iter(value for key, value in said.items() if "dur" in key))
    assert sum(key.startswith("not seen, 1 times") for key in said) >= 1
