from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from leadline.stats import boundaries, hierarchy
from leadline.stats.boundaries import fit_boundaries
from leadline.stats.change_points import change_points
from leadline.stats.placement import next_unique_bytes


def two_level(places: np.ndarray, cache: float = 20e6) -> np.ndarray:
    return 0.02 + 0.6 * (1 - np.minimum(1, cache / places))


def noisy_curve(seed: int = 1, noise: float = 0.03) -> tuple[np.ndarray, np.ndarray]:
    places = np.geomspace(1e6, 1e9, 16)
    rng = np.random.default_rng(seed)
    return places, np.exp(noise * rng.normal(size=16)) / two_level(places)


def test_the_same_seed_gives_the_same_answer() -> None:
    places, readings = noisy_curve()
    first = fit_boundaries(places, readings, seed=5)
    assert first.boundaries == fit_boundaries(places, readings, seed=5).boundaries
    order = np.random.default_rng(0).permutation(16)
    shuffled = fit_boundaries(places[order], readings[order], seed=5)
    assert shuffled.boundaries[0].bytes.value == pytest.approx(
        first.boundaries[0].bytes.value, rel=1e-4
    )


def test_scaling_bytes_or_throughput_scales_the_answer_only() -> None:
    places, readings = noisy_curve()
    boundary = fit_boundaries(places, readings, seed=5).boundaries[0]
    scaled = fit_boundaries(places * 1000, readings * 7, seed=5).boundaries[0]
    assert scaled.bytes.value == pytest.approx(1000 * boundary.bytes.value, rel=1e-3)
    assert scaled.time_ratio == pytest.approx(boundary.time_ratio, rel=1e-2)


def test_prediction_follows_the_truth() -> None:
    places, readings = noisy_curve()
    fit = fit_boundaries(places, readings, seed=5)
    between = np.geomspace(1.5e6, 8e8, 30)
    assert np.abs(fit.predict(between) / two_level(between) - 1).max() < 0.12
    assert fit.boundaries[0].time_ratio == pytest.approx(31, rel=0.2)
    assert 0.015 < fit.noise_frac < 0.05


@pytest.mark.parametrize(("index", "factor"), [(6, 0.5), (9, 1.6), (3, 1.6), (12, 0.5)])
def test_one_wild_reading_makes_no_boundary_and_does_not_move_one(
    index: int, factor: float
) -> None:
    places, readings = noisy_curve()
    readings[index] *= factor
    wild = fit_boundaries(places, readings, seed=5)
    assert len(wild.boundaries) == 1
    # Index 6 stands just below the kink: there one wild reading may shift the boundary, not add
    # one.
    if index != 6:
        assert wild.boundaries[0].bytes.value == pytest.approx(20e6, rel=0.05)


def test_contrast_below_four_sigmas_is_refused() -> None:
    places = np.repeat(np.geomspace(1e6, 1e9, 12), 5)
    truth = 0.3 * (1 + 0.35 * (places > 20e6))
    noise = np.random.default_rng(3).normal(size=60)
    assert fit_boundaries(places, np.exp(0.1 * noise) / truth, seed=1).boundaries == ()
    assert len(fit_boundaries(places, np.exp(0.02 * noise) / truth, seed=1).boundaries) == 1


def test_a_weak_contrast_is_no_region_however_quiet_the_system() -> None:
    places = np.repeat(np.geomspace(1e6, 1e9, 12), 2)
    rng = np.random.default_rng(3)
    truth = 0.3 * (1 + 0.15 * (places > 20e6))
    assert (
        fit_boundaries(places, np.exp(0.01 * rng.normal(size=24)) / truth, seed=1).boundaries == ()
    )


def test_few_readings_give_an_answer_without_boundaries() -> None:
    fit = fit_boundaries([1e6, 1e9], [50.0, 5.0], seed=1)
    assert fit.boundaries == ()
    assert len(fit_boundaries([1e6, 3e7, 1e9], [50.0, 20.0, 5.0], seed=1).boundaries) == 0


def test_readings_with_a_stated_error_count_less() -> None:
    places, readings = noisy_curve()
    readings[8] *= 1.4
    sd = np.full(16, 0.03)
    sd[8] = 0.5
    fit = fit_boundaries(places, readings, sd, seed=1)
    assert len(fit.boundaries) == 1
    assert fit.boundaries[0].bytes.value == pytest.approx(20e6, rel=0.05)


