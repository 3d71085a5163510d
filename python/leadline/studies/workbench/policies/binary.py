"""SH08 Algorithm 3, Binsearch: double the load until it saturates, then halve the interval."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record.workbench import Goal, Prior
from leadline.studies.workbench.policies.algorithm2 import Algorithm2, Visit


def binary_search(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at `goal.rate_start_per_s`, whatever is known before."""
    del prior
    return Algorithm2("binary", pick_binary, goal, seed)


def binary_search_seeded(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at the prior's rate (SH08 §3.7), if there is one."""
    return Algorithm2("binary-seeded", pick_binary, goal, seed, prior=prior)


def pick_binary(visits: Sequence[Visit], start_per_s: float) -> float:
    """Return the next load (SH08 Algorithm 3)."""
    if all(visit.ratio < 1 for visit in visits):
        return 2 * visits[-1].rate_per_s if visits else start_per_s
    return halve(visits)


def halve(visits: Sequence[Visit]) -> float:
    """Return the middle of the interval that the visits leave (Algorithm 3, step 3).

    It begins when a load saturates: the load before it is the low end, or 0 when it was the first.
    """
    first = next(place for place, visit in enumerate(visits) if visit.ratio >= 1)
    low = visits[first - 1].rate_per_s if first > 0 else 0.0
    high = visits[first].rate_per_s
    for visit in visits[first + 1 :]:
        if visit.ratio < 1:
            low = visit.rate_per_s
        else:
            high = visit.rate_per_s
    return (low + high) / 2
