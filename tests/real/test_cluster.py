"""The kernels on four ranks, started by a real mpirun: right, within memory, and when it fails."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from command import LEADLINE, environment

pytestmark = [
    pytest.mark.real,
    pytest.mark.timeout(240),  # twice HANG_S, and a little
    pytest.mark.skipif(shutil.which("mpirun") is None, reason="mpirun is missing (openmpi-bin)"),
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="mpi4py is missing"),
]
RANKS = 4
WITHIN = "256MiB"
BEYOND = "128MiB"
"""Least memory of four ranks: their data below does not fit it."""
HANG_S = 100.0
"""Nothing that is waited for takes this long, unless it hangs."""


def mpirun(store: Path, *arguments: str, program: tuple[str, ...] = (LEADLINE,)) -> Any:
    return subprocess.Popen(
        [
            "mpirun",
            "--allow-run-as-root",
            "--oversubscribe",
            "-np",
            str(RANKS),
            *program,
            *arguments,
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(store),
    )


def stream(store: Path, *arguments: str) -> dict[str, Any]:
    """Run `leadline stream` on four ranks; the result of the run."""
    process = mpirun(store, "stream", *arguments, "--no-bound", "--json")
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    answer: dict[str, Any] = json.loads(out)
    return answer


def bytes_of(data_set: Path) -> bytes:
    """The parts that the layout names, one after the other."""
    layout = json.loads(data_set.with_name(data_set.name + ".layout").read_text())
    assert len(layout["parts"]) == RANKS
    whole = b""
    for part in layout["parts"]:
        (file,) = part["files"]
        content = Path(file).read_bytes()
        assert len(content) == part["bytes"]
        whole += content
    return whole


def put_records(path: Path, count: int, *, of_one_key: float = 0.0) -> np.ndarray[Any, Any]:
    random = np.random.default_rng(5)
    records = random.integers(0, 256, (count, 100), dtype=np.uint8)
    records[random.random(count) < of_one_key, :10] = 77
    records.tofile(path)
    return records


def in_order(records: np.ndarray[Any, Any]) -> bytes:
    """Records in the one order that does not depend on how equal keys were treated."""
    return np.sort(np.ascontiguousarray(records).view("S100").ravel()).tobytes()


def network_share(answer: dict[str, Any]) -> float:
    """Bytes that left and entered ranks, over the data's."""
    moved = sum(
        phase["network_sent_bytes"] + phase["network_received_bytes"] for phase in answer["phases"]
    )
    return float(moved / answer["bytes_in"])


@pytest.mark.parametrize(
    ("memory", "count", "phases"),
    [
        pytest.param(WITHIN, 200_000, ["read", "write"], marks=pytest.mark.long),
        (BEYOND, 1_000_000, ["runs", "merge"]),
    ],
)
def test_a_sort(tmp_path: Path, memory: str, count: int, phases: list[str]) -> None:
    records = put_records(tmp_path / "in", count)
    answer = stream(
        tmp_path / "s.db", "sort", str(tmp_path / "in"), str(tmp_path / "out"), "--memory", memory
    )
    assert [phase["name"] for phase in answer["phases"]] == phases
    assert answer["verified"]
    found = np.frombuffer(bytes_of(tmp_path / "out"), np.uint8).reshape(-1, 100)
    keys = np.ascontiguousarray(found[:, :10]).view("S10").ravel()
    assert np.array_equal(keys, np.sort(keys))
    assert in_order(found) == in_order(records)
    assert network_share(answer) == pytest.approx(2 * (RANKS - 1) / RANKS, rel=0.05)
    assert (tmp_path / "in").read_bytes() == records.tobytes(), "the input is only read"


@pytest.mark.long
def test_a_key_that_most_records_share_is_spread_over_the_ranks(tmp_path: Path) -> None:
    records = put_records(tmp_path / "in", 200_000, of_one_key=0.9)
    stream(tmp_path / "s.db", "sort", str(tmp_path / "in"), str(tmp_path / "out"))
    layout = json.loads((tmp_path / "out.layout").read_text())
    for part in layout["parts"]:
        assert part["bytes"] == pytest.approx(records.nbytes / RANKS, rel=0.15)
    found = np.frombuffer(bytes_of(tmp_path / "out"), np.uint8).reshape(-1, 100)
    assert in_order(found) == in_order(records)


@pytest.mark.parametrize(
    ("memory", "rows", "columns", "phases"),
    [
        pytest.param(WITHIN, 96, 50, ["read", "write"], marks=pytest.mark.long),
        (BEYOND, 210, 121, ["tiles"]),
    ],
)
def test_a_transpose(
    tmp_path: Path, memory: str, rows: int, columns: int, phases: list[str]
) -> None:
    blocks = np.random.default_rng(3).integers(0, 256, (rows, columns, 4096), dtype=np.uint8)
    blocks.tofile(tmp_path / "in")
    answer = stream(
        tmp_path / "s.db",
        "transpose",
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        "--rows",
        str(rows),
        "--columns",
        str(columns),
        "--memory",
        memory,
    )
    assert [phase["name"] for phase in answer["phases"]] == phases
    assert bytes_of(tmp_path / "out") == blocks.transpose(1, 0, 2).tobytes()
    assert network_share(answer) == pytest.approx(2 * (RANKS - 1) / RANKS, rel=0.05)


