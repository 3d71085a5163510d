"""How the policies of fixed steps climb: increment, run length r and trials t (SH08 §3.1, §3.5)."""

from __future__ import annotations

from typing import NamedTuple

from leadline.record.workbench import Goal
from leadline.units import format_seconds

STRAWMAN_S = 300.0
STRAWMAN_TRIALS = 10
"""SH08 §3.1: ten trials of five minutes at every load."""
LINEAR_TRIALS = 2
"""SH08 Algorithm 2 wants an interval at every load, and one trial has none."""
TRIALS_MAX = 100
"""Most trials at a load that may be asked for: a linear search gives up after as many."""


class Climb(NamedTuple):
    """What a policy of fixed steps spends at a load, and how far the next one is."""

    increment_per_s: float
    run_length_s: float
    trials: int
    """At a load; of a linear search the fewest."""

    @property
    def words(self) -> str:
        """Say it, for the plan of a search."""
        return (
            f"by {self.increment_per_s:.6g} requests/s, {self.trials} × "
            f"{format_seconds(self.run_length_s)} a load"
        )


def strawman_climb(goal: Goal) -> Climb:
    """Return how the strawman climbs."""
    return Climb(
        goal.increment_per_s or goal.rate_start_per_s,
        goal.trial_length_s or STRAWMAN_S,
        goal.trials or STRAWMAN_TRIALS,
    )


def linear_climb(goal: Goal) -> Climb:
    """Return how a linear search climbs."""
    return Climb(
        goal.increment_per_s or goal.rate_start_per_s,
        goal.trial_length_s or goal.run_length_s,
        max(goal.trials or LINEAR_TRIALS, LINEAR_TRIALS),
    )


CLIMBS = {"strawman": strawman_climb, "linear": linear_climb, "linear-seeded": linear_climb}
"""The policies that climb, by their names."""
