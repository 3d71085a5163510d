"""Load factor against time: where a search spends its test time (SH08 Figs. 3 and 7)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from leadline.record.workbench import Trial, TrialState


class LoadFactor(NamedTuple):
    """One trial of a finished search, on the bench's own clock."""

    begin_s: float
    """Since the search began; every trial takes what it cost."""
    end_s: float
    factor: float
    """The load over the peak rate (rho of SH08 Table 2)."""
    state: TrialState


def load_factors(trials: Iterable[Trial], peak_per_s: float) -> tuple[LoadFactor, ...]:
    """Return a search as load factors against time, in the order of its trials.

    Args:
        trials: all trials of one search, in their order.
        peak_per_s: the peak rate that the search found, or a better one that is known.

    """
    found, at_s = [], 0.0
    for trial in trials:
        factor = trial.request.rate_per_s / peak_per_s
        found.append(LoadFactor(at_s, at_s + trial.cost_s, factor, trial.state))
        at_s += trial.cost_s
    return tuple(found)


class Course(NamedTuple):
    """What Figs. 3 and 7 are drawn to show, of one search."""

    near_after_s: float | None
    """When the load factor first came near 1; None when it never did."""
    near_share: float
    """Share of the test time spent near 1."""
    trials_near: int
    trials_far: int


def course(factors: Iterable[LoadFactor], near_frac: float = 0.1) -> Course:
    """Sum up a search: how soon it comes within `near_frac` of the peak, what it spends there."""
    all_of = list(factors)
    near = [one for one in all_of if abs(one.factor - 1) <= near_frac]
    total_s = all_of[-1].end_s if all_of else 0.0
    near_s = sum(one.end_s - one.begin_s for one in near)
    return Course(
        near_after_s=near[0].begin_s if near else None,
        near_share=near_s / total_s if total_s > 0 else 0.0,
        trials_near=len(near),
        trials_far=len(all_of) - len(near),
    )
