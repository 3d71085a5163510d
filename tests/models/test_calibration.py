"""How much wider a model's doubt must be, from errors of known size."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from leadline.models.gaussian_process import LeftOut, widening

READINGS = 80
MODEL_SD, NOISE_SD = 0.05, 0.04


def left_out(factors: list[float], seed: int) -> LeftOut:
    """Errors of readings on as many levels as there are factors, in turn."""
    random = np.random.default_rng(seed)
    level = np.arange(READINGS) % len(factors)
    model = MODEL_SD * np.exp(random.normal(0, 0.5, READINGS))
    true = np.array(factors)[level] * model
    error = random.normal(0, np.hypot(true, NOISE_SD))
    noise = np.full(READINGS, NOISE_SD**2)
    return LeftOut(error, model**2, noise, level, np.ones(READINGS, dtype=bool))


@pytest.mark.parametrize("factor", [1.5, 2.5, 4.0])
def test_a_doubt_that_is_too_small_is_widened_by_as_much(factor: float) -> None:
    found = [widening(left_out([factor], seed), 1)[0] for seed in range(40)]
    assert np.exp(np.mean(np.log(found))) == pytest.approx(factor, rel=0.12)
    assert max(found) < 1.8 * factor
    assert min(found) > factor / 1.8


def test_an_honest_doubt_is_widened_little_and_none_is_narrowed() -> None:
    found = [
        widening(left_out([factor], seed), 1)[0] for factor in (0.3, 1.0) for seed in range(40)
    ]
    assert min(found) >= 1.0
    assert np.median(found) < 1.25


def test_levels_differ_as_far_as_their_readings_say() -> None:
    found = np.array([widening(left_out([1.0, 4.0], seed), 2) for seed in range(40)])
    near, far = np.median(found, axis=0)
    assert near < 1.6
    assert far > 2.8


def test_a_level_without_readings_is_as_the_whole_system() -> None:
    first, second = widening(left_out([3.0], 1), 2)
    assert second == pytest.approx(first, rel=0.15)


def test_one_reading_that_is_far_off_widens_little() -> None:
    errors = left_out([1.0], 2)
    wild = errors.ln_error.copy()
    wild[7] = 2.0
    before, after = widening(errors, 1)[0], widening(replace(errors, ln_error=wild), 1)[0]
    assert after < 1.15 * before


def test_readings_along_curves_do_not_count_while_enough_others_are_there() -> None:
    """They are nearer to each other than to what is asked."""
    near, far = left_out([1.0], 3), left_out([4.0], 4)
    asked = np.arange(READINGS) < 30
    mixed = replace(near, ln_error=np.where(asked, far.ln_error, near.ln_error), asked=asked)
    few = replace(mixed, asked=np.arange(READINGS) < 11)
    assert widening(mixed, 1)[0] > 2.8
    assert widening(few, 1)[0] < 2.5