@pytest.mark.long
def test_a_scan_sends_nothing_and_keeps_the_order(tmp_path: Path) -> None:
    records = put_records(tmp_path / "in", 300_000)
    answer = stream(
        tmp_path / "s.db", "scan", str(tmp_path / "in"), str(tmp_path / "out"), "--memory", BEYOND
    )
    assert bytes_of(tmp_path / "out") == records[records[:, 0] < 128].tobytes()
    assert network_share(answer) == 0


def begun(tmp_path: Path, when_open: Callable[[dict[int, int]], None]) -> tuple[int, str]:
    """A sort of 200 MB, disturbed when all ranks have opened the input; exit code and words.

    `when_open` gets the process of each rank.
    """
    source = tmp_path / "in"
    put_records(source, 2_000_000)
    process = mpirun(
        tmp_path / "s.db",
        "stream",
        "sort",
        str(source),
        str(tmp_path / "out"),
        "--no-bound",
        "--memory",
        BEYOND,
    )
    ranks: dict[int, int] = {}
    end = time.monotonic() + HANG_S
    while len(ranks) < RANKS and time.monotonic() < end:
        ranks = dict(opened(source))
    assert len(ranks) == RANKS
    when_open(ranks)
    _, err = process.communicate(timeout=HANG_S)
    assert sorted(path.name for path in tmp_path.iterdir() if "s.db" not in path.name) == ["in"]
    return process.returncode, err


def opened(path: Path) -> list[tuple[int, int]]:
    """Rank and process of everyone who has a file open."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            files = [file.readlink() for file in (process / "fd").iterdir()]
            variables = (process / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        rank = [v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")]
        if path in files and rank:
            found.append((int(rank[0].split(b"=")[1]), int(process.name)))
    return found


@pytest.mark.parametrize("rank", [pytest.param(0, marks=pytest.mark.long), 2])
def test_a_killed_rank_ends_all_and_leaves_nothing(tmp_path: Path, rank: int) -> None:
    killed = []

    def kill(ranks: dict[int, int]) -> None:
        killed.append(ranks[rank])
        os.kill(ranks[rank], signal.SIGKILL)

    code, err = begun(tmp_path, kill)
    assert code != 0
    said = [line for line in err.splitlines() if line.startswith("leadline: ")]
    assert len(said) == 1, err
    assert f"rank {rank} (process {killed[0]} on " in said[0]
    assert "Nothing was written" in said[0]
    assert "Traceback" not in err


def test_a_stop_ends_all_and_leaves_nothing(tmp_path: Path) -> None:
    def stop(ranks: dict[int, int]) -> None:
        for process in ranks.values():
            with suppress(ProcessLookupError):  # the first that stops may end the others
                os.kill(process, signal.SIGTERM)

    code, err = begun(tmp_path, stop)
    assert code == 3, err
    said = [line for line in err.splitlines() if line.startswith("leadline: ")]
    assert len(said) == 1, err
    assert "stopped early by SIGTERM" in said[0]


@pytest.mark.long
def test_an_input_that_ends_too_early_is_told_once(tmp_path: Path) -> None:
    def cut(_ranks: dict[int, int]) -> None:
        os.truncate(tmp_path / "in", 100_000_000)

    code, err = begun(tmp_path, cut)
    assert code == 1, err
    said = [line for line in err.splitlines() if line.startswith("leadline: ")]
    assert len(said) == 1, err
    assert "rank " in said[0]
    assert str(tmp_path / "in") in said[0]


def test_a_stripe_that_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    layout = {
        "version": 1,
        "parts": [
            {
                "files": [str(tmp_path / "a"), str(tmp_path / "b")],
                "bytes": 131072,
                "stripe_bytes": 65536,
            }
        ],
    }
    (tmp_path / "in.layout").write_text(json.dumps(layout))
    (tmp_path / "a").write_bytes(bytes(65536))
    process = mpirun(
        tmp_path / "s.db",
        "stream",
        "transpose",
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        "--rows",
        "4",
        "--columns",
        "8",
        "--no-bound",
    )
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 5, err
    said = [line for line in err.splitlines() if line.startswith("leadline: ")]
    assert len(said) == 1, err
    assert str(tmp_path / "b") in said[0]


@pytest.mark.long
def test_too_little_memory_for_the_ranks_is_refused_with_what_is_enough(tmp_path: Path) -> None:
    put_records(tmp_path / "in", 50_000)
    process = mpirun(
        tmp_path / "s.db",
        "stream",
        "sort",
        str(tmp_path / "in"),
        str(tmp_path / "out"),
        "--no-bound",
        "--memory",
        "100MiB",
    )
    _, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 2, err
    assert "--memory 128M" in err


def test_the_network_is_measured(tmp_path: Path) -> None:
    program = (
        "from leadline.studies.streaming.cluster import network_capacity as measure\n"
        "found = measure(bytes_each=20_000_000, readings=3, tell=print)\n"
        "if found: print(*found)\n"
    )
    process = mpirun(tmp_path / "s.db", "-c", program, program=(sys.executable,))
    out, err = process.communicate(timeout=HANG_S)
    assert process.returncode == 0, err
    readings = [float(word) for word in out.split()]
    assert len(readings) == 3
    assert all(reading > 0 for reading in readings)
