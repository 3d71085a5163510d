"""What decides about a surface, number by number: priors, kinship of cells, when it is enough."""

from __future__ import annotations

import math
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from leadline.record.workbench import Factor
from leadline.studies.workbench.surface import design as sequential
from leadline.studies.workbench.surface import models
from leadline.studies.workbench.surface.design import SequentialDesign, _expected_cost
from leadline.studies.workbench.surface.grid import Grid, PeakReadings
from leadline.studies.workbench.surface.models import choose, own, smooth
from leadline.studies.workbench.surface.posterior import SoftMin, _log_level
from surface_fixture import FACTORS, GOAL, bottleneck, peak_of

KIND = Factor(name="fs", role="configuration", levels=("a", "b", "c"), scale="category")
LOAD = Factor(name="load", role="workload", levels=(1, 10))
GRID = Grid.of(FACTORS)


def least(q: float, *logs: float) -> float:
    return -math.log(sum(math.exp(-q * each) for each in logs)) / q


def test_the_bottleneck_law_with_the_numbers_that_were_fitted_to_whole_grids() -> None:
    """Every role of a factor, and a category: docs/concepts/surfaces.md has these priors."""
    grid = Grid.of([*FACTORS, LOAD, KIND])
    law = SoftMin(grid, np.array([6.0]))
    given = np.linspace(-0.8, 0.9, law.size)
    found = law.log_rates(given[None, :])[0]
    assert law.size == 3 + 3 * 3 + 3
    for cell, sample in enumerate(grid.samples):
        rest, logs = 6.0 + 0.3 + 0.7 * given[2], []
        for at, (name, most, middle, sd) in enumerate(
            [("disks", 4, 1.0, 0.12), ("threads", 100, 1.0, 0.12), ("load", 10, 0.0, 0.7)]
        ):
            level, reach = float(sample[name]), math.log(most)
            height, exponent, cost = given[3 + 3 * at : 6 + 3 * at]
            base = 6.0 - 0.5 * reach + (0.7 + 0.5 * reach) * height
            logs.append(base + (middle + sd * exponent) * math.log(level))
            rest -= math.log1p(math.exp(-4.0 + 2.0 * cost) * (level - 1) / (most - 1))
        hard = least(math.exp(1.7 + 0.4 * given[1]), logs[0], rest)
        whole = least(math.exp(1.0 + 0.4 * given[0]), logs[1], logs[2], hard)
        kinds = zip(given[12:], KIND.levels, strict=True)
        shift = 0.4 * sum(number * ((sample["fs"] == level) - 1 / 3) for number, level in kinds)
        assert found[cell] == pytest.approx(whole + shift, abs=1e-9), sample


def test_levels_are_compared_by_ratio_unless_one_of_them_is_none() -> None:
    def levels(*raw: float) -> list[float]:
        factor = Factor(name="x", role="workload", levels=raw, scale="linear")
        return list(_log_level(Grid.of([factor]), factor))

    assert levels(2, 4, 16) == pytest.approx([0.0, math.log(2), math.log(8)])
    assert levels(0, 5, 20) == [0.0, 0.25, 1.0]
    assert levels(7) == [0.0]


def test_half_of_a_smooth_misfit_is_alike_over_a_third_of_a_range() -> None:
    """Matern 3/2 at 0.35 of a factor's range; the other half is each cell's own."""
    grid = Grid.of([Factor(name="x", role="workload", levels=(1, 2, 3, 4, 5), scale="linear")])
    alike = smooth(grid)
    for one in range(5):
        for other in range(5):
            apart = math.sqrt(3) * abs(one - other) / 4 / 0.35
            wanted = 0.5 * (1 + apart) * math.exp(-apart) + 0.5 * (one == other)
            assert alike[one, other] == pytest.approx(wanted)
    assert own(grid) == pytest.approx(np.eye(5))


def told(count: int) -> PeakReadings:
    readings = PeakReadings(GRID)
    for cell in range(0, 4 * count, 4):
        readings.tell(GRID.samples[cell], peak_of(bottleneck(GRID.samples[cell])))
    return readings


