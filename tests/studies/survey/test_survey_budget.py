"""A survey's time: what each point may take, and that the budget's end is the survey's."""

from __future__ import annotations

from typing import Any, NoReturn, cast

import msgspec
import pytest

from leadline.engine import (
    BudgetSpent,
    Engine,
    Limits,
    NothingCompleted,
    PointFailed,
    Progress,
    share_limits,
    until_completed,
)
from leadline.record import (
    EngineResult,
    Measurement,
    Preconditioned,
    Status,
    Survey,
    SurveyStart,
    Workload,
)
from leadline.store import Keeper
from leadline.studies.loop import StudyClock, measure_point, measure_points
from leadline.studies.pace import Pace
from leadline.studies.script import PointRequest
from leadline.studies.survey.strategy import Surveyor
from leadline.studies.survey.study import pace_of, run_survey
from simulated_answers import MIB, engine_result, start, two_levels

BEGIN = start(budget_s=100.0)
POINTS = BEGIN.plan.points
LIMITS = Limits(
    warm_up_s_max=1.0, measure_s_min=0.1, measure_s_max=2.0, accuracy=0.02, total_s_max=60.0
)


class Stopwatch:
    """An engine that takes `factor` of what a point may, on a clock of its own."""

    def __init__(self, factor: float = 1.0, precondition_s: float = 0.0) -> None:
        self.clock_s = 1000.0
        self.asked: list[Limits] = []
        self.preconditioned: list[int | None] = []
        self._factor = factor
        self._precondition_s = precondition_s

    def skip_to(self, clock_s: float) -> None:
        """Its clock has gone on by itself."""

    def run(
        self, workload: Workload, *, seed: int, limits: Limits, precondition_bytes_max: int | None
    ) -> EngineResult:
        del seed
        taken_s = self._factor * (limits.warm_up_s_max + limits.measure_s_max)
        before_s = self._precondition_s if precondition_bytes_max is not None else 0.0
        self.clock_s += taken_s + before_s
        self.asked.append(limits)
        self.preconditioned.append(precondition_bytes_max)
        made = Preconditioned(bytes=1, seconds=before_s, plateau=True, rounds=())
        return msgspec.structs.replace(
            engine_result(two_levels(workload), workload),
            total_s=taken_s + before_s,
            precondition=made if before_s else None,
        )


class Kept:
    """What a running survey calls of a store."""

    def __init__(self) -> None:
        self.points: list[Measurement] = []
        self.survey: Survey | None = None

    def add(self, study_id: str, item: Measurement, group: str = "") -> None:
        assert (study_id, group) == (BEGIN.study_id, "")
        self.points.append(item)

    def end(self, study_id: str, answer: Survey, status: Status) -> None:
        assert (study_id, status) == (BEGIN.study_id, answer.status)
        self.survey = answer


def run(engine: Stopwatch, kept: Kept, begin: SurveyStart = BEGIN) -> Survey:
    return run_survey(cast("Engine", engine), cast("Keeper", kept), begin, kept.points[:])


def test_a_point_may_take_an_equal_share_of_what_is_left_less_a_fiftieth() -> None:
    limits = pace_of(BEGIN).limits(40.0, POINTS - 20)
    share_s = 0.98 * 60.0 / 20
    assert limits.warm_up_s_max + limits.measure_s_max == pytest.approx(share_s)
    assert limits.warm_up_s_max == pytest.approx(0.45 * share_s), "most goes into measuring"
    assert limits.measure_s_min == pytest.approx(share_s / 4)
    assert limits.total_s_max == 60.0, "the hard end: all that is left"
    assert limits.accuracy == BEGIN.accuracy


def test_what_stands_between_points_takes_its_share_and_no_point_more_than_it_may() -> None:
    """Five points and four pauses of half a point each: seven shares."""
    pace = Pace(end_s=100.0, points=8, accuracy=0.02, between=0.5, advice="; give more")
    limits = pace.limits(30.0, 3)
    assert limits.warm_up_s_max + limits.measure_s_max == pytest.approx(0.98 * 70.0 / 7)
    brief = Pace(end_s=100.0, points=8, accuracy=0.02, point_s_max=2.0).limits(30.0, 3)
    assert brief.warm_up_s_max + brief.measure_s_max == pytest.approx(2.0)
    assert brief.total_s_max == 70.0
    with pytest.raises(BudgetSpent, match=r"5 of 8 points still to measure; give more$"):
        pace.limits(99.0, 3)


def test_what_stands_before_each_point_is_done_before_it_and_in_its_time() -> None:
    engine, kept = Stopwatch(), Kept()
    surveyor = Surveyor(BEGIN)
    done: list[int] = []

    def before(request: PointRequest) -> None:
        assert len(engine.asked) == request.order
        done.append(request.order)
        engine.clock_s += 0.1

    measure_points(
        cast("Engine", engine),
        cast("Keeper", kept),
        BEGIN,
        surveyor,
        pace_of(BEGIN),
        on_progress=lambda _: None,
        before=before,
    )
    assert done == list(range(POINTS))
    assert engine.asked[0].total_s_max == pytest.approx(100.0 - 0.1)
    assert [point.clock_s for point in kept.points[:1]] == pytest.approx([0.1])


