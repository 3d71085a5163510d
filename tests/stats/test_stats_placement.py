"""What one more reading, or a resample of those there are, tells of a boundary: by other ways."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from leadline.stats import hierarchy, placement, resampling
from leadline.stats.explanations import Explanation, readings_of
from leadline.stats.hierarchy import SMEARED, STEP, CurveReadings

THETA = np.array([-4.0, 0.01, 0.02, -1.0, -0.5, 15.0, 18.0, math.log(0.2), math.log(0.3)])
BEST = Explanation("step+smeared", 2, -90.0, 7, 0.01, tuple(THETA), (STEP, SMEARED))
NOISE = 0.04


def curve() -> CurveReadings:
    places = np.geomspace(1e6, 1e9, 14)
    codes = np.array([BEST.codes])
    y = hierarchy.ln_time(np.log(places), float(np.log(places).mean()), codes, THETA[None, :])[0][0]
    off = 0.04 * np.random.default_rng(1).normal(size=14)
    data, _ = readings_of(places, np.exp(-y - off), np.linspace(0.01, 0.09, 14))
    return data


def information(theta: np.ndarray, data: CurveReadings) -> np.ndarray:
    """What the readings and the priors say of the parameters, both boundaries taken as smeared."""
    codes = np.array([[SMEARED, SMEARED]])
    jacobian = hierarchy.ln_time(data.x, data.middle, codes, theta[None, :])[1][0]
    told = sum(
        data.weight[at] * np.outer(jacobian[:, at], jacobian[:, at]) / NOISE**2 for at in range(14)
    )
    priors = [5.0, 0.05, 0.10, 2.0, 2.0, 0.5, 0.5, 0.5, 0.5]
    return np.asarray(told + np.diag([1 / sd**2 for sd in priors]))


def test_a_readings_gain_is_the_fall_of_the_boundaries_variance_when_it_is_added() -> None:
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
    assert placement._boundary_gain(BEST, data, NOISE, candidates) == pytest.approx(wanted)


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


def test_emptiness_counts_as_far_as_a_factor_of_e() -> None:
    best, data = flat_step(14.5, np.array([10.0, 13.0, 16.0, 19.0]))
    found = placement._disagreement(best, [best], data, NOISE, np.array([10.0, 10.8, 11.4]))
    assert found == pytest.approx([0.0, 0.4, 0.5])


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

    def unrefined(drawn: CurveReadings, codes: Any, theta: Any, _: int) -> hierarchy.Fits:
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


def flat_step(centre: float, x: np.ndarray) -> tuple[Explanation, CurveReadings]:
    """A step by a factor of two and the curve it explains without a residual."""
    theta = np.array([0.0, 0.0, 0.0, 0.0, centre, -1.0])
    best = Explanation("step", 1, 0.0, 3, 0.0, tuple(theta), (STEP,))
    y = best.ln_time(x, float((x.min() + x.max()) / 2))
    return best, CurveReadings(x, y, np.ones(x.size), (1.0, 1.0), 0.1, x[0] + 0.1, x[-1] - 0.1)


@pytest.mark.parametrize(
    ("centre", "around"),
    [
        (14.5, [12.5, 13.5, 14.5, 15.5, 16.5]),
        (10.6, [10.5, 11.5, 12.5]),
        (11.4, [10.5, 11.5, 12.5, 13.5]),
        (18.9, [16.5, 17.5, 18.5]),
    ],
)
def test_a_steps_refits_begin_in_its_gap_and_the_two_on_either_side(
    centre: float, around: list[float]
) -> None:
    best, data = flat_step(centre, np.repeat(np.arange(10.0, 20.0), 2))
    itself, *others = resampling._starts(best, data)
    assert itself.tolist() == list(best.coefficients)
    assert [start[4] for start in others] == pytest.approx(around)
    assert all(np.delete(start - itself, 4) == pytest.approx(0.0) for start in others)


def test_a_smooth_boundaries_refits_begin_on_either_side_of_it() -> None:
    data = curve()
    itself, *others = resampling._starts(BEST, data)
    moved = [np.round(start - itself, 9) for start in others if start[6] != itself[6]]
    assert sorted(np.sign(shift[6]) for shift in moved) == [-1, -1, 1, 1]
    assert all(np.flatnonzero(shift).tolist() == [6] for shift in moved)


def test_a_step_that_is_refitted_onto_a_reading_stays_in_the_gap_below_it() -> None:
    """Below the least reading and above the largest there is no gap: the nearest one is taken."""
    best, data = flat_step(12.5, np.arange(10.0, 15.0))
    centres = np.repeat([[9.0], [10.0], [12.0], [12.4], [15.0]], 200, axis=0)
    spread = resampling._jitter_steps(best, data, centres, np.random.default_rng(3))
    for at, (low, high) in enumerate([(10, 11), (10, 11), (11, 12), (12, 13), (13, 14)]):
        found = spread[200 * at : 200 * (at + 1), 0]
        assert low <= found.min() < low + 0.05
        assert high - 0.05 < found.max() <= high
    assert centres[0, 0] == 9.0, "what was given is left alone"


def test_shapes_share_the_resamples_by_weight_if_they_are_close_and_at_most_four(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts: dict[str, int] = {}

    def counted(rival: Explanation, _: Any, __: Any, count: int, ___: Any) -> np.ndarray:
        counts[rival.name] = count
        return np.full((count, 1), rival.bic)

    monkeypatch.setattr(resampling, "_resampled", counted)

    def rivals(*bics: float) -> list[Explanation]:
        one = [Explanation(str(bic), 1, bic, 3, 0.0, (0.0,), (STEP,)) for bic in bics]
        return [*one, Explanation("two", 2, bics[0], 5, 0.0, (0.0,), (STEP, STEP))]

    few = rivals(-9.0, -7.0, -3.1, -2.9)
    found = resampling.bootstrap(few[0], few, curve(), NOISE, np.random.default_rng(1))
    weights = np.exp([0.0, -1.0, -2.95])
    wanted = [math.ceil(240 * weight / weights.sum()) for weight in weights]
    assert counts == dict(zip(["-9.0", "-7.0", "-3.1"], wanted, strict=True))
    assert found.shape == (sum(wanted), 1)
    counts.clear()
    many = rivals(-9.0, -8.5, -8.0, -7.5, -7.0)
    resampling.bootstrap(many[0], many, curve(), NOISE, np.random.default_rng(1))
    assert list(counts) == ["-9.0", "-8.5", "-8.0", "-7.5"]


def test_a_wild_residual_is_resampled_as_twice_the_scale_of_what_is_wild(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    best, data = flat_step(14.5, np.arange(10.0, 20.0))
    data.y[2] += 1.0
    data.y[7] -= 0.1
    taken = []

    def unrefined(drawn: CurveReadings, codes: Any, theta: Any, _: int) -> hierarchy.Fits:
        taken.append(drawn.y)
        return hierarchy.Fits(codes, theta, np.zeros(len(theta)))

    monkeypatch.setattr(hierarchy, "refine", unrefined)
    resampling._resampled(best, data, NOISE, 400, np.random.default_rng(2))
    fitted = best.ln_time(data.x, data.middle)
    rows = [row for row in taken[0] - fitted if np.unique(np.round(row, 9)).size == 3]
    assert len(rows) > 100
    for row in rows:
        assert row.max() / -row.min() == pytest.approx((0.2 - 0.01) / (0.1 + 0.01))


class Generator:
    """Draws as numpy's does, and says how many degrees of freedom were asked for."""

    def __init__(self) -> None:
        self.own = np.random.default_rng(4)
        self.freedoms: list[float] = []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.own, name)

    def chisquare(self, freedom: float, size: Any) -> Any:
        self.freedoms.append(freedom)
        return self.own.chisquare(freedom, size)


