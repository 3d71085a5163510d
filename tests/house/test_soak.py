"""bench/soak.py in its short form: nothing grows from survey to survey, nor with virtual time."""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
from pathlib import Path

import msgspec
import pytest

from endurance import courses
from endurance.looks import KIB, Look, look
from endurance.table import VIRTUAL_MIB_MAX, Course, changes_of, row_of, verdict_of, virtual_rows
from endurance.trend import trend
from places import ROOT

SOAK = ROOT / "bench" / "soak.py"
SURVEYS = 12
MEMORY_MIB_MAX = 8.0
"""An allocator may keep as much, or give it back."""


def looked_at(course: str, *words: str) -> list[Look]:
    """Run one course in a process of its own, as the bench does."""
    done = subprocess.run(
        [sys.executable, str(SOAK), *words, f"--course={course}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [msgspec.json.decode(line, type=Look) for line in done.stdout.splitlines()]


@pytest.mark.long
def test_nothing_grows_from_survey_to_survey() -> None:
    course = f"{SURVEYS} tiny surveys in one process"
    looks = looked_at(course, f"--surveys={SURVEYS}")
    assert len(looks) == SURVEYS
    later = Course(course, looks=looks[SURVEYS // 3 :])  # what is loaded late is loaded by then
    assert set(changes_of(later).values()) == {0}
    assert looks[-1].temporary == looks[-1].in_target == looks[-1].children == 0
    grown_mib = (later.looks[-1].rss_kib - later.looks[0].rss_kib) / KIB
    assert grown_mib < MEMORY_MIB_MAX


def test_the_engine_takes_as_much_memory_for_a_long_window_as_for_a_short_one() -> None:
    peaks = [looked_at(f"virtual window, s: {seconds}")[-1].peak_kib for seconds in (10, 1000)]
    assert (peaks[1] - peaks[0]) / KIB < VIRTUAL_MIB_MAX


def test_a_trend_is_told_from_noise_and_from_a_step_in_the_warm_up() -> None:
    draws = random.Random(7)
    level = [100 + draws.gauss(0, 1) for _ in range(200)]
    assert not trend(level).grows
    assert not trend([20.0] * 40 + level[40:]).grows, "the first fifth is warm-up"
    climbing = trend([value + 0.05 * number for number, value in enumerate(level)])
    assert climbing.grows
    assert climbing.low < 0.05 * 159 < climbing.high
    assert not trend([100.0] * 50).grows
    slight = trend([100.0 + 0.001 * number for number in range(100)])
    assert slight.low > 0, "sure,"
    assert not slight.grows, "and too little to be called growth"
    with pytest.raises(ValueError, match="3 are needed"):
        trend([1.0, 2.0, 3.0])


def test_a_trends_interval_holds_the_truth() -> None:
    held, runs = 0, 400
    for seed in range(runs):
        draws = random.Random(seed)
        found = trend([0.02 * number + draws.gauss(0, 1) for number in range(50)])
        held += found.low <= 0.02 * (found.n - 1) <= found.high
    assert 0.92 <= held / runs <= 0.98


def course_of(name: str, count: int = 10, **each: int) -> Course:
    """A course whose looks grow by as much each."""
    names = ("rss_kib", "handles", "threads", "children", "temporary", "in_target", "store_kib")
    return Course(
        name,
        looks=[
            Look(
                at_s=float(number),
                **{key: 100_000 + each.get(key, 0) * number for key in names},
                peak_kib=100_000 + each.get("peak_kib", 0) * number,
            )
            for number in range(count)
        ],
    )


@pytest.mark.parametrize(
    ("grows", "said"),
    [
        ({}, "no growth"),
        ({"store_kib": 2000}, "no growth"),
        ({"handles": 1}, "GROWS: handles"),
        ({"rss_kib": 1000, "threads": 1}, "GROWS: threads, memory"),
        ({"rss_kib": -1000, "handles": -1}, "no growth"),
    ],
)
def test_the_verdict_says_what_grows(grows: dict[str, int], said: str) -> None:
    course = course_of("some", **grows)
    assert verdict_of(course) == said
    assert row_of(course).cells["verdict"] == said


def test_a_course_that_failed_is_no_course_without_growth() -> None:
    course = course_of("some")
    course.code = 1
    assert verdict_of(course) == "FAILED: exit code 1"


def test_virtual_courses_stand_beside_the_shortest_of_their_kind() -> None:
    long = course_of("virtual a 1000", peak_kib=2000)
    found = virtual_rows([course_of("virtual a 10"), long, course_of("virtual b 10")])
    mores = [row.cells["more"] for row in found]
    assert [getattr(more, "missed", None) for more in mores] == [False, True, False]
    assert virtual_rows([Course("virtual c 1")])[0].cells["memory"] == float("inf")


def test_what_a_process_holds_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", None)  # put back at the end: a course sets it
    where = courses.places(tmp_path)
    before = look(0.0, where)
    (where.target / "laid").write_bytes(b"x" * 8192)
    (where.temporary / "left").mkdir()
    where.store.write_bytes(b"x" * 8192)
    held = [(tmp_path / "held").open("wb") for _ in range(3)]
    with subprocess.Popen(["sleep", "100"]) as child:
        after = look(1.0, where)
        child.kill()
    for file in held:
        file.close()
    assert after.handles - before.handles == 3
    assert (after.children - before.children, after.in_target, after.temporary) == (1, 1, 1)
    assert after.store_kib >= 8
    assert after.target_kib >= 8
