"""The contract of every design of a surface: ask for samples, find their peaks, tell.

A design is a pure, seeded conversation like a policy, one level up. What it asks follows from the
factors, the seed, what it was told and what is being measured, never from the order of the
tellings; so it is replayed from the stored peaks, and a pool may answer in any order.

    design = open_design("sequential", factors, goal, error_frac=0.06, seed=1)
    while samples := design.ask(1):
        peak = …search with open_policy(policy, goal, seed, design.prior_for(samples[0]))…
        design.tell(samples[0], peak)
    surface = design.surface()
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from leadline.errors import LeadlineError
from leadline.record.workbench import Factor, Goal, PeakRate, Prior, Sample, Surface
from leadline.studies.workbench.surface.grid import Grid
from leadline.studies.workbench.surface.planned import (
    open_d_optimal_log,
    open_d_optimal_raw,
    open_full_grid,
)
from leadline.studies.workbench.surface.sequential import SequentialDesign


class SurfaceDesign(Protocol):
    """Which samples to measure, and the surface they give. Made by `open_design`."""

    name: str

    def ask(self, count: int = 1, in_flight: Sequence[Sample] = ()) -> tuple[Sample, ...]:
        """Return the next samples to measure, at most `count`.

        Fewer, or none, when no more are wanted now; none while nothing is in flight is the end.

        Args:
            count: testbeds that are free.
            in_flight: samples that are being measured: asked, and not told yet.

        """

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Learn of a sample's peak, however its search ended. Told again, the later one stands."""

    def prior_for(self, sample: Sample) -> Prior | None:
        """Return what is known of a sample's peak before its search begins: the seed of SH08 §3.7.

        None before the first peak.
        """

    def surface(self) -> Surface:
        """Return the surface as it is known by now."""


Maker = Callable[[Grid, Goal, float | None, int, int | None], SurfaceDesign]
"""Grid, goal of each peak, target error of the surface, seed, most samples."""

DESIGNS: dict[str, Maker] = {
    "sequential": SequentialDesign,
    "full-grid": open_full_grid,
    "d-optimal-raw": open_d_optimal_raw,
    "d-optimal-log": open_d_optimal_log,
}
"""Every design by its name; `sequential` is ours and the default."""

DEFAULT = "sequential"


class UnknownDesign(LeadlineError):
    """There is no design of this name."""

    exit_code = 2


def open_design(
    name: str,
    factors: Sequence[Factor],
    goal: Goal,
    *,
    samples: Sequence[Sample] = (),
    error_frac: float | None = None,
    seed: int = 1,
) -> SurfaceDesign:
    """Return a new design.

    Args:
        name: one of `DESIGNS`; with `:N` behind it, of N samples (`d-optimal-raw:6`).
        factors: what varies, and over which levels.
        goal: of each peak search.
        samples: the cells of the surface; all combinations of levels when none are given.
        error_frac: mean absolute error at which a design that can tell may stop.
        seed: of its own random choices.

    Raises:
        UnknownDesign: there is none of this name, or N is no number of samples.
        GridError: factors or samples of which no grid can be made.

    """
    kind, _, number = name.partition(":")
    if kind not in DESIGNS:
        raise UnknownDesign(f"there is no design {kind!r}; there are {', '.join(DESIGNS)}")
    if number and not (number.isdigit() and int(number) > 0):
        raise UnknownDesign(f"the design {name!r} is to end in a number of samples, as in {kind}:8")
    grid = Grid.of(factors, samples)
    return DESIGNS[kind](grid, goal, error_frac, seed, int(number) if number else None)
