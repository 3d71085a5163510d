"""The joint model on known truth: errors, intervals, noise, outliers, determinism."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import optimize
from scipy.special import stdtrit

from leadline.models.gaussian_process import Axes, Beliefs, Kernel, Places, Unexplained, learn
from leadline.models.joint import JointModel, fit_joint
from leadline.models.learning import Box, spread_out
from leadline.models.model import KnownBoundary, RegionNoise, Sample
from leadline.models.operation_time import PLACE, OperationTime, Requests
from leadline.record import Workload

Law = Callable[[list[Workload]], np.ndarray]

BOX = Box((2.0**20, 2.0**30), (4096.0, 2.0**20), (1.0, 16.0))
BOUNDARY_LN = math.log(64 * 2**20)
NOISE = 0.03


def truth(asked: list[Workload]) -> np.ndarray:
    """ln MB/s of a machine with a smeared cache in front of a disk of four channels."""
    mean = OperationTime((True,), 17.3)
    theta = np.zeros(mean.parameters)
    theta[:PLACE] = (-11.5, -0.1, -11.0, 0.3, 0.0, 0.2, -1.0, 0.0, 1.0, 0.0, 5.0, 0.0)
    theta[PLACE : 2 * PLACE] = (-5.0, -2.5, -8.0, 0.5, 0.0, 0.3, -1.9, 0.0, -3.0, 0.02, 5.0, 0.0)
    theta[mean.boundary(0) : mean.boundary(0) + 3] = (BOUNDARY_LN, -2.5, 0.0)
    return np.asarray(mean.ln_mb_s(Requests.of(asked), theta)[0])


def bent(asked: list[Workload]) -> np.ndarray:
    """The same with an effect that no sum of times has."""
    places = Axes.over(spread_out(BOX, 64, 0)).place(asked)
    return np.asarray(truth(asked) + 0.15 * np.sin(3 * places[:, 1]) * np.cos(3 * places[:, 2]))


def streamed(asked: list[Workload]) -> np.ndarray:
    """The same, twice as fast where nothing but sequential requests come."""
    return np.asarray(truth(asked) + math.log(2) * np.array([w.seq_frac == 1.0 for w in asked]))


def in_order(asked: list[Workload]) -> list[Workload]:
    return [workload.with_value("seq_frac", 1.0) for workload in asked]


def sample(count: int, seed: int, law: Law = truth, in_order_too: int = 0) -> Sample:
    asked = spread_out(BOX, count, seed)
    asked = in_order(asked[:in_order_too]) + asked[in_order_too:]
    noise = np.random.default_rng(seed).normal(0, NOISE, count)
    return Sample(
        workloads=tuple(asked),
        ln_mb_s=law(asked) + noise,
        noise_weight=np.ones(count),
        noise=RegionNoise(NOISE, (math.exp(BOUNDARY_LN),), (1.0, 1.0)),
        boundaries=(KnownBoundary(BOUNDARY_LN + 0.05, 0.1, smeared=None),),
    )


def judged(model: JointModel, law: Law = truth) -> tuple[np.ndarray, np.ndarray]:
    """Errors of 200 unseen workloads, and whether the 90% intervals cover the truth."""
    asked = spread_out(BOX, 200, 999)
    expected = model.expect(asked)
    off = expected.ln_mb_s - law(asked)
    half = stdtrit(model.df, 0.95) * expected.ln_sd
    return np.abs(np.expm1(off)), np.abs(off) <= half


def test_forty_readings_predict_within_the_noise_of_one() -> None:
    errors = np.concatenate([judged(fit_joint(sample(40, seed)))[0] for seed in (1, 2, 3, 4)])
    assert np.median(errors) < NOISE
    assert np.quantile(errors, 0.9) < 3 * NOISE


def test_six_purely_sequential_readings_tell_what_streaming_gains() -> None:
    asked = in_order(spread_out(BOX, 100, 999))
    off = [
        fit_joint(sample(60, seed, streamed, 6)).expect(asked).ln_mb_s - streamed(asked)
        for seed in (1, 2, 3, 4)
    ]
    assert np.median(np.abs(np.expm1(off))) < 0.2, "0.35 without a word for it"


def test_what_no_sum_of_times_has_is_learned_from_the_readings() -> None:
    few, _ = judged(fit_joint(sample(32, 2, bent)), bent)
    many, _ = judged(fit_joint(sample(120, 2, bent)), bent)
    assert np.median(many) < 0.7 * np.median(few)
    assert np.median(many) < NOISE


@pytest.mark.parametrize("law", [truth, bent])
def test_ninety_percent_intervals_cover_the_truth_about_so_often(law: Law) -> None:
    """Also of an effect that no sum of times has: left-out readings say that something is there.

    A doubt is widened and never narrowed, so where there is none they cover a little more.
    """
    covered = [judged(fit_joint(sample(60, seed, law)), law)[1].mean() for seed in range(12)]
    assert 0.86 <= np.mean(covered) <= 0.98, covered


def test_one_wild_reading_spoils_nothing() -> None:
    good = sample(60, 3)
    wild = good.ln_mb_s.copy()
    wild[17] -= 1.5
    spoiled = fit_joint(
        Sample(good.workloads, wild, good.noise_weight, good.noise, good.boundaries)
    )
    errors, _ = judged(spoiled)
    assert np.median(errors) < 1.5 * NOISE
    assert spoiled.sample.noise_weight[17] > 25


def strange_below(asked: list[Workload]) -> np.ndarray:
    """A machine whose disk has effects of tens of percent that no sum of times has; memory none."""
    places = Axes.over(spread_out(BOX, 64, 0)).place(asked)
    below = np.array([w.unique_bytes > math.exp(BOUNDARY_LN) for w in asked])
    return np.asarray(
        truth(asked) + below * 0.6 * np.sin(4 * places[:, 1]) * np.cos(4 * places[:, 2])
    )


def test_a_level_that_the_mean_has_no_words_for_neither_spoils_another_nor_is_doubted() -> None:
    for seed in range(3):
        model = fit_joint(sample(84, seed, strange_below))
        asked = spread_out(BOX, 400, 998)
        within = [each for each in asked if each.unique_bytes < 0.7 * math.exp(BOUNDARY_LN)]
        expected = model.expect(within)
        assert np.median(np.abs(expected.ln_mb_s - strange_below(within))) < NOISE
        assert np.median(expected.ln_sd) < 2 * NOISE, "the disk's oddities are no doubt of memory"
        assert np.mean(model.sample.noise_weight > 25) <= 0.05


def test_a_fit_is_the_same_again_and_goes_on_from_an_earlier_one() -> None:
    readings = sample(50, 4)
    first, second = fit_joint(readings), fit_joint(readings)
    assert np.array_equal(first.theta, second.theta)
    more = sample(70, 4)
    errors, _ = judged(fit_joint(more, first))
    assert np.median(errors) < NOISE


def test_a_kernel_and_the_noise_are_learned_from_readings_of_one() -> None:
    random = np.random.default_rng(5)
    places = Places.of_one_level(random.random((150, 5)))
    kernel = Kernel(0.02, 0.0, (0.7,) * 5)
    drawn = random.multivariate_normal(np.zeros(150), kernel.between(places, places))
    beliefs = Beliefs((0.05, 1.0), (0.05, 1.0), (0.7, 0.5), (0.05, 1.0))
    residual = drawn + random.normal(0, 0.1, 150)
    readings = Unexplained(places, 1, residual, np.zeros((150, 150)), np.ones(150))
    found, noise = learn(readings, beliefs)
    assert noise == pytest.approx(0.1, rel=0.3)
    assert 0.005 < found.additive_var < 0.08


def test_a_single_reading_is_a_model_too() -> None:
    expected = fit_joint(sample(1, 8)).expect(spread_out(BOX, 3, 9))
    assert np.isfinite(expected.ln_mb_s).all()
    assert (expected.ln_sd > 0.3).all()


def test_the_embedded_document_holds_all_that_a_prediction_needs() -> None:
    model = fit_joint(sample(40, 6))
    page = model.embedded()
    asked = spread_out(BOX, 20, 7)
    axes = Axes(np.array(page["axes"]["low"]), np.array(page["axes"]["high"]))
    kernel = Kernel(**page["kernel"])
    mean = OperationTime(
        tuple(page["smeared"]), page["ln_unique_reference"], tuple(page["of_writes"])
    )
    fitted, jacobian = mean.ln_mb_s(Requests.of(asked), np.array(page["theta"]))
    edges = np.array(page["noise_edges_bytes"])
    levels = np.searchsorted(edges, [each.unique_bytes for each in asked], side="right")
    there = Places(np.array(page["places"]), np.array(page["levels"]))
    near = kernel.between(Places(axes.place(asked), levels), there)
    scaled = jacobian * np.array(page["prior_sd"])
    known = scaled @ np.array(page["jacobian"]).T + near
    variance = (scaled**2).sum(axis=1) + kernel.variance(levels)
    variance -= ((known @ np.array(page["whitening"]).T) ** 2).sum(axis=1)
    expected = model.expect(asked)
    assert np.allclose(fitted + near @ np.array(page["weights"]), expected.ln_mb_s)
    wider = np.array(page["widening"])[
        [bisect_right(page["noise_edges_bytes"], each.unique_bytes) for each in asked]
    ]
    assert np.allclose(np.sqrt(variance) * wider, expected.ln_sd, rtol=1e-6)


def test_the_kernel_is_learned_with_the_true_gradient(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    places, residual = Places(rng.random((30, 5)), np.arange(30) % 2), 0.1 * rng.normal(size=30)
    seen: list[tuple[np.ndarray, list[float]]] = []
    real = optimize.minimize

    def watched(cost: Callable[..., Any], start: np.ndarray, **options: Any) -> Any:
        at = start + 0.3
        steps = 1e-5 * np.eye(len(at))
        by_steps = [(cost(at + step)[0] - cost(at - step)[0]) / 2e-5 for step in steps]
        seen.append((cost(at)[1], by_steps))
        return real(cost, start, **options)

    monkeypatch.setattr(optimize, "minimize", watched)
    beliefs = Beliefs((0.1, 1.0), (0.05, 1.0), (0.5, 1.0), (0.03, 1.0))
    learn(Unexplained(places, 2, residual, 0.001 * np.eye(30), np.ones(30)), beliefs)
    ((gradient, by_steps),) = seen
    assert gradient == pytest.approx(by_steps, rel=1e-5)
