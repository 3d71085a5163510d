"""The model behind `curve`, number by number, on a few servers and readings that are written out.

The figures of docs/concepts/peak-rate.md and curve.md are those of this very model. A change that
shows here changes them: run `bench/peak.py` again, and write down both.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from leadline.record.workbench import Prior
from leadline.studies.workbench import belief as particles
from leadline.studies.workbench.belief import (
    DIMENSIONS,
    NAMES,
    Posterior,
    Servers,
    log_likelihood,
    log_peak,
    toggled,
    unpack,
)
from leadline.studies.workbench.reading import Aim, Busy, Part, Reading

AIMS = {"mean": Aim(0.04, None), "percentile": Aim(0.12, 0.05)}
UNUSUAL: dict[str, dict[str, float]] = {
    "usual": {},
    "one fast worker": {"concurrency": -1.2, "base": -1.0},
    "speed that wanders": {"wander": 1.5, "memory": 1.0, "between": 1.0},
    "cold and retrograde": {"cold": 1.5, "warming": 1.0, "retrograde": 1.5},
    "two modes": {"two_modes": 2.0, "slow_share": 0.5, "slow_factor": 1.0},
    "long tails": {"variability": 1.5, "tail": 1.0},
    "beyond all bounds": {"concurrency": 9.0, "cold": 9.0},
}


def servers(limit_s: float = 0.04) -> Servers:
    """The servers of `UNUSUAL`, each unusual in one way."""
    normal = np.zeros((len(UNUSUAL), DIMENSIONS))
    for row, numbers in enumerate(UNUSUAL.values()):
        for name, value in numbers.items():
            normal[row, NAMES.index(name)] = value
    return unpack(normal, limit_s)


def reading(rate_per_s: float, seconds: float, *means_s: float, **other: object) -> Reading:
    """A trial whose window was read in thirds, after 5 s of warm-up."""
    third = seconds / 3
    parts = tuple(
        Part(
            5.0 + third * at, 5.0 + third * (at + 1), float(np.log(mean)), 1 / (rate_per_s * third)
        )
        for at, mean in enumerate(means_s)
    )
    told = {"abort_above_s": None, "stalls": None, "busy": None, "overloaded": False}
    return Reading(rate_per_s, 5.0, seconds, parts, **(told | other))  # type: ignore[arg-type]


def busy() -> Busy:
    return Busy(7.0, 2.5, np.log([455.0, 470.0, 462.0, 490.0, 481.0]))


READINGS = {
    "idle": reading(50.0, 10.0, 0.009, 0.008, 0.0085),
    "near the peak": reading(380.0, 60.0, 0.021, 0.035, 0.029),
    "late": reading(440.0, 30.0, 0.05, 0.9, 1.8),
    "given up": reading(420.0, 12.0, abort_above_s=0.8),
    "overloaded": reading(600.0, 20.0, 2.0, 4.0, 6.0, busy=busy(), overloaded=True),
}


def likelihoods(name: str, aim: str = "mean") -> np.ndarray:
    return log_likelihood(READINGS[name], servers(AIMS[aim].limit_s), AIMS[aim])


def peaks(aim: str) -> np.ndarray:
    return log_peak(servers(AIMS[aim].limit_s), AIMS[aim], 180.0, 5.0)


def unpacked() -> dict[str, np.ndarray]:
    found = servers()
    return {name: getattr(found, name) for name in Servers.__dataclass_fields__}


LIKELIHOODS = {
    "idle": [5.6354, -7.3208, 5.6364, 5.517, 4.6812, 4.2289, 5.71],
    "near the peak": [-10.995, -56.3988, -0.3958, -21.6507, -11.9492, 2.6454, -26.6885],
    "late": [-14.8371, -34.0903, -5.3698, -19.1994, -15.7913, -10.6179, -32.584],
    "given up": [-4.6052, 0.0, -3.4632, -0.8838, -0.4801, -4.6052, -4.6052],
    "overloaded": [13.1931, -31.6937, 12.4756, 13.9728, 12.2389, 11.1893, -85.0198],
}
LOG_PEAKS = {
    "mean": [6.12237, 5.07027, 5.9423, 5.90621, 5.56608, 6.01058, 13.66709],
    "percentile": [4.86858, 3.75514, 4.77737, 4.73121, 4.14796, 4.45328, 12.52046],
}


@pytest.mark.parametrize("name", READINGS)
def test_a_trial_is_as_probable_as_it_was(name: str) -> None:
    assert likelihoods(name) == pytest.approx(LIKELIHOODS[name], abs=1e-3)


@pytest.mark.parametrize("aim", AIMS)
def test_the_peak_of_a_server_is_where_it_was(aim: str) -> None:
    assert peaks(aim) == pytest.approx(LOG_PEAKS[aim], abs=1e-4)


def test_a_server_in_the_middle_of_what_is_believed() -> None:
    """Every number at its median: four requests at once, a fifth of the threshold each."""
    first = {name: float(values[0]) for name, values in unpacked().items()}
    assert first == pytest.approx(
        {
            "capacity": 500.0,
            "base_s": 0.008,
            "variance_per_s": 0.0054,
            "stall_rate_per_s": 0.0,
            "stall_s": 0.1,
            "variability": 1.35,
            "idle_power": 1.162278,
            "wander": 0.035,
            "memory_s": 18.0,
            "between": 0.012,
            "retrograde": 0.02,
            "cold": 0.1,
            "warming_s": 2.5,
            "tail": 0.75,
            "slow_share": 0.5,
            "slow_log": 0.0,
        },
        abs=1e-6,
    )


def test_servers_that_are_unusual_in_one_way() -> None:
    found = unpacked()
    one_fast, wanders, cold, two, tails, beyond = range(1, 7)
    assert found["capacity"][one_fast] == pytest.approx(180.29747)
    assert found["idle_power"][one_fast] == 0.0, "fewer than one worker is one"
    assert found["variance_per_s"][one_fast] == pytest.approx(0.008782, abs=1e-6)
    assert found["wander"][wanders] == pytest.approx(0.116204, abs=1e-6)
    assert found["memory_s"][wanders] == pytest.approx(40.059737)
    assert found["between"][wanders] == pytest.approx(0.026706, abs=1e-6)
    assert found["retrograde"][cold] == pytest.approx(0.189755, abs=1e-6)
    assert found["cold"][cold] == pytest.approx(0.948774, abs=1e-6)
    assert found["warming_s"][cold] == pytest.approx(4.555297)
    assert found["slow_share"][two] == pytest.approx(0.614877, abs=1e-6)
    assert found["slow_log"][two] == pytest.approx(0.546636, abs=1e-6)
    assert np.count_nonzero(found["slow_log"]) == 1
    assert found["variability"][tails] == pytest.approx(4.482158)
    assert found["tail"][tails] == pytest.approx(1.118869)
    assert found["capacity"][beyond] == pytest.approx(4 * np.exp(1.6 * 5) / 0.008)
    assert found["variance_per_s"][beyond] == pytest.approx(2 * 0.008 * 1.35 / 200)
    assert found["cold"][beyond] == 3.0


@pytest.mark.parametrize(("number", "two"), [(1.19, False), (1.21, True)])
def test_one_server_in_nine_has_two_modes_beforehand(number: float, two: bool) -> None:
    normal = np.zeros((1, DIMENSIONS))
    normal[0, NAMES.index("two_modes")] = number
    assert (unpack(normal, 0.04).slow_log[0] > 0) is np.bool_(two)


def test_a_slow_mode_is_a_fifth_of_the_trials_at_least_and_four_fifths_at_most() -> None:
    normal = np.zeros((2, DIMENSIONS))
    normal[:, NAMES.index("slow_share")] = [-9.0, 9.0]
    assert unpack(normal, 0.04).slow_share == pytest.approx([0.2, 0.8], abs=1e-6)


def a_posterior() -> Posterior:
    return Posterior(AIMS["mean"], 180.0, 3, None)


def test_what_is_kept_of_the_particles_is_theirs_after_every_trial() -> None:
    """However they moved: the likelihood of all trials, that of the new one included."""
    posterior = a_posterior()
    before = posterior._particles.copy()
    posterior._let_in(lambda particles: -0.5 * ((particles[:, 0] - 2) / 0.1) ** 2)
    posterior._let_in(lambda particles: -0.5 * ((particles[:, 1] + 1) / 0.3) ** 2)
    assert posterior._likelihood == pytest.approx(posterior._of_old(posterior._particles))
    assert len(posterior._terms) == 2
    assert not np.any(np.all(np.isclose(posterior._particles, before), axis=1)), "all moved"
    first, second = posterior._particles[:, 0], posterior._particles[:, 1]
    assert first.mean() == pytest.approx(2 / 1.01, abs=0.03)
    assert first.std() == pytest.approx(0.0995, rel=0.15)
    assert second.mean() == pytest.approx(-1 / 1.09, abs=0.06)
    assert second.std() == pytest.approx(0.2873, rel=0.15)


def test_a_trial_is_let_in_so_far_that_half_of_the_particles_count() -> None:
    posterior = a_posterior()
    new = np.linspace(-40.0, 0.0, 500)
    step = posterior._step(new, 1.0)
    weights = np.exp(step * new)
    assert weights.sum() ** 2 / (weights**2).sum() == pytest.approx(250, rel=1e-3)
    assert posterior._step(new - 2000.0, 1.0) == pytest.approx(step), "only differences count"
    assert posterior._step(new / 1e3, 1.0) == 1.0
    assert posterior._step(new / 1e3, 0.3) == 0.3
    assert posterior._step(np.append(np.full(499, -1e12), 0.0), 1.0) == 1e-6


def test_particles_are_drawn_as_often_as_they_weigh() -> None:
    posterior = a_posterior()
    weights = np.arange(1.0, 501.0)
    chosen = posterior._resample(np.log(weights) - 7700.0)
    counts = np.bincount(chosen, minlength=500)
    expected = 500 * weights / weights.sum()
    assert counts.sum() == 500
    assert np.all(np.abs(counts - expected) < 1)


def test_the_last_particle_is_drawn_where_sums_round_beyond_it() -> None:
    """Added one by one the weights come to less than all at once, and the draw is the last."""
    drawn = (np.random.default_rng(seed).random(particles.COUNT) for seed in range(1000))
    logs = (np.log(weights / weights.max()) for weights in drawn)
    beyond = next(log for log in logs if np.exp(log).sum() > np.cumsum(np.exp(log))[-1])
    posterior = a_posterior()
    posterior._random = SimpleNamespace(random=lambda: np.nextafter(1.0, 0.0))  # type: ignore[assignment]
    assert posterior._resample(beyond).max() == particles.COUNT - 1


def test_steps_follow_the_differences_of_two_others() -> None:
    """2.38 / sqrt(2 d) of a difference whose variance is twice that of the particles."""
    posterior = a_posterior()
    for sweep, scale in ((0, 1.0), (1, 0.4), (3, 0.4), (4, 1.0)):
        moved, _ = posterior._stepped(particles._EVEN, particles._ODD, sweep)
        step = moved - posterior._particles[::2]
        sd = np.hypot(scale * 2.38 / np.sqrt(2 * DIMENSIONS) * np.sqrt(2), 0.02)
        assert step.std() == pytest.approx(sd, rel=0.05), sweep


def test_half_of_the_particles_stand_still_while_the_others_step() -> None:
    """Or a step and its way back are not as likely: it depends on who has moved already."""
    posterior = a_posterior()
    posterior._particles[1::2] = 1.0
    moved, gain = posterior._stepped(particles._EVEN, particles._ODD, 0)
    own = posterior._particles[::2]
    assert (moved - own).std() == pytest.approx(0.02, rel=0.1), "no two of the others differ"
    assert gain == pytest.approx(0.5 * (own**2 - moved**2).sum(axis=1))
    seen: list[int] = []

    def said(each: np.ndarray) -> np.ndarray:
        seen.append(len(each))
        return np.where(np.arange(len(each)) < 10, np.inf, -np.inf)

    before = posterior._particles.copy()
    posterior._move(said, 1.0, np.zeros(particles.COUNT), 0)
    assert seen == [particles.COUNT // 2] * 2
    changed = np.flatnonzero((posterior._particles != before).any(axis=1))
    assert changed.tolist() == list(range(20)), "the first ten of either half"


@pytest.mark.parametrize(("stated", "sd"), [(None, 0.25), (0.05, 0.1), (0.11, 0.11), (0.3, 0.3)])
def test_a_word_beforehand_is_of_a_peak_a_tenth_below_the_capacity(
    stated: float | None, sd: float
) -> None:
    """The server in the middle completes 500/s: at a word of 500 it is 0.1 below what to expect."""
    normal = np.zeros((1, DIMENSIONS))
    off = np.log1p((0.1 / sd) ** 2 / 5)
    told = particles._seed_term(Prior(rate_per_s=500.0, sd_log=stated), 0.04, normal)
    assert told == pytest.approx([-3.0 * off - np.log(sd)])


def test_particles_are_moved_three_times_between_and_six_times_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    posterior = a_posterior()
    moves: list[tuple[float, int]] = []

    def moved(_: object, degree: float, new: np.ndarray, sweep: int) -> np.ndarray:
        moves.append((round(degree, 6), sweep))
        return new

    monkeypatch.setattr(posterior, "_step", lambda _, most: min(0.4, most))
    monkeypatch.setattr(posterior, "_move", moved)
    posterior._let_in(lambda particles: np.zeros(len(particles)))
    between = [(degree, sweep) for degree in (0.4, 0.8) for sweep in range(3)]
    assert moves == [*between, *((1.0, sweep) for sweep in range(6))]


def test_every_third_move_offers_a_second_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    posterior = a_posterior()
    offered: list[int] = []

    def toggled(normal: np.ndarray, _: object) -> tuple[np.ndarray, np.ndarray]:
        offered.append(sweep)
        return normal, np.zeros(len(normal))

    monkeypatch.setattr(particles, "toggled", toggled)
    for sweep in range(7):
        posterior._move(lambda each: np.zeros(len(each)), 1.0, np.zeros(particles.COUNT), sweep)
    assert offered == [2, 5]


def test_a_second_mode_leaves_one_of_the_two_speeds_where_it_was() -> None:
    """What the trials saw may have been either: the capacity, or that of the slow mode."""
    normal = np.random.default_rng(2).standard_normal((2000, DIMENSIONS))
    moved, _ = toggled(normal, np.random.default_rng(3))
    before, after = unpack(normal, 0.04), unpack(moved, 0.04)
    had = before.slow_log > 0
    assert np.all((after.slow_log > 0) != had), "each gets what it had not"
    one, two = np.where(had, after.capacity, before.capacity), np.where(had, 1, 0)
    fast = np.where(two, before.capacity, after.capacity)
    slow = np.where(two, before.capacity, after.capacity)
    slow = slow / np.exp(np.where(two, before.slow_log, after.slow_log))
    inside = np.abs(moved[:, 0]) < 5
    as_fast, as_slow = (np.isclose(one, each, rtol=1e-9)[inside] for each in (fast, slow))
    assert np.all(as_fast | as_slow)
    assert as_fast.mean() == pytest.approx(0.5, abs=0.05)
    others = np.delete(np.arange(DIMENSIONS), [0, NAMES.index("two_modes")])
    assert np.array_equal(moved[:, others], normal[:, others])
