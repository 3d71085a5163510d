from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline.stats import drift
from leadline.stats.curves import good_range, half_way_x, slope, still_rising
from leadline.stats.drift import group_drift, group_step
from leadline.stats.intervals import student_t

Floats = NDArray[np.float64]


def test_slope_is_in_mb_per_s_per_mb() -> None:
    found = slope([(10e6, 5.0), (20e6, 4.0), (20e6, 2.0), (40e6, 1.0)])
    assert [value for _, value in found] == pytest.approx([-0.2, -0.1])
    assert found[0][0] == pytest.approx(np.sqrt(10e6 * 20e6))


def test_half_way_point_of_rising_and_falling_curves() -> None:
    xs = [1e3, 1e4, 1e5, 1e6]
    assert half_way_x(xs, [0.0, 2.0, 8.0, 10.0]) == pytest.approx(10**4.5)
    assert half_way_x(xs, [10.0, 8.0, 2.0, 0.0]) == pytest.approx(10**4.5)
    assert half_way_x([1.0, 3.0], [2.0, 4.0], log=False) == pytest.approx(2.0)
    assert half_way_x([1e3, 1e5], [4.0, 4.0]) == pytest.approx(1e4)


def test_half_way_point_ignores_noise_on_the_plateau() -> None:
    # After 4, the dip to 1 is noise: the envelope goes on from 4, the first crossing counts.
    found = half_way_x([1.0, 2.0, 4.0, 8.0, 16.0], [0.0, 4.0, 1.0, 10.0, 3.0])
    assert found == pytest.approx(4 * 2 ** (1 / 6))


def test_good_range_interpolates_both_ends() -> None:
    xs = [1.0, 10.0, 100.0, 1000.0]
    low, high = good_range(xs, [5.0, 10.0, 10.0, 5.0])
    assert low == pytest.approx(10**0.5)
    assert high == pytest.approx(10**2.5)
    assert good_range(xs, [9.0, 10.0, 10.0, 9.0]) == (1.0, 1000.0)
    with pytest.raises(ValueError, match="frac"):
        good_range(xs, [1.0, 1.0, 1.0, 1.0], 0.0)


def test_flat_curves_and_single_readings_have_their_middle_half_way() -> None:
    assert half_way_x([0.0, 1.0, 6.0], [4.0, 4.0, 4.0], log=False) == 3.0
    assert half_way_x([1.0, 2.0, 1e4], [4.0, 4.0, 4.0]) == pytest.approx(100.0)
    assert half_way_x([7.0], [4.0]) == pytest.approx(7.0)
    assert half_way_x([0.5, 0.5], [4.0, 9.0], log=False) == 0.5, "one x, measured twice"


def test_a_good_range_of_fractions_is_interpolated_straight() -> None:
    low, high = good_range([0.0, 0.5, 1.0], [4.0, 10.0, 5.0], log=False)
    assert (low, high) == pytest.approx((0.5 * 3.5 / 6, 0.5 + 0.5 * 2.5 / 5))
    assert good_range([0.0, 0.5, 1.0], [4.0, 10.0, 5.0], 1.0, log=False) == (0.5, 0.5)
    assert good_range([3.0], [5.0]) == (3.0, 3.0)
    # Only the stretch that holds the best counts, the nearest fall on either side ends it.
    ys = [10.0, 2.0, 11.0, 12.0, 11.0, 2.0, 11.0]
    ends = good_range([0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0], ys, log=False)
    assert ends == pytest.approx((1 + 7 / 9, 4 + 2 / 9))


