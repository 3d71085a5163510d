from __future__ import annotations

import math

import numpy as np
import pytest

from leadline.stats.intervals import Noise, pooled_noise, reading_interval, student_t


def test_student_t_against_the_printed_table() -> None:
    assert student_t(1) == pytest.approx(12.706, abs=1e-3)
    assert student_t(9) == pytest.approx(2.262, abs=1e-3)
    assert student_t(9, 0.99) == pytest.approx(3.250, abs=1e-3)
    with pytest.raises(ValueError, match="df"):
        student_t(0)


def test_pooled_noise_pools_and_a_lucky_pair_is_not_exact() -> None:
    lucky = pooled_noise([[10.0, 10.0]])
    assert lucky.sd_frac > 0.01
    assert student_t(lucky.df) < 10
    rng = np.random.default_rng(2)
    groups = [list(rng.uniform(1, 99) * np.exp(0.08 * rng.normal(size=3))) for _ in range(60)]
    many = pooled_noise(groups)
    assert many.sd_frac == pytest.approx(0.08, rel=0.1)
    assert many.df == pytest.approx(120, abs=1)
    with pytest.raises(ValueError, match="positive"):
        pooled_noise([[1.0, -1.0]])


@pytest.mark.parametrize("sd", [0.02, 0.05, 0.10])
@pytest.mark.parametrize(("groups", "replicates"), [(4, 2), (2, 3), (6, 2)])
@pytest.mark.parametrize("within_share", [0.0, 0.7])
def test_reading_intervals_cover_92_to_98_percent(
    sd: float, groups: int, replicates: int, within_share: float
) -> None:
    """Single and replicated readings of many systems, each with few replicates of its own."""
    rng = np.random.default_rng([int(sd * 100), groups, replicates, int(within_share * 10)])
    within = sd * np.sqrt(within_share)
    between = np.sqrt(sd**2 - within**2)
    covered = []
    for _ in range(700):
        runs = np.exp(sd * rng.normal(size=(groups, replicates)))
        noise = pooled_noise(runs.tolist())
        single = float(np.exp(np.hypot(between, within) * rng.normal()))
        widths = 2.262 * within * np.sqrt(rng.chisquare(9, replicates + 1) / 9)
        half_widths = list(widths) if within_share else None
        own = half_widths[:replicates] if half_widths else None
        last = half_widths[replicates:] if half_widths else None
        covered.append(reading_interval(runs[0].tolist(), own, noise).covers(1.0))
        covered.append(reading_interval([single], last, noise).covers(1.0))
    assert 0.92 <= np.mean(covered) <= 0.98


def test_an_inexact_run_widens_and_is_not_counted_twice() -> None:
    noise = Noise(0.05, 20.0)
    plain = reading_interval([10.0], None, noise)
    small = reading_interval([10.0], [0.02], noise)
    large = reading_interval([10.0], [0.50], noise)
    assert small == plain
    assert plain.half_width_frac is not None
    assert large.half_width_frac is not None
    assert large.half_width_frac > 3 * plain.half_width_frac
    with pytest.raises(ValueError, match="per reading"):
        reading_interval([10.0, 11.0], [0.1], noise)


def test_more_readings_narrow_the_interval() -> None:
    noise = Noise(0.05, 20.0)
    one = reading_interval([10.0], None, noise).half_width_frac
    four = reading_interval([10.0] * 4, None, noise).half_width_frac
    assert one is not None
    assert four is not None
    assert four == pytest.approx(one / 2, rel=0.01)


def test_a_reading_by_hand() -> None:
    """Two readings 10 and 40: mean 20; the runs' own errors count where noise is less."""
    quiet = reading_interval([10.0, 40.0], [0.2, None], Noise(0.5, 7.0))
    half = student_t(7.0) * 0.5 / 2**0.5
    assert quiet.n == 2
    assert quiet.value == pytest.approx(20.0)
    assert quiet.low == pytest.approx(20.0 * np.exp(-half))
    assert quiet.high == pytest.approx(20.0 * np.exp(half))
    inexact = reading_interval([10.0, 40.0], [0.2, 0.6], Noise(0.1, 7.0))
    own = ((0.2**2 + 0.6**2) / 2) ** 0.5 / student_t(9.0)
    assert inexact.high == pytest.approx(20.0 * np.exp(student_t(18.0) * own / 2**0.5))
    sure = reading_interval([10.0], None, Noise(0.1, 7.0), confidence=0.99)
    assert sure.high == pytest.approx(10.0 * np.exp(0.1 * student_t(7.0, 0.99)))


def test_pooled_noise_by_hand() -> None:
    noise = pooled_noise([[1.0, math.e], [5.0], [2.0, 2.0, 2.0]])
    assert noise.df == pytest.approx(1 + 0 + 2 + 0.3)
    assert noise.sd_frac == pytest.approx(((0.5 + 0.3 * 0.03**2) / 3.3) ** 0.5)


def test_nothing_measured_twice_has_no_interval() -> None:
    found = reading_interval([10.0, 40.0], [0.01, 0.01], pooled_noise([[10.0], [40.0]]))
    assert found.value == pytest.approx(20.0)
    assert (found.low, found.high) == (None, None)
    assert reading_interval([10.0], None, pooled_noise([[10.0], [40.0, 41.0]])).low is not None


@pytest.mark.parametrize("confidence", [0.0, 1.0, -0.1, 1.1])
def test_a_confidence_lies_between_none_and_all(confidence: float) -> None:
    with pytest.raises(ValueError, match="confidence"):
        student_t(5.0, confidence)


@pytest.mark.parametrize("readings", [[], [0.0], [1.0, np.nan], [np.inf]])
def test_readings_are_positive_numbers_and_there_are_some(readings: list[float]) -> None:
    with pytest.raises(ValueError, match=r"finite|positive"):
        reading_interval(readings, None, Noise(0.1, 5.0))