@pytest.mark.parametrize(
    ("parameters", "freedom"), [(3, 2 + 3), (4, 1 + 3), (5, 1 + 3), (7, 1 + 3)]
)
def test_a_curve_of_no_more_readings_than_parameters_has_one_degree_of_freedom_and_the_priors(
    parameters: int, freedom: float
) -> None:
    theta = (-4.0, 0.0, 0.0, -1.0, 15.0, math.log(0.2))
    best = Explanation("smeared", 1, -9.0, parameters, 0.01, theta, (SMEARED,))
    data, _ = readings_of(np.geomspace(1e6, 1e8, 5), [90.0, 88.0, 80.0, 66.0, 65.0], None)
    random: Any = Generator()
    resampling._resampled(best, data, NOISE, 5, random)
    assert random.freedoms == [freedom]


@pytest.mark.parametrize(("whole", "explored"), [(6, 5), (11, 6), (14, 8), (18, 10), (40, 10)])
def test_rather_more_than_half_of_the_places_are_for_looking_around(
    monkeypatch: pytest.MonkeyPatch, whole: int, explored: int
) -> None:
    """Five at least and ten at most; from then on only gaps that may hide a boundary are halved."""
    only_open: list[bool] = []

    def gap(_: object, *, open_only: bool) -> float:
        only_open.append(open_only)
        return 15.0

    monkeypatch.setattr(placement, "_steepest_gap", gap)
    ends_first = [1e6, 1e9, *np.geomspace(1e6, 1e9, whole)[1:-1]]
    for distinct in range(2, whole):
        readings = [(float(place), 9.0) for place in ends_first[:distinct]]
        again = [*readings, readings[0]]
        placement.next_unique_bytes(again, 1e6, 1e9, whole - distinct)
    assert only_open == [distinct >= explored for distinct in range(2, whole)]
