"""`measure --replay`: a trace made again through the command, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import leadline as leadline_api
from command import leadline
from leadline.record import Workload
from leadline.record.jobs.replay import Replay
from leadline.store import open_store
from leadline.studies.measurement.plan import MeasurementRefused
from leadline.studies.measurement.replay import replayed

PAGE = 4096


def line(sign: str, file: int, offset: int, at_ms: float, *, process: int = 0) -> str:
    """A line of a kept trace: a request of a page that took 10 µs, or a sync."""
    name, size = ("fsync", 0) if sign == "S" else ("", 50 * PAGE if sign == "L" else PAGE)
    return f"{sign} {process} {file} {offset} {size} {round(at_ms * 1e6)} 10000 {name}\n"


def trace(folder: Path, *lines: str) -> Path:
    path = folder / "trace"
    path.write_text("leadline capture 1\n" + "".join(lines))
    return path


def program(folder: Path) -> Path:
    """One that reads a file of 20 pages, writes another, syncs it; and a second one beside it."""
    reads = [line("R", 0, PAGE * page, page) for page in range(20)]
    writes = [line("W", 1, PAGE * page, 20 + page) for page in range(10)]
    other = [line("R", 0, PAGE * page, 40 + page, process=1) for page in range(5)]
    again = line("R", 1, 0, 50)
    opened = "M 0 4294967295 0 0 51000000 2000 open\n"
    return trace(folder, *reads, *writes, line("S", 1, 0, 30), *other, again, opened)


def run(folder: Path, *words: str) -> tuple[int, Any, str]:
    target = folder / "target"
    target.mkdir(exist_ok=True)
    store = folder / "store.sqlite"
    done = leadline("measure", str(target), *words, store=store)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.real
def test_a_trace_is_made_again_request_by_request(tmp_path: Path) -> None:
    path = program(tmp_path)
    code, said, complained = run(tmp_path, "--replay", str(path), "--runs", "2", "--json")
    assert code == 0, complained
    point = json.loads(said)
    found = point["result"]
    assert [found[kind]["operations"] for kind in ("read", "write", "syncs")] == [52, 20, 2]
    assert found["workload_bytes"] == {"read": 2 * 26 * PAGE, "write": 2 * 10 * PAGE}
    replay = point["replay"]
    assert replay["requests"] == [26, 10, 1]
    assert (replay["files"], replay["lanes"]) == (2, 2)
    assert (replay["files_bytes"], replay["initial_bytes"]) == (30 * PAGE, 20 * PAGE)
    assert replay["took_s"] == pytest.approx([260e-6, 100e-6, 10e-6])
    assert replay["left_out"] == [["open", 1]]
    assert 0 < replay["here_s"] <= 2 * found["wall_s"]
    assert point["workload"]["process_num"] == 2
    assert point["workload"]["read_frac"] == pytest.approx(26 / 36)
    assert len(point["runs"]) == 2
    assert not list((tmp_path / "target").iterdir()), "nothing is left behind"
    done = leadline("show", point["point"], store=tmp_path / "store.sqlite")
    shown = " ".join(done.stdout.split())
    assert "2 files, 80 KiB of it there before, 2 requests at a time at most" in shown
    assert "not made again: 1 open" in shown
    assert "syncs" in shown


@pytest.mark.real
def test_at_its_times_a_replay_takes_as_long_as_the_trace(tmp_path: Path) -> None:
    path = trace(tmp_path, *(line("R", 0, PAGE * page, 100 * page) for page in range(6)))
    words = ["--replay", str(path), "--at-times", "--runs", "1", "--json"]
    code, said, complained = run(tmp_path, *words)
    assert code == 0, complained
    point = json.loads(said)
    assert point["result"]["wall_s"] >= 0.5
    assert point["replay"]["at_times"]
    assert not {each["code"] for each in point["findings"]} & {"stall", "level_shift", "time_cap"}


@pytest.mark.real
def test_python_replays_a_trace_too(tmp_path: Path) -> None:
    target, store = tmp_path / "target", str(tmp_path / "store.sqlite")
    target.mkdir()
    path = str(program(tmp_path))
    found = leadline_api.measure(str(target), replay=path, at_times=True, runs=1, store=store)
    (point,) = found.study.points
    assert point.replay.at_times
    assert point.result.read.operations == 26
    with pytest.raises(MeasurementRefused, match="workloads or a replay"):
        leadline_api.measure(str(target), Workload(2**20, 4096), replay=path, store=store)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--direct"], "leave --direct and --backend out"),
        (["--backend", "uring"], "leave --direct and --backend out"),
        (["--rate", "10"], "--rate does not go with --replay"),
        (["--precondition", "1MiB"], "--precondition does not go with --replay"),
        (["--engine", "fio"], "--engine fio does not go with --replay"),
        (["unique_bytes=1MiB"], "say what to run once"),
        (["--max-bytes", "64KiB"], "are 120 KiB long, more than the 64 KiB"),
    ],
)
def test_what_does_not_go_with_a_replay_is_refused(
    words: list[str], said: str, tmp_path: Path
) -> None:
    code, _, complained = run(tmp_path, "--replay", str(program(tmp_path)), *words)
    assert code in (2, 5)
    assert said in " ".join(complained.split())


def test_what_cannot_be_replayed_says_why(tmp_path: Path) -> None:
    def refused(*words: str, target: str = str(tmp_path)) -> str:
        done = leadline("measure", target, *words, store=tmp_path / "store.sqlite")
        assert done.returncode == 2, done.stderr
        return " ".join(done.stderr.split())

    path = str(program(tmp_path))
    assert "sim:two-level has none: give a directory" in refused(
        "--replay", path, target="sim:two-level"
    )
    assert "add --replay TRACE" in refused("--at-times")
    assert "give a file, not -" in refused("--replay", "-")
    assert "nowhere" in refused("--replay", str(tmp_path / "nowhere"))
    empty = trace(tmp_path, "M 0 4294967295 0 0 5 2000 open\n")
    assert "no reads, writes or syncs" in refused("--replay", str(empty))
    untimed = tmp_path / "iolog"
    untimed.write_text("fio version 2 iolog\n/f add\n/f open\n/f read 0 4096\n/f close\n")
    assert "does not say when" in refused("--replay", str(untimed), "--at-times")


def test_a_trace_that_changed_meanwhile_is_another(tmp_path: Path) -> None:
    path = program(tmp_path)
    other = msgspec.convert(
        {
            "trace": str(path),
            "format": "capture",
            "requests": [1, 0, 0],
            "bytes": [4096, 0],
            "sequential": 0,
            "files": 1,
            "files_bytes": 4096,
            "initial_bytes": 4096,
            "lanes": 1,
            "times": True,
            "span_s": 1.0,
            "took_s": [1.0, 0.0, 0.0],
            "left_out": [],
            "unplaced_bytes": 0,
        },
        Replay,
    )
    with open_store(str(tmp_path / "store.sqlite")) as store:
        changed = replayed(other, store, None)
        with pytest.raises(MeasurementRefused, match="is another trace than when this began"):
            changed.__enter__()
        with replayed(None, store, None) as nothing:
            assert nothing is None


@pytest.mark.real
def test_memory_that_the_program_held_is_no_page_cache(tmp_path: Path) -> None:
    """96 MiB less 70 hold 26 of a file's 30, which is read three times: 4 are missed twice."""
    mib = 1 << 20
    held = f"A 0 4294967295 0 {70 * mib} 0 0 0\n"
    length = f"L 0 0 0 {30 * mib} 0 0 0\n"
    reads = [f"R 0 0 {at % 30 * mib} {mib} {at} 1000 0\n" for at in range(90)]
    path = trace(tmp_path, held, length, *reads)
    words = ("--replay", str(path), "--cache-limit", "96MiB", "--runs", "1")
    code, said, complained = run(tmp_path, *words, "--json")
    assert code == 0, complained
    assert json.loads(said)["replay"]["memory_bytes"] == 70 * mib
    assert json.loads(said)["result"]["device_bytes"]["read"] >= (30 + 2 * 4) * mib
    shown = run(tmp_path, *words)
    assert shown[0] == 0, shown[2]
    assert "holding 70 MiB as the program did" in " ".join(shown[1].split())


