"""Searches of simulated servers: what the bench of policies rests on."""

from __future__ import annotations

import statistics

import msgspec
import pytest

from leadline.record.workbench import Goal, PeakRate, Prior, Threshold, Trial, TrialRequest
from leadline.studies.workbench.policies import POLICIES
from proving import searches
from proving.searches import Search, seed_for, simulate_search
from proving.servers import member

GOAL = Goal(threshold=Threshold(mean_ms=40.0), run_length_s=20.0)


class Endless:
    """Asks for the prior's rate again and again."""

    name = "endless"

    def __init__(self, goal: Goal, prior: Prior | None) -> None:
        """Remember where to ask."""
        self._rate_per_s = goal.rate_start_per_s if prior is None else prior.rate_per_s
        self.told: list[Trial] = []

    def ask(self) -> TrialRequest | PeakRate:
        """Ask for more."""
        return TrialRequest(rate_per_s=self._rate_per_s, seconds=5.0)

    def tell(self, trial: Trial) -> None:
        """Learn nothing."""
        self.told.append(trial)

    def answer_now(self) -> PeakRate:
        """Have no answer."""
        raise NotImplementedError


def outcome(**fields: object) -> Search:
    told = Search(
        policy="p",
        server="s",
        kind="plain",
        seed=1,
        truth_per_s=100.0,
        truth_se_frac=0.0,
        verdict="found",
    )
    return msgspec.structs.replace(told, **fields)


def test_a_search_is_repeated_exactly() -> None:
    server = member(2).server
    once = simulate_search("binary", server, GOAL, 5)
    again = simulate_search("binary", server, GOAL, 5)
    other = simulate_search("binary", server, GOAL, 6)
    assert once[0] is not None
    assert once[:2] == again[:2]
    assert once[0] != other[0]
    assert once[0].trials == len(once[1])


def test_a_search_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Endless] = []

    def maker(goal: Goal, seed: int, prior: Prior | None) -> Endless:
        assert seed == 1
        made.append(Endless(goal, prior))
        return made[-1]

    monkeypatch.setitem(POLICIES, "endless", maker)
    monkeypatch.setattr(searches, "TRIALS_MAX", 7)
    prior = Prior(rate_per_s=33.0)
    peak, loads, _ = simulate_search("endless", member(0).server, GOAL, 1, prior)
    assert peak is None
    assert loads == (33.0,) * 7
    seeds = [trial.seed for trial in made[0].told]
    assert len(set(seeds)) == 7  # every trial has its own arrivals
    assert [trial.order for trial in made[0].told] == list(range(7))


def test_seeds_scatter_about_the_truth_as_stated() -> None:
    found = [seed_for(200.0, seed).rate_per_s for seed in range(2000)]
    assert statistics.median(found) == pytest.approx(200.0, rel=0.03)
    within = statistics.mean(200 / 1.284 < rate < 200 * 1.284 for rate in found)  # one sd of 0.25
    assert within == pytest.approx(0.683, abs=0.04)
    assert seed_for(200.0, 1) == seed_for(200.0, 1)


def test_an_outcome_is_held_against_the_truth() -> None:
    near = outcome(rate_per_s=104.0, low_per_s=99.0, high_per_s=109.0)
    assert near.error_frac == pytest.approx(0.04)
    assert near.within(0.05)
    assert not near.within(0.03)
    assert not outcome(rate_per_s=94.0).within(0.05)
    assert near.covers
    assert not outcome(rate_per_s=104.0, low_per_s=101.0, high_per_s=109.0).covers
    assert not outcome(rate_per_s=96.0, low_per_s=95.0, high_per_s=99.0).covers
    bounded = outcome(lower_bound_per_s=99.0, upper_bound_per_s=103.0)
    assert bounded.bounds_hold
    assert not msgspec.structs.replace(bounded, truth_per_s=98.0).bounds_hold
    assert not msgspec.structs.replace(bounded, truth_per_s=104.0).bounds_hold
    assert outcome(lower_bound_per_s=99.0).bounds_hold is None
    silent = outcome(verdict="server-lost")
    assert silent.error_frac is None
    assert not silent.within(1e9)
    assert not silent.covers
    assert not silent.has_interval
