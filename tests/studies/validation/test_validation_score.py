"""Errors, amplification, coverage and drift, on readings whose truth is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import msgspec
import numpy as np
import pytest
from test_validation_draw import MIB, made_start

from leadline.record import (
    Boundary,
    FocalDrift,
    Interval,
    Measurement,
    ModelScore,
    Prediction,
    ValidatedWorkload,
    ValidationStart,
    Workload,
)
from leadline.record.finding import Finding
from leadline.studies.validation.explain import extrapolated, validation_findings
from leadline.studies.validation.plan import (
    ANCHORS,
    ORTHOGONAL,
    PASSES,
    SINGLES,
    Space,
    draw,
    drawn_workloads,
    grid_workloads,
    plan_stages,
    requests,
)
from leadline.studies.validation.score import (
    Contestant,
    contestants,
    drift_within,
    focal_drifts,
    holm,
    inherent_error,
    interpolate,
    model_scores,
    moved,
    quantile_interval,
    rivals_left_out,
    validated_workloads,
)
from proving.samples import sample_point, sample_start, sample_survey, sample_validation

NOISE = 0.03
BOUNDARY = Boundary(
    bytes=Interval(64.0 * MIB, 63.0 * MIB, 65.0 * MIB, 20),
    shape="step",
    time_ratio=5.0,
    evidence_bic=50.0,
)
SURVEY = msgspec.structs.replace(sample_survey(sample_start()), boundaries=(BOUNDARY,))
Change = Callable[[str, Workload], float]


BROKEN = Finding.of("littles_law", error_frac=0.2)


def true_mb_s(workload: Workload) -> float:
    return 100.0 / (1 + workload.unique_bytes / (64 * MIB))


def steady(_stage: str, _workload: Workload) -> float:
    return 0.0


def noisy(seed: int, sd: float = NOISE) -> Change:
    rng = np.random.default_rng(seed)
    return lambda _stage, _workload: float(rng.normal(0, sd))


def scattered(seed: int) -> Callable[[Workload], float]:
    rng = np.random.default_rng(seed)
    return lambda _: float(rng.normal(0, 0.1))


def measured(start: ValidationStart, change: Change) -> tuple[Measurement, ...]:
    """Points of the whole script; `change` is what is added to ln throughput."""
    points = []
    for item in requests(start):
        mb_s = true_mb_s(item.workload) * math.exp(change(item.stage, item.workload))
        point = sample_point(f"point-{item.order}", item.order, mb_s)
        own = {"stage": item.stage, "workload": item.workload}
        points.append(msgspec.structs.replace(point, **own))
    return tuple(points)


def predictions(
    start: ValidationStart,
    ln_sd: float,
    error: Callable[[Workload], float],
    noise: float = NOISE,
    df: float = 1e6,
) -> tuple[Prediction, ...]:
    """Predictions whose ln error is `error`, which say that it has the sd `ln_sd`."""
    return tuple(
        Prediction(
            workload=workload,
            throughput_mb_s=Interval(
                true_mb_s(workload) * math.exp(error(workload)), None, None, 9
            ),
            run_throughput_mb_s=Interval(1.0, None, None, 9),
            ln_sd=ln_sd,
            run_ln_sd=math.hypot(ln_sd, noise),
            df=df,
            region=0,
            model="made",
        )
        for workload in drawn_workloads(start)
    )


def scored(
    start: ValidationStart, points: Sequence[Measurement], said: Sequence[Prediction]
) -> tuple[ModelScore, tuple[ValidatedWorkload, ...]]:
    rivals = contestants(start, (), {"made": said}, points)
    rows = validated_workloads(start, SURVEY, points, rivals)
    return model_scores(start, rivals, rows)[0], rows


def test_errors_are_those_of_the_prediction_against_the_mean_of_both_readings() -> None:
    start = made_start(count=40)
    swing = {PASSES[0]: 0.1, PASSES[1]: -0.1}
    points = measured(start, lambda stage, _: swing.get(stage, 0.0))
    score, rows = scored(start, points, predictions(start, 0.1, lambda _: math.log(1.2)))
    assert score.median_error.value == pytest.approx(0.2)
    assert score.p90_error.value == pytest.approx(0.2)
    assert score.bias_frac.value == pytest.approx(0.2)
    inherent = inherent_error(rows, 1)
    assert inherent is not None
    assert inherent.value == pytest.approx(math.exp(0.2) - 1), "first over second, less 1"
    assert score.amplification is not None
    assert score.amplification.value == pytest.approx(0.2 / (math.exp(0.2) - 1))


def test_a_prediction_too_low_by_a_half_is_off_by_a_half() -> None:
    start = made_start(count=20)
    score, _ = scored(
        start, measured(start, steady), predictions(start, 0.1, lambda _: -math.log(2))
    )
    assert score.median_error.value == pytest.approx(0.5)
    assert score.bias_frac.value == pytest.approx(-0.5)
    assert score.amplification is None, "nothing differed between the passes"


def test_a_perfect_model_has_an_amplification_of_about_a_half() -> None:
    start = made_start(count=600)
    score, _ = scored(start, measured(start, noisy(4)), predictions(start, 0.01, lambda _: 0.0))
    assert score.amplification is not None
    assert score.amplification.value == pytest.approx(0.5, abs=0.06)
    assert score.amplification.covers(0.5)


@pytest.mark.long
def test_intervals_that_tell_the_truth_cover_as_often_as_they_say() -> None:
    start = made_start(count=1500)
    rng = np.random.default_rng(8)
    said = predictions(start, 0.06, lambda _: float(rng.normal(0, 0.06)), noise=0.08)
    score, _ = scored(start, measured(start, noisy(9, 0.08)), said)
    for item in score.coverage:
        assert item.share.covers(item.confidence), item
    assert [item.confidence for item in score.coverage] == [0.5, 0.9, 0.95]


def test_intervals_too_narrow_by_half_are_found_out() -> None:
    start = made_start(count=300)
    rng = np.random.default_rng(8)
    said = predictions(start, 0.05, lambda _: float(rng.normal(0, 0.1)), noise=0.001)
    score, _ = scored(start, measured(start, steady), said)
    assert not any(item.share.covers(item.confidence) for item in score.coverage)


def test_the_enhanced_error_leaves_out_the_boundary_and_nothing_else() -> None:
    start = made_start(count=200)

    def at_boundary(workload: Workload) -> float:
        near = 0.95 * 63 * MIB <= workload.unique_bytes <= 1.33 * 65 * MIB
        return math.log(1.5) if near else math.log(1.05)

    score, rows = scored(start, measured(start, steady), predictions(start, 0.1, at_boundary))
    assert score.p90_error.value > score.enhanced_median_error.value  # type: ignore[union-attr]
    assert score.enhanced_median_error is not None
    assert score.enhanced_median_error.value == pytest.approx(0.05)
    assert score.enhanced_median_error.n == sum(not row.boundary_zone for row in rows) < 200
    places = {item.name: item.median_error.value for item in score.by_place}
    assert places == {
        "level 0": pytest.approx(0.05),
        "level 1": pytest.approx(0.05),
        "region boundary": pytest.approx(0.5),
    }


def test_what_is_not_admissible_is_shown_with_its_reason_and_not_scored() -> None:
    start = made_start(count=10)
    points = list(measured(start, steady))
    victim = drawn_workloads(start)[0]
    for at, point in enumerate(points):
        if point.workload == victim:
            bad = msgspec.structs.replace(point.result, admissible=False, findings=(BROKEN,))
            points[at] = msgspec.structs.replace(point, result=bad)
    score, rows = scored(start, points, predictions(start, 0.1, lambda _: 0.1))
    assert rows[0].measured_mb_s is None
    assert rows[0].reasons == (str(BROKEN),) * 2
    assert rows[0].forecasts == ()
    assert score.median_error.n == 9


def test_a_workload_read_once_is_judged_by_that_reading_and_has_no_repeat() -> None:
    start = made_start(count=10)
    points = [p for p in measured(start, noisy(2)) if p.stage != PASSES[1]]
    score, rows = scored(start, points, predictions(start, 0.1, lambda _: 0.1))
    assert score.median_error.n == 10
    assert all(row.repeat_error_frac is None and row.readings_mb_s[1] is None for row in rows)
    assert score.amplification is None


@pytest.mark.parametrize("guilty", ["unique_bytes", "size_mean", "read_frac", "process_num"])
def test_the_parameter_that_carries_the_error_is_named(guilty: str) -> None:
    start = made_start(count=100)
    space, rng = Space(start.ranges), np.random.default_rng(3)
    place = ("unique_bytes", "size_mean", "read_frac", "seq_frac", "process_num").index(guilty)

    def error(workload: Workload) -> float:
        return (0.05 + 0.3 * space.coordinates(workload)[place]) * float(rng.normal())

    score, _ = scored(start, measured(start, steady), predictions(start, 0.1, error))
    known = {item.parameter: item.chance for item in score.by_parameter}
    assert min(known, key=lambda name: known[name] or 0.0) == guilty
    assert (known[guilty] or 1.0) < 0.01


@pytest.mark.long
def test_an_error_of_no_parameter_is_seldom_blamed_on_one() -> None:
    start = made_start(count=100)
    points, blamed = measured(start, steady), 0
    for seed in range(40):
        said = predictions(start, 0.1, scattered(seed))
        score, _ = scored(start, points, said)
        blamed += any((item.chance or 1.0) <= 0.05 for item in score.by_parameter)
    assert blamed <= 6, "5% of 40 are 2; 6 or fewer in 99 of 100 such tests"


def test_holm_adjusts_for_all_and_keeps_the_order() -> None:
    assert holm([0.01, 0.04, None, 0.03]) == [
        pytest.approx(0.03),
        pytest.approx(0.06),
        None,
        pytest.approx(0.06),
    ]


def test_the_interval_of_a_median_covers_the_true_one() -> None:
    rng, covered = np.random.default_rng(1), 0
    for seed in range(200):
        found = quantile_interval(np.abs(rng.standard_normal(60)), 0.5, seed)
        covered += found.covers(0.6744898)
    assert 0.9 <= covered / 200 <= 0.99


def test_an_orthogonal_sample_is_exact_where_ln_throughput_is_linear_in_the_logs() -> None:
    space = Space(made_start().ranges)
    levels = (2, 2, 2, 2, 2)

    def linear(workload: Workload) -> float:
        u, size, read, seq, processes = space.coordinates(workload)
        return math.exp(3 - 2 * u + size - 0.5 * read + 0.3 * seq * processes)

    known = {workload: linear(workload) for workload in grid_workloads(space, levels)}
    drawn = draw(space, 50, seed=4)
    found = interpolate(space, levels, known, drawn)
    assert found == pytest.approx([linear(workload) for workload in drawn])


def test_an_orthogonal_sample_that_was_not_measured_whole_says_nothing() -> None:
    start = made_start(count=10, grids=((2, 2, 2, 2, 2), (3, 2, 2, 2, 2)))
    points = list(measured(start, steady))
    small = grid_workloads(Space(start.ranges), (2, 2, 2, 2, 2))
    rivals = [point for point in points if point.stage == ORTHOGONAL]
    middle = next(point for point in rivals if point.workload not in small)
    points.remove(middle)
    found = [item.name for item in contestants(start, (), {}, points)]
    assert "orthogonal 32" in found
    assert "orthogonal 48" not in found


def test_single_numbers_say_what_was_measured_of_their_workloads() -> None:
    start = made_start(count=10)
    points = measured(start, noisy(1))
    surveyed = [sample_point(f"s-{mb}", mb_s=mb) for mb in (10.0, 40.0, 1000.0)]
    found = {item.name: item for item in contestants(start, surveyed, {}, points)}
    assert set(found) == {"Andrew-like", "IOStone-like", "Bonnie-like", "survey median"}
    assert set(found["survey median"].mb_s) == {40.0}
    truth = {item.name: true_mb_s(item.workload) for item in start.singles}
    for name, value in truth.items():
        assert len(set(found[name].mb_s)) == 1
        assert found[name].mb_s[0] == pytest.approx(value, rel=0.1)


def test_levels_that_fall_on_one_value_cost_one_point() -> None:
    start = made_start(count=10, grids=((2, 2, 2, 2, 3),))
    ranges = tuple(msgspec.structs.replace(item, process_num_max=1) for item in start.ranges)
    start = msgspec.structs.replace(start, ranges=ranges)
    found = contestants(start, (), {}, measured(start, steady))
    assert [(item.name, item.readings) for item in found if item.kind == "orthogonal"] == [
        ("orthogonal 16", 16)
    ]
    assert "grids of 16 points" in plan_stages(ranges, 10, start.plan.grids, 3)[-1].purpose


def test_a_rival_with_a_reading_that_does_not_do_is_missed_by_name() -> None:
    start = made_start(count=10, grids=((2, 2, 2, 2, 2),))
    points = list(measured(start, steady))
    assert tuple(map(str, rivals_left_out(start, points))) == ()
    hole = next(point.workload for point in points if point.stage == ORTHOGONAL)
    single = start.singles[-1]
    once = next(p for p in points if p.stage == SINGLES and p.workload == start.singles[0].workload)
    for at, point in enumerate(points):
        lost = point.workload == hole and point.stage == ORTHOGONAL
        if lost or (point.workload == single.workload and point.stage == SINGLES) or point == once:
            bad = msgspec.structs.replace(point.result, admissible=False, findings=(BROKEN,))
            points[at] = msgspec.structs.replace(point, result=bad)
    names = {item.name for item in contestants(start, (), {}, points)}
    assert not {"orthogonal 32", single.name} & names
    assert tuple(map(str, rivals_left_out(start, points))) == (
        f"rival left out: orthogonal 32: no valid reading of 1 of its 32 workloads ({BROKEN})",
        f"rival left out: {single.name}: no valid reading of its workload ({BROKEN})",
    )


def test_scored_predictions_beyond_what_was_surveyed_are_counted() -> None:
    start = made_start(count=10)
    said = list(predictions(start, 0.1, lambda _: 0.1))
    _, rows = scored(start, measured(start, steady), said)
    assert extrapolated({"made": said}, rows) == ()
    said[3] = msgspec.structs.replace(said[3], extrapolated=True)
    warning = extrapolated({"made": said, "other": said}, rows)
    assert [str(each).split(",")[0] for each in warning] == [
        "extrapolated: 1 of 10 scored workloads lie outside what was surveyed"
    ]


@pytest.mark.parametrize("frac", [0.0, -0.2, 0.2])
def test_a_system_that_moves_during_the_validation_is_told(frac: float) -> None:
    start = made_start(count=40)
    still = measured(start, noisy(3, 0.01))
    points = []
    for point in still:
        at = point.order / len(still)
        faster = msgspec.structs.replace(
            point.result.throughput_mb_s,
            value=point.result.throughput_mb_s.value * (1 + frac) ** at,
        )
        result = msgspec.structs.replace(point.result, throughput_mb_s=faster)
        points.append(msgspec.structs.replace(point, clock_s=10.0 * point.order, result=result))
    change = drift_within(points)
    assert change is not None
    assert change.covers(frac)
    validation = msgspec.structs.replace(sample_validation(start), drift_within_frac=change)
    told = [
        str(each)
        for each in validation_findings(validation, points, ())
        if each.code == "drift_within"
    ]
    way = "slower" if frac < 0 else "faster"
    assert [way in text for text in told] == ([True] if frac else [])


def with_surveyed(start: ValidationStart, factor: float) -> ValidationStart:
    """The same start where the survey read `factor` times the truth at its focal points."""
    ranges = []
    for item in start.ranges:
        mb_s = true_mb_s(item.focal) * factor
        read = Interval(mb_s, 0.98 * mb_s, 1.02 * mb_s, 6)
        ranges.append(msgspec.structs.replace(item, surveyed_mb_s=read))
    return msgspec.structs.replace(start, ranges=tuple(ranges))


def test_a_system_that_moved_since_its_survey_is_told_from_a_model_that_errs() -> None:
    start = with_surveyed(made_start(count=40), 1.25)
    regions, together = focal_drifts(start, measured(start, noisy(6, 0.02)))
    assert together is not None
    assert together.covers(-0.2)
    assert not together.covers(0.0)
    assert [item.name for item in regions] == ["level 0", "level 1"]


def test_a_system_that_stayed_is_seldom_said_to_have_moved() -> None:
    wrong = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        start = with_surveyed(made_start(count=20), math.exp(float(rng.normal(0, 0.01))))
        _, together = focal_drifts(start, measured(start, noisy(seed + 100, 0.02)))
        assert together is not None
        wrong += not together.covers(0.0)
    assert wrong <= 7, "5% of 60 are 3"


def test_one_of_several_regions_must_move_by_more_than_chance_allows_them_all() -> None:
    def drift(low: float, high: float) -> FocalDrift:
        middle = (low + high) / 2
        return FocalDrift(0, "disk", Interval(middle, low, high, 12))

    steady, barely, surely = drift(-0.03, 0.02), drift(0.001, 0.05), drift(0.02, 0.05)
    assert moved([steady], steady.change_frac) is None
    assert moved([steady, barely], steady.change_frac) is None, "one of three by chance"
    assert moved([], barely.change_frac) == (), "asked alone"
    assert moved([steady, surely], steady.change_frac) == (surely,)
    assert moved([], None) is None
    vague = FocalDrift(0, "disk", Interval(-0.1, -1.0, 1e9, 2))
    assert moved([vague], vague.change_frac) is None, "two readings bound nothing"


def test_drift_rests_on_the_anchors_alone() -> None:
    start = with_surveyed(made_start(count=20), 1.0)
    slow = measured(start, lambda stage, _: 0.0 if stage == ANCHORS else -0.5)
    _, together = focal_drifts(start, slow)
    assert together is not None
    assert together.value == pytest.approx(0.0, abs=1e-9)


def test_too_few_workloads_are_not_scored() -> None:
    start = made_start(count=10)
    few = [p for p in measured(start, steady) if p.workload in drawn_workloads(start)[:3]]
    rivals = (Contestant("made", "model", 1, (1.0,) * 10),)
    assert model_scores(start, rivals, validated_workloads(start, SURVEY, few, rivals)) == ()
