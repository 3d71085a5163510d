"""The loop of `leadline stream scale`: what runs, in which order, and what is kept."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fake_disks import FakeDisks, Kept
from leadline.engine import BudgetSpent, PointFailed, TargetRefused
from leadline.engine.streams.disks import Effort
from leadline.record import Status
from leadline.record.streaming import KERNELS, StreamOptions, StreamResult, StreamStudy
from leadline.studies.streaming.run import Before
from leadline.studies.streaming.study import (
    RunDone,
    ScalingOptions,
    begin_scaling,
    options_of,
    plan_steps,
    pooled_readings,
    run_scaling,
    shape_of,
    whole_bytes,
)
from stream_fixture import ATLAS

ASKED = ScalingOptions(
    system="atlas", data_bytes=512 << 20, memory_bytes=1 << 30, threads=2, repetitions=3, seed=7
)


def scaled(disks: FakeDisks, asked: ScalingOptions = ASKED) -> tuple[StreamStudy, Kept]:
    store = Kept()
    start = begin_scaling([str(Path.cwd())], asked)
    return run_scaling(disks, store, start, asked), store


def test_every_kernel_runs_on_every_number_of_disks() -> None:
    study, store = scaled(FakeDisks(count=3))
    wanted = {
        (kernel, disks, repetition)
        for kernel in KERNELS
        for disks in (1, 2, 3)
        for repetition in range(3)
    }
    found = [(run.options.kernel, run.disks, run.repetition) for run in study.runs]
    assert set(found) == wanted
    assert len(found) == len(wanted)
    assert study.status is Status.DONE
    assert study.capacities is not None
    # Kept before the first run, after the capacities, after each run, and at the end.
    assert [len(document.runs) for document in store.documents[:4]] == [0, 0, 1, 2]
    assert store.documents[-1] == study
    assert study.sentences


def test_the_order_is_drawn_by_the_seed() -> None:
    first, again = plan_steps(4, ASKED), plan_steps(4, ASKED)
    other = plan_steps(4, msgspec.structs.replace(ASKED, seed=8))
    assert first == again
    assert first != other
    assert sorted(map(str, first)) == sorted(map(str, other))
    orders = {
        tuple(dict.fromkeys(step.disks for step in first if step.repetition == repetition))
        for repetition in range(3)
    }
    assert len(orders) > 1, "repetitions take the numbers of disks in different orders"
    assert [step.repetition for step in first] == sorted(step.repetition for step in first)


def test_data_is_laid_once_for_the_kernels_of_a_step() -> None:
    disks = FakeDisks(count=2)
    scaled(disks)
    laid = [count for what, count in disks.calls if what == "lay"]
    assert len(laid) == 2 * ASKED.repetitions
    assert disks.calls[0][0] == "capacities"
    assert disks.calls[-1][0] == "capacities"


def test_a_budget_that_ends_in_a_later_repetition_keeps_an_answer() -> None:
    study, _ = scaled(FakeDisks(count=2, runs_within_budget=10))
    assert study.status is Status.DONE
    assert len(study.runs) == 10
    assert "the budget ended after 10 of 18 runs" in str(study.findings[0])


def test_a_budget_that_ends_in_the_first_repetition_is_said() -> None:
    store = Kept()
    start = begin_scaling([str(Path.cwd())], ASKED)
    with pytest.raises(BudgetSpent):
        run_scaling(FakeDisks(count=2, runs_within_budget=2), store, start, ASKED)
    assert store.documents[-1].status is Status.STOPPED
    assert len(store.documents[-1].runs) == 2


def test_a_run_that_fails_keeps_those_before_it() -> None:
    class Failing(FakeDisks):
        def run(
            self, options: StreamOptions, disks: int, *, seed: int, total_s_max: float
        ) -> StreamResult:
            if len(self.calls) > 6:
                raise PointFailed("the disk is full")
            return super().run(options, disks, seed=seed, total_s_max=total_s_max)

    store = Kept()
    start = begin_scaling([str(Path.cwd())], ASKED)
    with pytest.raises(PointFailed, match="full"):
        run_scaling(Failing(count=2), store, start, ASKED)
    assert store.documents[-1].status is Status.STOPPED
    assert store.documents[-1].runs


def stopped(after: int, asked: ScalingOptions = ASKED) -> tuple[Kept, StreamStudy]:
    """A study that failed in the run after so many."""

    class Failing(FakeDisks):
        def run(self, options: StreamOptions, disks: int, **more: Any) -> StreamResult:
            if sum(what in KERNELS for what, _ in self.calls) == after:
                raise PointFailed("the disk is full")
            return super().run(options, disks, **more)

    store = Kept()
    with pytest.raises(PointFailed, match="full"):
        run_scaling(Failing(count=2), store, begin_scaling([str(Path.cwd())], asked), asked)
    return store, store.documents[-1]


def test_a_stopped_study_goes_on_with_the_runs_that_are_left() -> None:
    store, kept = stopped(after=5)
    assert (kept.status, len(kept.runs)) == (Status.STOPPED, 5)
    told: list[int] = []
    study = run_scaling(
        FakeDisks(count=2),
        store,
        kept.start,
        ASKED,
        before=Before(kept, items=6),
        on_run=lambda done: told.append(done.done),
    )
    assert told == list(range(6, 19))
    assert study.status is Status.DONE
    assert [(run.repetition, run.disks, run.options.kernel) for run in study.runs] == [
        (step.repetition, step.disks, step.kernel) for step in plan_steps(2, ASKED)
    ]
    assert study.runs[:5] == kept.runs
    assert study.wall_s >= kept.wall_s


@pytest.mark.parametrize("change", [{"memory_bytes": 1 << 29}, {"seed": 8}, {"repetitions": 3}])
def test_a_study_begun_with_other_options_is_not_gone_on_with(change: dict[str, int]) -> None:
    store, kept = stopped(after=5)
    other = msgspec.structs.replace(ASKED, **change)
    same = other == ASKED
    with nullcontext() if same else pytest.raises(TargetRefused, match="other options"):
        run_scaling(FakeDisks(count=2), store, kept.start, other, before=Before(kept, items=6))


def test_progress_is_told_after_every_run() -> None:
    told: list[RunDone] = []
    asked = msgspec.structs.replace(ASKED, repetitions=1, kernels=("scan",))
    start = begin_scaling([str(Path.cwd())], asked)
    run_scaling(FakeDisks(count=2), Kept(), start, asked, on_run=told.append)
    assert [(each.done, each.of) for each in told] == [(1, 2), (2, 2)]


def test_data_suits_every_kernel() -> None:
    size = whole_bytes(512 << 20)
    assert size % 100 == size % 4096 == size % 65536 == 0
    rows, columns = shape_of(size)
    assert rows * columns * 4096 == size
    assert 1 <= rows <= columns <= 4 * rows
    transpose = options_of("transpose", ASKED)
    assert (transpose.rows, transpose.columns) == (rows, columns)
    assert options_of("sort", ASKED).rows is None
    with pytest.raises(TargetRefused, match="too little"):
        whole_bytes(1000)


def test_capacities_at_the_end_join_those_at_the_beginning() -> None:
    disks = FakeDisks(machine=ATLAS, count=2)
    effort = Effort(data_bytes=1, memory_bytes=1, threads=1, total_s_max=1.0, seed=1)
    one = disks.capacities(effort)
    two = disks.capacities(msgspec.structs.replace(effort, seed=2))
    both = pooled_readings([one, two])
    assert both.all_read_bytes_s == one.all_read_bytes_s + two.all_read_bytes_s
    assert both.disk_read_bytes_s[1] == one.disk_read_bytes_s[1] + two.disk_read_bytes_s[1]
    assert both.processors == one.processors


def test_a_directory_twice_is_no_second_disk(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    start = begin_scaling([str(tmp_path / "a"), str(tmp_path / "b")], ASKED)
    assert "they are one disk" in str(start.notes[0])
    with pytest.raises(TargetRefused, match="no directory"):
        begin_scaling([], ASKED)
