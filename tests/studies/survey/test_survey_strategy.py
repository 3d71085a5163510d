"""The surveyor asks for what the plan says, the same again on resume, and finds the levels."""

from __future__ import annotations

from collections import Counter
from functools import partial

import msgspec
import pytest

from leadline.record import PARAMETERS, PROCESSES_MAX, Status, Workload
from leadline.studies.survey.explain import explain
from leadline.studies.survey.plan import (
    CURVE_ENDS,
    CURVE_WEIGHTS,
    PlanRefused,
    make_plan,
    share,
    spread,
)
from leadline.studies.survey.strategy import ResumeMismatch, Surveyor
from simulated_answers import MIB, answer, plan, start, surveyed, two_levels


@pytest.mark.parametrize("budget_s", [80.0, 120.0, 200.0, 400.0, 4000.0])
@pytest.mark.parametrize("focal_mode", ["middle", "75%"])
def test_the_plan_printed_in_advance_is_what_runs(budget_s: float, focal_mode: str) -> None:
    begin = start(budget_s=budget_s, focal_mode=focal_mode)
    ran = Counter(point.stage for point in surveyed(begin).points)
    assert ran == {stage.name: stage.points for stage in begin.plan.stages}
    assert begin.plan.points <= 84


def test_a_resumed_survey_asks_the_same_questions() -> None:
    whole = surveyed(start())
    for kept in (0, 1, 17, 40, 83):
        resumed = Surveyor(start())
        for point in whole.points[:kept]:
            resumed.tell(point)
        request = resumed.ask()
        assert request is not None
        assert request.workload == whole.points[kept].workload
        assert request.seed == whole.points[kept].seed


def test_another_seed_measures_in_another_order() -> None:
    first = [point.workload for point in surveyed(start(seed=1)).points]
    second = [point.workload for point in surveyed(start(seed=2)).points]
    assert first != second


def test_a_point_of_another_survey_is_refused() -> None:
    surveyor = Surveyor(start())
    request = surveyor.ask()
    assert request is not None
    wrong = answer(request, two_levels)
    other = surveyed(start(seed=99)).points[30]
    with pytest.raises(ResumeMismatch):
        surveyor.tell(other)
    surveyor.tell(wrong)


def test_two_levels_are_found_and_every_region_has_its_family() -> None:
    survey = explain(start(), surveyed(start()).points)
    assert survey.status is Status.DONE
    assert len(survey.regions) == 2
    assert survey.boundaries[0].bytes.value == pytest.approx(480 * MIB, rel=0.1)
    assert {curve.parameter for curve in survey.families[0].curves} == {
        "size_mean",
        "read_frac",
        "seq_frac",
        "process_num",
    }
    for family in survey.families:
        for curve in family.curves:
            assert len(curve.points) >= 3, (family.region, curve.parameter)
    assert all(region.throughput_mb_s.n >= 3 for region in survey.regions), "focal: replicated"
    assert survey.settled


def test_a_focal_point_lies_on_every_curve_of_its_family() -> None:
    survey = explain(start(), surveyed(start()).points)
    for region, family in zip(survey.regions, survey.families, strict=True):
        for curve in family.curves:
            xs = [point.x for point in curve.points]
            assert float(getattr(region.focal, curve.parameter)) in xs
        assert region.focal.unique_bytes in [p.x for p in survey.unique_bytes_curve.points]


def slowed(workload: Workload, factor: float) -> float:
    return two_levels(workload) * factor


def test_a_drifting_system_is_reported_and_a_steady_one_is_not() -> None:
    begin = start()
    surveyor = Surveyor(begin)
    while (request := surveyor.ask()) is not None:
        slower = 1 - 0.3 * request.order / begin.plan.points
        surveyor.tell(answer(request, partial(slowed, factor=slower)))
    drifted = explain(begin, surveyor.points)
    assert any("drift" in found.code for found in drifted.findings)
    assert not any("drift" in f.code for f in explain(begin, surveyed(begin).points).findings)


@pytest.mark.parametrize(
    ("counted", "said"), [(False, "did not show again"), (True, "the throughput shows no boundary")]
)
def test_boundaries_that_later_points_contradict_are_told_and_still_explained(
    counted: bool, said: str
) -> None:
    """CI's disk once did so: its cache was quick while the curve ran, and slow ever after."""
    begin = start()
    surveyor = Surveyor(begin)
    while (request := surveyor.ask()) is not None:
        late = request.stage in ("families", "closing")
        point = answer(request, (lambda _: 40.0) if late else two_levels)
        result = msgspec.structs.replace(point.result, cached_share=None)
        surveyor.tell(point if counted else msgspec.structs.replace(point, result=result))
    survey = explain(begin, surveyor.points)
    assert len(survey.regions) == 2
    assert survey.boundaries[0].bytes.value == pytest.approx(480 * MIB, rel=0.1)
    assert [boundary.basis == "counted" for boundary in survey.boundaries] == [counted]
    assert any(said in str(found) for found in survey.findings)


def test_points_that_are_not_admissible_carry_no_curve_but_are_told() -> None:
    begin = start()
    surveyor = Surveyor(begin)
    while (request := surveyor.ask()) is not None:
        bad = request.order == 50
        formula = (lambda _: 0.001) if bad else two_levels
        surveyor.tell(answer(request, formula, admissible=not bad))
    survey = explain(begin, surveyor.points)
    assert any("not valid" in str(found) for found in survey.findings)


