"""The model behind `curve`: against simulated truth, and as a posterior.

Closed forms are tried where they are: in crates/stats/src/belief.
"""

from __future__ import annotations

import math
from typing import Any

import msgspec
import numpy as np
import pytest

from leadline.record.workbench import (
    Goal,
    SimulatedServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
)
from leadline.servers import run_trial
from leadline.studies.workbench.belief import (
    COUNT,
    DIMENSIONS,
    Posterior,
    Servers,
    log_peak,
    toggled,
    unpack,
)
from leadline.studies.workbench.reading import Aim, aims, read
from proving.peak_truth import compute_truth

MEAN = Aim(0.04, None)
P95 = Aim(0.12, 0.05)


def servers_of(workers: int, service_s: float, variability: float, **more: float) -> Servers:
    values = {
        "capacity": workers / service_s,
        "base_s": service_s,
        "variance_per_s": 2 * service_s * variability / workers,
        "stall_rate_per_s": 0.0,
        "stall_s": 0.1,
        "variability": variability,
        "idle_power": math.sqrt(2 * (workers + 1)) - 2,
        "wander": 1e-3,
        "memory_s": 10.0,
        "between": 1e-3,
        "retrograde": 0.0,
        "cold": 0.0,
        "warming_s": 1.0,
        "tail": 1.0,
        "slow_share": 0.5,
        "slow_log": 0.0,
    }
    return Servers(**{name: np.array([value]) for name, value in (values | more).items()})


SIMULATED: list[tuple[int, dict[str, Any], float]] = [
    (1, {}, 99.953),
    (4, {"wander": 0.08, "memory_s": 30.0}, 422.23),
    (16, {"between": 0.03}, 1884.1),
    (2, {"cold": 0.8, "warming_s": 4.0}, 201.51),
    (4, {"slow_share": 0.4, "slow_log": math.log(1.3)}, 371.12),
]
"""Workers, what troubles them, and the simulated server's true peak, as the long test finds it."""


@pytest.mark.parametrize(("workers", "trouble", "true_per_s"), SIMULATED)
def test_the_peak_is_that_of_the_simulated_server(
    workers: int, trouble: dict[str, Any], true_per_s: float
) -> None:
    """Nothing is fitted: the server's own numbers give its peak to 6%."""
    servers = servers_of(workers, 0.008, 1.0, **trouble)
    found = math.exp(log_peak(servers, MEAN, 180.0, 5.0)[0])
    assert found == pytest.approx(true_per_s, rel=0.06)


@pytest.mark.long
@pytest.mark.parametrize(("workers", "trouble", "true_per_s"), SIMULATED)
def test_the_truths_of_simulated_servers_are_still_what_they_were(
    workers: int, trouble: dict[str, Any], true_per_s: float
) -> None:
    system = {
        "workers": workers,
        "service_ms": 8.0,
        "service": {"kind": "exponential"},
        "drift_sd": trouble.get("wander", 1e-3),
        "drift_memory_s": trouble.get("memory_s", 10.0),
        "between_trials_sd": trouble.get("between", 1e-3),
        "cold_frac": trouble.get("cold", 0.0),
        "cold_s": trouble.get("warming_s", 1.0),
        "slow_mode_share": trouble.get("slow_share", 0.0),
        "slow_mode_factor": math.exp(trouble.get("slow_log", 0.0)),
    }
    goal = Goal(threshold=Threshold(mean_ms=40.0))
    assert compute_truth(system, goal, se_frac=0.01).rate_per_s == pytest.approx(
        true_per_s, rel=1e-4
    )


def test_short_trials_read_the_peak_high_and_the_model_knows() -> None:
    servers = servers_of(8, 0.008, 1.0, wander=0.08, memory_s=30.0)
    short, long = (math.exp(log_peak(servers, MEAN, s, 5.0)[0]) for s in (20.0, 180.0))
    assert 1.01 < short / long < 1.1


def trial(system: dict[str, Any], rate_per_s: float, seed: int, seconds: float = 30.0) -> Trial:
    return run_trial(
        TrialOrder(
            server=SimulatedServer(system=system),
            sample={},
            threshold=Threshold(mean_ms=40.0, percentile=0.95, limit_ms=120.0),
            request=TrialRequest(rate_per_s=rate_per_s, seconds=seconds),
            order=0,
            seed=seed,
        )
    )


QUEUE: dict[str, Any] = {"workers": 1, "service_ms": 4.0, "service": {"kind": "exponential"}}


def test_both_thresholds_are_read() -> None:
    mean, percentile = aims(Threshold(mean_ms=40.0, percentile=0.95, limit_ms=120.0))
    assert mean == MEAN
    assert percentile.limit_s == pytest.approx(0.12)
    assert percentile.over_frac == pytest.approx(0.05)
    assert percentile.gain == pytest.approx(math.log(20))


def test_a_percentile_is_read_from_the_share_of_slow_responses() -> None:
    # M/M/1 at 225/s: responses are exponential with mean 40 ms, so the 95th percentile is 119.8 ms
    reading = read(trial(QUEUE, 225.0, 1, 3000.0), P95)
    assert reading is not None
    assert math.exp(reading.parts[-1].log_s) == pytest.approx(0.1198, rel=0.15)


