"""What writeback costs: told from windows and pairs, on a known truth, or not told at all."""

from __future__ import annotations

import os
import time
from pathlib import Path

import msgspec
import pytest

from leadline.engine import Target, open_engine
from leadline.machine.device_writes import PERIOD_S, DeviceWrites, watched_device, written_bytes
from leadline.record import Workload
from leadline.studies.cache.flusher import (
    Pair,
    Window,
    cost_of_pairs,
    cost_of_windows,
    measure_flusher,
)

WRITES = Workload(unique_bytes=2**20, size_mean=8192, read_frac=0.0)


def window(mb_s: float, device_mb_s: float) -> Window:
    return Window(0.5, mb_s * 0.5e6, device_mb_s * 0.5e6)


REST, WORK, EDGE = window(1000, 1), window(250, 200), window(600, 40)
WAVER = [0.99, 1.01, 1.0]
"""Scatter of a stretch, so that an interval has something to rest on."""


def turns(count: int) -> list[Window]:
    """Rest and work in turns, each with its edge."""
    found: list[Window] = []
    for turn in range(count):
        factor = WAVER[turn % 3]
        rest = window(1000 * factor, 1)
        found += [rest, rest, rest, EDGE, WORK, WORK, EDGE]
    return found


def test_windows_tell_the_cost_with_the_evidence() -> None:
    found = cost_of_windows(WRITES, turns(4))
    assert found.verdict == "slows"
    assert found.cost_frac is not None
    assert found.cost_frac.n == 4
    assert found.cost_frac.covers(0.75)
    assert found.working_reach == pytest.approx(0.8)
    assert found.resting_reach == pytest.approx(0.001, rel=0.1)
    assert "cost: 75%" in found.sentence
    assert "80% and 0.1% of the bytes asked" in found.sentence


def test_the_windows_at_the_edge_of_a_stretch_are_left_out() -> None:
    blurred = window(500, 100)
    found = cost_of_windows(WRITES, 3 * [REST, REST, REST, blurred, WORK, WORK, blurred])
    assert found.working_mb_s is not None
    assert found.working_mb_s.value == pytest.approx(250)


def test_a_slow_change_of_the_machine_is_in_neither() -> None:
    fading = [
        Window(w.seconds, w.asked_bytes * 0.98**number, w.device_bytes)
        for number, w in enumerate(turns(6))
    ]
    found = cost_of_windows(WRITES, fading)
    assert found.cost_frac is not None
    assert found.cost_frac.value == pytest.approx(0.75, abs=0.04)
    assert found.cost_frac.half_width_frac is not None
    assert found.cost_frac.half_width_frac < 0.1


@pytest.mark.parametrize(
    ("windows", "reason"),
    [
        ([], "did not work"),
        (20 * [window(1000, 1)], "did not work"),
        (20 * [WORK], "never changed between rest and work"),
        ([REST, REST, WORK, WORK], "changed only once"),
    ],
    ids=["nothing", "rest", "work", "once"],
)
def test_what_was_not_seen_is_not_told(windows: list[Window], reason: str) -> None:
    found = cost_of_windows(WRITES, windows)
    assert found.verdict == "inconclusive"
    assert reason in found.reason
    assert found.sentence.startswith("Writeback cost: inconclusive: ")


def test_pairs_that_the_device_does_not_tell_apart_say_nothing() -> None:
    through = Pair(window(1000, 900), window(250, 240))
    found = cost_of_pairs(WRITES, 5 * [through], "dirty limits")
    assert found.verdict == "inconclusive"
    assert "too little apart" in found.reason
    assert found.cost_frac is not None, "the numbers are kept"


def test_no_cost_and_one_that_the_scatter_hides_are_told_apart() -> None:
    calm = [Pair(window(1000, 0), window(1000 * waver, 500)) for waver in 2 * WAVER]
    assert cost_of_pairs(WRITES, calm, "dirty limits").verdict == "does not slow"
    wild = [Pair(window(1000, 0), window(mb_s, 500)) for mb_s in (400, 1500, 800, 1200)]
    found = cost_of_pairs(WRITES, wild, "dirty limits")
    assert found.verdict == "inconclusive"
    assert "scatter" in found.reason


def test_a_simulated_flusher_is_found_with_its_own_factor() -> None:
    target = Target.parse("sim:two-level")
    assert target.profile is not None
    flusher = {"period_s": 30.0, "run_s": 10.0, "slow_factor": 4.0}
    profile = target.profile | {"flusher": flusher}
    flushed = msgspec.structs.replace(target, profile=profile)
    with open_engine(flushed) as engine:
        found, results = measure_flusher(engine, flushed, WRITES)
    assert found.cost_frac is not None
    assert found.cost_frac.covers(0.75), found.cost_frac
    assert found.cost_frac.value == pytest.approx(0.75, abs=0.02)
    assert len(results) > 50
    with open_engine(target) as engine:
        found, _ = measure_flusher(engine, target, WRITES)
    assert found.verdict == "inconclusive"
    assert found.reason == "the simulated system has no writeback"


def test_the_device_is_watched_between_two_moments() -> None:
    writes = DeviceWrites()
    for at_s, count in ((1.0, 100), (2.0, 300), (4.0, 300)):
        writes.add(at_s, count)
    assert writes.between(1.0, 2.0) == 200
    assert writes.between(1.5, 3.0) == 100
    with pytest.raises(ValueError, match="not watched"):
        writes.between(0.5, 2.0)
    with pytest.raises(ValueError, match="not watched"):
        writes.between(1.0, 4.5)


def test_a_counter_that_is_not_there_is_not_known(tmp_path: Path) -> None:
    stat = tmp_path / "stat"
    assert written_bytes(stat) is None
    stat.write_text("1 2 3")
    assert written_bytes(stat) is None
    stat.write_text("    5  0  64  7  9  2  48  3 0 1 2\n")
    assert written_bytes(stat) == 48 * 512


@pytest.mark.real
def test_what_is_written_to_this_disk_is_seen(tmp_path: Path) -> None:
    with watched_device(tmp_path) as writes:
        if writes is None:
            pytest.skip("no block device under the temporary directory")
        with (tmp_path / "file").open("wb", buffering=0) as file:
            file.write(os.urandom(8 << 20))
            os.fsync(file.fileno())
        written_s = time.monotonic()
        while writes._at_s[-1] < written_s:  # until somebody has looked since
            time.sleep(PERIOD_S)
    # From the first look to the last: between two looks bytes are shared out evenly.
    assert writes.between(writes._at_s[0], writes._at_s[-1]) >= 8 << 20
