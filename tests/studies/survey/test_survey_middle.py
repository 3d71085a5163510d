"""The revised benchmark's single decisions, by hand: scouting, focal values, regions, order."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import msgspec
import pytest

from leadline.record import PROCESSES_MAX, Workload
from leadline.studies.survey.middle import (
    MiddleStrategy,
    RegionBounds,
    _whole_blocks,
    half_way,
    half_way_of,
    interleave,
    region_bounds,
)
from leadline.studies.survey.strategy import Surveyor
from simulated_answers import MIB, answer, plan, start, surveyed

LOW, HIGH = 64 * MIB, 3072 * MIB


def asked(surveyor: Surveyor, count: int, formula: Callable[[Workload], float]) -> list[Workload]:
    """The next points of a survey, each told what a formula gives, without noise."""
    found = []
    for _ in range(count):
        request = surveyor.ask()
        assert request is not None
        found.append(request.workload)
        surveyor.tell(answer(request, formula, noise=0.0))
    return found


def middle(surveyor: Surveyor) -> MiddleStrategy:
    assert isinstance(surveyor.strategy, MiddleStrategy)
    return surveyor.strategy


def saturating(workload: Workload) -> float:
    """Nothing gained from sizes past 64 KiB, nor from processes; no request takes long."""
    return 10 * min(workload.size_mean, 65536) / 65536


def test_scouting_sizes_then_processes_then_sizes_at_both_ends() -> None:
    surveyor = Surveyor(start(budget_s=215.0))
    sizes = asked(surveyor, 6, saturating)
    assert {w.unique_bytes for w in sizes} == {LOW, HIGH}
    assert Counter((w.unique_bytes, w.size_mean) for w in sizes) == {
        (end, size): 1 for end in (LOW, HIGH) for size in (4096, 92672, 2 * MIB)
    }
    assert all(w.process_num == 1 for w in sizes)
    assert middle(surveyor).tops == {"size_mean": 2 * MIB, "process_num": 16.0}
    focal = middle(surveyor).focal.size_mean
    assert focal == 38 * 512, "half-way between 4 KiB and the 90.5 KiB that reach it all"
    processes = asked(surveyor, 6, saturating)
    assert Counter((w.unique_bytes, w.process_num) for w in processes) == {
        (end, count): 1 for end in (LOW, HIGH) for count in (1, 4, 16)
    }
    assert all(w.size_mean == focal for w in processes)
    assert middle(surveyor).focal.process_num == 1, "flat: where the search began"
    again = asked(surveyor, 6, saturating)
    known = {(w.unique_bytes, w.size_mean) for w in sizes + processes}
    assert not known & {(w.unique_bytes, w.size_mean) for w in again if w.process_num == 1} - {
        (LOW, 4096),
        (HIGH, 4096),
    }
    ends = asked(surveyor, 4, saturating)
    assert [w.unique_bytes for w in ends] == [LOW, HIGH, HIGH, LOW]


def test_the_points_of_a_familys_curves_are_shuffled() -> None:
    """In turn as they come: as a drift would have it, not one curve after the other."""
    points = [point.workload for point in surveyed(start()).points if point.stage == "families"]
    focal = Counter(points).most_common(1)[0][0]
    parameters = ("size_mean", "read_frac", "seq_frac", "process_num")
    curves = [
        next((name for name in parameters if getattr(w, name) != getattr(focal, name)), "")
        for w in points
    ]
    singles = [name for name in curves if name]
    changes = sum(one != other for one, other in itertools.pairwise(singles))
    assert changes > len(singles) / 2


def test_a_survey_closes_with_both_ends_in_the_other_order() -> None:
    points = surveyed(start()).points
    assert [point.workload.unique_bytes for point in points[-2:]] == [HIGH, LOW]
    assert [point.stage for point in points[-3:]] == ["families", "closing", "closing"]


def test_a_small_survey_scouts_the_ends_of_its_ranges_only() -> None:
    surveyor = Surveyor(start(budget_s=50.0))
    sizes = asked(surveyor, 4, saturating)
    top = min(2 * MIB, middle(surveyor).plan.unique_bytes_min // 4)
    assert {w.size_mean for w in sizes} == {4096, top}
    assert {w.process_num for w in asked(surveyor, 4, saturating)} == {1, 16}
    assert surveyor.ask().stage == "ends"  # type: ignore[union-attr]


def test_sizes_end_where_a_window_holds_two_requests_of_the_slow_end() -> None:
    surveyor = Surveyor(start())
    asked(surveyor, 6, lambda w: 0.5 if w.unique_bytes == HIGH else 50.0)
    window_s = 0.55 * middle(surveyor).plan.point_s
    assert middle(surveyor).tops["size_mean"] == 0.5e6 * window_s / 2 // 512 * 512 < 2 * MIB


@pytest.mark.parametrize(("most", "top"), [(16, 64.0), (300, float(PROCESSES_MAX))])
def test_a_range_that_still_gains_at_its_end_is_four_times_as_long(most: int, top: float) -> None:
    surveyor = Surveyor(start(process_num_max=most))
    asked(surveyor, 12, lambda w: float(w.size_mean * w.process_num))
    assert middle(surveyor).tops == {"size_mean": 8 * MIB, "process_num": top}


def test_a_request_never_spans_its_region() -> None:
    surveyor = Surveyor(start())
    asked(surveyor, 6, lambda w: float(w.size_mean))
    strategy = middle(surveyor)
    assert strategy.tops["size_mean"] == 8 * MIB
    for focal_bytes, top in [
        (16 * MIB, 4 * MIB),
        (64 * MIB, 8 * MIB),
        (4096, 16384),
        (40960, 16384),
    ]:
        region = RegionBounds(4096, HIGH, focal_bytes)
        focal = strategy.focal.size_mean
        assert strategy.parameter_range("size_mean", region) == (4096.0, max(top, focal))
        assert strategy.parameter_range("read_frac", region) == (0.0, 1.0)
        assert strategy.parameter_range("process_num", region) == (1.0, 16.0)
    strategy.focal = strategy.focal.with_value("process_num", 32).with_value("size_mean", 2048)
    region = RegionBounds(LOW, HIGH, LOW)
    assert strategy.parameter_range("process_num", region) == (1.0, 32.0)
    assert strategy.parameter_range("size_mean", region) == (2048.0, 8 * MIB)


def test_a_family_holds_its_focal_point_as_often_as_curves_leave_room() -> None:
    strategy = middle(Surveyor(start()))
    region = RegionBounds(LOW, HIGH, 100 * MIB)
    workloads, repeats = strategy._family(region, 24)
    focal = strategy.focal_in(region)
    assert focal.unique_bytes == 100 * MIB
    assert focal not in workloads
    assert len(workloads) == len(set(workloads)) == 24 - repeats
    assert repeats == 4, "four shares of twenty-four, of 4 + 5 + 5 + 5 + 5"
    changed = Counter(
        parameter
        for w in workloads
        for parameter in ("size_mean", "read_frac", "seq_frac", "process_num")
        if getattr(w, parameter) != getattr(focal, parameter)
    )
    assert changed == dict.fromkeys(("size_mean", "read_frac", "seq_frac", "process_num"), 5)


def test_values_that_round_to_one_are_one_point_and_the_focal_point_has_the_others() -> None:
    """Of 3, 1.7, 2.3 and 1.3 processes two are 2, beside a focal point of one."""
    strategy = middle(Surveyor(start()))
    strategy.tops["process_num"] = 3.0
    workloads, repeats = strategy._family(RegionBounds(LOW, HIGH, 100 * MIB), 20)
    numbers = [workload.process_num for workload in workloads if workload.process_num > 1]
    assert sorted(numbers) == [2, 3]
    assert (len(workloads), repeats) == (14, 6)


def test_values_of_a_curve_are_whole_processes_sectors_and_thousandths() -> None:
    strategy = middle(Surveyor(start()))
    strategy.plan = msgspec.structs.replace(strategy.plan, size_mean_min=100)
    workloads, _ = strategy._family(RegionBounds(LOW, HIGH, 100 * MIB), 60)
    shares = {workload.read_frac for workload in workloads}
    assert {0.0, 0.062, 0.125, 0.188} <= shares, "sixteenths, in thousandths"
    sizes = {workload.size_mean for workload in workloads}
    assert min(sizes) == 512
    assert all(size % 512 == 0 for size in sizes)
    assert min(workload.process_num for workload in workloads) == 1


def test_a_range_of_one_value_is_measured_there_as_often_as_planned() -> None:
    surveyor = Surveyor(start(process_num_max=1))
    asked(surveyor, 6, saturating)
    size = middle(surveyor).focal.size_mean
    processes = asked(surveyor, 6, saturating)
    found = Counter((w.unique_bytes, w.process_num, w.size_mean) for w in processes)
    assert found == {(LOW, 1, size): 3, (HIGH, 1, size): 3}


def test_a_focal_value_is_half_way_and_a_flat_curve_has_none() -> None:
    assert half_way([1.0, 16.0], [0.0, 10.0], 3.0) == pytest.approx(4.0)
    assert half_way([1.0, 16.0], [100.0, 114.9], 3.0) == 3.0
    assert half_way([1.0, 16.0], [100.0, 115.1], 3.0) == pytest.approx(4.0)
    rising = ([1.0, 16.0], [0.0, 10.0])
    later = ([1.0, 256.0], [0.0, 10.0])
    assert half_way_of([rising, later], "process_num") == 8.0, "of 4 and 16"
    flat = ([1.0, 4.0], [1.0, 1.0])
    assert half_way_of([rising, flat], "process_num") == 2.0
    assert half_way_of([flat, flat], "size_mean") == 32768.0, "where the search began"
    steep = ([4096.0, 2.0**20], [0.0, 10.0])
    assert half_way_of([steep, steep], "size_mean") == 65536.0
    near = ([4096.0, 20480.0], [0.0, 10.0])
    assert half_way_of([near, near], "size_mean") == 18 * 512, "9159 in whole sectors"


def test_regions_lie_between_boundaries_and_the_last_focal_point_near_its_own() -> None:
    whole = plan()
    assert region_bounds([], whole) == (RegionBounds(LOW, HIGH, (LOW + HIGH) // 2),)
    two = region_bounds([100 * MIB + 0.4], whole)
    assert two == (RegionBounds(LOW, 100 * MIB, 82 * MIB), RegionBounds(100 * MIB, HIGH, 200 * MIB))
    assert region_bounds([2000 * MIB], whole)[1].focal_bytes == 2536 * MIB, "the range ends"
    assert [_whole_blocks(x) for x in (1.0, 6100.0, 6200.0)] == [4096, 4096, 8192]
    odd = region_bounds([100 * MIB + 5000], whole)
    assert [region.focal_bytes % 4096 for region in odd] == [0, 0]


def numbered(*sizes: int) -> list[Workload]:
    return [Workload(unique_bytes=size * MIB, size_mean=4096) for size in sizes]


def test_repeats_stand_at_the_start_the_end_and_evenly_between() -> None:
    singles = numbered(1, 2, 3, 4)
    (repeat,) = numbered(9)
    merged = interleave(singles, [repeat] * 3)
    assert [w.unique_bytes // MIB for w in merged] == [9, 1, 2, 9, 3, 4, 9]
    assert interleave(singles, []) == singles
    assert interleave(singles, [repeat]) == [repeat, *singles]


def test_of_one_end_alone_a_region_is_asked_for_one_process_and_the_largest_request() -> None:
    """Nine points have both ends of each curve, five have one."""
    surveyor = Surveyor(start())
    asked(surveyor, 12, saturating)
    strategy = middle(surveyor)
    strategy.focal = strategy.focal.with_value("process_num", 4.0).with_value("size_mean", 65536.0)
    region = RegionBounds(64 * MIB, 512 * MIB, 256 * MIB)
    few, _ = strategy._family(region, 5)
    ends = {
        name: {getattr(w, name) for w in few} - {getattr(strategy.focal_in(region), name)}
        for name in ("process_num", "size_mean", "read_frac")
    }
    assert ends["process_num"] == {1}
    assert max(ends["size_mean"]) == strategy._size_max(region.focal_bytes)
    more, repeats = strategy._family(region, 9)
    assert {w.process_num for w in more} == {1, 4, 16}
    assert repeats == 1


@pytest.mark.parametrize("regions", [1, 2])
def test_a_whole_survey_has_six_points_on_every_curve_of_two_regions(regions: int) -> None:
    """CP94 section 6."""
    strategy = middle(Surveyor(start(budget_s=4000.0)))
    families = {stage.name: stage for stage in strategy.plan.stages}["families"]
    workloads, repeats = strategy._family(
        RegionBounds(LOW, HIGH, 100 * MIB), families.points // regions
    )
    for parameter in ("size_mean", "read_frac", "seq_frac", "process_num"):
        focal = getattr(strategy.focal, parameter)
        assert len({getattr(w, parameter) for w in workloads} | {focal}) >= 6, parameter
    assert repeats >= 4
    assert "of 6 points in two regions" in families.purpose


def test_a_plan_that_holds_fewer_points_of_a_curve_says_so() -> None:
    plan = start(budget_s=50.0).plan
    assert "of 2 points in two regions" in plan.stages[3].purpose