@pytest.mark.real
def test_an_application_is_made_again_as_it_was(tmp_path: Path) -> None:
    """By the requests that its description keeps; a phase of it as streams."""
    reads = [line("R", 0, PAGE * (page % 50), page) for page in range(1000)]
    path = trace(tmp_path, line("L", 0, 0, 0), *reads, line("W", 1, 0, 1000))
    store = tmp_path / "store.sqlite"
    done = leadline("characterize", "--trace", str(path), "--name", "app", "--json", store=store)
    assert done.returncode == 0, done.stderr
    described = json.loads(done.stdout)
    assert described["replay"]["requests"] == [1000, 1, 0]
    path.unlink()
    code, said, complained = run(tmp_path, "--application", "app", "--runs", "1", "--json")
    assert code == 0, complained
    point = json.loads(said)
    assert point["replay"]["application_id"] == described["application"]
    assert point["replay"]["at_times"]
    assert point["result"]["wall_s"] >= 1.0
    assert point["result"]["read"]["operations"] == 1000
    assert point["result"]["workload_bytes"] == {"read": 1000 * PAGE, "write": PAGE}
    code, said, complained = run(
        tmp_path, "--application", "app", "--as-fast", "--runs", "1", "--json"
    )
    assert code == 0, complained
    assert not json.loads(said)["replay"]["at_times"]
    words = ["--application", "app", "--phase", "1", "--runs", "1", "--json"]
    code, said, complained = run(tmp_path, *words)
    assert code == 0, complained
    assert json.loads(said)["replay"] is None
    code, _, complained = run(tmp_path, "--application", "app", "--phase", "1", "--at-times")
    assert code == 2
    assert "leave it out, or --phase" in " ".join(complained.split())
