"""SH08's policies on servers whose curve is a formula: load sequences, trials, answers."""

from __future__ import annotations

import msgspec
import pytest

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
from leadline.studies.workbench.conversation import Policy
from leadline.studies.workbench.policies import POLICIES, open_policy
from leadline.studies.workbench.policies.algorithm2 import Visit, bracket
from leadline.studies.workbench.policies.ladders import CLIMBS, pick_binary, pick_by_model, predict
from scripted_server import one_queue, search, trial

GOAL = Goal(threshold=Threshold(mean_ms=40.0))


def rates(trials: list[Trial]) -> list[float]:
    """Loads in the order of the search, each once."""
    return list(dict.fromkeys(trial.request.rate_per_s for trial in trials))


def visits(*pairs: tuple[float, float]) -> list[Visit]:
    return [Visit(rate, ratio) for rate, ratio in pairs]


def test_binary_search_doubles_from_fifty_and_then_halves() -> None:
    """Algorithm 3 on R = 1000 / (1000 - λ), whose peak is 975: every load is known beforehand."""
    answer, trials = search(open_policy("binary", GOAL, 1), one_queue(1000.0), noise=0.001)
    assert rates(trials) == [50, 100, 200, 400, 800, 1600, 1200, 1000, 900, 950, 975]
    assert {trial.request.seconds for trial in trials} == {180.0}
    assert len(trials) == 22
    assert answer.verdict is PeakVerdict.FOUND
    assert answer.rate_per_s is not None
    assert answer.rate_per_s.value == 975
    assert (answer.lower_bound_per_s, answer.upper_bound_per_s) == (950, 1000)


def test_a_seed_below_is_doubled_and_one_above_is_halved() -> None:
    policy = open_policy("binary-seeded", GOAL, 1, Prior(rate_per_s=900))
    below, seeded = search(policy, one_queue(1000.0), noise=0.001)
    policy = open_policy("binary-seeded", GOAL, 1, Prior(rate_per_s=1300))
    above, trials = search(policy, one_queue(1000.0), noise=0.001)
    assert below.verdict is PeakVerdict.FOUND
    assert rates(seeded)[:4] == [900, 1800, 1350, 1125]
    assert rates(trials)[:4] == [1300, 650, 975]
    assert above.verdict is PeakVerdict.FOUND


def test_a_policy_without_seeding_leaves_the_prior_alone() -> None:
    asked = open_policy("binary", GOAL, 1, Prior(rate_per_s=900)).ask()
    assert isinstance(asked, TrialRequest)
    assert asked.rate_per_s == 50


def test_trials_go_on_at_a_load_that_may_be_the_peak_and_stop_at_the_accuracy() -> None:
    answer, trials = search(open_policy("binary", GOAL, 1), one_queue(1000.0), noise=0.15)
    assert answer.verdict is PeakVerdict.FOUND
    assert answer.rate_per_s is not None
    last = [t for t in trials if t.request.rate_per_s == answer.rate_per_s.value]
    far = [t for t in trials if t.request.rate_per_s == 50]
    assert len(far) == 2
    assert len(last) >= 6
    assert f"from {len(last)} trials" in answer.sentences[0]


def test_the_bracket_is_below_the_lowest_saturated_load() -> None:
    assert bracket(visits((50, 0.2), (100, 2.0), (75, 0.5), (200, 0.6))) == (75, 100)
    assert bracket(visits((50, 2.0))) == (None, 50)
    assert bracket(visits((50, 0.2))) == (50, None)


def test_the_first_saturated_load_ends_the_doubling_whatever_comes_later() -> None:
    assert pick_binary([], 50) == 50
    assert pick_binary(visits((50, 0.1), (100, 0.2)), 50) == 200
    assert pick_binary(visits((50, 0.1), (100, 3.0)), 50) == 75
    assert pick_binary(visits((50, 0.1), (100, 3.0), (75, 0.5)), 50) == 87.5
    assert pick_binary(visits((50, 2.0)), 50) == 25


def test_a_step_over_the_region_ends_between_its_ends() -> None:
    def step(rate_per_s: float) -> float:
        return 10.0 if rate_per_s < 613 else 400.0

    answer, trials = search(open_policy("binary", GOAL, 1), step)
    assert answer.verdict is PeakVerdict.FOUND
    assert answer.rate_per_s is not None
    low, high = answer.rate_per_s.low, answer.rate_per_s.high
    assert low is not None
    assert high is not None
    assert low < 613 <= high <= low * 1.006
    assert high >= low * 1.001
    assert "steps over" in answer.sentences[0]
    assert sum(t.request.rate_per_s == low for t in trials) == 4