def test_an_unfinished_survey_explains_what_it_has() -> None:
    points = surveyed(start()).points
    for kept in (0, 3, 20, 30, 60):
        survey = explain(start(), points[:kept])
        assert survey.status is Status.STOPPED
        assert any("--resume" in str(found) for found in survey.findings)


def test_the_75_percent_point_is_found_for_every_parameter_at_once() -> None:
    begin = start(focal_mode="75%")
    surveyor = surveyed(begin, noise=0.005)
    survey = explain(begin, surveyor.points)
    focal: Workload = survey.regions[0].focal
    assert focal.unique_bytes == pytest.approx(561 * MIB, rel=0.25), "75%, past the cache's end"
    assert focal.seq_frac == 0.0, "sequential does nothing inside the cache"
    assert focal.process_num <= 2, "processes do little there"
    assert survey.settled or any("settled" in str(found) for found in survey.findings)


def test_the_75_percent_point_settles_where_parameters_do_not_pull_at_each_other() -> None:
    def product(workload: Workload) -> float:
        """Each parameter multiplies by a factor of its own (CP94 §9's assumption)."""
        hit = min(1.0, 480 * MIB / workload.unique_bytes)
        size = workload.size_mean / (workload.size_mean + 20000)
        return 1000 * hit * size * (0.3 + 0.7 * workload.read_frac)

    begin = start(focal_mode="75%")
    survey = explain(begin, surveyed(begin, product, noise=0.005).points)
    focal = survey.regions[0].focal
    assert survey.settled
    assert focal.unique_bytes == pytest.approx(480 / 0.75 * MIB, rel=0.1)
    assert focal.size_mean == pytest.approx(20000 * 0.75 / 0.25, rel=0.25)
    assert focal.read_frac == pytest.approx(0.643, abs=0.06)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"budget_s": 5.0}, "--budget"),
        ({"capacity_bytes": 32 * MIB}, "--max-bytes"),
        ({"max_bytes": 100 * MIB}, "--max-bytes"),
    ],
)
def test_an_impossible_plan_is_refused_with_what_to_type(change: dict[str, int], said: str) -> None:
    asked = {
        "budget_s": 300.0,
        "capacity_bytes": 4 * 2**30,
        "max_bytes": None,
        "memory_bytes": 512 * MIB,
        "l3_cache_bytes": 32 * MIB,
        "process_num_max": 8,
        "virtual": False,
    }
    with pytest.raises(PlanRefused, match=said):
        make_plan(**(asked | change))  # type: ignore[arg-type]


def test_spread_takes_the_ends_first_then_the_widest_gap() -> None:
    assert spread(0, 1, (0.5,), 2, log=False) == [1, 0]
    assert spread(1, 16, (4,), 4, log=True) == pytest.approx([16, 1, 2, 8])
    assert spread(1, 1, (1,), 3, log=True) == []


@pytest.mark.parametrize("processors", [65, 512])
def test_a_range_that_still_rises_ends_where_workloads_do(processors: int) -> None:
    def parallel(workload: Workload) -> float:
        return two_levels(workload) * workload.process_num

    begin = start(process_num_max=4 * processors)
    most = max(point.workload.process_num for point in surveyed(begin, parallel).points)
    assert begin.plan.process_num_max <= most == PROCESSES_MAX


def test_share_gives_everything_away() -> None:
    none = {"a": 0, "b": 0, "c": 0}
    counts = share(23, {"a": 5.0, "b": 4.0, "c": 3.0}, none)
    assert sum(counts.values()) == 23
    assert counts["a"] > counts["c"]


def test_share_gives_each_its_least_first_and_deals_out_what_is_too_little() -> None:
    weights, least = {"a": 8.0, "b": 1.0, "c": 1.0}, {"a": 1, "b": 2, "c": 2}
    assert share(10, weights, least) == {"a": 6, "b": 2, "c": 2}
    assert share(50, weights, least) == {"a": 40, "b": 5, "c": 5}
    assert share(5, weights, least) == {"a": 1, "b": 2, "c": 2}
    assert share(4, weights, least) == {"a": 1, "b": 2, "c": 1}
    assert share(2, weights, least) == {"a": 1, "b": 1, "c": 0}


@pytest.mark.parametrize("region_points", [9, 10, 12, 21])
def test_a_region_of_nine_points_has_both_ends_of_every_curve(region_points: int) -> None:
    counts = share(region_points, CURVE_WEIGHTS, CURVE_ENDS)
    assert sum(counts.values()) == region_points
    assert min(counts[parameter] for parameter in PARAMETERS[1:]) >= 2
    assert counts["focal"] >= 1


def test_nine_points_are_all_that_both_ends_take() -> None:
    assert sum(CURVE_ENDS.values()) == 9


def test_with_room_for_one_end_the_low_one_may_come_first() -> None:
    for count, low_first, ends in (
        (1, False, [64.0]),
        (1, True, [1.0]),
        (2, False, [64.0, 1.0]),
        (2, True, [1.0, 64.0]),
    ):
        found = spread(1.0, 64.0, (8.0,), count, log=True, low_first=low_first)
        assert found == pytest.approx(ends)


def test_ranges_start_above_the_processors_cache_and_below_the_memory_cap() -> None:
    assert plan().unique_bytes_min == 64 * MIB
    assert plan().unique_bytes_max == 3 * 2**30