@pytest.mark.parametrize(
    ("xs", "ys", "noise", "rising"),
    [
        ([1.0, 2.0], [100.0, 105.1], 0.0, True),
        ([1.0, 2.0], [100.0, 104.9], 0.0, False),
        ([1.0, 2.0], [100.0, 115.3], 0.05, True),
        ([1.0, 2.0], [100.0, 115.1], 0.05, False),
        ([1.0] * 4 + [2.0, 2.0], [100.0] * 4 + [109.2, 109.2], 0.05, True),
        ([1.0] * 4 + [2.0, 2.0], [100.0] * 4 + [108.9, 108.9], 0.05, False),
        ([1.0, 2.0, 4.0], [107.0, 100.0, 110.0], 0.0, False),
    ],
)
def test_a_rise_is_a_twentieth_and_twice_the_noise_of_the_difference(
    xs: list[float], ys: list[float], noise: float, rising: bool
) -> None:
    """Of single readings with noise 5% that is ln 1.1519, of two against four ln 1.0905."""
    assert still_rising(xs, ys, noise) is rising


def test_a_curve_rises_only_beyond_noise() -> None:
    xs = [1.0, 2.0, 4.0, 8.0]
    assert still_rising(xs, [1.0, 2.0, 4.0, 6.0], 0.05)
    assert not still_rising(xs, [1.0, 5.0, 6.0, 6.1], 0.02)
    assert not still_rising(xs, [1.0, 5.0, 5.0, 5.8], 0.10)
    assert still_rising(xs, [1.0, 5.0, 5.0, 5.8], 0.02)
    assert not still_rising(xs, [1.0, 5.0, 6.0, 4.0], 0.01)
    assert still_rising([1.0], [5.0], 0.1)


def test_flat_curves_seldom_look_rising() -> None:
    rng = np.random.default_rng(4)
    xs = [1.0, 2.0, 4.0, 8.0, 16.0]
    false = sum(still_rising(xs, list(np.exp(0.05 * rng.normal(size=5))), 0.05) for _ in range(400))
    assert false < 20


@pytest.mark.parametrize(("xs", "ys"), [([], []), ([1.0], []), ([0.0], [1.0])])
def test_senseless_curves_are_refused(xs: list[float], ys: list[float]) -> None:
    with pytest.raises(ValueError, match=r"curve needs|positive x"):
        good_range(xs, ys)


def drifting_groups(rng: np.random.Generator, change: float, noise: float) -> list[list[float]]:
    """Times and readings of three workloads at levels of their own, on one common drift."""
    times = [np.sort(rng.uniform(0, 300, size)) for size in (4, 3, 2)]
    readings = [
        level * np.exp(change * t / 300 + noise * rng.normal(size=t.size))
        for level, t in zip((5000.0, 40.0, 0.3), times, strict=True)
    ]
    return [list(map(float, item)) for pair in zip(times, readings, strict=True) for item in pair]


def test_a_planted_drift_is_seen_and_its_size_covered() -> None:
    rng = np.random.default_rng(11)
    seen, covered = 0, 0
    for _ in range(200):
        groups = drifting_groups(rng, -0.3, 0.03)
        times = groups[0::2]
        span = max(map(max, times)) - min(map(min, times))
        interval = group_drift(times, groups[1::2])
        assert interval is not None
        seen += not interval.covers(0.0)
        covered += interval.covers(float(np.expm1(-0.3 * span / 300)))
    assert seen >= 180
    assert 182 <= covered <= 198


@pytest.mark.parametrize("noise_frac", [0.02, 0.1])
def test_a_steady_system_seldom_looks_drifting(noise_frac: float) -> None:
    rng = np.random.default_rng(12)
    false = 0
    for _ in range(400):
        groups = drifting_groups(rng, 0.0, noise_frac)
        interval = group_drift(groups[0::2], groups[1::2])
        assert interval is not None
        false += not interval.covers(0.0)
    assert false <= 32


def test_no_drift_is_told_without_replicates_at_different_times() -> None:
    assert group_drift([[1.0], [5.0]], [[10.0], [9.0]]) is None
    assert group_drift([[3.0, 3.0]], [[10.0, 9.0]]) is None
    assert group_drift([], []) is None


SURVEY_GROUPS = (4, 3, 4, 3, 4, 4)
"""Replicates of one workload each, as a survey of two regions takes them."""


