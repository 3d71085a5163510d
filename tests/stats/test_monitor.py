"""A change of level is told once, with its ratio and its moment, and noise is none."""

from __future__ import annotations

import numpy as np
import pytest

from leadline.stats.monitor import SIDE_MIN, Change, Monitor

MONTH = 4320
"""Probes, one every ten minutes."""


def changes(logs: np.ndarray) -> list[tuple[int, Change]]:
    monitor = Monitor()
    told = ((number, monitor.take(float(np.exp(log)))) for number, log in enumerate(logs))
    return [(number, change) for number, change in told if change is not None]


@pytest.mark.parametrize("seed", range(3))
def test_a_month_of_noise_has_at_most_one_false_alarm(seed: int) -> None:
    rng = np.random.default_rng(700 + seed)
    slow = np.log(5) * (rng.random(MONTH) < 0.02)
    for noise in (rng.standard_normal(MONTH), np.exp(rng.standard_normal(MONTH))):
        assert len(changes(0.05 * noise - slow)) <= 1


def test_a_step_is_told_once_with_its_ratio_and_moment() -> None:
    rng = np.random.default_rng(5)
    logs = 0.05 * rng.standard_normal(400)
    logs[200:] += np.log(0.6)
    ((told, change),) = changes(logs)
    assert change.at == 200
    assert change.earliest <= 200 <= change.latest
    assert change.ratio.covers(0.6)
    assert 200 + SIDE_MIN <= told + 1 <= 230


def test_a_second_change_is_told_from_the_first_ones_level() -> None:
    rng = np.random.default_rng(6)
    logs = 0.05 * rng.standard_normal(600)
    logs[200:400] += np.log(0.6)
    (_, first), (_, second) = changes(logs)
    assert abs(first.at - 200) <= 1
    assert abs(second.at - 400) <= 1
    assert second.ratio.covers(1 / 0.6)


def test_readings_that_are_all_the_same_are_no_change() -> None:
    assert changes(np.zeros(400)) == []


def test_what_changed_long_before_the_window_is_not_told_again() -> None:
    rng = np.random.default_rng(7)
    logs = 0.001 * rng.standard_normal(1100)
    logs[100:] += 1
    assert len(changes(logs)) == 1
