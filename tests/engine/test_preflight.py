"""What is found before measuring: each finding by its name, and nothing on a quiet machine."""

from __future__ import annotations

import os
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from leadline.engine import Directory, Null, Simulated, Target, preflight
from leadline.engine.targets.preflight import Busyness, watch

QUIET = Busyness(foreign_cpu=0.02, cpu_pressure_percent=0.5, io_pressure_percent=2.0)
GOOD: dict[str, Any] = {
    "engine_build": "release",
    "cpu_count": 2,
    "memory_bytes": 8 * 2**30,
    "memory_available_bytes": 6 * 2**30,
    "reclaims_idle_file_cache": False,
    "governor": "performance",
    "filesystem_type": "ext4",
    "device_name": "vda",
    "loop_direct_io": None,
    "read_ahead_bytes": 128 * 1024,
}
DISK = Directory(text="/data", path="/data")


def names(facts: dict[str, Any], busy: Busyness = QUIET) -> list[str]:
    return [finding.code for finding in preflight(DISK, GOOD | facts, busyness=lambda: busy)]


def test_a_good_quiet_machine_has_no_findings() -> None:
    assert names({}) == []


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        ({"engine_build": "debug"}, "debug_build"),
        ({"memory_available_bytes": 300 * 2**20}, "low_free_memory"),
        ({"reclaims_idle_file_cache": True}, "idle_cache_reclaimed"),
        ({"governor": "powersave"}, "frequency_governor"),
        ({"filesystem_type": "tmpfs"}, "target_in_memory"),
        ({"filesystem_type": "ramfs"}, "target_in_memory"),
        ({"loop_direct_io": False}, "loop_device"),
        ({"read_ahead_bytes": 8 * 2**20}, "read_ahead"),
    ],
)
def test_each_finding_has_its_code(facts: dict[str, Any], name: str) -> None:
    assert names(facts) == [name]


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ({"foreign_cpu": 0.5}, "other processes use 50% of a processor"),
        ({"cpu_pressure_percent": 40.0}, "CPU pressure (PSI) 40%"),
        ({"io_pressure_percent": 40.0}, "I/O pressure (PSI) 40%"),
    ],
)
def test_a_busy_machine_says_by_what(busy: dict[str, float], said: str) -> None:
    values = {name: getattr(QUIET, name) for name in QUIET.__struct_fields__} | busy
    (finding,) = preflight(DISK, GOOD, busyness=lambda: Busyness(**values))
    assert finding.code == "busy_machine"
    assert said in str(finding)
    assert str(finding).startswith("host busy: ")


def test_what_the_kernel_does_not_tell_is_no_finding() -> None:
    nothing = Busyness(foreign_cpu=None, cpu_pressure_percent=None, io_pressure_percent=None)
    assert names(dict.fromkeys(GOOD), nothing) == []


def test_read_ahead_is_a_note_and_the_others_are_warnings() -> None:
    found = preflight(
        DISK, GOOD | {"read_ahead_bytes": 2**23, "governor": "ondemand"}, busyness=lambda: QUIET
    )
    assert {finding.code: finding.is_note for finding in found} == {
        "frequency_governor": False,
        "read_ahead": True,
    }


@pytest.mark.parametrize("target", [Null(text="null:"), Simulated(text="sim:two-level")])
def test_there_is_nothing_to_find_where_nothing_is_real(target: Target) -> None:
    def never() -> Busyness:
        pytest.fail("looked at the machine")

    assert preflight(target, {"engine_build": "debug"}, busyness=never) == ()


def stat(ticks: int) -> str:
    """/proc/stat after this many ticks of work, with other columns that are no work."""
    return f"cpu  {ticks} 0 0 {1000 + 7 * ticks} {3 * ticks} 0 0 {5 * ticks} 0 0\n"


def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, own: bool) -> float:
    """Let a processor second pass in what looks like 0.4 s; ours or somebody else's."""
    (tmp_path / "stat").write_text(stat(0))
    clock, cpu = iter([10.0, 10.4]), iter([0.0, 1.0 if own else 0.0])
    monkeypatch.setattr(
        time, "sleep", lambda _: (tmp_path / "stat").write_text(stat(os.sysconf("SC_CLK_TCK")))
    )
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(os, "times", lambda: SimpleNamespace(user=next(cpu), system=0.0))
    found = watch(0.4, tmp_path).foreign_cpu
    assert found is not None
    return found


def test_others_at_work_are_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(tmp_path, monkeypatch, own=False) == pytest.approx(2.5)


def test_own_work_is_nobody_elses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert watched(tmp_path, monkeypatch, own=True) == pytest.approx(0.0)


def test_the_counters_are_read_as_the_kernel_writes_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pressure is that of the sample: 0.2 s of waiting in 0.4 s, whatever avg10 says."""
    (tmp_path / "pressure").mkdir()
    (tmp_path / "stat").write_text("cpu  100 5 50 1000 20 3 2 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n")
    line = "some avg10=99.36 avg60=15.58 avg300=9.95 total={}\nfull avg10=9.0 total=7\n"
    pressure = tmp_path / "pressure/cpu"
    pressure.write_text(line.format(54_311_632))
    clock = iter([10.0, 10.4])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(time, "sleep", lambda _: pressure.write_text(line.format(54_511_632)))
    seen = watch(0.4, tmp_path)
    assert seen.cpu_pressure_percent == pytest.approx(50.0)
    assert seen.io_pressure_percent is None
    assert seen.foreign_cpu == 0.0
    monkeypatch.undo()
    (tmp_path / "stat").write_text("cpu  one two\n")
    assert watch(0.0, tmp_path).foreign_cpu is None
