"""Surface models and D-optimal designs on known truth."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable

import numpy as np
import pytest

from leadline.record.workbench import Factor, Sample
from leadline.studies.workbench.surface import models
from leadline.studies.workbench.surface.design import open_design
from leadline.studies.workbench.surface.grid import (
    SD_LOG_UNKNOWN,
    Grid,
    GridError,
    PeakReadings,
    full_grid,
    sd_log,
)
from leadline.studies.workbench.surface.models import (
    MODELS,
    Belief,
    Model,
    believe,
    choose,
    d_optimal,
    exchange,
    left_out_score,
    log_terms,
    quadratic_log,
    quadratic_raw,
    raw_terms,
)
from leadline.studies.workbench.surface.posterior import Effort, Peaks, Posterior
from surface_fixture import FACTORS, GOAL, bottleneck, lost_peak, peak_of

Truth = Callable[[Sample], float]
GRID = Grid.of(FACTORS)
CORNERS = ((1, 1), (1, 100), (4, 1), (4, 100), (2, 4), (3, 16), (4, 8), (2, 64))


def told(truth: Truth, sd: float = 0.02, seed: int | None = None) -> PeakReadings:
    readings = PeakReadings(GRID)
    for number, (disks, threads) in enumerate(CORNERS):
        sample: Sample = {"disks": disks, "threads": threads}
        own = None if seed is None else 100 * seed + number
        readings.tell(sample, peak_of(truth(sample), sd, seed=own))
    return readings


def errors(belief: Belief, truth: Truth) -> list[float]:
    return [
        math.exp(at) / truth(sample) - 1
        for at, sample in zip(belief.log_rate, GRID.samples, strict=True)
    ]


def raw_quadratic(sample: Sample) -> float:
    disks, threads = float(sample["disks"]), float(sample["threads"])
    return 100 + 80 * disks - 6 * disks**2 + 3 * threads - 0.02 * threads**2 + 0.1 * disks * threads


def test_a_quadratic_finds_a_quadratic_exactly() -> None:
    belief = quadratic_raw(told(raw_quadratic))
    assert max(map(abs, errors(belief, raw_quadratic))) < 1e-9
    assert max(map(abs, errors(quadratic_log(told(raw_quadratic)), raw_quadratic))) > 0.02

    def power(sample: Sample) -> float:
        return 50 * math.pow(float(sample["disks"]), 0.7) * math.pow(float(sample["threads"]), 0.3)

    assert max(map(abs, errors(quadratic_log(told(power)), power))) < 1e-9


def test_six_peaks_for_six_terms_leave_no_word_on_the_error() -> None:
    readings = PeakReadings(GRID)
    for disks, threads in ((1, 1), (1, 100), (4, 1), (4, 100), (2, 16), (3, 64)):
        sample: Sample = {"disks": disks, "threads": threads}
        assert np.isnan(quadratic_raw(readings).log_rate).any()
        readings.tell(sample, peak_of(raw_quadratic(sample)))
    belief = quadratic_raw(readings)
    assert max(map(abs, errors(belief, raw_quadratic))) < 1e-9
    assert belief.covariance is None
    assert belief.error_frac is None


@pytest.mark.long
def test_a_fit_by_least_squares_covers_what_each_cell_has_of_its_own() -> None:
    within: list[bool] = []
    for seed in range(100):
        own = np.random.default_rng(seed).normal(0.0, 0.002, 32)

        def truth(sample: Sample, own: np.ndarray = own) -> float:
            return raw_quadratic(sample) * (1 + float(own[GRID.cell(sample)]))

        readings = PeakReadings(GRID)
        for sample in GRID.samples[::3] + GRID.samples[1::3]:
            readings.tell(sample, peak_of(truth(sample)))
        belief = quadratic_raw(readings)
        off = np.abs(np.log1p(errors(belief, truth))) < belief.reach(0.95) * belief.sd
        within += np.delete(off, readings.cells).tolist()
    assert 0.92 < np.mean(within) < 0.98


def test_a_raw_quadratic_below_nothing_is_cut() -> None:
    belief = quadratic_raw(told(lambda sample: 2000.0 if sample["threads"] == 16 else 20.0))
    assert np.exp(belief.log_rate).min() == pytest.approx(0.01 * 20.0)


@pytest.mark.parametrize("terms_of", [raw_terms, log_terms])
def test_no_random_design_has_a_higher_determinant(terms_of: Callable[[Grid], np.ndarray]) -> None:
    terms = terms_of(GRID)
    for count in (6, 8, 10):
        chosen = d_optimal(terms, count, seed=1)
        assert len(set(chosen)) == count
        found = np.linalg.slogdet(terms[chosen].T @ terms[chosen])[1]
        drawn = random.Random(count)
        for _ in range(3000):
            other = drawn.sample(range(32), count)
            sign, size = np.linalg.slogdet(terms[other].T @ terms[other])
            assert sign <= 0 or size <= found + 1e-9


def test_a_d_optimal_design_is_the_best_there_is() -> None:
    small = Grid.of([Factor(name="x", role="workload", levels=(1, 2, 3, 4, 5, 6), scale="linear")])
    terms = raw_terms(small)
    best = max(
        itertools.combinations(range(6), 4),
        key=lambda chosen: np.linalg.slogdet(terms[list(chosen)].T @ terms[list(chosen)])[1],
    )
    found = d_optimal(terms, 4, seed=3)
    determinants = [np.linalg.det(terms[list(c)].T @ terms[list(c)]) for c in (found, best)]
    assert determinants[0] == pytest.approx(determinants[1])


def test_the_exchange_mends_the_worst_beginning() -> None:
    terms = log_terms(GRID)

    def size(cells: list[int]) -> float:
        return float(np.linalg.slogdet(terms[cells].T @ terms[cells])[1])

    begin = [0, 1, 2, 3, 4, 5, 8, 9, 17]
    found = exchange(terms, list(begin))
    assert size(found) > size(begin) + 1
    for at, new in itertools.product(range(len(found)), set(range(32)) - set(found)):
        assert size([*found[:at], *found[at + 1 :], new]) <= size(found) + 1e-6


def test_every_seed_finds_as_good_a_design() -> None:
    terms = raw_terms(Grid.of([*FACTORS, Factor(name="x", role="workload", levels=(1, 2, 4))]))
    sizes = []
    for seed in range(5):
        chosen = d_optimal(terms, 11, seed)
        sizes.append(np.linalg.slogdet(terms[chosen].T @ terms[chosen])[1])
    assert np.ptp(sizes) < 0.1


def test_a_design_that_cannot_find_the_terms_is_refused() -> None:
    with pytest.raises(GridError, match="has 6 terms; a design of 5 samples"):
        open_design("d-optimal-raw:5", FACTORS, GOAL)
    with pytest.raises(GridError, match="32 cells"):
        open_design("d-optimal-log:33", FACTORS, GOAL)


@pytest.mark.parametrize("name", ["d-optimal-raw:8", "d-optimal-log:8", "d-optimal-raw"])
def test_a_d_optimal_design_maps_a_surface(name: str) -> None:
    design = open_design(name, FACTORS, GOAL)
    while samples := design.ask(3):
        for sample in samples:
            design.tell(sample, peak_of(bottleneck(sample)))
    surface = design.surface()
    assert sum(cell.measured for cell in surface.cells) == 8
    assert surface.model == name[2:].replace("optimal", "quadratic").split(":")[0].replace("d-", "")
    assert surface.cost_s == 8 * 300.0


@pytest.mark.parametrize("model", MODELS[:2], ids=lambda model: model.name)
def test_the_bottleneck_law_finds_a_bottleneck(model: Model) -> None:
    belief = believe(model, told(bottleneck), seed=1)
    assert np.mean(np.abs(errors(belief, bottleneck))) < 0.05


@pytest.mark.long
def test_stated_intervals_of_a_law_cover_surfaces_drawn_from_it() -> None:
    within = []
    for seed in range(40):
        drawn = np.random.default_rng(seed)
        threads, disks, rest = (
            drawn.uniform(40, 150),
            drawn.uniform(60, 200),
            drawn.uniform(300, 900),
        )
        q = math.exp(drawn.normal(1.0, 0.4))

        def law(
            sample: Sample, parts: tuple[float, ...] = (threads, disks, rest), q: float = q
        ) -> float:
            rates = (
                parts[0] * float(sample["threads"]),
                parts[1] * float(sample["disks"]),
                parts[2],
            )
            return float(sum(rate**-q for rate in rates) ** (-1 / q))

        own = {cell: math.exp(0.035 * drawn.normal()) for cell in range(32)}

        def truth(sample: Sample, own: dict[int, float] = own) -> float:
            return law(sample) * own[GRID.cell(sample)]

        belief = believe(MODELS[1], told(truth, 0.04, seed), seed=1)
        off = np.log1p(errors(belief, truth))
        within += (np.abs(off) < belief.reach(0.95) * belief.sd).tolist()
    assert 0.92 < np.mean(within) < 0.985


def test_the_model_that_foresees_best_is_chosen() -> None:
    def valley(sample: Sample) -> float:
        """Best in the middle of both factors: no bottleneck does that."""
        disks, threads = float(sample["disks"]), math.log(float(sample["threads"]))
        return 400 * math.exp(0.5 * (disks - 2.5) ** 2 - 0.2 * (threads - 2.3) ** 2)

    assert choose(told(bottleneck), seed=1).name in ("gaussian-process", "soft-min")
    assert choose(told(valley, 0.01), seed=1).name == "quadratic-log"


def test_each_peak_is_foreseen_from_all_others_and_not_from_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The score is the sum of ln densities of a normal about what the others say."""
    readings = told(bottleneck, sd=0.03)
    asked: list[Peaks] = []

    def foreseen(
        _law: object, _misfit: np.ndarray, peaks: Peaks, seed: int, effort: Effort
    ) -> Posterior:
        asked.append(peaks)
        assert (seed, effort) == (7, models.QUICK)
        return Posterior(np.full(32, math.log(300.0)), np.diag(np.full(32, 0.1**2)), 1.0)

    monkeypatch.setattr(models, "posterior", foreseen)
    score = left_out_score(MODELS[1], readings, 7)
    whole = list(zip(readings.cells, readings.log_rates, readings.sd_logs, strict=True))
    kept = [list(zip(p.cells, p.log_rates, p.sd_logs, strict=True)) for p in asked]
    assert kept == [whole[:at] + whole[at + 1 :] for at in range(len(whole))]
    expected = 0.0
    for log_rate, sd in zip(readings.log_rates, readings.sd_logs, strict=True):
        spread = math.hypot(0.1, sd)
        off = (log_rate - math.log(300.0)) / spread
        expected -= 0.5 * off**2 + math.log(spread * math.sqrt(2 * math.pi))
    assert score == pytest.approx(expected)


