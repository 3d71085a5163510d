"""Our design: which samples it asks for, when it stops, and what it says beforehand."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import pytest

from leadline.record.workbench import Factor, PeakVerdict, Sample, Surface
from leadline.studies.workbench.surface.design import SurfaceDesign, open_design
from leadline.studies.workbench.surface.grid import full_grid
from surface_fixture import FACTORS, GOAL, bottleneck, lost_peak, peak_of

CELLS = full_grid(FACTORS)


def mapped(design: SurfaceDesign, seed: int, at_once: int = 1) -> tuple[list[Sample], Surface]:
    asked = []
    while samples := design.ask(at_once):
        assert len(samples) <= at_once
        for sample in samples:
            asked.append(sample)
            own = 100 * seed + CELLS.index(sample)
            design.tell(sample, peak_of(bottleneck(sample), 0.04, seed=own))
    return asked, design.surface()


def error(surface: Surface) -> float:
    off = [
        cell.rate_per_s.value / bottleneck(cell.sample) - 1
        for cell in surface.cells
        if cell.rate_per_s is not None
    ]
    assert len(off) == len(surface.cells)
    return float(np.mean(np.abs(off)))


def test_it_stops_at_the_target_after_a_few_samples() -> None:
    found = [mapped(open_design("sequential", FACTORS, GOAL, seed=s), s) for s in range(4)]
    assert all(6 <= len(asked) <= 9 for asked, _ in found)
    assert np.mean([error(surface) for _, surface in found]) < 0.06
    for asked, surface in found:
        assert surface.error_frac is not None
        assert surface.error_frac <= 0.05
        assert sum(cell.measured for cell in surface.cells) == len(asked)
        assert len({tuple(sample.values()) for sample in asked}) == len(asked)


@pytest.mark.long
def test_a_tighter_target_takes_more_samples() -> None:
    loose = mapped(open_design("sequential", FACTORS, GOAL, error_frac=0.08), 1)
    tight = mapped(open_design("sequential", FACTORS, GOAL, error_frac=0.04), 1)
    assert len(loose[0]) < len(tight[0])
    assert len(mapped(open_design("sequential:7", FACTORS, GOAL, error_frac=0.001), 1)[0]) == 7


def test_the_first_samples_span_the_factors() -> None:
    design = open_design("sequential", FACTORS, GOAL)
    first = design.ask(4)
    threads = [float(sample["threads"]) for sample in first]
    disks = [float(sample["disks"]) for sample in first]
    assert min(threads) <= 2
    assert max(threads) >= 32
    assert len(set(disks)) > 1
    assert design.ask(4) == first
    assert not {tuple(s.values()) for s in design.ask(2, in_flight=first)} & {
        tuple(s.values()) for s in first
    }


def test_samples_in_flight_are_taken_as_known() -> None:
    design = open_design("sequential", FACTORS, GOAL)
    together = design.ask(4)
    assert together == (*together[:1], *design.ask(3, in_flight=together[:1]))
    assert design.ask(9, in_flight=CELLS[:30]) in (CELLS[30:], CELLS[:29:-1])


def test_what_is_asked_does_not_depend_on_the_order_of_the_answers() -> None:
    def after(samples: Sequence[Sample]) -> tuple[Sample, ...]:
        design = open_design("sequential", FACTORS, GOAL, seed=5)
        for sample in samples:
            design.tell(sample, peak_of(bottleneck(sample)))
        return design.ask(2)

    samples = [CELLS[cell] for cell in (0, 7, 24, 31, 12)]
    assert after(samples) == after(samples[::-1])


def test_nothing_more_is_asked_while_the_last_ones_run() -> None:
    design = open_design("sequential:6", FACTORS, GOAL)
    for cell in (0, 7, 24, 31, 12):
        design.tell(CELLS[cell], peak_of(bottleneck(CELLS[cell])))
    last = design.ask(4)
    assert len(last) == 1
    assert design.ask(4, in_flight=last) == ()


def test_a_search_that_found_no_number_is_not_asked_again() -> None:
    design = open_design("sequential", FACTORS, GOAL)
    lost = design.ask()[0]
    design.tell(lost, lost_peak(PeakVerdict.SERVER_LOST))
    asked, surface = mapped(design, 1)
    assert lost not in asked
    cell = surface.cells[CELLS.index(lost)]
    assert cell.measured
    assert cell.rate_per_s is None
    assert surface.cost_s == 300.0 * len(asked) + 60.0
    assert all(c.rate_per_s is not None for c in surface.cells if c.sample != lost)


def test_when_every_search_fails_it_ends_without_a_surface() -> None:
    design = open_design("sequential", (FACTORS[0],), GOAL)
    while samples := design.ask(2):
        for sample in samples:
            design.tell(sample, lost_peak())
    surface = design.surface()
    assert surface.ideal is None
    assert surface.error_frac is None
    assert surface.flat == ()


def test_the_surface_is_the_seed_of_the_next_search_but_never_too_sure() -> None:
    design = open_design("sequential", FACTORS, GOAL)
    assert design.prior_for(CELLS[0]) is None
    mapped(design, 2)
    off = []
    for sample in CELLS:
        prior = design.prior_for(sample)
        assert prior is not None
        assert prior.sd_log is not None
        assert prior.sd_log >= 0.15
        off.append(abs(math.log(prior.rate_per_s / bottleneck(sample))))
    assert np.mean(off) < 0.08


def test_cheap_samples_are_preferred_to_dear_ones_that_teach_as_much() -> None:
    def asked(dear: int) -> list[int]:
        """With half of the disks dear: from which half the samples come."""
        factor = Factor(name="disks", role="resource", levels=(1, 2, 3, 4, 5, 6, 7, 8))
        design = open_design("sequential:5", (factor,), GOAL, error_frac=0.0001)
        found = []
        while samples := design.ask():
            disks = int(samples[0]["disks"])
            found.append(disks)
            cost = 30_000.0 if (disks > 4) == (dear > 4) else 100.0
            design.tell(samples[0], peak_of(50.0 * disks, 0.03, cost_s=cost))
        return found

    low_dear, high_dear = asked(1), asked(8)
    assert sum(disks <= 4 for disks in low_dear) < sum(disks <= 4 for disks in high_dear)


@pytest.mark.parametrize(
    "factors",
    [
        (Factor(name="fs", role="configuration", levels=("ext4", "xfs", "zfs"), scale="category"),),
        (Factor(name="wait", role="workload", levels=(0, 5, 10), scale="linear"), FACTORS[0]),
        (FACTORS[0], Factor(name="one", role="resource", levels=(2,))),
    ],
)
def test_any_factors_give_a_surface(factors: tuple[Factor, ...]) -> None:
    design = open_design("sequential", factors, GOAL)
    while samples := design.ask(2):
        for sample in samples:
            rate = 100.0 + 10 * sum(len(str(level)) for level in sample.values())
            design.tell(sample, peak_of(rate))
    surface = design.surface()
    assert all(cell.rate_per_s is not None for cell in surface.cells)
    assert surface.ideal is not None
