"""What a law and a few peaks say of all cells, against closed forms; and the laws themselves."""

from __future__ import annotations

import math

import numpy as np
import pytest

from leadline.record.workbench import Factor
from leadline.studies.workbench.surface.design import _as_if_known, _expected_cost, _learned
from leadline.studies.workbench.surface.grid import Grid, PeakReadings
from leadline.studies.workbench.surface.models import smooth
from leadline.studies.workbench.surface.posterior import (
    CATEGORY_SD_LOG,
    CROWDING,
    SHARP,
    SOFT,
    Effort,
    Peaks,
    QuadraticLog,
    SoftMin,
    _Mode,
    _weights,
    posterior,
    prior_covariance,
)
from surface_fixture import FACTORS, bottleneck, peak_of

GRID = Grid.of(FACTORS)


class Plane:
    """ln rate = 6 + terms · numbers: a law that is linear, so that its posterior is a formula."""

    size = 3
    misfit_sd = (math.log(0.05), 0.0)

    def __init__(self) -> None:
        places = GRID.places()
        self.terms = np.column_stack([np.ones(len(GRID)), 0.5 * places[:, 0], 0.3 * places[:, 1]])

    def log_rates(self, numbers: np.ndarray) -> np.ndarray:
        return np.asarray(6.0 + numbers @ self.terms.T)


@pytest.mark.parametrize("alike", [np.eye(32), smooth(GRID)], ids=["own", "smooth"])
def test_a_linear_law_has_the_posterior_of_a_normal(alike: np.ndarray) -> None:
    """Of cells that are normal together, given some of them: to what 20,000 draws can tell."""
    law = Plane()
    cells = [0, 7, 12, 24, 31]
    peaks = Peaks(cells, np.array([6.3, 6.1, 5.8, 6.6, 6.4]), np.full(5, 0.04))
    found = posterior(law, alike, peaks, seed=1, effort=Effort(starts=2, draws=20_000))
    prior = law.terms @ law.terms.T + 0.05**2 * alike
    among = prior[np.ix_(cells, cells)] + 0.04**2 * np.eye(5)
    pull = prior[:, cells] @ np.linalg.inv(among)
    mean = 6.0 + pull @ (peaks.log_rates - 6.0)
    covariance = prior - pull @ prior[cells]
    assert found.log_rate == pytest.approx(mean, abs=0.003)
    assert np.abs(found.covariance - covariance).max() < 0.03 * covariance.max()
    assert 2_000 < found.effective_draws <= 20_000


class Uncertain(Plane):
    """A plane that is off by an amount which itself is not known."""

    misfit_sd = (math.log(0.05), 0.5)


def test_how_far_a_law_is_off_is_learned_from_the_peaks() -> None:
    """Peaks that scatter by 0.1: a sum over misfits, each weighed by how it foresees them."""
    law, alike, cells = Uncertain(), np.eye(32), [0, 7, 12, 24, 31, 3, 17, 21]
    logs = 6.0 + np.array([0.15, -0.05, 0.05, -0.05, 0.025, -0.1, 0.1, -0.075])
    peaks = Peaks(cells, logs, np.full(8, 0.04))
    found = posterior(law, alike, peaks, seed=1, effort=Effort(starts=2, draws=20_000))
    plane, off = law.terms @ law.terms.T, logs - 6.0
    log_weights, means, spreads = [], [], []
    steps = np.linspace(-4.0, 4.0, 81)
    for step in steps:
        prior = plane + np.exp(2 * (math.log(0.05) + 0.5 * step)) * alike
        among = prior[np.ix_(cells, cells)] + 0.04**2 * np.eye(8)
        pull = prior[:, cells] @ np.linalg.inv(among)
        fit = -0.5 * (off @ np.linalg.solve(among, off) + np.linalg.slogdet(among)[1])
        log_weights.append(fit - 0.5 * step**2)
        means.append(6.0 + pull @ off)
        spreads.append(prior - pull @ prior[cells])
    weights = np.exp(np.array(log_weights) - max(log_weights))
    weights /= weights.sum()
    mean = weights @ np.array(means)
    apart = np.array(means) - mean
    covariance = np.einsum("s,sij->ij", weights, np.array(spreads))
    covariance += np.einsum("s,si,sj->ij", weights, apart, apart)
    assert found.log_rate == pytest.approx(mean, abs=0.005)
    assert np.diag(found.covariance) == pytest.approx(np.diag(covariance), rel=0.05)


def test_weights_add_up_and_none_outweighs_the_rest() -> None:
    """The largest is cut to the mean times the root of their number, then all are scaled."""
    found = _weights(np.array([50.0, 0.0, 0.0, 0.0]))
    assert found.sum() == pytest.approx(1.0)
    assert found[0] == pytest.approx(1.0)
    even = _weights(np.log(np.array([4.0, 2.0, 1.0, 1.0])) + 300.0)
    assert even == pytest.approx([0.5, 0.25, 0.125, 0.125])
    many = _weights(np.append(0.0, np.full(99, math.log(0.001))))
    whole = 1.0 + 0.099
    assert many[0] == pytest.approx((whole / 10) / (whole / 10 + 0.099), rel=1e-9)


