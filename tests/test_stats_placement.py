"""What one more reading, or a resample of those there are, tells of a border: by other ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from leadline.stats import hierarchy, placement, resampling
from leadline.stats.explanations import Explanation, readings_of
from leadline.stats.hierarchy import SMEARED, STEP, Readings

THETA = np.array([-4.0, 0.01, 0.02, -1.0, -0.5, 15.0, 18.0, math.log(0.2), math.log(0.3)])
BEST = Explanation("step+smeared", 2, -90.0, 7, 0.01, tuple(THETA), (STEP, SMEARED))
NOISE = 0.04


def curve() -> Readings:
    places = np.geomspace(1e6, 1e9, 14)
    codes = np.array([BEST.codes])
    y = hierarchy.ln_time(np.log(places), float(np.log(places).mean()), codes, THETA[None, :])[0][0]
    off = 0.04 * np.random.default_rng(1).normal(size=14)
    data, _ = readings_of(places, np.exp(-y - off), np.linspace(0.01, 0.09, 14))
    return data


def information(theta: np.ndarray, data: Readings) -> np.ndarray:
    """What the readings and the priors say of the parameters, both borders taken as smeared."""
    codes = np.array([[SMEARED, SMEARED]])
    jacobian = hierarchy.ln_time(data.x, data.middle, codes, theta[None, :])[1][0]
    told = sum(
        data.weight[at] * np.outer(jacobian[:, at], jacobian[:, at]) / NOISE**2 for at in range(14)
    )
    priors = [5.0, 0.05, 0.10, 2.0, 2.0, 0.5, 0.5, 0.5, 0.5]
    return np.asarray(told + np.diag([1 / sd**2 for sd in priors]))


def test_a_readings_gain_is_the_fall_of_the_borders_variance_when_it_is_added() -> None:
    data, candidates = curve(), np.log([2e6, 4e6, 3e7, 7e7, 5e8])
    sd = np.sqrt(np.diag(np.linalg.inv(information(THETA, data))))[5:7]
    wanted = np.zeros(5)
    for shift in (-1.2, -0.4, 0.4, 1.2):
        for level in (0, 1):
            moved = THETA.copy()
            moved[5 + level] += shift * np.clip(sd[level], 0.03, 0.35)
            known = information(moved, data)
            before = np.diag(np.linalg.inv(known))[5:7].sum()
            codes = np.array([[SMEARED, SMEARED]])
            lean = hierarchy.ln_time(candidates, data.middle, codes, moved[None, :])[1][0]
            for at in range(5):
                added = known + np.outer(lean[:, at], lean[:, at]) / NOISE**2
                wanted[at] += before - np.diag(np.linalg.inv(added))[5:7].sum()
    assert placement._border_gain(BEST, data, NOISE, candidates) == pytest.approx(wanted)


def test_where_nobody_disagrees_the_emptiest_place_wins_and_a_rival_draws_readings() -> None:
    data = curve()
    x = data.x
    candidates = np.array([x[3], (x[3] + x[4]) / 2, x[3] + 0.05])
    alone = placement._disagreement(BEST, [BEST], data, NOISE, candidates)
    gap = x[4] - x[3]
    assert alone == pytest.approx([0.0, 0.5 * gap / 2, 0.5 * 0.05])
    other = Explanation("constant", 0, -90.0 + 8.0, 1, 0.1, (-3.0, 0.0))
    far = Explanation("power", 0, -90.0 + 400.0, 1, 0.1, (-3.0, 0.0))
    gain = placement._disagreement(BEST, [BEST, other, far], data, NOISE, candidates)
    off = (other.ln_time(candidates, data.middle) - BEST.ln_time(candidates, data.middle)) / NOISE
    crowd = [
        1 + sum(math.exp(-(((place - each) / 0.15) ** 2)) for each in x) for place in candidates
    ]
    weight = math.exp(-1.0) + math.exp(-5.0)
    assert gain - alone == pytest.approx(weight * np.minimum(off**2, 25.0) / crowd)


def test_the_widest_and_steepest_gap_is_halved_and_a_closed_one_left() -> None:
    readings = [(1e6, 100.0), (1e6, 400.0), (1e8, 100.0), (1.9e8, 2.0), (4e8, 1.6)]
    gap = placement._steepest_gap(readings, open_only=False)
    assert gap == pytest.approx(math.log(math.sqrt(1e8 * 1.9e8))), "a fall by fifty, however narrow"
    assert placement._steepest_gap(readings, open_only=True) == pytest.approx(math.log(1e7)), (
        "the steeper one is narrower than a factor of two"
    )
    closed = [(1e6, 100.0), (1e8, 80.0), (1.9e8, 20.0), (4e8, 15.0)]
    assert placement._steepest_gap(closed, open_only=True) is None
    flat = [(1e6, 9.0), (1e7, 9.0), (1e9, 9.0)]
    assert placement._steepest_gap(flat, open_only=False) == pytest.approx(math.log(1e8))


def test_resampled_curves_scatter_as_the_noise_does_and_as_little_is_known_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    data, taken = curve(), []

    def unrefined(drawn: Readings, codes: Any, theta: Any, _: int) -> hierarchy.Fits:
        taken.append(drawn.y)
        return hierarchy.Fits(codes, theta, np.zeros(len(theta)))

    monkeypatch.setattr(hierarchy, "refine", unrefined)
    found = resampling._resampled(BEST, data, NOISE, 4000, np.random.default_rng(2))
    off = (taken[0] - BEST.ln_time(data.x, data.middle)) * np.sqrt(data.weight)
    free = 14 - 7 + 3
    assert np.mean(off**2) == pytest.approx(NOISE**2 * free / (free - 2), rel=0.03)
    assert np.mean(off) == pytest.approx(0.0, abs=0.002)
    assert set(found[:, 1]) == {18.0}, "nobody moved it"
    left, right = data.x[data.x < 15.0].max(), data.x[data.x > 15.0].min()
    assert left <= found[:, 0].min() < left + 0.01
    assert right - 0.01 < found[:, 0].max() <= right, "a step lies anywhere between two readings"
