"""The model of a hierarchy and the criterion that ranks explanations, against formulas by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import optimize

from leadline.stats import explanations, hierarchy
from leadline.stats.explanations import Explanation, bic, choose, noise_of, readings_of
from leadline.stats.hierarchy import SMEARED, STEP, UNIFORM, CurveReadings

LN2 = math.log(2.0)


def curve(y: np.ndarray, x: np.ndarray, **changes: object) -> CurveReadings:
    parts = {
        "weight": np.ones(x.size),
        "slope_penalty": (1.0, 4.0),
        "huber_scale": np.inf,
        "centre_low": float(x.min()) + 0.5,
        "centre_high": float(x.max()) - 0.5,
    }
    return CurveReadings(x, y, **(parts | changes))  # type: ignore[arg-type]


def test_misses_of_every_shape_at_half_once_and_twice_a_cache() -> None:
    x, centre = np.log([1.0, 2.0, 4.0]), np.full((3, 1), LN2)
    codes = np.array([[UNIFORM], [STEP], [SMEARED]])
    miss = hierarchy.miss_ratio(x, centre, np.full((3, 1), math.log(0.5)), codes)
    smeared = 1 / (1 + np.exp(-np.array([-LN2, 0.0, LN2]) / 0.5))
    assert miss[:, 0] == pytest.approx(np.array([[0.0, 0.0, 0.5], [0.0, 0.0, 1.0], smeared]))


THETA = np.array([[-4.0, 0.04, 0.09, -2.0, -0.5, 14.7, 18.2, math.log(0.3), math.log(0.2)]])
X = np.linspace(13.8, 20.7, 12)
MIDDLE = float(X.mean())


@pytest.mark.parametrize("codes", [(UNIFORM, SMEARED), (SMEARED, UNIFORM)])
def test_the_time_is_the_documented_sum_and_its_jacobian_its_slope(codes: tuple[int, int]) -> None:
    kinds = np.array([codes])
    found, jacobian = hierarchy.ln_time(X, MIDDLE, kinds, THETA)
    ln_a, b, s, *rest = THETA[0]
    time = math.exp(ln_a) * np.exp(b * (X - MIDDLE))
    for level, code in enumerate(codes):
        beyond = X - rest[2 + level]
        hit = np.minimum(1, np.exp(-beyond))
        smeared = 1 / (1 + np.exp(-beyond / math.exp(rest[4 + level])))
        miss = 1 - hit if code == UNIFORM else smeared
        time += np.exp(s * (X - MIDDLE)) * math.exp(rest[level]) * miss
    assert found[0] == pytest.approx(np.log(time))
    for at in range(9):
        step = np.zeros((1, 9))
        step[0, at] = 1e-6
        above = hierarchy.ln_time(X, MIDDLE, kinds, THETA + step)[0][0]
        below = hierarchy.ln_time(X, MIDDLE, kinds, THETA - step)[0][0]
        assert jacobian[0, at] == pytest.approx((above - below) / 2e-6, abs=1e-6)


def test_a_residual_costs_its_square_and_beyond_the_scale_its_tangent() -> None:
    residual = np.array([-3.0, -1.0, 0.5, 2.0])
    assert list(hierarchy.huber(residual, np.inf)) == [9.0, 1.0, 0.25, 4.0]
    assert list(hierarchy.huber(residual, 1.0)) == [5.0, 1.0, 0.25, 3.0]


def test_a_fit_costs_its_weighed_residuals_and_its_slopes() -> None:
    x = np.array([14.0, 16.0])
    codes, theta = np.array([[STEP]]), np.array([[0.0, 0.1, 0.2, 0.0, 16.0, -1.0]])
    y = 0.1 * (x - 15.0) + np.array([0.5, -2.0])
    weight = np.array([3.0, 1.0])
    data = curve(y, x, weight=weight, huber_scale=1.0, centre_high=16.0)
    wanted = 3 * 0.25 + (2 * 2 - 1) + 1 * 0.1**2 + 4 * 0.2**2
    assert hierarchy.refine(data, codes, theta, 0).cost == pytest.approx([wanted])
    assert cost_by_hand(data, codes, theta[0]) == pytest.approx(wanted)


def cost_by_hand(data: CurveReadings, codes: np.ndarray, theta: np.ndarray) -> float:
    off = np.abs(data.y - hierarchy.ln_time(data.x, data.middle, codes, theta[None, :])[0][0])
    within = np.minimum(off, data.huber_scale)
    slopes = data.slope_penalty[0] * theta[1] ** 2 + data.slope_penalty[1] * theta[2] ** 2
    return float((data.weight * within * (2 * off - within)).sum() + slopes)


@pytest.mark.parametrize("huber_scale", [np.inf, 0.05])
def test_refining_ends_where_a_general_minimiser_does(huber_scale: float) -> None:
    codes = np.array([[SMEARED]])
    truth = np.array([[-4.0, 0.02, 0.03, -1.0, 17.0, math.log(0.3)]])
    noise = 0.05 * np.random.default_rng(3).normal(size=12)
    y = hierarchy.ln_time(X, MIDDLE, codes, truth)[0][0] + noise
    weight = np.linspace(0.5, 1.5, 12)
    data = curve(y, X, huber_scale=huber_scale, weight=weight)
    begin = truth + np.array([[0.3, 0.0, 0.0, -0.3, 0.4, 0.2]])
    found = hierarchy.refine(data, codes, begin)
    best = optimize.minimize(
        lambda theta: cost_by_hand(data, codes, theta),
        truth[0],
        method="Nelder-Mead",
        options={"maxiter": 20000, "xatol": 1e-9, "fatol": 1e-13, "adaptive": True},
    )
    assert found.cost[0] == pytest.approx(best.fun, rel=1e-4)
    assert found.cost[0] == pytest.approx(cost_by_hand(data, codes, found.theta[0]))


def test_each_fit_of_a_bootstrap_is_of_its_own_times() -> None:
    codes = np.array([[SMEARED], [SMEARED]])
    both = np.array([[-4.0, 0.0, 0.0, -1.0, 17.0, -1.2], [-3.0, 0.0, 0.0, -2.0, 16.5, -1.2]])
    data = curve(hierarchy.ln_time(X, MIDDLE, codes, both)[0], X)
    found = hierarchy.refine(data, codes, both[[0, 0]], 40)
    assert found.theta == pytest.approx(both, abs=1e-4)


@pytest.mark.parametrize(
    ("codes", "wide", "why"),
    [
        ([[3]], 6, "no shape has the code 3"),
        ([[UNIFORM, STEP]], 6, r"\[1, 6\], not \[1, 9\]"),
        ([[UNIFORM] * 4], 15, "one to three boundaries"),
        ([UNIFORM], 6, "as .fits, levels."),
    ],
)
def test_fits_that_make_no_sense_are_refused(codes: list[object], wide: int, why: str) -> None:
    data, theta = curve(np.zeros(12), X), np.zeros((1, wide))
    with pytest.raises(ValueError, match=why):
        hierarchy.refine(data, np.array(codes), theta)


def test_times_and_weights_must_belong_to_the_readings() -> None:
    codes, theta = np.array([[STEP]]), np.zeros((1, 6))
    with pytest.raises(ValueError, match="a time is needed for each reading"):
        hierarchy.refine(curve(np.zeros(11), X), codes, theta)
    with pytest.raises(ValueError, match="a weight for each"):
        hierarchy.refine(curve(np.zeros(12), X, weight=np.ones(3)), codes, theta)


def test_parameters_stay_where_a_hierarchy_can_be() -> None:
    data = curve(np.linspace(-4.0, -1.0, 12), X)
    wild = np.array([[-9.0, 3.0, -3.0, 40.0, 99.0, 5.0], [9.0, -3.0, 3.0, -40.0, 0.0, -9.0]])
    found = hierarchy.refine(data, np.array([[SMEARED], [SMEARED]]), wild, 0).theta
    assert found[0] == pytest.approx([-7.0, 0.5, -0.5, 5.0, X[-1] - 0.5, math.log(0.5)])
    assert found[1] == pytest.approx([2.0, -0.5, 0.5, -4.0, X[0] + 0.5, math.log(0.02)])


def test_starts_solve_an_exact_curve_and_drop_what_would_be_faster_beyond() -> None:
    codes = np.array([[UNIFORM]])
    truth = np.array([[-4.0, 0.0, 0.0, -2.0, 17.0, math.log(0.2)]])
    data = curve(hierarchy.ln_time(X, MIDDLE, codes, truth)[0][0], X)
    found = hierarchy.start_fits(data, np.array([[17.0], [15.0]]), np.array([[UNIFORM], [UNIFORM]]))
    assert found.theta[0] == pytest.approx(truth[0], abs=1e-6)
    assert found.cost[0] == pytest.approx(0.0, abs=1e-10)
    assert found.cost[1] > 0.1
    falling = curve(np.linspace(-1.0, -4.0, 12), X)
    nothing = hierarchy.start_fits(falling, np.array([[17.0]]), codes)
    assert (nothing.theta.shape, nothing.cost.size) == ((0, 6), 0)


def test_readings_are_put_on_log_axes_and_weighed_by_both_kinds_of_noise() -> None:
    plain, prior = readings_of([1e6, 1e7, 1e8], [100.0, 10.0, 1.0], None)
    assert prior == 0.03
    assert plain.y == pytest.approx(-np.log([100.0, 10.0, 1.0]))
    assert list(plain.weight) == [1.0, 1.0, 1.0]
    assert plain.middle == pytest.approx(math.log(1e7))
    assert plain.centre_low == pytest.approx(math.log(1e6) + 0.75 * LN2)
    assert plain.centre_high == pytest.approx(math.log(1e8) - 0.75 * LN2)
    data, prior = readings_of([1e6, 1e7, 1e8], [100.0, 10.0, 1.0], [0.04, 0.04, 0.3])
    assert prior == 0.04
    each = 1 / np.array([0.04**2 + 0.04**2, 0.04**2 + 0.04**2, 0.3**2 + 0.04**2])
    assert data.weight == pytest.approx(3 * each / each.sum())
    assert readings_of([1e6, 1e7], [1.0, 1.0], [0.01, 0.01])[1] == 0.03
    short, _ = readings_of([1e6, 1.5e6], [1.0, 1.0], None)
    assert short.centre_low < short.centre_high, "in order, though there is no room"


def explanation(
    boundaries: int, evidence: float, cost: float = 0.0, parameters: int = 2
) -> Explanation:
    return Explanation("x", boundaries, evidence, parameters, cost, (0.0,))


def test_the_criterion_the_noise_and_the_margins_by_hand() -> None:
    variance = (0.5 + 3 * 0.03**2) / 19
    wanted = 19 * math.log(variance) + 5 * math.log(16) * 19 / (19 - 5 - 2)
    assert float(bic(0.5, 5, 16, 0.03)) == pytest.approx(wanted)
    assert float(bic(0.5, 30, 16, 0.03)) == pytest.approx(
        19 * math.log(variance) + 30 * math.log(16) * 19
    )
    data, _ = readings_of(np.geomspace(1e6, 1e9, 16), np.ones(16), None)
    found = noise_of(explanation(0, 0.0, cost=0.5, parameters=4), data, 0.03)
    assert found == pytest.approx(math.sqrt((0.5 + 3 * 0.03**2) / 15))
    crowded = noise_of(explanation(0, 0.0, cost=0.5, parameters=40), data, 0.03)
    assert crowded == pytest.approx(math.sqrt((0.5 + 3 * 0.03**2) / 3))
    rivals = [explanation(0, 0.0), explanation(1, -3.9), explanation(2, -16.0)]
    assert choose(rivals, 4.0).boundaries == 2
    assert choose(rivals[:2], 4.0).boundaries == 0
    assert choose([rivals[0], explanation(1, -4.1)], 4.0).boundaries == 1
    assert choose([explanation(1, -5.0), explanation(2, -12.9)], 4.0).boundaries == 1
    assert choose([explanation(1, -5.0), explanation(2, -13.1)], 4.0).boundaries == 2


def test_parameters_are_counted_by_shape() -> None:
    assert explanations.parameters_of((UNIFORM,)) == 3
    assert explanations.parameters_of((STEP, UNIFORM)) == 5
    assert explanations.parameters_of((SMEARED,)) == 5


@pytest.mark.parametrize(
    ("name", "of", "parameters"),
    [
        ("power", lambda z: -2.0 + 0.3 * z, 2),
        ("quadratic", lambda z: -2.0 + 0.1 * z + 0.03 * z**2, 3),
        ("seek", lambda z: -2.0 + np.log1p(np.geomspace(1e-3, 1e2, 51)[25] * np.exp(z / 2)), 2),
    ],
)
def test_a_smooth_curve_is_explained_exactly_by_the_one_it_is(
    name: str, of: object, parameters: int
) -> None:
    y = of(X - MIDDLE)  # type: ignore[operator]
    data, prior = readings_of(np.exp(X), np.exp(-y), None)
    rivals, data = explanations.explain(data, prior)
    found = next(rival for rival in rivals if rival.name == name)
    assert found.cost == pytest.approx(0.0, abs=1e-12)
    assert found.ln_time(X, MIDDLE) == pytest.approx(y)
    assert (found.parameters, found.boundaries) == (parameters, 0)
    assert found.bic == pytest.approx(float(bic(found.cost, parameters, 12, prior)))
    assert choose(rivals, 4.0).boundaries == 0
    assert [rival.bic for rival in rivals] == sorted(rival.bic for rival in rivals)


def test_a_constant_pays_for_its_slope_and_shrugs_off_a_wild_reading() -> None:
    y = np.full(12, -2.0)
    y[5] += 1.0
    data, prior = readings_of(np.exp(X), np.exp(-y), None)
    rivals, data = explanations.explain(data, prior)
    found = next(rival for rival in rivals if rival.name == "constant")
    assert found.parameters == 1
    height, slope = found.coefficients
    assert -2.0 < height < -1.93, "least squares would be a twelfth off"
    fitted = height + slope * (X - MIDDLE)
    loss = hierarchy.huber(y - fitted, data.huber_scale).sum()
    assert found.cost == pytest.approx(loss + data.slope_penalty[0] * slope**2)


def test_a_power_is_never_steeper_than_seeks_make() -> None:
    data, prior = readings_of(np.exp(X), np.exp(-0.9 * (X - MIDDLE)), None)
    rivals, _ = explanations.explain(data, prior)
    power = next(rival for rival in rivals if rival.name == "power")
    assert power.coefficients[1] == pytest.approx(0.5)
    bent = next(rival for rival in rivals if rival.name == "quadratic")
    ends = [bent.coefficients[1] + 2 * bent.coefficients[2] * z for z in (X - MIDDLE)[[0, -1]]]
    assert all(end <= 0.5 + 1e-9 for end in ends)


def test_one_boundary_is_tried_on_a_grid_and_a_step_only_half_way_between_readings() -> None:
    x = np.array([10.0, 11.0, 13.0, 13.0, 16.0])
    data = curve(np.zeros(5), x, centre_low=10.6, centre_high=14.0)
    centres, codes = explanations._single_places(data)
    assert list(centres[codes == STEP]) == [12.0]
    for shape in (UNIFORM, SMEARED):
        tried = centres[codes == shape]
        assert (tried[0], tried[-1]) == (10.6, 14.0)
        assert np.diff(tried).max() <= 0.2 + 1e-12, "a fifth of ln U or closer"
    for ends in ((12.0, 14.0), (10.6, 12.0)):
        edge = curve(np.zeros(5), x, centre_low=ends[0], centre_high=ends[1])
        assert STEP not in explanations._single_places(edge)[1], "a boundary lies within"
    few = curve(np.zeros(5), x, centre_low=11.2, centre_high=11.4)
    assert list(np.bincount(explanations._single_places(few)[1])) == [8, 0, 8]


def test_two_boundaries_are_tried_where_both_leave_a_plateau() -> None:
    singles = np.array([10.0, 10.6, 11.0, 12.0]), np.array([UNIFORM, SMEARED, STEP, UNIFORM])
    centres, codes = explanations._combined(singles, 2)
    found = {tuple(pair): tuple(shapes) for pair, shapes in zip(centres, codes, strict=True)}
    assert found == {
        (10.0, 11.0): (UNIFORM, STEP),
        (10.0, 12.0): (UNIFORM, UNIFORM),
        (10.6, 12.0): (SMEARED, UNIFORM),
        (11.0, 12.0): (STEP, UNIFORM),
    }
    alone, shapes = explanations._combined(singles, 1)
    assert (alone.shape, shapes.shape) == ((4, 1), (4, 1))


def fits(*boundaries: tuple[float, float, int]) -> hierarchy.Fits:
    """One fit of (ln C, d over a, shape) at a = 1."""
    theta = [0.0, 0.0, 0.0]
    theta += [math.log(ratio) for _, ratio, _ in boundaries]
    theta += [place for place, _, _ in boundaries] + [math.log(0.1)] * len(boundaries)
    return hierarchy.Fits(
        np.array([[code for _, _, code in boundaries]]), np.array([theta]), np.zeros(1)
    )


@pytest.mark.parametrize(
    ("boundaries", "scale", "worthy"),
    [
        ([(12.0, 0.26, STEP)], 0.01, True),
        ([(12.0, 0.24, STEP)], 0.01, False),
        ([(12.0, 0.51, STEP)], 0.1, True),
        ([(12.0, 0.48, STEP)], 0.1, False),
        ([(12.0, 1.0, STEP), (13.5, 0.52, STEP)], 0.01, True),
        ([(12.0, 1.0, STEP), (13.5, 0.48, STEP)], 0.01, False),
        ([(14.5, 9.0, STEP)], 0.01, False),
        ([(10.6, 9.0, STEP)], 0.01, False),
        ([(12.0, 9.0, STEP), (12.5, 9.0, STEP)], 0.01, False),
        ([(12.05, 9.0, STEP), (12.95, 9.0, STEP)], 0.01, False),
        ([(12.05, 9.0, STEP), (13.05, 9.0, STEP)], 0.01, True),
        ([(14.0, 0.40, UNIFORM)], 0.01, True),
        ([(14.0, 0.38, UNIFORM)], 0.01, False),
    ],
)
def test_a_boundary_needs_a_quarter_four_sigmas_and_a_plateau_of_two_readings_either_side(
    boundaries: list[tuple[float, float, int]], scale: float, worthy: bool
) -> None:
    """ln 1.25 is 0.223; a uniform boundary at 14 has missed 1 - 1/e of its requests at 15."""
    data = curve(np.zeros(11), np.linspace(10.0, 15.0, 11))
    assert explanations._worthy(fits(*boundaries), data, scale) == [worthy]


def test_boundaries_are_put_in_order_with_what_belongs_to_them() -> None:
    mixed = fits((13.0, 0.5, STEP), (11.0, 2.0, SMEARED))
    mixed.theta[0, 7:] = [-1.0, -2.0]
    found = explanations._sorted_levels(mixed)
    assert found.theta[0] == pytest.approx(
        [0.0, 0.0, 0.0, math.log(2.0), math.log(0.5), 11.0, 13.0, -2.0, -1.0]
    )
    assert found.codes.tolist() == [[SMEARED, STEP]]


def test_the_best_of_each_shape_are_kept_best_first() -> None:
    codes = np.array([[STEP], [STEP], [SMEARED], [STEP]])
    four = hierarchy.Fits(codes, np.arange(24.0).reshape(4, 6), np.array([3.0, 1.0, 2.0, 0.5]))
    assert list(explanations._of_each(four, 2).cost) == [0.5, 1.0, 2.0]
    assert list(explanations._of_each(four, 1).cost) == [0.5, 2.0]
    assert list(explanations._best(four, 2).cost) == [0.5, 1.0]
    assert list(explanations._best(four, 2).theta[:, 0]) == [18.0, 6.0]


def test_the_second_look_has_the_scale_that_the_first_one_showed() -> None:
    """An exact power law of twelve readings: its noise is what the prior alone leaves."""
    y = -2.0 + 0.3 * (X - MIDDLE)
    data, prior = readings_of(np.exp(X), np.exp(-y), None)
    _, seen = explanations.explain(data, prior)
    scale = math.sqrt(3 * 0.03**2 / (12 - 2 + 3))
    assert seen.huber_scale == pytest.approx(2.5 * scale)
    assert seen.slope_penalty == pytest.approx(((scale / 0.05) ** 2, (scale / 0.10) ** 2))


@pytest.mark.parametrize(("count", "most"), [(4, 0), (5, 1), (6, 1), (7, 2), (8, 2), (9, 3)])
def test_a_boundary_costs_two_readings_and_three_are_left_for_the_rest(
    count: int, most: int
) -> None:
    """Levels of two readings each, the first of more: as many as could be told apart."""
    level = np.maximum(np.arange(count) - count % 2, 0) // 2
    x = np.log(1e6) + 1.5 * np.arange(count)
    data, prior = readings_of(np.exp(x), np.exp(-1.5 * level), None)
    rivals, _ = explanations.explain(data, prior)
    assert max(rival.boundaries for rival in rivals) == most


def test_three_boundaries_are_tried_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: set[int] = set()

    def refined(
        _: CurveReadings, codes: np.ndarray, theta: np.ndarray, __: int = 0
    ) -> hierarchy.Fits:
        tried.add(codes.shape[1])
        return hierarchy.Fits(codes, theta, np.zeros(len(theta)))

    monkeypatch.setattr(hierarchy, "refine", refined)
    x = np.log(1e6) + 1.5 * np.arange(14)
    data, prior = readings_of(np.exp(x), np.exp(-1.5 * (np.arange(14) // 2)), None)
    explanations._hierarchies(data, prior, 0.05, [])
    assert tried == {1, 2, 3}


@pytest.mark.parametrize(("off", "steeper"), [(-2.0, 2.0), (1.5, 2.0), (1.5, -3.0)])
def test_refining_finds_its_way_from_far_off(off: float, steeper: float) -> None:
    """Where a full step would miss, shorter ones are tried until one helps."""
    codes = np.array([[SMEARED]])
    truth = np.array([[-4.0, 0.02, 0.03, -1.0, 17.0, math.log(0.3)]])
    noise = 0.05 * np.random.default_rng(3).normal(size=12)
    data = curve(hierarchy.ln_time(X, MIDDLE, codes, truth)[0][0] + noise, X)
    near = hierarchy.refine(data, codes, truth, 60).cost[0]
    far = truth + np.array([[0.0, 0.0, 0.0, steeper, off, math.log(1 / 3)]])
    assert hierarchy.refine(data, codes, far, 0).cost[0] > 400 * near
    assert hierarchy.refine(data, codes, far).cost[0] == pytest.approx(near, rel=1e-3)


@pytest.mark.parametrize(
    ("boundaries", "worthy"),
    [
        ([(12.0, 9.0, STEP), (12.65, 9.0, STEP)], True),
        ([(12.0, 9.0, STEP), (12.63, 9.0, STEP)], False),
        ([(10.65, 9.0, STEP)], True),
        ([(10.63, 9.0, STEP)], False),
        ([(14.35, 9.0, STEP)], True),
        ([(14.37, 9.0, STEP)], False),
    ],
)
def test_a_plateau_is_a_factor_of_two_wide_less_a_twentieth(
    boundaries: list[tuple[float, float, int]], worthy: bool
) -> None:
    """Ln 1.9 is 0.642, however many readings lie there."""
    data = curve(np.zeros(501), np.linspace(10.0, 15.0, 501))
    assert explanations._worthy(fits(*boundaries), data, 0.01) == [worthy]


@pytest.mark.parametrize(
    ("count", "names"),
    [(2, {"constant", "power", "seek"}), (3, {"constant", "power", "quadratic", "seek"})],
)
def test_as_many_readings_as_unknowns_are_enough_for_a_smooth_curve(
    count: int, names: set[str]
) -> None:
    data, prior = readings_of(np.geomspace(1e6, 1e9, count), np.ones(count), None)
    rivals, _ = explanations.explain(data, prior)
    assert {rival.name for rival in rivals} == names


def test_a_wild_reading_pulls_no_harder_than_the_scale_lets_it() -> None:
    """Of five, one is 1 off: the others pull back by their four heights, it by the scale of 0.4."""
    y = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    data = curve(y, np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), huber_scale=0.4)
    assert explanations._polynomial(data, 1, 0.0) == pytest.approx([0.1, 0.0], abs=1e-4)
    half = curve(y, data.x, huber_scale=0.4, weight=np.array([1.0, 1.0, 0.5, 1.0, 1.0]))
    assert explanations._polynomial(half, 1, 0.0) == pytest.approx([0.05, 0.0], abs=1e-4)
    plain = curve(y, data.x)
    assert explanations._polynomial(plain, 1, 0.0) == pytest.approx([0.2, 0.0])


def test_a_slope_is_held_down_by_its_penalty() -> None:
    """Least squares of y = 0.1 x with 10 on the squared slope: 0.1 * 10 / (10 + 10)."""
    x = np.array([-2.0, -1.0, 0.0, 1.0, 2.0])
    assert explanations._polynomial(curve(0.1 * x, x), 1, 10.0) == pytest.approx([0.0, 0.05])


def test_a_third_boundary_is_tried_at_every_place_beside_the_two() -> None:
    two = fits((11.0, 1.0, STEP), (13.0, 1.0, SMEARED))
    pair = hierarchy.Fits(
        np.repeat(two.codes, 2, axis=0), np.repeat(two.theta, 2, axis=0), np.zeros(2)
    )
    centres, codes = explanations._added(pair, (np.array([12.0, 14.0]), np.array([UNIFORM, STEP])))
    assert centres.tolist() == [[11.0, 13.0, 12.0], [11.0, 13.0, 14.0]] * 2
    assert codes.tolist() == [[STEP, SMEARED, UNIFORM], [STEP, SMEARED, STEP]] * 2


def test_polishing_tries_each_boundary_in_each_shape_where_it_is_and_to_either_side(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tried: list[hierarchy.Fits] = []

    def unrefined(
        _: CurveReadings, codes: np.ndarray, theta: np.ndarray, __: int
    ) -> hierarchy.Fits:
        tried.append(hierarchy.Fits(codes, theta, np.zeros(len(theta))))
        return tried[-1]

    monkeypatch.setattr(hierarchy, "refine", unrefined)
    two = fits((11.0, 1.0, STEP), (13.0, 1.0, STEP))
    explanations._polished(two, curve(np.zeros(11), np.linspace(10.0, 15.0, 11)))
    (all_of_them,) = tried
    moves = {
        (tuple(codes), tuple(np.sign(centres - two.centres[0])))
        for codes, centres in zip(all_of_them.codes, all_of_them.centres, strict=True)
    }
    assert len(all_of_them.cost) == 1 + 2 * 2 * 3
    first = {((shape, STEP), (way, 0)) for shape in (UNIFORM, SMEARED) for way in (-1, 0, 1)}
    second = {((STEP, shape), (0, way)) for shape in (UNIFORM, SMEARED) for way in (-1, 0, 1)}
    assert moves == {((STEP, STEP), (0, 0))} | first | second


def test_of_fits_that_cost_as_much_the_first_are_kept() -> None:
    cost = np.random.default_rng(5).integers(0, 2, 400).astype(float)
    many = hierarchy.Fits(
        np.full((400, 1), STEP), np.repeat(np.arange(400.0)[:, None], 6, axis=1), cost
    )
    first = np.flatnonzero(cost == 0)
    assert explanations._of_each(many, 30).theta[:, 0].tolist() == first[:30].tolist()
    assert explanations._best(many, 30).theta[:, 0].tolist() == first[:30].tolist()
    side_by_side = hierarchy.Fits(
        np.array([[SMEARED, STEP]]),
        np.array([[0.0, 0.0, 0.0, 1.0, 2.0, 15.0, 15.0, 3.0, 4.0]]),
        np.zeros(1),
    )
    assert explanations._sorted_levels(side_by_side).codes.tolist() == [[SMEARED, STEP]]