def test_an_overload_is_read_as_its_completions() -> None:
    reading = read(trial(QUEUE, 400.0, 1), MEAN)
    assert reading is not None
    assert reading.overloaded
    assert reading.busy is not None
    assert math.exp(float(np.mean(reading.busy.log_rates))) == pytest.approx(250.0, rel=0.05)
    below = read(trial(QUEUE, 150.0, 1), MEAN)
    assert below is not None
    assert below.busy is None


def test_a_trial_without_an_answer_says_nothing() -> None:
    lost = msgspec.structs.replace(trial(QUEUE, 150.0, 1), measured=None)
    assert read(lost, MEAN) is None


def learnt(system: dict[str, Any], rates: list[float], seed: int = 1) -> Posterior:
    posterior = Posterior(MEAN, 180.0, seed, None)
    for order, rate in enumerate(rates):
        reading = read(trial(system, rate, 100 * seed + order), MEAN)
        assert reading is not None
        posterior.learn(reading)
    return posterior


def test_an_overload_and_a_trial_near_the_peak_give_it() -> None:
    posterior = learnt(QUEUE, [400.0, 220.0])
    low, middle, high = np.exp(np.quantile(posterior.log_peak, [0.025, 0.5, 0.975]))
    assert low < 225.0 < high
    assert middle == pytest.approx(225.0, rel=0.08)
    assert math.exp(float(np.median(posterior.log_capacity))) == pytest.approx(250.0, rel=0.1)


def test_a_seed_gives_the_same_posterior() -> None:
    assert np.array_equal(learnt(QUEUE, [400.0]).log_peak, learnt(QUEUE, [400.0]).log_peak)


def test_two_modes_show_when_equal_trials_differ() -> None:
    """At 80/s a mode that is 2.5 times as slow has 25 times the response."""
    rates = [400.0, *[85.0] * 6]
    two = learnt(QUEUE | {"slow_mode_share": 0.5, "slow_mode_factor": 2.5}, rates, seed=3)
    one = learnt(QUEUE, rates, seed=3)
    assert two.two_modes > 0.8
    assert one.two_modes < 0.3


def test_a_second_mode_is_offered_without_a_bias() -> None:
    """Without any trial, offers taken as the prior has them leave the prior as it is."""
    random = np.random.default_rng(1)
    normal = random.standard_normal((20_000, DIMENSIONS))
    before = np.mean(unpack(normal, 0.04).slow_log > 0)
    for _ in range(5):
        moved, gain = toggled(normal, random)
        assert np.mean(moved[:, 0] == normal[:, 0]) == pytest.approx(0.5, abs=0.02)
        taken = np.log(random.random(len(normal))) < gain
        normal = np.where(taken[:, None], moved, normal)
    after = unpack(normal, 0.04)
    assert np.mean(after.slow_log > 0) == pytest.approx(before, abs=0.01)
    concurrency = normal[:, 0]
    assert concurrency.mean() == pytest.approx(0.0, abs=0.03)
    assert concurrency.std() == pytest.approx(1.0, abs=0.03)


def test_moves_keep_to_what_is_known_beforehand() -> None:
    """Sixty sweeps under trials that say nothing leave the particles standard normal.

    Without the prior they would be a random walk, four times as wide after twenty sweeps.
    """
    posterior = Posterior(MEAN, 180.0, 1, None)
    for _ in range(10):
        posterior._let_in(lambda particles: np.zeros(len(particles)))
    assert posterior._particles.shape == (COUNT, DIMENSIONS)
    assert posterior._particles.std() == pytest.approx(1.0, abs=0.05)
    assert posterior._particles.mean() == pytest.approx(0.0, abs=0.05)
    assert np.abs(posterior._particles.std(axis=0) - 1).max() < 0.2


def test_moves_follow_what_a_trial_says() -> None:
    """One number read with an error of 0.5 as 2 is 1.6 with an sd of 0.447; the rest is as ever."""

    def said(particles: np.ndarray) -> np.ndarray:
        return np.asarray(-0.5 * ((particles[:, 3] - 2.0) / 0.5) ** 2)

    posterior = Posterior(MEAN, 180.0, 1, None)
    posterior._let_in(said)
    posterior._let_in(lambda particles: np.zeros(len(particles)))
    own = posterior._particles[:, 3]
    others = np.delete(posterior._particles, 3, axis=1)
    assert own.mean() == pytest.approx(1.6, abs=0.1)
    assert own.std() == pytest.approx(math.sqrt(0.2), abs=0.06)
    assert others.std() == pytest.approx(1.0, abs=0.06)
    assert others.mean() == pytest.approx(0.0, abs=0.08)


def test_the_models_own_error_is_part_of_the_peak() -> None:
    """Of one server known exactly, the peak is 0.8% higher than the model's, with an sd of 2%."""
    posterior = Posterior(MEAN, 180.0, 1, None)
    posterior._warm_up_s = 5.0
    posterior._particles = np.zeros((COUNT, DIMENSIONS))
    model = log_peak(unpack(np.zeros((1, DIMENSIONS)), MEAN.limit_s), MEAN, 180.0, 5.0)[0]
    off = posterior.log_peak - model
    assert off.mean() == pytest.approx(0.008, abs=0.003)
    assert off.std() == pytest.approx(0.02, abs=0.002)
    assert np.all(np.diff(off) >= 0), "sorted: of two thresholds the lower counts by quantile"