def test_never_saturated_up_to_the_highest_rate() -> None:
    goal = Goal(threshold=Threshold(mean_ms=40.0), rate_max_per_s=700)
    answer, trials = search(open_policy("binary", goal, 1), one_queue(5000))
    assert answer.verdict is PeakVerdict.NEVER_SATURATED
    assert rates(trials) == [50, 100, 200, 400, 700]
    assert answer.rate_per_s is None
    assert answer.lower_bound_per_s == 700
    assert "700" in answer.sentences[0]


def test_always_saturated_down_to_the_floor() -> None:
    answer, trials = search(open_policy("binary", GOAL, 1), lambda _: 90.0)
    assert answer.verdict is PeakVerdict.ALWAYS_SATURATED
    assert rates(trials)[:3] == [50, 25, 12.5]
    assert answer.upper_bound_per_s == pytest.approx(50 / 64)
    assert answer.lower_bound_per_s is None


def tell_all(policy: Policy, outcome: dict[float, TrialState], at_most: int = 60) -> PeakRate:
    """Answer 20 ms, or the state that this rate or a lower one is listed with."""
    for order in range(at_most):
        asked = policy.ask()
        if isinstance(asked, PeakRate):
            return asked
        listed = [rate for rate in outcome if asked.rate_per_s >= rate]
        state = outcome[max(listed)] if listed else TrialState.DONE
        policy.tell(trial(asked, order, 20.0, state))
    raise AssertionError("no answer")


def test_a_generator_that_falls_short_is_asked_for_less_and_named() -> None:
    answer = tell_all(open_policy("binary", GOAL, 1), {300.0: TrialState.GENERATOR_LIMITED})
    assert answer.verdict is PeakVerdict.GENERATOR_LIMITED
    assert answer.limited_by == "generator"
    assert answer.lower_bound_per_s == 200


def test_a_load_that_kills_the_server_bounds_the_peak() -> None:
    answer = tell_all(open_policy("binary", GOAL, 1), {300.0: TrialState.SERVER_LOST})
    assert answer.verdict is PeakVerdict.SERVER_LOST
    assert answer.rate_per_s is None
    assert answer.lower_bound_per_s is not None
    assert answer.upper_bound_per_s is not None
    assert 270 <= answer.lower_bound_per_s < 300 <= answer.upper_bound_per_s <= 310


def test_three_failures_in_a_row_end_it_with_the_reason() -> None:
    answer = tell_all(open_policy("binary", GOAL, 1), {200.0: TrialState.FAILED})
    assert answer.verdict is PeakVerdict.FAILED
    assert "scripted: failed" in answer.sentences[0]
    assert answer.trials == 7


def test_one_failure_is_tried_again() -> None:
    policy = open_policy("binary", GOAL, 1)
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    policy.tell(trial(asked, 0, state=TrialState.FAILED))
    assert policy.ask() == asked


def test_the_deadline_is_answered_with_what_is_known() -> None:
    goal = Goal(threshold=Threshold(mean_ms=40.0), deadline_s=195.0 * 17)
    answer, trials = search(open_policy("binary", goal, 1), one_queue(1000.0), noise=0.001)
    assert len(trials) == 17
    assert answer.verdict is PeakVerdict.DEADLINE
    assert answer.rate_per_s is not None
    assert (answer.rate_per_s.low, answer.rate_per_s.high) == (800, 1000)
    assert "deadline" in answer.sentences[0]


def test_linear_search_rises_by_its_first_load_and_then_halves() -> None:
    answer, trials = search(open_policy("linear", GOAL, 1), one_queue(300.0), noise=0.001)
    assert rates(trials) == [50, 100, 150, 200, 250, 300, 275]
    assert answer.verdict is PeakVerdict.FOUND
    assert len(trials) == 14


def test_linear_search_with_a_seed_begins_there() -> None:
    policy = open_policy("linear-seeded", GOAL, 1, Prior(rate_per_s=190))
    _, trials = search(policy, one_queue(300.0), noise=0.001)
    assert rates(trials)[:4] == [190, 240, 290, 265]


