"""The rate at which a resource is used up equals the truth, and its interval covers it."""

from __future__ import annotations

import numpy as np
import pytest

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
