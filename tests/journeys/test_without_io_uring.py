"""Queue depth where io_uring is forbidden, as in containers and on RHEL: typed as in the docs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import without_io_uring
from command import LEADLINE, environment

pytestmark = pytest.mark.real
WORKLOAD = "bs=4k rw=randrw rwmixread=70 size=8m iodepth=8"


def forbidden(*words: str, store: Path) -> subprocess.CompletedProcess[str]:
    """Run the command without io_uring."""
    command = [sys.executable, without_io_uring.__file__, LEADLINE, *words]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environment(store), timeout=120
    )


@pytest.mark.parametrize(
    ("direct", "instead"), [((), "a pool of threads"), (("--direct",), "Linux AIO")]
)
def test_a_depth_is_kept_and_what_queues_is_named(
    tmp_path: Path, direct: tuple[str, ...], instead: str
) -> None:
    target, store = tmp_path / "data", tmp_path / "store.sqlite"
    target.mkdir()
    words = ("measure", str(target), "--workload", WORKLOAD, "--backend", "uring", *direct)
    done = forbidden(*words, "--seconds", "500ms", "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["workload"]["queue_depth"] == 8
    (found,) = [each for each in answer["findings"] if each["code"] == "no_io_uring"]
    assert found["values"]["instead"] == instead
    assert list(target.iterdir()) == []


@pytest.mark.parametrize("buffered", [(), ("--buffered",)])
def test_records_are_generated_sorted_and_verified_by_threads(
    tmp_path: Path, buffered: tuple[str, ...]
) -> None:
    """Two passes, so that runs are written, read and merged."""
    source, sorted_, store = tmp_path / "records", tmp_path / "sorted", tmp_path / "store.sqlite"
    done = forbidden("stream", "generate", str(source), "--bytes", "64MiB", *buffered, store=store)
    assert done.returncode == 0, done.stderr
    words = ("sort", str(source), str(sorted_), "--memory", "32MiB", "--threads", "2", *buffered)
    done = forbidden("stream", *words, "--json", store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert "no_io_uring" in [each["code"] for each in answer["findings"]]
    checked = forbidden("stream", "check", str(sorted_), store=store)
    assert checked.returncode == 0, checked.stderr


def test_doctor_says_what_is_used_instead(tmp_path: Path) -> None:
    done = forbidden("doctor", store=tmp_path / "store.sqlite")
    (line,) = [line for line in done.stdout.splitlines() if "--backend uring" in line]
    assert line.split()[:2] == ["no", "io_uring"]
    assert "Linux AIO" in line
