"""Load factor against time: the data of SH08 Figs. 3 and 7, and what the paper sees in them."""

from __future__ import annotations

import pytest

from leadline.record.workbench import Goal, Prior, Threshold, TrialRequest, TrialState
from leadline.studies.workbench.policies import open_policy
from load_factors import course, load_factors
from scripted_server import SET_UP_S, one_queue, search, trial

GOAL = Goal(threshold=Threshold(mean_ms=40.0))
PEAK_PER_S = 975.0


def test_trials_follow_one_another_for_what_they_cost() -> None:
    done = trial(TrialRequest(rate_per_s=50, seconds=180), 0, 20.0)
    lost = trial(TrialRequest(rate_per_s=100, seconds=180), 1, state=TrialState.SERVER_LOST)
    again = trial(TrialRequest(rate_per_s=95, seconds=20), 2, 20.0)
    found = load_factors([done, lost, again], 100.0)
    assert [(one.begin_s, one.end_s) for one in found] == [
        (0, 195),
        (195, 195 + SET_UP_S),
        (195 + SET_UP_S, 195 + SET_UP_S + 35),
    ]
    assert [one.factor for one in found] == [0.5, 1.0, 0.95]
    assert found[1].state is TrialState.SERVER_LOST
    summed = course(found)
    assert (summed.near_after_s, summed.trials_near, summed.trials_far) == (195, 2, 1)
    assert summed.near_share == pytest.approx((SET_UP_S + 35) / (195 + SET_UP_S + 35))


def test_a_search_that_never_came_near_or_never_began_says_so() -> None:
    far = trial(TrialRequest(rate_per_s=50, seconds=180), 0, 20.0)
    assert course(load_factors([far], 100.0)).near_after_s is None
    assert course([]) == (None, 0.0, 0, 0)


def test_what_the_paper_sees_in_its_figures() -> None:
    """§3.1 and §5.3.1: where each policy spends its time, on R = 1 / (1000 - load)."""
    prior = Prior(rate_per_s=930.0)
    names = ("strawman", "linear", "binary", "binary-seeded")
    seen = {}
    for name in names:
        _, trials = search(open_policy(name, GOAL, 1, prior), one_queue(1000.0), noise=0.1)
        seen[name] = course(load_factors(trials, PEAK_PER_S)), sum(t.cost_s for t in trials)
    after = {name: found.near_after_s or 0.0 for name, (found, _) in seen.items()}
    assert after["strawman"] > after["linear"] > after["binary"] > 0
    assert after["binary-seeded"] == 0
    costs = [seen[name][1] for name in ("strawman", "linear", "binary")]
    assert costs == sorted(costs, reverse=True)
