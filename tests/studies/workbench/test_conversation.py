"""What every policy must mind: the deadline to the second, the accuracy claimed, the generator."""

from __future__ import annotations

import msgspec
import pytest

from leadline.record import Interval
from leadline.record.workbench import (
    Goal,
    PeakRate,
    PeakVerdict,
    Prior,
    Threshold,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.conversation import Conversation, Ending
from scripted_server import SET_UP_S, trial

GOAL = Goal(threshold=Threshold(mean_ms=40.0))


class Climb(Conversation):
    """Asks for 10/s more each time, for ten trials; then says what it was given to say."""

    def __init__(
        self,
        goal: Goal = GOAL,
        rate: Interval | None = None,
        seconds: float = 60.0,
        verdict: PeakVerdict = PeakVerdict.FOUND,
    ):
        super().__init__("climb", goal, 1)
        self._rate, self._seconds, self._verdict = rate, seconds, verdict

    def _decide(self) -> TrialRequest | Ending:
        if sum(len(load.ratios) for load in self.loads.values()) == 10:
            return Ending(self._verdict, "Ten are enough.")
        rate = min(10.0 * (len(self.trials) + 1), self.ceiling_per_s)
        return TrialRequest(rate_per_s=rate, seconds=self._seconds)

    def _estimate(self) -> Interval | None:
        return self._rate


def told(policy: Conversation, at_most: int = 100) -> PeakRate:
    for order in range(at_most):
        asked = policy.ask()
        if isinstance(asked, PeakRate):
            return asked
        policy.tell(trial(asked, order, 20.0))
    raise AssertionError("no answer")


def limited(asked: TrialRequest, order: int, offered_per_s: float | None) -> Trial:
    """A trial in which the generator fell short, and what it offered."""
    short = trial(asked, order, state=TrialState.GENERATOR_LIMITED)
    if offered_per_s is None:
        return short
    window = trial(TrialRequest(rate_per_s=offered_per_s, seconds=asked.seconds), order, 20.0)
    return msgspec.structs.replace(short, measured=window.measured)


@pytest.mark.parametrize("trials", [1, 4, 9])
@pytest.mark.parametrize("seconds", [20.0, 60.0, 180.0])
def test_no_trial_is_begun_that_would_end_a_second_after_the_deadline(
    trials: int, seconds: float
) -> None:
    each_s = seconds + SET_UP_S
    for spare_s in (0.0, each_s - 1.0):
        goal = msgspec.structs.replace(GOAL, deadline_s=trials * each_s + spare_s)
        found = told(Climb(goal, seconds=seconds))
        assert (found.verdict, found.trials) == (PeakVerdict.DEADLINE, trials)
        assert found.limited_by == "time"
        assert found.cost_s == trials * each_s
        assert f"within the deadline of {goal.deadline_s:.6g} s" in found.sentences[0]
        assert f"{found.cost_s:.6g} s are spent" in found.sentences[0]


def test_a_first_trial_is_expected_to_take_its_window() -> None:
    """Nobody knows yet what it costs besides."""
    for deadline_s, asks in ((60.0, True), (59.0, False)):
        goal = msgspec.structs.replace(GOAL, deadline_s=deadline_s)
        assert isinstance(Climb(goal).ask(), TrialRequest) is asks


def test_what_a_trial_costs_besides_its_window_is_learnt_from_those_measured() -> None:
    goal = msgspec.structs.replace(GOAL, deadline_s=4 * 60 + 3 * 15.0 + 24.9)
    policy = Climb(goal)
    for order, cost_s in enumerate((70.0, 80.0, 75.0)):
        asked = policy.ask()
        assert isinstance(asked, TrialRequest)
        policy.tell(msgspec.structs.replace(trial(asked, order, 20.0), cost_s=cost_s))
    assert isinstance(policy.ask(), TrialRequest), "225 s spent, 75 s expected, 309.9 s allowed"
    policy = Climb(msgspec.structs.replace(GOAL, deadline_s=299.0))
    for order, cost_s in enumerate((70.0, 80.0, 75.0)):
        asked = policy.ask()
        assert isinstance(asked, TrialRequest)
        policy.tell(msgspec.structs.replace(trial(asked, order, 20.0), cost_s=cost_s))
    assert isinstance(policy.ask(), PeakRate), "one second less than that"


@pytest.mark.parametrize(
    ("rate", "verdict"),
    [
        (Interval(100.0, 95.0, 105.0, 5), PeakVerdict.FOUND),
        (Interval(100.0, 90.0, 110.0, 5), PeakVerdict.FOUND),
        (Interval(100.0, 90.0, 110.1, 5), PeakVerdict.GAVE_UP),
        (Interval(100.0, 60.0, 140.0, 5), PeakVerdict.GAVE_UP),
        (Interval(100.0, None, None, 5), PeakVerdict.GAVE_UP),
        (None, PeakVerdict.GAVE_UP),
    ],
)
def test_found_means_as_accurate_as_was_asked(rate: Interval | None, verdict: PeakVerdict) -> None:
    """Whatever a policy thinks of its trials: ± 10% of the rate, or it is not found."""
    found = told(Climb(rate=rate))
    assert found.verdict is verdict
    assert found.rate_per_s == rate
    assert found.sentences[0].startswith("Ten are enough.")
    assert ("10.0% was asked" in found.sentences[0]) is (verdict is PeakVerdict.GAVE_UP)


@pytest.mark.parametrize("verdict", [PeakVerdict.ALWAYS_SATURATED, PeakVerdict.NEVER_SATURATED])
def test_where_the_rate_is_out_of_reach_none_is_told(verdict: PeakVerdict) -> None:
    found = told(Climb(rate=Interval(100.0, 95.0, 105.0, 9), verdict=verdict))
    assert (found.verdict, found.rate_per_s, found.accuracy) == (verdict, None, None)


def test_found_follows_the_accuracy_of_the_goal() -> None:
    rate = Interval(100.0, 97.0, 103.0, 5)
    for accuracy, verdict in ((0.97, PeakVerdict.FOUND), (0.98, PeakVerdict.GAVE_UP)):
        goal = msgspec.structs.replace(GOAL, accuracy=accuracy)
        found = told(Climb(goal, rate=rate))
        assert found.verdict is verdict
        assert found.accuracy == pytest.approx(0.97)


def test_a_policy_that_states_no_interval_claims_no_accuracy() -> None:
    policy = Climb(rate=Interval(100.0, None, None, 5))
    policy.states_interval = False
    found = told(policy)
    assert (found.verdict, found.accuracy) == (PeakVerdict.FOUND, None)


def test_an_answer_so_far_never_claims_to_be_found() -> None:
    policy = Climb(rate=Interval(100.0, 99.0, 101.0, 5))
    so_far = policy.answer_now()
    assert (so_far.verdict, so_far.limited_by) == (PeakVerdict.DEADLINE, "time")
    found = told(policy)
    assert policy.answer_now() == found


def test_only_the_last_trial_is_tried_again_when_it_failed() -> None:
    policy = Climb()
    for order, state in enumerate((TrialState.FAILED, TrialState.DONE, TrialState.FAILED)):
        asked = policy.ask()
        assert isinstance(asked, TrialRequest)
        assert asked.rate_per_s == (10.0, 10.0, 30.0)[order]
        policy.tell(trial(asked, order, 20.0, state))
    assert policy.ask() == asked


@pytest.mark.parametrize("before", range(6))
def test_failures_count_wherever_they_come(before: int) -> None:
    policy = Climb()
    for order in range(before):
        policy.tell(trial(TrialRequest(rate_per_s=10.0, seconds=60.0), order, 20.0))
    for order in range(3):
        assert isinstance(policy.ask(), TrialRequest)
        request = TrialRequest(rate_per_s=10.0, seconds=60.0)
        policy.tell(trial(request, before + order, state=TrialState.FAILED))
    ended = policy.ask()
    assert isinstance(ended, PeakRate)
    assert ended.verdict is PeakVerdict.FAILED


def test_three_failures_in_a_row_and_no_fewer_end_a_search() -> None:
    policy = Climb()
    for order, fails in enumerate((True, True, False, True, True)):
        asked = policy.ask()
        assert isinstance(asked, TrialRequest)
        state = TrialState.FAILED if fails else TrialState.DONE
        policy.tell(trial(asked, order, 20.0, state))
        if fails:
            assert policy.ask() == asked
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    last = trial(asked, 5, state=TrialState.FAILED)
    policy.tell(msgspec.structs.replace(last, failure="the disk is full"))
    found = policy.ask()
    assert isinstance(found, PeakRate)
    assert (found.verdict, found.limited_by) == (PeakVerdict.FAILED, "unknown")
    assert found.sentences == ("3 trials in a row failed: the disk is full",)
    assert found.cost_s == 5 * SET_UP_S + 75.0


@pytest.mark.parametrize(
    ("offered_per_s", "ceiling_per_s"), [(8.0, 8.0 * 0.95), (None, 5.0), (12.0, 5.0)]
)
def test_a_generator_that_falls_short_twice_lowers_the_ceiling(
    offered_per_s: float | None, ceiling_per_s: float
) -> None:
    """To 95% of what it offered, or to half where it does not say less than was asked."""
    policy = Climb(msgspec.structs.replace(GOAL, rate_max_per_s=10.0))
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    policy.tell(limited(asked, 0, offered_per_s))
    assert policy.ask() == asked, "once is chance"
    assert policy.ceiling_per_s == 10.0
    policy.tell(limited(asked, 1, offered_per_s))
    assert policy.ceiling_per_s == pytest.approx(ceiling_per_s)


def test_a_ceiling_is_never_below_what_was_offered_before() -> None:
    policy = Climb()
    held = TrialRequest(rate_per_s=50.0, seconds=60.0)
    policy.tell(trial(held, 0, 20.0))
    beyond = TrialRequest(rate_per_s=60.0, seconds=60.0)
    for order in (1, 2):
        policy.tell(limited(beyond, order, 40.0))
    assert policy.ceiling_per_s == 50.0


@pytest.mark.parametrize(
    ("state", "times", "verdict"),
    [
        (TrialState.GENERATOR_LIMITED, 8, PeakVerdict.GENERATOR_LIMITED),
        (TrialState.SERVER_LOST, 16, PeakVerdict.SERVER_LOST),
    ],
)
def test_what_happens_again_and_again_ends_a_search(
    state: TrialState, times: int, verdict: PeakVerdict
) -> None:
    policy = Climb()
    for order in range(times):
        assert isinstance(policy.ask(), TrialRequest), order
        request = TrialRequest(rate_per_s=20.0 + order // 2, seconds=60.0)
        policy.tell(trial(request, order, state=state))
    found = policy.ask()
    assert isinstance(found, PeakRate)
    assert found.verdict is verdict


def test_the_floor_is_a_hundred_requests_a_run_or_a_sixteenth_of_the_start() -> None:
    """But never a thousandth of it, and never above what the generator may offer."""
    policy = Climb(msgspec.structs.replace(GOAL, run_length_s=100.0))
    assert policy.floor_per_s(50.0) == 1.0
    assert policy.floor_per_s(8.0) == 0.5
    assert policy.floor_per_s(1e9) == 1.0, "the goal's start counts where it is lower"
    assert policy.floor_per_s(0.0) == pytest.approx(0.01 / 16)
    long = Climb(msgspec.structs.replace(GOAL, run_length_s=1e6))
    assert long.floor_per_s(50.0) == 50.0 / 1024
    low = Climb(msgspec.structs.replace(GOAL, rate_max_per_s=8.0, run_length_s=100.0))
    assert low.floor_per_s(50.0) == 0.5


@pytest.mark.parametrize(
    ("prior_per_s", "first_per_s"), [(None, 50.0), (70.0, 70.0), (1e4, 300.0), (1e-6, 100 / 180)]
)
def test_the_first_load_is_the_priors_within_reach(
    prior_per_s: float | None, first_per_s: float
) -> None:
    policy = Climb(msgspec.structs.replace(GOAL, rate_max_per_s=300.0))
    prior = None if prior_per_s is None else Prior(rate_per_s=prior_per_s)
    assert policy.first_load_per_s(prior) == pytest.approx(first_per_s)


def test_a_server_that_holds_all_that_can_be_offered_has_a_generator_that_is_the_limit() -> None:
    """By name where it was seen to fall short, by the highest rate where it may offer no more."""
    policy = Climb(msgspec.structs.replace(GOAL, rate_max_per_s=10.0))
    never = policy._at_ceiling()
    assert never.verdict is PeakVerdict.NEVER_SATURATED
    assert never.sentence.startswith("Not saturated at 10 requests/s")
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    policy.tell(limited(asked, 0, 8.0))
    assert policy._at_ceiling().verdict is PeakVerdict.GENERATOR_LIMITED