@pytest.mark.parametrize(
    ("places", "readings"),
    [([1e6], [3.0]), ([1e6, 2e6], [3.0]), ([1e6, 2e6], [3.0, 0.0]), ([1e6, -2e6], [3.0, 1.0])],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_senseless_curves_are_refused(places: list[float], readings: list[float]) -> None:
    with pytest.raises(ValueError, match=r"readings|positive"):
        fit_boundaries(places, readings, seed=1)


def test_placement_begins_at_the_ends_and_follows_the_drop() -> None:
    assert next_unique_bytes([], 1e6, 1e9, 14) == 1e6
    assert next_unique_bytes([(1e6, 50.0)], 1e6, 1e9, 13) == 1e9
    ends = [(1e6, 50.0), (1e9, 2.0)]
    middle = next_unique_bytes(ends, 1e6, 1e9, 12)
    assert middle == pytest.approx(np.sqrt(1e6 * 1e9))
    lower = next_unique_bytes([*ends, (middle, 2.1)], 1e6, 1e9, 11)
    assert 1e6 < lower < middle


def test_placement_goes_to_the_boundary_and_is_deterministic() -> None:
    readings: list[tuple[float, float]] = []
    for left in range(14, 0, -1):
        place = next_unique_bytes(readings, 1e6, 1e9, left)
        assert place == next_unique_bytes(list(readings), 1e6, 1e9, left)
        assert 1e6 <= place <= 1e9 * (1 + 1e-9)
        readings.append((place, float(1 / two_level(np.array([place]))[0])))
    near = [place for place, _ in readings if 15e6 < place < 60e6]
    assert len(near) >= 4
    gaps = np.diff(np.log(sorted(place for place, _ in readings)))
    assert gaps.max() < np.log(1000) / 3


def test_placement_refuses_an_empty_range() -> None:
    with pytest.raises(ValueError, match="low < high"):
        next_unique_bytes([], 1e9, 1e6, 3)
    with pytest.raises(ValueError, match="reading left"):
        next_unique_bytes([], 1e6, 1e9, 0)


def test_change_points_find_steps_and_leave_noise_alone() -> None:
    places = np.geomspace(1e6, 1e9, 20)
    rng = np.random.default_rng(2)
    noise = np.exp(0.03 * rng.normal(size=20))
    levels = np.where(places < 2e7, 50.0, np.where(places < 2e8, 20.0, 4.0))
    found = change_points(list(places), list(levels * noise))
    assert len(found) == 2
    assert found[0] == pytest.approx(2e7, rel=0.25)
    assert found[1] == pytest.approx(2e8, rel=0.25)
    assert change_points(list(places), list(30 * noise)) == ()
    assert change_points([1e6, 2e6], [1.0, 2.0]) == ()


FALLEN = [
    (12.0, 12728.3),
    (12.0, 12133.6),
    (12.0, 9628.3),
    (19.47, 7912.9),
    (31.59, 5019.5),
    (51.24, 3810.7),
    (83.14, 3240.7),
    (107.62, 717.5),
    (134.88, 693.6),
    (218.83, 456.7),
    (576.0, 485.2),
    (576.0, 490.7),
    (576.0, 488.1),
]
"""(MiB, MB/s) of a real disk behind 96 MiB of page cache, whose writers wait from 19 MiB on."""


def test_a_fall_steeper_than_seeks_make_is_a_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    places, rates = ([row[column] for row in FALLEN] for column in (0, 1))
    found = fit_boundaries([2**20 * place for place in places], rates, seed=1)
    assert [boundary.bytes.value / 2**20 for boundary in found.boundaries] == [
        pytest.approx(90, rel=0.35)
    ]
    monkeypatch.setattr(hierarchy, "SLOPE_MAX", 5.0)
    unbound = fit_boundaries([2**20 * place for place in places], rates, seed=1)
    assert unbound.boundaries == (), (
        "a power law explains it better, if it may be as steep as it likes"
    )


def test_a_boundaries_interval_is_the_resamplings_middle_wider_by_what_few_readings_hide(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Plain quantiles hold the truth of 16 readings in 90-93% of curves (bench/boundaries.py)."""
    places, readings = noisy_curve()
    centre = np.log(fit_boundaries(places, readings, seed=5).boundaries[0].bytes.value)
    resampled = centre + np.linspace(-0.20, 0.40, 601)[:, None]
    monkeypatch.setattr(boundaries, "bootstrap", lambda *_: resampled)
    found = fit_boundaries(places, readings, seed=5).boundaries[0].bytes
    assert found.n == 16
    assert found.low is not None
    assert found.high is not None
    assert np.log(found.low) == pytest.approx(centre - 1.15 * 0.185)
    assert np.log(found.high) == pytest.approx(centre + 1.15 * 0.385)
    monkeypatch.setattr(boundaries, "bootstrap", lambda *_: resampled + 1.0)
    beside = fit_boundaries(places, readings, seed=5).boundaries[0].bytes
    assert beside.low == beside.value, "a boundary lies within its interval"
    monkeypatch.setattr(boundaries, "bootstrap", lambda *_: resampled - 1.0)
    beside = fit_boundaries(places, readings, seed=5).boundaries[0].bytes
    assert beside.high == beside.value


def three_level(places: np.ndarray) -> np.ndarray:
    small = 1 - np.minimum(1, 4e6 / places)
    return 0.01 + 0.04 * small + 0.5 * (1 - np.minimum(1, 120e6 / places))


def test_two_boundaries_stand_where_they_are_with_their_times_and_their_evidence() -> None:
    places = np.geomspace(1e6, 4e9, 30)
    rng = np.random.default_rng(4)
    readings = np.exp(0.01 * rng.normal(size=30)) / three_level(places)
    fit = fit_boundaries(places, readings, seed=5)
    first, second = fit.boundaries
    assert first.bytes.value == pytest.approx(4e6, rel=0.05)
    assert second.bytes.value == pytest.approx(120e6, rel=0.05)
    assert first.time_ratio == pytest.approx(5.0, rel=0.1), "0.05 over 0.01"
    assert second.time_ratio == pytest.approx(11.0, rel=0.1), "0.55 over 0.05"
    fewer = min(bic for _, count, bic in fit.alternatives if count < 2)
    best = fit.alternatives[0][2]
    assert fit.alternatives[0][:2] == (fit.model, 2)
    assert all(boundary.evidence_bic >= fewer - best - 1e-6 for boundary in fit.boundaries)
    assert second.evidence_bic > first.evidence_bic > 10, "the larger step is the surer one"
    decided = fit_boundaries(places, readings, seed=5, count=1)
    assert len(decided.boundaries) == 1
    without = min(bic for _, count, bic in decided.alternatives if count == 0)
    alone = next(bic for name, _, bic in decided.alternatives if name == decided.model)
    assert decided.boundaries[0].evidence_bic == pytest.approx(without - alone)
    assert fit_boundaries(places, readings, seed=5, margin_bic=1e9).boundaries == ()


def segments_by_trying_all(x: np.ndarray, y: np.ndarray, most: int = 4) -> tuple[float, ...]:
    """The cross-check's definition: every split into segments of two readings or more, by BIC."""
    found = []
    for cuts in range(most):
        for split in combinations(range(2, y.size - 1), cuts):
            parts = np.split(y, split)
            apart = all(x[cut] > x[cut - 1] for cut in split)
            if apart and min(part.size for part in parts) >= 2:
                left = sum(float(((part - part.mean()) ** 2).sum()) for part in parts)
                bic = y.size * np.log(left / y.size + 1e-4) + 3 * cuts * np.log(y.size)
                found.append((float(bic), split))
    return tuple(float(np.sqrt(x[cut - 1] * x[cut])) for cut in min(found)[1])


@pytest.mark.parametrize("levels_max", [1, 2, 4])
def test_change_points_are_the_best_of_all_splits(levels_max: int) -> None:
    rng = np.random.default_rng(9)
    cuts = set()
    for count in (4, 5, 8, 12, 12, 20, 20, 20, 20):
        x = np.sort(rng.choice(np.geomspace(1e6, 1e9, 40), count))
        steps = rng.integers(0, 4, 20)
        y = 0.5 * steps[np.searchsorted(np.geomspace(1e6, 1e9, 7), x)] + rng.normal(0, 0.03, count)
        shuffled = rng.permutation(count)
        found = change_points(list(x[shuffled]), list(np.exp(y[shuffled])), levels_max)
        order = np.argsort(x[shuffled], kind="stable")
        assert found == segments_by_trying_all(x, y[shuffled][order], levels_max)
        cuts.add(len(found))
    assert max(cuts) == levels_max - 1


def test_an_almost_exact_step_is_one_and_what_is_below_a_percent_is_none() -> None:
    x = [1e6, 2e6, 4e6, 8e6, 16e6, 32e6]
    assert change_points(x, [10.0] * 3 + [10.3] * 3) == pytest.approx((4e6 * 2**0.5,))
    assert change_points(x, [10.0] * 3 + [10.2] * 3) == ()


@pytest.mark.parametrize(("contrast", "found"), [(0.38, 0), (0.42, 1)])
def test_a_boundary_must_gain_a_bic_of_four(contrast: float, found: int) -> None:
    """These ten readings gain 3.0 and 4.6 by it."""
    places = np.geomspace(1e6, 1e9, 10)
    noise = np.exp(0.04 * np.random.default_rng(3).normal(size=10))
    readings = 1 / (0.3 * (1 + contrast * (places > 2e7)) * noise)
    assert len(fit_boundaries(places, readings, seed=1).boundaries) == found
    assert len(fit_boundaries(places, readings, seed=1, margin_bic=2.0).boundaries) == 1
