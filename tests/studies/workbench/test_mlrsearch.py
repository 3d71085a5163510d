"""MLRsearch: load classification and relevant bounds of RFC 9971, with response-time goals."""

from __future__ import annotations

import itertools

import msgspec
import pytest

from leadline.record.workbench import (
    Goal,
    Measured,
    PeakRate,
    PeakVerdict,
    Prior,
    Threshold,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.policies import open_policy
from leadline.studies.workbench.policies.mlrsearch import (
    Bound,
    MlrSearch,
    Target,
    _narrow,
    classify,
    is_bad,
    targets,
)
from scripted_server import measured, one_queue, search, trial

GOAL = Goal(threshold=Threshold(mean_ms=40.0))
LAST = Target(0.05, 60.0, 180.0)
GOOD, BAD = (60.0, False), (60.0, True)


def test_the_targets_are_coarse_to_fine() -> None:
    """Width 5%, trials 20 to 60 s, duration sum 180 s, two preceding targets."""
    first, second, last = targets(GOAL)
    assert (last.width_frac, last.trial_s, last.sum_s) == pytest.approx((0.05, 60, 180))
    assert (second.width_frac, second.trial_s, second.sum_s) == pytest.approx((1 - 0.95**2, 60, 60))
    assert (first.width_frac, first.trial_s, first.sum_s) == pytest.approx((1 - 0.95**4, 20, 20))


@pytest.mark.parametrize(
    ("trials", "bound"),
    [
        ([], Bound.UNDECIDED),
        ([GOOD], Bound.UNDECIDED),
        ([GOOD, GOOD], Bound.LOWER),
        ([BAD, BAD], Bound.UPPER),
        ([GOOD, BAD], Bound.UNDECIDED),
        ([GOOD, BAD, GOOD], Bound.LOWER),
        ([GOOD, BAD, BAD], Bound.UPPER),
        ([(20.0, False)] * 9, Bound.UNDECIDED),
        ([(20.0, True)] * 9, Bound.UPPER),
        ([(20.0, True)] * 4, Bound.UNDECIDED),
        ([(20.0, True)] * 5, Bound.UPPER),
        ([(20.0, True)] * 5 + [(20.0, False)], Bound.UNDECIDED),
    ],
)
def test_a_load_is_classified_when_what_is_missing_cannot_change_it(
    trials: list[tuple[float, bool]], bound: Bound
) -> None:
    assert classify(trials, LAST) is bound


def test_every_sequence_of_full_trials_to_the_sum_is_classified_by_its_majority() -> None:
    for bads in itertools.product([True, False], repeat=3):
        bound = Bound.UPPER if sum(bads) >= 2 else Bound.LOWER
        assert classify([(60.0, bad) for bad in bads], LAST) is bound


def outcome(window: Measured, state: TrialState = TrialState.DONE) -> Trial:
    request = TrialRequest(rate_per_s=100.0, seconds=60.0)
    return msgspec.structs.replace(trial(request, 0, 20.0), measured=window, state=state)


def test_a_trial_is_bad_by_its_response_or_by_what_it_did_not_complete() -> None:
    quick = measured(100.0, 60.0, 20.0)
    assert is_bad(GOAL, outcome(quick)) is False
    assert is_bad(GOAL, outcome(measured(100.0, 60.0, 40.5))) is True
    short = msgspec.structs.replace(quick, completed_per_s=97.0)
    assert is_bad(GOAL, outcome(short)) is True
    under_way = msgspec.structs.replace(quick, completed_per_s=98.0 - 4.0 / 60 + 0.01)
    assert is_bad(GOAL, outcome(under_way)) is False
    assert is_bad(GOAL, outcome(quick, TrialState.ABORTED)) is True
    assert is_bad(GOAL, outcome(quick, TrialState.SERVER_LOST)) is True
    assert is_bad(GOAL, outcome(quick, TrialState.FAILED)) is None


def in_detail(answer: PeakRate | TrialRequest) -> tuple[float, float, float]:
    assert isinstance(answer, PeakRate)
    assert answer.verdict is PeakVerdict.FOUND
    assert answer.rate_per_s is not None
    assert (answer.rate_per_s.low, answer.rate_per_s.high, answer.accuracy) == (None, None, None)
    low, high = answer.lower_bound_per_s, answer.upper_bound_per_s
    assert low is not None
    assert high is not None
    return low, answer.rate_per_s.value, high


@pytest.mark.parametrize("capacity", [90.0, 310.0, 1000.0, 7000.0, 60_000.0])
def test_it_brackets_the_peak_within_the_width(capacity: float) -> None:
    answer, trials = search(open_policy("mlrsearch", GOAL, 1), one_queue(capacity), noise=1e-4)
    low, value, high = in_detail(answer)
    assert low <= capacity - 25 <= high
    assert 1 - low / high <= 0.05 + 1e-9
    assert low < value < high
    for bound in (low, high):
        final = [t.request.seconds for t in trials if t.request.rate_per_s == bound]
        assert sum(seconds >= 60 for seconds in final) >= 2
    assert len(trials) <= 24


def test_most_of_its_trials_are_near_the_peak_and_the_first_are_short() -> None:
    _, trials = search(open_policy("mlrsearch", GOAL, 1), one_queue(1000.0), noise=1e-4)
    assert trials[0].request.seconds == pytest.approx(20)
    near = [t for t in trials if 0.85 < t.request.rate_per_s / 975 < 1.15]
    assert len(near) >= len(trials) / 2
    assert {round(t.request.seconds) for t in trials} == {20, 60}


def test_a_seed_spares_the_search_for_the_first_bounds() -> None:
    _, unseeded = search(open_policy("mlrsearch", GOAL, 1), one_queue(1000.0), noise=1e-4)
    policy = open_policy("mlrsearch", GOAL, 1, Prior(rate_per_s=960))
    answer, seeded = search(policy, one_queue(1000.0), noise=1e-4)
    assert seeded[0].request.rate_per_s == 960
    assert len(seeded) < len(unseeded)
    in_detail(answer)


def test_an_overload_says_with_its_completions_where_to_go() -> None:
    policy = open_policy("mlrsearch", GOAL, 1, Prior(rate_per_s=2000))
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    overloaded = msgspec.structs.replace(measured(2000, 20, 5e3), completed_per_s=1000.0)
    policy.tell(msgspec.structs.replace(trial(asked, 0, 5e3), measured=overloaded))
    then = policy.ask()
    assert isinstance(then, TrialRequest)
    assert then.rate_per_s == pytest.approx(1000 * 0.95**4)


def test_the_lower_bound_is_below_the_upper_one_whatever_is_good_above() -> None:
    policy = open_policy("mlrsearch", GOAL, 1)
    means_ms = ((100.0, 10.0), (300.0, 10.0), (200.0, 90.0), (400.0, 90.0))
    for order, (rate, mean_ms) in enumerate(means_ms * 2):
        policy.tell(trial(TrialRequest(rate_per_s=rate, seconds=60.0), order, mean_ms))
    answer = policy.answer_now()
    assert (answer.lower_bound_per_s, answer.upper_bound_per_s) == (100, 200)
    assert answer.findings[0].code == "bounds_irregular"


def test_contradicting_trials_are_named() -> None:
    policy = open_policy("mlrsearch", GOAL, 1)
    for order, (rate, mean_ms) in enumerate([(200.0, 20.0), (200.0, 45.0), (190.0, 90.0)]):
        assert not policy.answer_now().findings
        policy.tell(trial(TrialRequest(rate_per_s=rate, seconds=60.0), order, mean_ms))
    assert policy.answer_now().findings[0].code == "trials_contradict"


def test_never_and_always_saturated_are_said_with_the_bound() -> None:
    goal = Goal(threshold=Threshold(mean_ms=40.0), rate_max_per_s=700)
    never, trials = search(open_policy("mlrsearch", goal, 1), one_queue(5000))
    assert never.verdict is PeakVerdict.NEVER_SATURATED
    assert never.lower_bound_per_s == 700
    assert max(t.request.rate_per_s for t in trials) == 700
    always, _ = search(open_policy("mlrsearch", GOAL, 1), lambda _: 90.0)
    assert always.verdict is PeakVerdict.ALWAYS_SATURATED
    assert always.lower_bound_per_s is None
    assert always.upper_bound_per_s is not None
    assert always.upper_bound_per_s < 1


def test_its_bounds_are_those_of_the_rfc_not_of_an_interval() -> None:
    """Two good trials and a bad one far off: a lower bound, whatever the mean of the three is."""
    policy = open_policy("mlrsearch", GOAL, 1)
    for order, (rate, mean_ms) in enumerate(
        [(200.0, 30.0), (200.0, 150.0), (200.0, 31.0), (210.0, 90.0), (210.0, 90.0)]
    ):
        policy.tell(trial(TrialRequest(rate_per_s=rate, seconds=60.0), order, mean_ms))
    low, value, high = in_detail(policy.ask())
    assert (low, value, high) == (200, 205, 210)


def test_what_is_good_below_the_lowest_bad_load_is_not_irregular() -> None:
    policy = open_policy("mlrsearch", GOAL, 1)
    for order, (rate, mean_ms) in enumerate(((100.0, 10.0), (200.0, 90.0)) * 2):
        policy.tell(trial(TrialRequest(rate_per_s=rate, seconds=60.0), order, mean_ms))
    assert policy.answer_now().findings == ()


def searched(*trials: tuple[float, float, float]) -> MlrSearch:
    """A search told of trials: load, response in ms, completions a second; each of 60 s."""
    policy = MlrSearch(GOAL, 1, None)
    for order, (rate, mean_ms, completed) in enumerate(trials):
        request = TrialRequest(rate_per_s=rate, seconds=60.0)
        window = msgspec.structs.replace(measured(rate, 60.0, mean_ms), completed_per_s=completed)
        policy.tell(msgspec.structs.replace(trial(request, order, mean_ms), measured=window))
    return policy


@pytest.mark.parametrize(
    ("upper", "completed", "lower", "between"),
    [
        (2000.0, 1000.0, 500.0, 950.0),
        (2000.0, 1000.0, 902.0, 950.0),
        (2000.0, 1000.0, 903.0, 1000.0),
        (2000.0, 1000.0, 960.0, 960 / 0.95),
        (2000.0, 1000.0, 1000.0, (1000.0 * 2000.0) ** 0.5),
        (2000.0, 1961.0, 500.0, 1000.0),
        (1100.0, 1000.0, 897.0, (897.0 * 1100.0) ** 0.5),
        (1100.0, 1000.0, 895.0, 950.0),
    ],
)
def test_between_the_bounds_an_overloads_completions_lead_the_way(
    upper: float, completed: float, lower: float, between: float
) -> None:
    """A step below them first, then they themselves; near the lower bound, or led by none, halved.

    Led by none: 98% of what was due was done, or the lower bound is beyond, or four widths off.
    """
    policy = searched((lower, 20.0, lower), (upper, 5e3, completed))
    assert policy._between(lower, upper, LAST) == pytest.approx(between)


def test_ends_of_the_target_before_are_tried_from_the_lower_one() -> None:
    """The middle first while they are wide apart; no end that is told, or beyond a new bound."""
    wide = (100.0, 200.0)
    assert searched()._untried(LAST, wide, None, None) == pytest.approx(20_000**0.5)
    assert searched()._untried(LAST, (None, 200.0), None, None) is None
    narrow = (100.0, 104.0)
    assert searched()._untried(LAST, narrow, None, None) == 100.0
    assert searched()._untried(LAST, wide, None, 150.0) == 100.0
    assert searched()._untried(LAST, wide, None, 90.0) is None
    assert searched()._untried(LAST, wide, 150.0, None) == 200.0
    assert searched()._untried(LAST, wide, 250.0, None) is None
    told = searched(*[(100.0, 20.0, 100.0)] * 3, *[(104.0, 90.0, 104.0)] * 3)
    assert told._untried(LAST, narrow, 100.0, None) is None
    assert told._untried(LAST, narrow, None, 104.0) is None


def test_steps_outwards_are_squared_while_they_are_of_no_use() -> None:
    good = [(rate, 20.0, rate) for rate in (50.0, 60.0, 70.0, 80.0)]
    twice = [trial for trial in good for _ in range(3)]
    for loads, step in ((0, 1.1), (1, 1.1), (2, 1.21), (3, 1.4641), (4, 1.4641**2)):
        policy = searched(*twice[: 3 * loads])
        assert policy._step(1.1, Bound.LOWER, LAST) == pytest.approx(step), loads
        assert policy._step(1.1, Bound.UPPER, LAST) == 1.1
    assert searched(*twice)._step(16.0, Bound.LOWER, LAST) == 16.0
    assert searched(*twice)._step(3.0, Bound.LOWER, LAST) == 16.0


def test_a_trial_is_given_up_at_four_times_the_threshold() -> None:
    asked = open_policy("mlrsearch", GOAL, 1).ask()
    assert isinstance(asked, TrialRequest)
    assert asked.abort_above_ms == 160.0
    tail = Goal(threshold=Threshold(percentile=0.95, limit_ms=100.0))
    of_tail = open_policy("mlrsearch", tail, 1).ask()
    assert isinstance(of_tail, TrialRequest)
    assert of_tail.abort_above_ms == 400.0


def test_a_search_that_knows_nothing_rises_by_sixteen_and_one_with_a_seed_by_a_width() -> None:
    for prior, start, second in ((None, 50.0, 800.0), (Prior(rate_per_s=600.0), 600.0, 711.3)):
        policy = open_policy("mlrsearch", GOAL, 1, prior)
        asked = policy.ask()
        assert isinstance(asked, TrialRequest)
        assert asked.rate_per_s == start
        policy.tell(trial(asked, 0, 20.0))
        then = policy.ask()
        assert isinstance(then, TrialRequest)
        assert then.rate_per_s == pytest.approx(second, abs=0.1), "600 and 1 - 0.95^4 of it"


def contradictions(*trials: tuple[float, float]) -> int:
    policy = searched(*[(rate, 40.0 * ratio, rate) for rate, ratio in trials])
    return len(policy._contradictions())


def test_clearly_bad_is_twice_the_threshold_and_clearly_good_three_fifths_of_it() -> None:
    assert contradictions((200.0, 2.01), (200.0, 0.59)) == 1, "at one load"
    assert contradictions((200.0, 2.01), (210.0, 0.59)) == 1
    assert contradictions((200.0, 2.01), (190.0, 0.59)) == 0
    assert contradictions((200.0, 1.99), (210.0, 0.59)) == 0
    assert contradictions((200.0, 2.01), (210.0, 0.61)) == 0
    assert contradictions((200.0, 2.01)) == contradictions((200.0, 0.1)) == 0
    # The lowest that was bad and the highest that was good, whatever lies between.
    assert contradictions((300.0, 2.01), (200.0, 2.01), (250.0, 0.1), (100.0, 0.1)) == 1
    (found,) = searched(
        (300.0, 90.0, 300.0), (200.0, 90.0, 200.0), (250.0, 4.0, 250.0), (100.0, 4.0, 100.0)
    )._contradictions()
    assert "200 requests/s was clearly too much in one, 250 clearly not" in str(found)


def test_trials_of_the_targets_own_length_are_full_and_contest_a_load() -> None:
    both = searched((200.0, 20.0, 200.0), (200.0, 90.0, 200.0))
    assert both._contested(LAST, None, None) == 200.0
    assert both._contested(LAST, 190.0, 210.0) == 200.0
    assert both._contested(LAST, 210.0, None) is None
    assert both._contested(LAST, None, 190.0) is None
    assert both._contested(Target(0.05, 61.0, 180.0), None, None) is None, "they are short"
    assert searched((200.0, 20.0, 200.0))._contested(LAST, None, None) is None
    told = searched(*[(200.0, 20.0, 200.0)] * 2, *[(200.0, 90.0, 200.0)] * 1)
    assert told._contested(LAST, None, None) is None


def test_bounds_are_narrow_at_exactly_the_width_however_it_is_rounded() -> None:
    """1 - 95 / 100 is a little more than 0.05."""
    assert 1 - 95.0 / 100.0 > 0.05
    assert _narrow(95.0, 100.0, LAST)
    assert not _narrow(94.999, 100.0, LAST)


@pytest.mark.parametrize(
    ("trials", "bound"),
    [
        ([(90.0, True), (60.0, False)], Bound.UNDECIDED),
        ([(90.0, True), (60.0, False), (0.5, True)], Bound.UPPER),
        ([(90.0, True), (60.0, False), (0.5, True), (0.5, False)], Bound.UNDECIDED),
        ([(90.0, True), (60.0, False), (5.0, True), (2.0, False)], Bound.UPPER),
        ([(89.5, False), (20.0, True)], Bound.UNDECIDED),
        ([(90.0, False), (20.0, True)], Bound.LOWER),
        ([(90.0, False), (90.0, True)], Bound.LOWER),
        ([(90.0, False), (90.5, True)], Bound.UPPER),
    ],
)
def test_just_half_of_the_time_may_be_bad(trials: list[tuple[float, bool]], bound: Bound) -> None:
    """90 s of 180: a short good trial takes as much of the short bad ones away."""
    assert classify(trials, LAST) is bound


def test_a_search_ends_downwards_where_a_trial_has_no_requests_left() -> None:
    """A hundred in a run of 180 s are 0.556/s."""
    asked = searched(*[(1.0, 90.0, 1.0)] * 3).ask()
    assert isinstance(asked, TrialRequest)
    assert asked.rate_per_s == pytest.approx(100 / 180)
    ended = searched(*[(100 / 180, 90.0, 100 / 180)] * 3).ask()
    assert isinstance(ended, PeakRate)
    assert ended.verdict is PeakVerdict.ALWAYS_SATURATED
    higher = searched(*[(9.0, 90.0, 9.0)] * 3, *[(100 / 180, 90.0, 100 / 180)] * 3).ask()
    assert isinstance(higher, PeakRate)
    assert "even at 0.555556 requests/s" in higher.sentences[0]
    lost = MlrSearch(GOAL, 1, None)
    request = TrialRequest(rate_per_s=100 / 180, seconds=60.0)
    for order in range(3):
        lost.tell(trial(request, order, state=TrialState.SERVER_LOST))
    ended = lost.ask()
    assert isinstance(ended, PeakRate)
    assert ended.verdict is PeakVerdict.SERVER_LOST


@pytest.mark.parametrize(("threshold", "least"), [((40.0, None), 5876), ((None, 200.0), 5860)])
def test_what_may_be_under_way_at_the_end_is_what_came_within_the_threshold(
    threshold: tuple[float | None, float | None], least: int
) -> None:
    """Of 6000 due at 100/s, 98% are 5880; 4 come in 40 ms, and 20 in 200."""
    mean_ms, limit_ms = threshold
    goal = Goal(
        threshold=Threshold(
            mean_ms=mean_ms, limit_ms=limit_ms, percentile=None if limit_ms is None else 0.95
        )
    )
    window = measured(100.0, 60.0, 20.0)
    for completed, bad in ((least + 0.5, False), (least - 0.5, True)):
        short = msgspec.structs.replace(window, completed_per_s=completed / 60)
        assert is_bad(goal, outcome(short)) is bad


def test_outside_of_what_is_known_a_finer_target_takes_a_step_of_its_width() -> None:
    good = searched(*[(200.0, 20.0, 200.0)] * 3)
    assert good._outside(LAST, 200.0, None) == pytest.approx(200.0 * 1.05)
    assert good._outside(good._targets[0], 200.0, None) == pytest.approx(200.0 * 16.0)
    bad = searched(*[(200.0, 90.0, 200.0)] * 3)
    assert bad._outside(LAST, None, 200.0) == pytest.approx(200.0 / 1.05)
    led = searched(*[(200.0, 90.0, 150.0)] * 3)
    assert led._outside(LAST, None, 200.0) == pytest.approx(150.0 * 0.95)
    assert searched()._outside(LAST, None, None) == 50.0