def test_the_model_goes_through_both_loads() -> None:
    """R = 1000 / (500 - λ) over 40 ms is 25 / (500 - λ): at the threshold at 475."""
    found = predict(Visit(100, 25 / 400), Visit(50, 25 / 450))
    assert found == pytest.approx(475)
    assert predict(Visit(100, 0.4), Visit(50, 0.5)) is None


def test_model_guided_search_begins_with_two_loads_and_then_trusts_the_model() -> None:
    """Algorithm 4: the curve is the model's own, so the third load is the peak."""
    answer, trials = search(open_policy("model-guided", GOAL, 1), one_queue(500.0), noise=1e-5)
    assert rates(trials) == [50, 100, pytest.approx(475, rel=0.01)]
    assert answer.verdict is PeakVerdict.FOUND
    policy = open_policy("model-guided-seeded", GOAL, 1, Prior(rate_per_s=490))
    _, seeded = search(policy, one_queue(500.0), noise=1e-5)
    assert rates(seeded) == [490, 245, pytest.approx(475, rel=0.01)]


def test_the_model_is_learned_from_the_last_load_and_the_one_nearest_to_the_threshold() -> None:
    seen = visits((100, 25 / 400), (480, 1.25), (50, 25 / 450), (300, 25 / 200 * 1.3))
    nearest = predict(seen[3], seen[1])
    assert pick_by_model(seen, 50) == nearest


def test_a_model_that_says_nothing_doubles_or_halves() -> None:
    assert pick_by_model([], 50) == 50
    assert pick_by_model(visits((50, 0.3)), 50) == 100
    assert pick_by_model(visits((50, 1.3)), 50) == 25
    assert pick_by_model(visits((50, 0.4), (100, 0.3)), 50) == 200
    assert pick_by_model(visits((50, 0.300), (100, 0.3001)), 50) == 1000


def test_the_strawman_spends_ten_long_trials_at_every_load() -> None:
    answer, trials = search(open_policy("strawman", GOAL, 1), one_queue(300.0))
    assert rates(trials) == [50, 100, 150, 200, 250, 300]
    assert len(trials) == 60
    assert {t.request.seconds for t in trials} == {300.0}
    assert answer.verdict is PeakVerdict.FOUND
    assert answer.rate_per_s is not None
    assert answer.rate_per_s.value == 250
    assert (answer.lower_bound_per_s, answer.upper_bound_per_s) == (250, 300)
    assert answer.accuracy is None


def test_increment_run_length_and_trials_of_the_strawman_are_the_goals() -> None:
    goal = msgspec.structs.replace(GOAL, increment_per_s=20, trial_length_s=60, trials=3)
    answer, trials = search(open_policy("strawman", goal, 1), one_queue(150.0))
    assert rates(trials) == [50, 70, 90, 110, 130]
    assert len(trials) == 5 * 3
    assert {t.request.seconds for t in trials} == {60.0}
    assert answer.run_length_s == 60, "what the peak is the peak of"
    assert answer.rate_per_s is not None
    assert (answer.rate_per_s.value, answer.rate_per_s.n) == (110, 6)
    usual, _ = search(open_policy("strawman", GOAL, 1), one_queue(150.0))
    assert usual.run_length_s == 300


def test_increment_run_length_and_trials_of_linear_are_the_goals() -> None:
    goal = msgspec.structs.replace(GOAL, increment_per_s=20, trial_length_s=60, trials=5)
    for name, prior in (("linear", None), ("linear-seeded", Prior(rate_per_s=60))):
        answer, trials = search(open_policy(name, goal, 1, prior), one_queue(300.0), noise=0.001)
        first = 50 if prior is None else 60
        assert rates(trials)[:3] == [first, first + 20, first + 40]
        assert {t.request.seconds for t in trials} == {60.0}
        assert [t.request.rate_per_s for t in trials[:6]] == [first] * 5 + [first + 20]
        assert (answer.verdict, answer.run_length_s) == (PeakVerdict.FOUND, 60)
    once = msgspec.structs.replace(GOAL, trials=1)
    _, trials = search(open_policy("linear", once, 1), one_queue(300.0), noise=0.001)
    assert [t.request.rate_per_s for t in trials[:3]] == [50, 50, 100], "one has no interval"
    assert CLIMBS["linear"](once).trials == 2


