"""The grid of a surface, the full-grid design, the ideal configuration, and where it is flat."""

from __future__ import annotations

import re

import numpy as np
import pytest

from leadline.record.workbench import Factor, Prior, Sample
from leadline.studies.workbench.surface.design import SurfaceDesign, UnknownDesign, open_design
from leadline.studies.workbench.surface.grid import Grid, GridError, full_grid
from surface_fixture import DISKS, FACTORS, GOAL, THREADS, bottleneck, lost_peak, peak_of


def mapped() -> SurfaceDesign:
    design = open_design("full-grid", FACTORS, GOAL)
    while samples := design.ask():
        design.tell(samples[0], peak_of(bottleneck(samples[0])))
    return design


def test_a_grid_is_every_combination_the_last_factor_fastest() -> None:
    cells = full_grid(FACTORS)
    assert len(cells) == 32
    assert cells[:2] == ({"disks": 1, "threads": 1}, {"disks": 1, "threads": 2})
    assert Grid.of(FACTORS).cell({"threads": 100, "disks": 4}) == 31


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (Factor(name="x", role="workload", levels=()), "x has no levels"),
        (Factor(name="x", role="workload", levels=(1, 1)), "a level twice"),
        (
            Factor(name="x", role="workload", levels=(0, 1)),
            'has no logarithm; say scale = "linear"',
        ),
        (Factor(name="x", role="workload", levels=("a", "b")), 'no number; say scale = "category"'),
    ],
)
def test_no_grid_is_made_of_nonsense(factor: Factor, words: str) -> None:
    with pytest.raises(GridError, match=re.escape(words)):
        Grid.of([factor])


def test_samples_outside_the_grid_are_refused() -> None:
    design = open_design("full-grid", FACTORS, GOAL)
    with pytest.raises(GridError, match="disks = 5; its levels are 1, 2, 3, 4"):
        design.tell({"disks": 5, "threads": 1}, peak_of(1.0))
    with pytest.raises(GridError, match="threads = None"):
        design.tell({"disks": 1}, peak_of(1.0))
    some = open_design("full-grid", FACTORS, GOAL, samples=[{"disks": 1, "threads": 1}])
    with pytest.raises(GridError, match="not in the grid"):
        some.tell({"disks": 2, "threads": 1}, peak_of(1.0))


def test_an_unknown_design_is_named() -> None:
    with pytest.raises(UnknownDesign, match="no design 'random'; there are sequential, full-grid"):
        open_design("random", FACTORS, GOAL)
    with pytest.raises(UnknownDesign, match="as in full-grid:8"):
        open_design("full-grid:few", FACTORS, GOAL)


def test_categories_have_no_order() -> None:
    kind = Factor(name="fs", role="configuration", levels=("ext4", "xfs", "zfs"), scale="category")
    places = Grid.of([kind, DISKS], ()).places()[::4]
    apart = np.sqrt(((places[:, None] - places[None]) ** 2).sum(axis=2))
    assert np.allclose(apart[np.triu_indices(3, 1)], apart[0, 1])
    assert 0 < apart[0, 1] < 1


def test_the_full_grid_is_asked_in_order_and_never_twice() -> None:
    design = open_design("full-grid", FACTORS, GOAL)
    first = design.ask(2)
    assert first == full_grid(FACTORS)[:2]
    assert design.ask(2) == first
    assert design.ask(2, in_flight=first) == full_grid(FACTORS)[2:4]
    design.tell(first[0], lost_peak())
    assert design.ask(1) == (first[1],)
    assert design.ask(40, in_flight=full_grid(FACTORS)[:31]) == full_grid(FACTORS)[31:]
    assert len(open_design("full-grid:6", FACTORS, GOAL).ask(40)) == 6


def test_a_seed_is_the_peak_of_the_nearest_sample() -> None:
    design = open_design("full-grid", FACTORS, GOAL)
    assert design.prior_for({"disks": 4, "threads": 32}) is None
    design.tell({"disks": 1, "threads": 32}, peak_of(100.0))
    design.tell({"disks": 4, "threads": 16}, peak_of(380.0))
    design.tell({"disks": 4, "threads": 64}, lost_peak())
    assert design.prior_for({"disks": 4, "threads": 32}) == Prior(rate_per_s=380.0)


def test_the_full_grid_says_what_was_measured() -> None:
    surface = mapped().surface()
    assert surface.cost_s == 32 * 300.0
    assert all(cell.measured for cell in surface.cells)
    for cell in surface.cells:
        assert cell.rate_per_s is not None
        assert cell.rate_per_s.value == bottleneck(cell.sample)


def test_the_ideal_is_the_least_that_reaches_the_best_rate() -> None:
    assert mapped().surface().ideal == {"disks": 4, "threads": 8}
    design = open_design("full-grid", FACTORS, GOAL)
    assert design.surface().ideal is None
    for sample in full_grid(FACTORS):
        # One more disk buys four per cent: less than anyone would choose by.
        design.tell(sample, peak_of(100.0 * 1.04 ** (sample["disks"] == 4)))
    assert design.surface().ideal == {"disks": 1, "threads": 1}


def test_what_can_be_told_apart_is_not_the_same() -> None:
    design = open_design("full-grid", FACTORS, GOAL)
    for sample in full_grid(FACTORS):
        design.tell(sample, peak_of(100.0 * 1.04 ** (sample["disks"] == 4), sd_log=0.005))
    assert design.surface().ideal == {"disks": 4, "threads": 1}


def test_a_rate_that_is_little_known_is_not_taken_for_the_best() -> None:
    design = open_design("full-grid", FACTORS, GOAL)
    for sample in full_grid(FACTORS):
        design.tell(sample, peak_of(100.0 * 1.2 ** (sample["disks"] == 4), sd_log=0.2))
    assert design.surface().ideal == {"disks": 4, "threads": 1}
    assert design.surface().flat == ("threads changes nothing that can be told everywhere",)


def test_flat_is_said_with_where() -> None:
    disks, threads = mapped().surface().flat
    assert disks == (
        "disks changes nothing that can be told with threads = 1; "
        "changes nothing from 2 on with threads = 2; changes nothing from 3 on with threads = 4"
    )
    assert threads == (
        "threads changes nothing from 2 on with disks = 1; changes nothing from 4 on with "
        "disks = 2; changes nothing from 8 on with disks = 3 or 4"
    )


def test_a_factor_that_does_nothing_is_flat_everywhere_and_one_that_matters_is_not_named() -> None:
    design = open_design("full-grid", FACTORS, GOAL)
    for sample in full_grid(FACTORS):
        design.tell(sample, peak_of(100.0 * float(sample["disks"])))
    surface = design.surface()
    assert surface.flat == ("threads changes nothing that can be told everywhere",)
    assert surface.ideal == {"disks": 4, "threads": 1}


def test_nothing_is_called_flat_across_a_gap() -> None:
    design = open_design("full-grid", (THREADS,), GOAL)
    for level in (1, 2, 100):
        design.tell({"threads": level}, peak_of(100.0))
    assert design.surface().flat == ()
    some: list[Sample] = [{"threads": level} for level in (1, 2, 100)]
    design = open_design("full-grid", (THREADS,), GOAL, samples=some)
    for sample in some:
        design.tell(sample, peak_of(100.0))
    assert design.surface().flat == ()