def test_a_long_point_may_end_by_its_own_interval_after_ten_seconds() -> None:
    assert share_limits(400.0, left_s=1000.0, accuracy=0.02).measure_s_min == 10.0


def test_without_an_accuracy_every_warm_up_and_every_window_is_as_long_as_it_may_be() -> None:
    limits = share_limits(10.0, left_s=100.0, accuracy=0.0)
    assert limits.warm_up_s_min == limits.warm_up_s_max == pytest.approx(4.5)
    assert limits.measure_s_min == limits.measure_s_max == pytest.approx(5.5)
    assert share_limits(10.0, left_s=100.0, accuracy=0.02).warm_up_s_min == 0.0


def test_the_budget_is_over_when_a_point_gets_less_than_three_tenths_of_a_second() -> None:
    least_s = 0.3 * 10 / 0.98
    pace_of(BEGIN).limits(100.0 - least_s - 1e-6, POINTS - 10)
    with pytest.raises(BudgetSpent, match=f"10 of {POINTS} points") as spent:
        pace_of(BEGIN).limits(100.0 - least_s + 1e-6, POINTS - 10)
    assert spent.value.exit_code == 3


def test_points_that_take_all_they_may_end_within_the_budget_and_use_it() -> None:
    engine, kept = Stopwatch(), Kept()
    survey = run(engine, kept)
    assert len(kept.points) == POINTS
    assert kept.survey is survey
    assert 95.0 < engine.clock_s - 1000.0 <= 100.0
    assert survey.wall_s == pytest.approx(engine.clock_s - 1000.0)
    first = engine.asked[0]
    assert first.warm_up_s_max + first.measure_s_max == pytest.approx(98.0 / POINTS)


def test_a_survey_whose_points_overrun_ends_with_its_budget_and_keeps_them() -> None:
    engine, kept = Stopwatch(factor=3.0), Kept()
    with pytest.raises(BudgetSpent):
        run(engine, kept)
    assert 0 < len(kept.points) == len(engine.asked) < POINTS
    assert kept.survey is not None
    assert kept.survey.status is Status.STOPPED, "not finished: it can be resumed"
    left_s = 100.0 - (engine.clock_s - 1000.0)
    assert 0.98 * left_s / (POINTS - len(kept.points)) < 0.3, "no point before could say so"
    again = Stopwatch()
    with pytest.raises(BudgetSpent):
        run(again, kept)
    assert again.asked == [], "a new sitting has no new budget"


def test_a_second_sitting_goes_on_where_the_clock_of_the_first_stood() -> None:
    first, kept = Stopwatch(), Kept()
    whole = Kept()
    run(first, whole)
    kept.points = whole.points[:10]
    second = Stopwatch()
    run(second, kept)
    assert second.asked[0].total_s_max == pytest.approx(first.asked[10].total_s_max)
    clocks = [point.clock_s for point in kept.points]
    assert clocks == pytest.approx([point.clock_s for point in whole.points])


def test_preconditioning_is_asked_once_and_charged_to_nobody() -> None:
    begin = msgspec.structs.replace(BEGIN, precondition_bytes_max=2_000_000_000)
    engine, kept = Stopwatch(precondition_s=500.0), Kept()
    run(engine, kept, begin)
    assert engine.preconditioned == [2_000_000_000] + [None] * (POINTS - 1)
    assert engine.asked[0].total_s_max == pytest.approx(100.0 + 2e9 / 20e6)
    assert engine.asked[1].total_s_max < 100.0
    assert 595.0 < engine.clock_s - 1000.0 <= 600.0
    kept.points = kept.points[:1]
    resumed = Stopwatch()
    run(resumed, kept, begin)
    assert resumed.asked[0].total_s_max == pytest.approx(engine.asked[1].total_s_max)


class Silent(Stopwatch):
    """No request ever ends."""

    def run(self, workload: Workload, *, seed: int, **asked: Any) -> EngineResult:
        super().run(workload, seed=seed, **asked)
        raise NothingCompleted("no request completed in the measured window")


class Broken(Stopwatch):
    """Every read fails."""

    def run(self, workload: Workload, *, seed: int, **asked: Any) -> EngineResult:
        super().run(workload, seed=seed, **asked)
        raise PointFailed("read error")


class Slow(Stopwatch):
    """One of its points, the fifth, is so slow that no request ends in the first two windows."""

    def run(self, workload: Workload, *, seed: int, **asked: Any) -> EngineResult:
        answer = super().run(workload, seed=seed, **asked)
        if len(self.asked) in {5, 6}:
            raise NothingCompleted("no request completed in the measured window")
        return answer


LATE = POINTS - 3


class Sticking(Stopwatch):
    """No request of its last three points ends."""

    def run(self, workload: Workload, *, seed: int, **asked: Any) -> EngineResult:
        answer = super().run(workload, seed=seed, **asked)
        if len(self.asked) > LATE:
            raise NothingCompleted("no request completed in the measured window")
        return answer


