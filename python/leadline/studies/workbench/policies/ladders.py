"""How the policies of fixed steps climb: increment, run length r and trials t (SH08 §3.1, §3.5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

from leadline.record import Interval
from leadline.record.finding import Finding
from leadline.record.workbench import Goal, PeakVerdict, Prior, TrialRequest, TrialState
from leadline.studies.workbench.conversation import Conversation, Ending
from leadline.studies.workbench.loads import LoadTrials, mode_findings
from leadline.studies.workbench.policies.algorithm2 import Algorithm2, Visit
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


# SH08 §3.5, Linear: raise the load by a fixed increment until it saturates, then halve.


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


# SH08 Algorithm 3, Binsearch: double the load until it saturates, then halve the interval.


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


# SH08 §3.1, the strawman: fixed run length, fixed number of trials, fixed increment.

_TRIALS_MAX = 2000


class Strawman(Conversation):
    """Climb until the mean response of all trials at a load is above the threshold.

    "The last load level before saturation is taken as the peak rate." It knows of no accuracy and
    answers without an interval; the first load that saturates is the upper bound.
    """

    states_interval = False

    def __init__(self, name: str, goal: Goal, seed: int, climb: Climb) -> None:
        super().__init__(name, goal, seed, run_length_s=climb.run_length_s)
        self._climbing = climb

    def _decide(self) -> TrialRequest | Ending:
        if len(self.trials) >= _TRIALS_MAX:
            return Ending(PeakVerdict.GAVE_UP, f"Gave up after {_TRIALS_MAX} trials.")
        if not self.loads or self.trials[-1].state is TrialState.GENERATOR_LIMITED:
            return self._climb()
        current = self.loads[self.trials[-1].request.rate_per_s]
        if len(current.ratios) < self._climbing.trials and not current.kills:
            return self._trial(current.rate_per_s)
        if current.ratio is None or current.ratio < 1:
            return self._climb()
        return self._at_first_saturated(current)

    def _at_first_saturated(self, current: LoadTrials) -> Ending:
        if self._unsaturated() is None:
            sentence = f"Saturated at the first load, {current.rate_per_s:.6g} requests/s."
            return Ending(PeakVerdict.ALWAYS_SATURATED, sentence)
        if current.kills:
            sentence = f"The server does not survive {current.rate_per_s:.6g} requests/s."
            return Ending(PeakVerdict.SERVER_LOST, sentence)
        sentence = f"{current.rate_per_s:.6g} requests/s is the first load that saturates."
        return Ending(PeakVerdict.FOUND, sentence)

    def _trial(self, rate_per_s: float) -> TrialRequest:
        return TrialRequest(rate_per_s=rate_per_s, seconds=self.run_length_s)

    def _climb(self) -> TrialRequest | Ending:
        held = self._unsaturated()
        ceiling = self.ceiling_per_s
        if held is None:
            return self._trial(min(self.goal.rate_start_per_s, ceiling))
        if held >= 0.999 * ceiling:
            return self._at_ceiling()
        return self._trial(min(held + self._climbing.increment_per_s, ceiling))

    def _unsaturated(self) -> float | None:
        """Highest load that all of its trials together did not saturate."""
        whole = self._climbing.trials
        held = [
            rate
            for rate, load in self.loads.items()
            if len(load.ratios) >= whole and load.ratio is not None and load.ratio < 1
        ]
        return max(held, default=None)

    def _estimate(self) -> Interval | None:
        low = self._unsaturated()
        if low is None:
            return None
        high = min((rate for rate in self.loads if rate > low), default=None)
        if high is None or (self.loads[high].ratio or 0.0) < 1:
            return None
        return Interval(low, None, None, 2 * self._climbing.trials)

    def _findings(self) -> tuple[Finding, ...]:
        return tuple(mode_findings(self.loads.values()))


def strawman(goal: Goal, seed: int, prior: Prior | None = None) -> Strawman:
    """Return a search that knows nothing before."""
    del prior
    return Strawman("strawman", goal, seed, strawman_climb(goal))


# SH08 Algorithm 4, model-guided: R = 1/(a - b λ) through two loads says which load is next.
#
# SH08 §3.6: "a model-guided search is not guaranteed to converge". Where the model says nothing
# that can be tried (a response that falls with the load, a load below none), the algorithm's own
# beginning is used again: twice the load, or half of it. It never goes to more than `_RISE_MAX`
# times the highest load so far, which two noisy readings of a flat curve can ask for, and gives up
# after `_VISITS_MAX` loads.

_RISE_MAX = 10.0
_VISITS_MAX = 60


def model_guided(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at `goal.rate_start_per_s`, whatever is known before."""
    del prior
    return Algorithm2("model-guided", pick_by_model, goal, seed, visits_max=_VISITS_MAX)


def model_guided_seeded(goal: Goal, seed: int, prior: Prior | None = None) -> Algorithm2:
    """Return a search that starts at the prior's rate (SH08 §3.7), if there is one."""
    name = "model-guided-seeded"
    return Algorithm2(name, pick_by_model, goal, seed, prior=prior, visits_max=_VISITS_MAX)


def pick_by_model(visits: Sequence[Visit], start_per_s: float) -> float:
    """Return the next load (SH08 Algorithm 4)."""
    if not visits:
        return start_per_s
    current = visits[-1]
    others = [visit for visit in visits[:-1] if visit.rate_per_s != current.rate_per_s]
    predicted = None
    if others:
        nearest = min(others, key=lambda visit: abs(visit.ratio - 1))
        predicted = predict(current, nearest)
    if predicted is None:
        return current.rate_per_s * (2 if current.ratio < 1 else 0.5)
    return min(predicted, _RISE_MAX * max(visit.rate_per_s for visit in visits))


def predict(one: Visit, other: Visit) -> float | None:
    """Return the load at which R = 1/(a - b λ) through both is at the threshold.

    None when the response does not rise with the load, or the load would be none.
    """
    b = (1 / other.ratio - 1 / one.ratio) / (one.rate_per_s - other.rate_per_s)
    if not b > 0:
        return None
    a = 1 / one.ratio + b * one.rate_per_s
    rate_per_s = (a - 1) / b
    return rate_per_s if rate_per_s > 0 and math.isfinite(rate_per_s) else None