def test_policies_that_do_not_climb_leave_increment_and_trials_alone() -> None:
    goal = msgspec.structs.replace(GOAL, increment_per_s=20, trial_length_s=60, trials=5)
    climbs = {name for name in POLICIES if name in CLIMBS}
    assert climbs == {"strawman", "linear", "linear-seeded"}
    for name in POLICIES.keys() - climbs:
        assert open_policy(name, goal, 1).ask() == open_policy(name, GOAL, 1).ask(), name


def test_the_strawman_ends_at_its_first_load_or_at_the_generators_last() -> None:
    saturated, _ = search(open_policy("strawman", GOAL, 1), lambda _: 90.0)
    assert saturated.verdict is PeakVerdict.ALWAYS_SATURATED
    goal = Goal(threshold=Threshold(mean_ms=40.0), rate_max_per_s=120)
    never, trials = search(open_policy("strawman", goal, 1), one_queue(5000))
    assert never.verdict is PeakVerdict.NEVER_SATURATED
    assert rates(trials) == [50, 100, 120]


@pytest.mark.long
@pytest.mark.parametrize("name", ["linear", "binary", "binary-seeded", "model-guided-seeded"])
def test_searches_stop_inside_the_peak_rate_region_as_the_paper_says(name: str) -> None:
    """R is in [36, 44] ms but for what an accuracy of 90% leaves open, in 95 of 100 searches.

    On R = 1000 / (500 - load) with 15% noise between trials; the peak is 475. The interval of the
    rate holds it a little less often than 95%, because a search stops when its trials happen to
    agree with the region (87 to 98% by policy).
    """
    response = one_queue(500.0)
    inside, holds, searches = 0, 0, 100
    for seed in range(searches):
        policy = open_policy(name, GOAL, seed, Prior(rate_per_s=400 + 2 * seed))
        answer, _ = search(policy, response, noise=0.15, seed=seed)
        assert answer.rate_per_s is not None
        inside += 36 * 0.9 <= response(answer.rate_per_s.value) <= 44 * 1.1
        assert answer.rate_per_s.low is not None
        assert answer.rate_per_s.high is not None
        holds += answer.rate_per_s.low <= 475 <= answer.rate_per_s.high
    assert inside >= 0.93 * searches
    assert holds >= 0.85 * searches


def test_a_generator_that_offers_next_to_nothing_is_named() -> None:
    policy = open_policy("binary", GOAL, 1)
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    weak = trial(TrialRequest(rate_per_s=0.1, seconds=180.0), 0, 20.0)
    limited = trial(asked, 0, state=TrialState.GENERATOR_LIMITED)
    policy.tell(msgspec.structs.replace(limited, measured=weak.measured))
    assert policy.ask() == asked, "once may be a machine that was busy"
    policy.tell(msgspec.structs.replace(limited, order=1, measured=weak.measured))
    answer = policy.ask()
    assert isinstance(answer, PeakRate)
    assert answer.verdict is PeakVerdict.GENERATOR_LIMITED
    assert answer.lower_bound_per_s is None


def told(*loads: tuple[float, float]) -> PeakRate:
    """What `binary` says so far of loads with these responses, two trials at each."""
    policy = open_policy("binary", GOAL, 1)
    for order, (rate, mean_ms) in enumerate(load for load in loads for _ in range(2)):
        asked = TrialRequest(rate_per_s=rate, seconds=180.0)
        policy.tell(trial(asked, order, mean_ms * (1 + 1e-4 * (order % 2))))
    return policy.answer_now()


def test_an_open_bracket_is_answered_with_its_middle_and_a_closed_one_with_its_lower_end() -> None:
    for low, high, value in ((100.0, 120.0, 110.0), (119.0, 120.0, 119.5), (119.5, 120.0, 119.5)):
        rate = told((low, 10.0), (high, 90.0)).rate_per_s
        assert rate is not None
        assert (rate.low, rate.value, rate.high, rate.n) == (low, value, high, 4)


def test_the_papers_interval_is_said_to_be_the_papers_wherever_there_is_one() -> None:
    (_, note) = told((100.0, 10.0), (120.0, 90.0)).sentences
    assert "half of the searches" in note
    without = told((100.0, 10.0))
    assert without.rate_per_s is None
    assert len(without.sentences) == 1


def test_a_response_that_falls_again_is_warned_of_and_one_that_rises_is_not() -> None:
    assert told((100.0, 10.0), (120.0, 90.0), (140.0, 200.0)).findings == ()
    (warning,) = map(str, told((100.0, 90.0), (120.0, 10.0)).findings)
    assert warning.startswith("Saturated at 100 requests/s but not at 120:")