@pytest.mark.parametrize("silent", [0, 1, 2])
def test_until_a_request_ends_windows_grow(silent: int) -> None:
    asked = []
    measured = engine_result(100.0, Workload(unique_bytes=MIB, size_mean=4096))

    def run(*, limits: Limits) -> EngineResult:
        asked.append(limits.measure_s_max)
        if len(asked) <= silent:
            raise NothingCompleted("no request completed")
        return measured

    assert until_completed(run, LIMITS) is measured
    assert asked == [LIMITS.measure_s_max * times for times in (1, 4, 16)][: silent + 1]


def test_nothing_in_the_longest_window_is_a_failure() -> None:
    def run(*, limits: Limits) -> NoReturn:
        raise NothingCompleted(f"no request completed in {limits.measure_s_max} s")

    with pytest.raises(NothingCompleted, match=f"in {64 * LIMITS.measure_s_max} s"):
        until_completed(run, LIMITS)


def test_a_point_in_which_no_request_ended_gets_more_time_and_the_survey_goes_on() -> None:
    engine, kept = Slow(factor=0.5), Kept()
    run(engine, kept)
    assert [point.order for point in kept.points] == list(range(POINTS))
    first, second, third, after = engine.asked[4:8]
    assert second.measure_s_max == pytest.approx(4 * first.measure_s_max)
    assert third.measure_s_max == pytest.approx(16 * first.measure_s_max)
    assert after.measure_s_max < 2 * first.measure_s_max
    waited_s = kept.points[4].clock_s - kept.points[3].clock_s - kept.points[3].result.total_s
    assert waited_s > 0, "the time it cost is the survey's"
    assert third.total_s_max == pytest.approx(100.0 - kept.points[4].clock_s)


def test_a_point_for_which_the_budget_is_too_short_ends_the_survey_as_any_end_of_it_does() -> None:
    engine, kept = Sticking(factor=0.5), Kept()
    with pytest.raises(BudgetSpent, match=rf"3 of {POINTS} points .*: point .* no request"):
        run(engine, kept)
    assert len(kept.points) == LATE


def test_a_point_that_nothing_completes_in_while_there_is_time_is_a_failure() -> None:
    engine, kept = Silent(factor=0.01), Kept()
    with pytest.raises(NothingCompleted, match=r"point 1 "):
        run(engine, kept)


def test_progress_is_what_was_measured_and_what_is_left_at_the_pace_so_far() -> None:
    engine, kept = Stopwatch(), Kept()
    told: list[Progress] = []
    run_survey(cast("Engine", engine), cast("Keeper", kept), BEGIN, [], on_progress=told.append)
    first, second, *_, last = told
    assert len(told) == POINTS
    assert (first.done, first.planned, first.throughput_mb_s) == (0, POINTS, None)
    assert first.left_s == pytest.approx(98.0), "what its own limits come to, for every point"
    measured = [point.result.throughput_mb_s.value for point in kept.points]
    assert (second.done, second.throughput_mb_s) == (1, measured[0])
    assert second.left_s == pytest.approx(98.0 / POINTS * (POINTS - 1))
    assert (last.done, last.stage) == (POINTS - 1, "closing")
    assert last.throughput_mb_s == measured[-2]
    late = Stopwatch(factor=1.5)
    told.clear()
    run_survey(cast("Engine", late), cast("Keeper", Kept()), BEGIN, [], on_progress=told.append)
    assert told[5].left_s == pytest.approx(late.asked[5].total_s_max), "never past the end"


@pytest.mark.parametrize(("left_s", "tried"), [(0.31, 1), (0.29, 0)])
def test_a_point_with_less_than_three_tenths_of_a_second_fails_untried(
    left_s: float, tried: int
) -> None:
    request = PointRequest(4, "ends", Workload(unique_bytes=MIB, size_mean=4096), 1)
    engine = Silent()
    clock = StudyClock(cast("Engine", engine), [])
    limits = share_limits(1.0, left_s=left_s, accuracy=0.02)
    why = "no request completed" if tried else "there was no time"
    with pytest.raises(NothingCompleted, match=rf"point 5 \(ends\): {why}"):
        measure_point(cast("Engine", engine), BEGIN, request, limits, clock)
    assert len(engine.asked) == tried


def test_a_storage_that_fails_is_told_with_its_point_and_not_tried_again() -> None:
    request = PointRequest(4, "ends", Workload(unique_bytes=MIB, size_mean=4096), 1)
    engine = Broken()
    clock = StudyClock(cast("Engine", engine), [])
    limits = share_limits(1.0, left_s=9.0, accuracy=0.02)
    with pytest.raises(PointFailed, match=r"point 5 \(ends\): read error"):
        measure_point(cast("Engine", engine), BEGIN, request, limits, clock)
    assert [limits.total_s_max for limits in engine.asked] == [9.0], "nothing for preparing"
