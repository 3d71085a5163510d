from __future__ import annotations

import numpy as np
import pytest

from leadline.stats.curves import (
    good_range,
    half_way_x,
    log_interpolate,
    saturation_x,
    slope,
    still_rising,
)
from leadline.stats.drift import drift_interval, sentinel_moved
from leadline.stats.intervals import Noise


def test_slope_is_in_mb_per_s_per_mb() -> None:
    found = slope([(10e6, 5.0), (20e6, 4.0), (20e6, 2.0), (40e6, 1.0)])
    assert [value for _, value in found] == pytest.approx([-0.2, -0.1])
    assert found[0][0] == pytest.approx(np.sqrt(10e6 * 20e6))


def test_log_interpolation_is_exact_on_power_laws_and_never_extrapolates() -> None:
    xs = [1.0, 10.0, 100.0]
    ys = [2.0, 20.0, 200.0]
    assert log_interpolate(xs, ys, 5.0) == pytest.approx(10.0)
    assert log_interpolate(xs, ys, 1000.0) == pytest.approx(200.0)
    assert log_interpolate([3.0], [7.0], 1.0) == pytest.approx(7.0)
    with pytest.raises(ValueError, match="positive"):
        log_interpolate(xs, ys, -1.0)


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


def test_saturation_is_where_the_plateau_begins() -> None:
    xs = [1.0, 10.0, 100.0, 1000.0]
    assert saturation_x(xs, [0.0, 9.5, 10.0, 9.9]) == pytest.approx(10.0)
    assert saturation_x(xs, [10.0, 10.0, 10.0, 10.0]) == pytest.approx(1.0)


@pytest.mark.parametrize(("xs", "ys"), [([], []), ([1.0], []), ([0.0], [1.0])])
def test_senseless_curves_are_refused(xs: list[float], ys: list[float]) -> None:
    with pytest.raises(ValueError, match="curve needs"):
        good_range(xs, ys)


def test_drift_of_a_planted_slope_is_seen_and_its_size_covered() -> None:
    rng = np.random.default_rng(11)
    seen, covered = 0, 0
    for _ in range(200):
        times = np.sort(rng.uniform(0, 300, 8))
        readings = 50 * np.exp(-0.3 * times / 300 + 0.03 * rng.normal(size=8))
        truth = float(np.expm1(-0.3 * (times.max() - times.min()) / 300))
        interval = drift_interval(list(times), list(readings), Noise(0.03, 6.0))
        seen += not interval.covers(0.0)
        covered += interval.covers(truth)
    assert seen >= 196
    assert 184 <= covered <= 197


@pytest.mark.parametrize("noise_frac", [0.02, 0.1])
def test_a_steady_sentinel_seldom_looks_drifting(noise_frac: float) -> None:
    rng = np.random.default_rng(12)
    false = 0
    for _ in range(400):
        readings = list(np.exp(noise_frac * rng.normal(size=6)))
        false += not drift_interval(list(range(6)), readings).covers(0.0)
    assert false <= 32


def test_drift_without_enough_readings_has_no_interval() -> None:
    interval = drift_interval([0.0, 5.0], [10.0, 9.0])
    assert interval.value == pytest.approx(-0.1)
    assert interval.low is None
    assert drift_interval([3.0, 3.0, 3.0], [1.0, 1.0, 1.1]).low is None
    with pytest.raises(ValueError, match="positive"):
        drift_interval([0.0, 1.0], [1.0, 0.0])
    with pytest.raises(ValueError, match="one or more"):
        drift_interval([], [])


def test_the_sentinel_moves_only_beyond_its_noise() -> None:
    noise = Noise(0.05, 5.0)
    assert sentinel_moved([10.0, 10.2], [7.0, 7.1], noise)
    assert not sentinel_moved([10.0, 10.2], [9.5, 9.9], noise)
    assert not sentinel_moved([], [9.5], noise)
