"""A real survey of a real directory, small: a memory cgroup makes the cache small.

That it finds the boundary of the cgroup needs a calm machine: `make check-machine`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import msgspec
import pytest

from command import POINT_S, hurried, running, steered
from leadline.store import open_store

pytestmark = pytest.mark.real
CAP = ["--cache-limit", "64MiB", "--max-bytes", "128MiB"]
HANG_S = 60.0
"""Nothing that is waited for takes this long, unless it hangs."""


def test_the_planned_points_are_measured_and_nothing_is_left(tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    done = hurried(
        "survey", str(target), *CAP, "--budget", "90s", "--json", store=tmp_path / "store.sqlite"
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["points"] == answer["planned_points"] <= 84
    assert answer["points"] == len(stored_points(tmp_path / "store.sqlite"))
    assert answer["sentences"]
    for boundary in answer["boundaries_bytes"]:
        assert boundary["low"] <= boundary["value"] <= boundary["high"]
    assert len(answer["regions"]) == len(answer["boundaries_bytes"]) + 1
    assert not list(target.iterdir()), "nothing is left behind"


def test_an_interrupt_keeps_the_points_and_removes_the_data(tmp_path: Path) -> None:
    target, store = tmp_path / "target", tmp_path / "store.sqlite"
    target.mkdir()
    with surveying(target, store) as child:
        until(lambda: len(stored_points(store)) >= 2, child)
        child.send_signal(signal.SIGINT)
        _, talk = child.communicate(timeout=HANG_S)
    assert child.returncode == 3, talk
    assert "points are kept" in talk
    assert not list(target.iterdir())


MOMENTS = ("claimed", "laid out", "1", "2")
"""When it is killed: on its first steps, with data, or so many points after those kept before."""


@pytest.mark.timeout(300)  # five runs of the command
def test_killed_at_any_moment_it_loses_no_finished_point(tmp_path: Path) -> None:
    target, store = tmp_path / "target", tmp_path / "store.sqlite"
    target.mkdir()
    kept: dict[str, bytes] = {}
    resume: list[str] = []
    for moment in MOMENTS:
        with surveying(target, store, *resume) as child:
            until(lambda: has_come(moment, target, store, len(kept)), child)  # noqa: B023
            os.killpg(child.pid, signal.SIGKILL)
            child.communicate(timeout=HANG_S)
        points = stored_points(store)
        assert kept.items() <= points.items(), "a finished point was lost or changed"
        kept = points
        resume = ["--resume"] if points else []
    assert len(kept) >= sum(int(moment) for moment in MOMENTS if moment.isdigit())
    done = hurried("survey", str(target), *CAP, "--budget", "90s", "--json", *resume, store=store)
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["points"] == answer["planned_points"]
    assert kept.items() <= stored_points(store).items()
    assert not list(target.iterdir()), "the next start cleaned up what the kills left"


def has_come(moment: str, target: Path, store: Path, kept: int) -> bool:
    if moment == "claimed":
        return (target / ".leadline").exists()
    if moment == "laid out":
        return any(path.stat().st_size for path in target.glob(".leadline/run-*/data.bin"))
    return len(stored_points(store)) >= kept + int(moment)


def surveying(
    target: Path, store: Path, *more: str
) -> AbstractContextManager[subprocess.Popen[str]]:
    """Run a survey until the block ends."""
    command = steered("survey", str(target), *CAP, "--budget", "90s", *more, point_s=POINT_S)
    return running(command, store)


def until(holds: Callable[[], bool], child: subprocess.Popen[str]) -> None:
    """Wait for a moment of a process that has not ended by itself."""
    end = time.monotonic() + HANG_S
    while not holds():
        assert child.poll() is None, child.communicate()
        assert time.monotonic() < end, "it never came so far"
        time.sleep(0.02)


def stored_points(store: Path) -> dict[str, bytes]:
    """Every stored point by id."""
    if not store.exists():
        return {}
    with open_store(str(store)) as opened:
        return {
            point.point_id: msgspec.json.encode(point)
            for summary in opened.list()
            for point in opened.items(summary.study_id)
        }
