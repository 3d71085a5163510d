from __future__ import annotations

import numpy as np
import pytest

from leadline.stats.intervals import (
    Noise,
    pooled_noise,
    reading_interval,
    student_t,
)


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