@pytest.mark.parametrize("wide", [2.0, 7.0])
def test_a_wider_mode_is_less_dense_at_its_middle_by_what_it_is_wider(wide: float) -> None:
    """A density has one mass: twice as wide in each of two directions, it is a quarter as high."""
    at = np.array([3.0, -1.0])
    narrow, broad = (_Mode(at, width * np.eye(2), 0.0) for width in (1.0, wide))
    higher = narrow.log_density(at[None, :]) - broad.log_density(at[None, :])
    assert higher == pytest.approx(2 * math.log(wide))


def soft_least(q: float, *rates: float) -> float:
    return float(sum(rate**-q for rate in rates) ** (-1 / q))


def test_the_bottleneck_law_is_its_formula() -> None:
    law = SoftMin(GRID, np.array([5.0, 6.0]))
    numbers = np.array([[0.3, -0.2, 0.5, 0.1, 0.4, -1.0, 0.7, -0.6, 0.2], np.zeros(9)])
    found = law.log_rates(numbers)
    assert (law.size, found.shape) == (9, (2, 32))
    for row, given in enumerate(numbers):
        soft = math.exp(SOFT[0] + SOFT[1] * given[0])
        sharp = math.exp(SHARP[0] + SHARP[1] * given[1])
        for cell, sample in enumerate(GRID.samples):
            disks, threads = float(sample["disks"]), float(sample["threads"])
            rest = 6.0 + 0.3 + 0.7 * given[2]
            for share, own in (((disks - 1) / 3, given[5]), ((threads - 1) / 99, given[8])):
                rest -= math.log1p(math.exp(CROWDING[0] + CROWDING[1] * own) * share)
            logs = []
            for level, most, own in ((disks, 4, given[3:5]), (threads, 100, given[6:8])):
                reach = math.log(most)
                base = 6.0 - 0.5 * reach + (0.7 + 0.5 * reach) * own[0]
                logs.append(base + (1.0 + 0.12 * own[1]) * math.log(level))
            hard = soft_least(sharp, math.exp(logs[0]), math.exp(rest))
            rate = soft_least(soft, math.exp(logs[1]), hard)
            assert found[row, cell] == pytest.approx(math.log(rate), abs=1e-9), sample


def test_the_quadratic_law_is_its_formula_and_categories_are_centred() -> None:
    kind = Factor(name="fs", role="configuration", levels=("a", "b", "c"), scale="category")
    load = Factor(name="load", role="workload", levels=(0, 5, 10), scale="linear")
    grid = Grid.of([load, Factor(name="n", role="resource", levels=(1, 8)), kind])
    law = QuadraticLog(grid, np.array([4.0, 6.0]))
    numbers = np.linspace(-0.9, 1.1, law.size)[None, :]
    found = law.log_rates(numbers)[0]
    constant, of_load, of_n, bend, pair, *kinds = numbers[0]
    for cell, sample in enumerate(grid.samples):
        x = float(sample["load"]) / 10 - 0.5
        y = {1: -0.5, 8: 0.5}[int(sample["n"])]
        linear = constant + 2 * (of_load * x + of_n * y + bend * x * x + pair * x * y)
        shift = CATEGORY_SD_LOG * sum(
            own * ((sample["fs"] == level) - 1 / 3)
            for own, level in zip(kinds, kind.levels, strict=False)
        )
        assert found[cell] == pytest.approx(5.0 + linear + shift), sample


def test_before_any_peak_the_laws_own_priors_count_and_the_level_is_open() -> None:
    law = SoftMin(GRID, np.zeros(1))
    drawn = law.log_rates(np.random.default_rng(1).standard_normal((4000, law.size)))
    off = drawn - drawn.mean(axis=0)
    assert prior_covariance(GRID, 1) == pytest.approx(off.T @ off / 3999 + 1.0)


def test_a_peak_takes_out_of_all_cells_what_it_is_said_to() -> None:
    """Conditioning on one cell, as the formula has it; the sum of what it takes is the trace's."""
    covariance = prior_covariance(GRID, 1)
    learned = _learned(covariance, 0.1)
    for cell in (0, 13, 31):
        after = _as_if_known(covariance, cell, 0.1)
        assert np.trace(covariance) - np.trace(after) == pytest.approx(learned[cell])
        own = covariance[cell, cell]
        assert after[cell, cell] == pytest.approx(own * 0.01 / (own + 0.01))


def test_what_a_search_costs_is_expected_to_be_as_its_neighbours_cost() -> None:
    readings = PeakReadings(GRID)
    assert _expected_cost(readings) == pytest.approx(np.ones(32))
    for cell in (0, 31):
        sample = GRID.samples[cell]
        cost_s = 100.0 if cell == 0 else 400.0
        readings.tell(sample, peak_of(bottleneck(sample), cost_s=cost_s))
    found = _expected_cost(readings)
    places = GRID.places()
    apart = float(((places[0] - places[31]) ** 2).sum())
    alike = 0.16 * math.exp(-apart / 0.5)
    pull = (0.16 - alike) / (0.32 - alike)
    assert found[0] == pytest.approx(0.5**pull)
    assert found[31] == pytest.approx(2.0**pull)
    assert found[0] < found[1] < found[30] < found[31]


def test_laws_are_believed_to_be_off_by_what_they_were_on_whole_grids() -> None:
    """3% for bottlenecks, 8% for a quadratic (docs/concepts/surfaces.md)."""
    assert SoftMin.misfit_sd == pytest.approx((math.log(0.03), 0.5))
    assert QuadraticLog.misfit_sd == pytest.approx((math.log(0.08), 0.6))
