"""The rate at which a resource is used up equals the truth, and its interval covers it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leadline.stats import student_t
from leadline.stats.saturation import saturation

REPETITIONS = 600


def uses(
    rng: np.random.Generator, rates: np.ndarray, floor: float, slope: float, noise: float
) -> np.ndarray:
    """Use at some rates; its noise is a fraction of it."""
    return (floor + slope * rates) * np.exp(noise * rng.standard_normal(rates.size))


@pytest.mark.parametrize(
    ("disks", "repetitions", "floor", "noise"),
    [
        ((1, 2, 3, 4), 3, 0.0, 0.03),
        ((1, 2, 3, 4), 3, 0.05, 0.02),
        ((1, 2, 3), 3, 0.05, 0.02),
        ((1, 2, 3, 4), 5, 0.02, 0.01),
        ((2,), 5, 0.0, 0.03),
        ((1, 2), 4, 0.0, 0.03),
    ],
)
def test_the_interval_covers_the_truth(
    disks: tuple[int, ...], repetitions: int, floor: float, noise: float
) -> None:
    slope = 0.001
    truth = (1 - floor) / slope
    rates = 100.0 * np.repeat(disks, repetitions)
    rng = np.random.default_rng(1998)
    covered = 0
    for _ in range(REPETITIONS):
        fit = saturation(list(rates), list(uses(rng, rates, floor, slope, noise)))
        assert fit.rate is not None
        covered += fit.rate.covers(truth)
    assert 0.92 <= covered / REPETITIONS <= 0.98


def test_extrapolation_finds_the_truth() -> None:
    rates = np.array([100.0, 200.0, 300.0, 400.0])
    fit = saturation(list(rates), list(0.1 + rates / 1000))
    assert fit.rate is not None
    assert fit.rate.value == pytest.approx(900)
    assert not fit.through_origin
    assert fit.use_at_most == pytest.approx(0.5)


def test_rates_that_are_one_level_tell_no_intercept() -> None:
    fit = saturation([100.0, 101.0, 103.0], [0.5, 0.505, 0.515])
    assert fit.through_origin
    assert fit.levels == 1
    assert fit.rate is not None
    assert fit.rate.value == pytest.approx(200)


def test_noisy_runs_of_two_settings_are_two_levels() -> None:
    """As measured on a host busy: four runs on one and two disks look like four levels."""
    rates, uses = [57.6, 70.4, 95.2, 138.7], [0.55, 0.45, 0.96, 0.91]
    assert not saturation(rates, uses).through_origin
    fit = saturation(rates, uses, levels_max=2)
    assert fit.through_origin
    assert fit.rate is not None
    assert fit.rate.low is not None


def test_one_run_has_no_interval() -> None:
    fit = saturation([100.0], [0.25])
    assert fit.rate is not None
    assert (fit.rate.value, fit.rate.low, fit.rate.n) == (400, None, 1)


def test_use_that_does_not_grow_never_saturates() -> None:
    assert saturation([100.0, 200.0, 400.0], [0.5, 0.5, 0.4]).rate is None


@pytest.mark.parametrize("bad", [([], []), ([1.0], []), ([0.0], [0.1]), ([1.0], [0.0])])
def test_nothing_is_made_of_nothing(bad: tuple[list[float], list[float]]) -> None:
    with pytest.raises(ValueError, match="pairs"):
        saturation(*bad)


def test_the_ends_are_the_rates_at_which_full_use_is_not_refuted() -> None:
    """Fieller's by its definition: at each end the line misses 1 by t standard errors."""
    rates, noisy = [100.0, 200.0, 300.0, 400.0], [0.21, 0.29, 0.41, 0.49]
    fit = saturation(rates, noisy)
    assert fit.rate is not None
    assert fit.rate.n == 4
    x, cost = np.array(rates), np.array(noisy) / np.array(rates)
    design = np.column_stack([np.ones(4), 1 / x])
    inverse = np.linalg.inv(design.T @ design)
    line = inverse @ design.T @ cost
    left = cost - design @ line
    variance = (left @ left + 0.3 * (0.03 * cost.mean()) ** 2) / 2.3
    assert fit.rate.value == pytest.approx((1 - line[1]) / line[0])
    for end in (fit.rate.low, fit.rate.high):
        assert end is not None
        at = np.array([end, 1.0])
        missing = abs(1 - line @ at)
        assert missing == pytest.approx(student_t(2.3) * math.sqrt(variance * at @ inverse @ at))
    assert fit.rate.low < fit.rate.value < fit.rate.high  # type: ignore[operator]


def test_a_slope_that_may_be_none_has_no_upper_end_and_says_so() -> None:
    fit = saturation([100.0, 150.0, 250.0], [0.30, 0.42, 0.40])
    assert fit.rate is not None
    assert (fit.rate.low, fit.rate.high) == (None, None)


@pytest.mark.parametrize(
    ("rates", "levels", "through_origin"),
    [
        ((100.0, 116.0, 199.0), 3, True),
        ((100.0, 116.0, 201.0), 3, False),
        ((100.0, 114.0, 201.0), 2, True),
    ],
)
def test_a_line_has_an_intercept_from_three_levels_that_span_a_factor_of_two(
    rates: tuple[float, ...], levels: int, through_origin: bool
) -> None:
    fit = saturation(list(rates), [rate / 1000 for rate in rates])
    assert (fit.levels, fit.through_origin) == (levels, through_origin)
    assert fit.use_at_most == pytest.approx(max(rates) / 1000)


def test_a_use_that_begins_full_never_saturates() -> None:
    assert saturation([100.0, 200.0, 400.0], [1.3, 1.4, 1.6]).rate is None