def test_five_peaks_are_enough_to_choose_a_model_by(monkeypatch: pytest.MonkeyPatch) -> None:
    scores = {"gaussian-process": 1.0, "soft-min": 3.0, "quadratic-log": 2.0}
    monkeypatch.setattr(models, "left_out_score", lambda model, *_: scores[model.name])
    assert choose(told(4), 1).name == "gaussian-process"
    assert choose(told(5), 1).name == "soft-min"


def test_without_a_number_among_the_factors_there_is_no_bottleneck() -> None:
    assert choose(PeakReadings(Grid.of([KIND])), 1).name == "quadratic-log"


def design(count: int, error_frac: float | None = None, most: int | None = None) -> Any:
    """A design that was told so many peaks, and does not think about them."""
    made = SequentialDesign(GRID, GOAL, error_frac, 1, most)
    for cell in range(count):
        made.tell(GRID.samples[cell], peak_of(bottleneck(GRID.samples[cell])))
    return made


@pytest.mark.parametrize(
    ("asked", "peaks", "reached", "enough"),
    [
        (None, 6, 0.0499, True),
        (None, 6, 0.0501, False),
        (0.03, 6, 0.03, True),
        (0.03, 6, 0.0301, False),
        (None, 5, 0.0, False),
        (None, 6, None, False),
    ],
)
def test_a_surface_is_known_at_five_percent_from_four_peaks_and_one_for_each_factor(
    asked: float | None, peaks: int, reached: float | None, enough: bool
) -> None:
    made = design(peaks, asked)
    made._belief = SimpleNamespace(error_frac=reached, covariance=np.eye(32))
    assert (made.ask() == ()) is enough


def test_no_more_samples_than_were_allowed_or_there_are() -> None:
    made = design(6, most=8)
    made._belief = SimpleNamespace(error_frac=1.0, covariance=np.eye(32))
    assert len(made.ask(9)) == 2
    assert len(made.ask(9, in_flight=GRID.samples[30:31])) == 1
    assert design(8, most=8).ask(9) == ()
    assert len(SequentialDesign(GRID, GOAL, None, 1, 99).ask(99)) == 32


@pytest.mark.parametrize(("known", "stated"), [(0.1, 0.15), (0.2, 0.2)])
def test_a_surface_is_no_surer_prior_than_fifteen_percent(known: float, stated: float) -> None:
    made = design(6)
    logs = np.log(np.arange(100.0, 132.0))
    made._belief = SimpleNamespace(log_rate=logs, sd=np.full(32, known))
    prior = made.prior_for(GRID.samples[7])
    assert (prior.rate_per_s, prior.sd_log) == pytest.approx((107.0, stated))


def test_a_peak_to_come_is_as_noisy_as_those_before_and_the_first_four_percent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    noises: list[float] = []

    def learned(covariance: np.ndarray, noise: float) -> np.ndarray:
        noises.append(noise)
        return np.diag(covariance)

    monkeypatch.setattr(sequential, "_learned", learned)
    SequentialDesign(GRID, GOAL, None, 1, None).ask(2)
    made = SequentialDesign(GRID, GOAL, None, 1, None)
    for cell, sd in enumerate((0.01, 0.02, 0.09)):
        made.tell(GRID.samples[cell], peak_of(100.0, sd))
    known: Any = SimpleNamespace(error_frac=1.0, covariance=np.eye(32))
    made._belief = known
    made.ask()
    assert noises == pytest.approx([0.04, 0.04, 0.02], rel=0.01)


def test_of_samples_that_teach_as_much_the_first_cells_are_asked() -> None:
    made = design(0)
    made._covariance = lambda: np.eye(32)
    assert made.ask(3) == GRID.samples[:3]
    assert made.ask(2, in_flight=GRID.samples[:2]) == GRID.samples[2:4]


def test_a_search_that_cost_nothing_is_cheap_and_no_fault() -> None:
    readings = PeakReadings(GRID)
    for cell, cost_s in ((0, 0.0), (31, 100.0)):
        readings.tell(GRID.samples[cell], peak_of(100.0, cost_s=cost_s))
    found = _expected_cost(readings)
    off = math.log(100.0 / 1e-3) / 2
    apart = float(((GRID.places()[0] - GRID.places()[31]) ** 2).sum())
    alike = 0.16 * math.exp(-apart / 0.5)
    pull = (0.16 - alike) / (0.32 - alike)
    assert np.log(found[[0, 31]]) == pytest.approx([-off * pull, off * pull])