def test_the_order_of_the_tellings_plays_no_part() -> None:
    forward, back = PeakReadings(GRID), PeakReadings(GRID)
    samples: list[Sample] = [{"disks": disks, "threads": threads} for disks, threads in CORNERS]
    for sample in samples:
        forward.tell(sample, peak_of(bottleneck(sample)))
    for sample in reversed(samples):
        back.tell(sample, peak_of(bottleneck(sample)))
    one, other = (believe(MODELS[0], readings, seed=2) for readings in (forward, back))
    assert np.array_equal(one.log_rate, other.log_rate)


def test_a_peaks_own_interval_is_its_noise() -> None:
    assert sd_log(peak_of(100.0, 0.03)) == pytest.approx(0.03, rel=0.01)
    assert sd_log(lost_peak()) == SD_LOG_UNKNOWN
    sure, unsure = told(bottleneck), told(bottleneck)
    off: Sample = {"disks": 4, "threads": 100}
    sure.tell(off, peak_of(250.0, 0.01))
    unsure.tell(off, peak_of(250.0, 0.2))
    cell = GRID.cell(off)
    rates = [math.exp(believe(MODELS[1], r, 1).log_rate[cell]) for r in (sure, unsure)]
    assert rates[0] < 290 < rates[1]


def test_categories_shift_the_surface() -> None:
    kind = Factor(name="fs", role="configuration", levels=("ext4", "xfs"), scale="category")
    grid = Grid.of([*FACTORS, kind])
    readings = PeakReadings(grid)
    for number, sample in enumerate(full_grid(grid.factors)):
        if number % 7 == 0:
            factor = 1.5 if sample["fs"] == "xfs" else 1.0
            readings.tell(sample, peak_of(bottleneck(sample) * factor))
    belief = believe(MODELS[1], readings, seed=1)
    gain = [belief.log_rate[cell + 1] - belief.log_rate[cell] for cell in range(0, 64, 2)]
    assert np.mean(gain) == pytest.approx(math.log(1.5), abs=0.05)
