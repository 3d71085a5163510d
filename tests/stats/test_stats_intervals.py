from __future__ import annotations

import math

import numpy as np
import pytest

from leadline.record import Interval
from leadline.stats.intervals import (
    Noise,
    OwnError,
    alike_factor,
    own_error,
    pooled_noise,
    reading_interval,
    runs_interval,
    student_cdf,
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
@pytest.mark.parametrize(("within_share", "own_df"), [(0.0, 9), (0.7, 3), (0.7, 9), (0.7, 31)])
def test_reading_intervals_cover_92_to_98_percent(
    sd: float, groups: int, replicates: int, within_share: float, own_df: int
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
        found = within * np.sqrt(rng.chisquare(own_df, replicates + 1) / own_df)
        errors = [OwnError(float(sd_frac), own_df) for sd_frac in found]
        own, last = (errors[:-1], errors[-1:]) if within_share else (None, None)
        covered.append(reading_interval(runs[0].tolist(), own, noise).covers(1.0))
        covered.append(reading_interval([single], last, noise).covers(1.0))
    # Of two spreads that are hardly known the larger is taken: wide, not wrong.
    assert 0.92 <= np.mean(covered) <= (0.99 if own_df == 3 else 0.98)


def test_an_inexact_run_widens_and_is_not_counted_twice() -> None:
    noise = Noise(0.05, 20.0)
    plain = reading_interval([10.0], None, noise)
    small = reading_interval([10.0], [OwnError(0.01, 9)], noise)
    large = reading_interval([10.0], [OwnError(0.22, 9)], noise)
    assert small == plain
    assert plain.half_width_frac is not None
    assert large.half_width_frac is not None
    assert large.half_width_frac > 3 * plain.half_width_frac
    with pytest.raises(ValueError, match="per reading"):
        reading_interval([10.0, 11.0], [OwnError(0.1, 9)], noise)


def test_a_runs_own_error_is_told_by_its_interval_and_its_freedom() -> None:
    for df, quantile in ((3, 3.182), (31, 2.040)):
        found = own_error(Interval(50.0, 40.0, 60.0, 32, df))
        assert found is not None
        assert found.df == df
        assert found.sd_frac == pytest.approx(0.2 / quantile, rel=1e-3)
    assert own_error(Interval(50.0, None, None, 5)) is None
    assert own_error(Interval(50.0, 40.0, 60.0, 5)) is None, "an interval of several runs"


def test_more_readings_narrow_the_interval() -> None:
    noise = Noise(0.05, 20.0)
    one = reading_interval([10.0], None, noise).half_width_frac
    four = reading_interval([10.0] * 4, None, noise).half_width_frac
    assert one is not None
    assert four is not None
    assert four == pytest.approx(one / 2, rel=0.01)


def test_a_reading_by_hand() -> None:
    """Two readings 10 and 40: mean 20; the runs' own errors count where noise is less."""
    quiet = reading_interval([10.0, 40.0], [OwnError(0.1, 9), None], Noise(0.5, 7.0))
    half = student_t(7.0) * 0.5 / 2**0.5
    assert quiet.n == 2
    assert quiet.value == pytest.approx(20.0)
    assert quiet.low == pytest.approx(20.0 * np.exp(-half))
    assert quiet.high == pytest.approx(20.0 * np.exp(half))
    inexact = reading_interval([10.0, 40.0], [OwnError(0.2, 5), OwnError(0.6, 9)], Noise(0.1, 7.0))
    own, df = ((0.2**2 + 0.6**2) / 2) ** 0.5, (0.2**2 + 0.6**2) ** 2 / (0.2**4 / 5 + 0.6**4 / 9)
    assert inexact.high == pytest.approx(20.0 * np.exp(student_t(df) * own / 2**0.5))
    exact = reading_interval([10.0], [OwnError(0.0, 5)], Noise(0.1, 7.0))
    assert exact == reading_interval([10.0], None, Noise(0.1, 7.0))
    as_exact = reading_interval([10.0], [OwnError(0.1, 5)], Noise(0.1, 7.0))
    assert as_exact == exact, "replicates hold a run's own error already"
    assert reading_interval([10.0], None, Noise(0.1, 1.0)).low is not None
    sure = reading_interval([10.0], None, Noise(0.1, 7.0), confidence=0.99)
    assert sure.high == pytest.approx(10.0 * np.exp(0.1 * student_t(7.0, 0.99)))


def test_pooled_noise_by_hand() -> None:
    noise = pooled_noise([[1.0, math.e], [5.0], [2.0, 2.0, 2.0]])
    assert noise.df == pytest.approx(1 + 0 + 2 + 0.3)
    assert noise.sd_frac == pytest.approx(((0.5 + 0.3 * 0.03**2) / 3.3) ** 0.5)


def test_what_was_taken_out_of_the_readings_before_takes_its_freedom_with_it() -> None:
    groups = [[1.0, math.e], [2.0, 2.0, 2.0]]
    assert pooled_noise(groups, spent_df=2.0).df == pytest.approx(1.3)
    assert pooled_noise(groups, spent_df=5.0).df == pytest.approx(0.3)


def test_the_distribution_of_student_by_hand() -> None:
    """With one degree of freedom it is Cauchy's."""
    assert student_cdf(1.0, 1.0) == pytest.approx(0.75)
    assert student_cdf(1.0, -1.0) == pytest.approx(0.25)


def test_runs_in_a_row_are_widened_for_being_alike_and_one_has_no_interval() -> None:
    """By hand for two: r = 0.5, S = r / 2, so that the factor is sqrt(1.5 / 0.5)."""
    assert alike_factor(2) == pytest.approx(3.0**0.5)
    # For three: 2 S = 2 (2/3 r + 1/3 r^2) = 5/6.
    assert alike_factor(3) == pytest.approx(((11 / 6) / (1 - 5 / 12)) ** 0.5)
    two = runs_interval([10.0, 11.0])
    noise = pooled_noise([[10.0, 11.0]])
    wide = Noise(noise.sd_frac * 3.0**0.5, noise.df)
    assert two == reading_interval([10.0, 11.0], None, wide)
    assert two.low is not None
    assert runs_interval([10.0]) == Interval(10.0, None, None, 1)
    assert runs_interval([10.0, 0.0]) == Interval(5.0, None, None, 2)
    assert runs_interval([0.5, 0.6]).low is not None


def test_nothing_measured_twice_has_no_interval() -> None:
    found = reading_interval([10.0, 40.0], [OwnError(0.01, 9)] * 2, pooled_noise([[10.0], [40.0]]))
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