def survey_groups(
    rng: np.random.Generator, moved: Callable[[Floats], Floats], noise: float
) -> tuple[list[list[float]], list[list[float]]]:
    """Times over 300 s and readings of a survey's repeated points; `moved` is of ln(reading)."""
    times = [np.sort(rng.uniform(0, 300, size)) for size in SURVEY_GROUPS]
    readings = [50 * np.exp(moved(t) + noise * rng.normal(size=t.size)) for t in times]
    return [list(map(float, t)) for t in times], [list(map(float, y)) for y in readings]


def stepping(change: float, at: float) -> Callable[[Floats], Floats]:
    """Ln(reading) of a system that changes by a fraction at one moment."""
    return lambda times: np.log1p(change) * (times >= at)


@pytest.mark.parametrize(("change", "noise"), [(-0.4, 0.03), (-0.2, 0.03), (0.5, 0.03)])
def test_a_planted_step_is_found_with_its_size_and_its_moment(change: float, noise: float) -> None:
    rng = np.random.default_rng(13)
    found, covered, placed = 0, 0, 0
    for _ in range(200):
        at = rng.uniform(60, 240)
        step = group_step(*survey_groups(rng, stepping(change, at), noise))
        if step is not None:
            found += 1
            covered += step.change_frac.covers(change)
            placed += step.after_s <= at <= step.before_s
            assert step.before_s - step.after_s < 100, "neighbouring readings"
    assert found >= 180
    assert covered >= 0.92 * found
    assert placed >= 0.95 * found


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_a_steady_survey_seldom_looks_stepped_or_drifting(noise: float) -> None:
    rng = np.random.default_rng(14)
    stepped, moved = 0, 0
    for _ in range(500):
        times, readings = survey_groups(rng, np.zeros_like, noise)
        interval = group_drift(times, readings)
        assert interval is not None
        step = group_step(times, readings) is not None
        stepped += step
        moved += step or not interval.covers(0.0)
    assert stepped <= 10
    assert moved <= 25 + 2 * 5, "one in twenty, within two standard deviations"


def test_a_steady_slope_is_a_drift_and_no_step() -> None:
    rng = np.random.default_rng(15)
    groups = [survey_groups(rng, lambda t: -0.4 * t / 300, 0.03) for _ in range(200)]
    assert sum(group_step(*group) is not None for group in groups) <= 4


def test_one_odd_reading_makes_no_step() -> None:
    rng = np.random.default_rng(16)
    for _ in range(50):
        times, readings = survey_groups(rng, np.zeros_like, 0.02)
        readings[0][0] *= 2
        assert group_step(times, readings) is None


def test_no_step_is_told_without_replicates_at_different_times() -> None:
    assert group_step([], []) is None
    assert group_step([[1.0], [5.0]], [[10.0], [9.0]]) is None
    assert group_step([[3.0, 3.0]], [[10.0, 9.0]]) is None


def test_a_drift_of_two_workloads_by_hand() -> None:
    """Four times each on one slope, and residuals that neither a level nor a slope can take up."""
    times = [[0.0, 10.0, 20.0, 30.0], [5.0, 15.0, 25.0, 35.0]]
    ln_off = 0.02 * np.array([1, -1, -1, 1])
    readings = [list(level * np.exp(-0.01 * np.array(times[0]) + ln_off)) for level in (50.0, 3.0)]
    found = group_drift([*times, [7.0]], [*readings, [1e3]])
    assert found is not None
    change = -0.01 * 35.0
    along = 2 * (15**2 + 5**2 + 5**2 + 15**2) / 35.0**2
    variance = (8 * 0.02**2 + 0.3 * 0.03**2) / (8 - 2 - 1 + 0.3)
    half = student_t(5.3) * (variance / along) ** 0.5
    assert found.n == 8
    assert found.value == pytest.approx(np.expm1(change))
    assert found.low == pytest.approx(np.expm1(change - half))
    assert found.high == pytest.approx(np.expm1(change + half))


