"""SH08 §3.5, Linear: raise the load by a fixed increment until it saturates, then halve."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from leadline.record.workbench import Goal, Prior
from leadline.studies.workbench.policies.algorithm2 import Algorithm2, Visit
from leadline.studies.workbench.policies.binary import halve
from leadline.studies.workbench.policies.climb import linear_climb


def linear_search(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at `goal.rate_start_per_s`, and rises by as much each time.

    SH08 names no increment but calls it small; the first load is the only load it names, so it is
    the increment where the goal has none.
    """
    del prior
    return _search("linear", goal, seed, None)


def linear_search_seeded(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at the prior's rate (SH08 §3.7), if there is one."""
    return _search("linear-seeded", goal, seed, prior)


def _search(name: str, goal: Goal, seed: int, prior: Prior | None) -> Algorithm2:
    climb = linear_climb(goal)
    pick = partial(pick_linear, step_per_s=climb.increment_per_s)
    return Algorithm2(
        name,
        pick,
        goal,
        seed,
        prior=prior,
        trials_min=climb.trials,
        run_length_s=climb.run_length_s,
    )


def pick_linear(visits: Sequence[Visit], start_per_s: float, step_per_s: float) -> float:
    """Return the next load (SH08 §3.5)."""
    if all(visit.ratio < 1 for visit in visits):
        return visits[-1].rate_per_s + step_per_s if visits else start_per_s
    return halve(visits)