def stepped(change: float, late: int, workloads: int = 4) -> tuple[list[list[float]], ...]:
    """Quiet workloads in turn, five times each; the last `late` times of each are changed."""
    times = [[10.0 * turn + each for turn in range(5)] for each in range(workloads)]
    moved = [1.0] * (5 - late) + [1 + change] * late
    levels = (50.0, 3.0, 800.0, 0.2)[:workloads]
    return times, [[level * factor for factor in moved] for level in levels]


def test_a_step_without_noise_is_exact_and_its_interval_worked_by_hand() -> None:
    times, readings = stepped(-0.2, late=2)
    step = group_step([*times, [1.0]], [*readings, [9.0]])
    assert step is not None
    assert (step.after_s, step.before_s) == (23.0, 30.0)
    along = 4 * (3 * 0.4**2 + 2 * 0.6**2)
    df = 20 - 4 - 2 + 0.3
    half = student_t(df) * (0.3 * 0.03**2 / df / along) ** 0.5
    change = step.change_frac
    assert change.n == 20
    assert change.value == pytest.approx(-0.2)
    assert change.low == pytest.approx(0.8 * np.exp(-half) - 1)
    assert change.high == pytest.approx(0.8 * np.exp(half) - 1)


def test_a_step_is_five_percent_or_more_with_three_readings_on_either_side() -> None:
    assert group_step(*stepped(0.06, late=2)) is not None
    assert group_step(*stepped(-0.045, late=2)) is None
    assert group_step(*stepped(0.3, late=1, workloads=3)) is not None
    assert group_step(*stepped(0.3, late=1, workloads=2)) is None


@pytest.mark.parametrize(("wobble", "found"), [(0.0262, True), (0.0275, False)])
def test_a_step_must_explain_more_than_a_drift_does(wobble: float, found: bool) -> None:
    """By a BIC of six: these readings, which wobble within every workload, gain 6.4 and 5.7."""
    times, readings = stepped(-0.1, late=2)
    ways = wobble * np.array([1, -2, 1, 1, -1])
    wobbly = [
        list(row * np.exp(way * ways)) for row, way in zip(readings, (1, -1) * 2, strict=True)
    ]
    assert (group_step(times, wobbly) is not None) is found


@pytest.mark.parametrize(("readings", "found"), [(7, False), (8, True)])
def test_a_step_that_one_shuffle_in_twenty_shows_is_chance(readings: int, found: bool) -> None:
    """The slow three of n stand at one end in two of n-over-3 orders: 2 of 35, and 2 of 56."""
    times = [[float(at) for at in range(readings)]]
    assert (group_step(times, [[50.0] * (readings - 3) + [65.0] * 3]) is not None) is found


@pytest.mark.parametrize(("shuffles", "found"), [(18, False), (19, True)])
def test_what_was_measured_counts_as_one_of_the_shuffles(
    monkeypatch: pytest.MonkeyPatch, shuffles: int, found: bool
) -> None:
    """None of so few orders comes near: one chance in twenty takes nineteen others."""
    monkeypatch.setattr(drift, "PERMUTATIONS", shuffles)
    assert (group_step(*stepped(-0.2, late=2)) is not None) is found


def test_readings_at_one_time_stand_on_one_side_of_a_step() -> None:
    times = [[0.0, 1.0, 2.0, 3.0, 4.0]] * 3
    step = group_step(times, [[60.0] + [50.0] * 4, [6.0] + [5.0] * 4, [0.6] + [0.5] * 4])
    assert step is not None
    assert (step.after_s, step.before_s) == (0.0, 1.0)


def test_two_readings_of_a_workload_tell_a_drift() -> None:
    found = group_drift([[0.0, 10.0], [0.0, 10.0]], [[50.0, 40.0], [5.0, 4.0]])
    assert found is not None
    assert found.n == 4
    assert found.value == pytest.approx(-0.2)


def test_a_drift_is_told_over_the_time_from_the_first_reading_to_the_last_of_all() -> None:
    found = group_drift([[0.0, 10.0], [20.0, 40.0]], [[50.0, 50.0 * 0.9], [5.0, 5.0 * 0.81]])
    assert found is not None
    assert found.value == pytest.approx(0.9**4 - 1)
