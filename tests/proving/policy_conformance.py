"""What every policy that looks for a peak rate must do; inherit it and say which policy it is.

class TestMyPolicy(PolicyConformance):
    @pytest.fixture
    def make(self) -> Maker:
        return my_policy

The server is an M/M/1 queue in virtual time: with a mean service of 4 ms, its mean response at λ is
1000 / (250 - λ) ms and its 95th percentile ln(20) times that, so the peak is 225 requests/s for a
mean of 40 ms and for 95% within 119.8 ms alike.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec
import pytest

from leadline.record.workbench import (
    Goal,
    PeakRate,
    PeakVerdict,
    Prior,
    ResponseMs,
    SimulatedServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.servers import run_trial
from leadline.studies.workbench.conversation import ROUNDING, Policy
from leadline.studies.workbench.policies import Maker
from leadline.studies.workbench.policies.ladders import STRAWMAN_S

PEAK_PER_S = 225.0
ONE_QUEUE = {"workers": 1, "service_ms": 4.0, "service": {"kind": "exponential"}}
MEAN = Goal(threshold=Threshold(mean_ms=40.0))
P95 = Goal(threshold=Threshold(percentile=0.95, limit_ms=40.0 * math.log(20)))
SECONDS_MAX = 300.0
"""The longest trial of any policy: the strawman's."""
TRIALS_MAX = 1500

LONG = pytest.mark.long
"""Of what a few seeds cannot show; `make test-long` runs it."""

Answer = Callable[[TrialRequest, int], Trial]
"""Runs the trial with this order."""


def simulated(
    goal: Goal,
    seed: int = 1,
    *,
    system: dict[str, Any] | None = None,
    dies_above_per_s: float | None = None,
    generator_max_per_s: float | None = None,
    first_order: int = 0,
) -> Answer:
    """Return what answers with trials of the queue; fields of `system` replace its own."""
    server = SimulatedServer(
        system=ONE_QUEUE | (system or {}),
        dies_above_per_s=dies_above_per_s,
        generator_max_per_s=generator_max_per_s,
    )

    def answer(request: TrialRequest, order: int) -> Trial:
        return run_trial(
            TrialOrder(
                server=server,
                sample={},
                threshold=goal.threshold,
                request=request,
                order=order + first_order,
                seed=1_000_003 * seed + order + first_order,
            )
        )

    return answer


def converse(policy: Policy, answer: Answer, trials_max: int = TRIALS_MAX) -> Iterator[Trial]:
    """Run the search to its end; every trial is yielded before the policy is told of it."""
    for order in range(trials_max + 1):
        asked = policy.ask()
        if isinstance(asked, PeakRate):
            return
        trial = answer(asked, order)
        yield trial
        policy.tell(trial)
    raise AssertionError(f"no answer after {trials_max} trials")


def search(policy: Policy, answer: Answer) -> tuple[PeakRate, list[Trial]]:
    """Run the search to its end."""
    trials = list(converse(policy, answer))
    peak = policy.ask()
    assert isinstance(peak, PeakRate)
    return peak, trials


@functools.cache
def undisturbed(make: Maker, seed: int) -> tuple[PeakRate, list[Trial]]:
    """Return a search for `MEAN` of the queue, run once however many tests look at it."""
    return search(make(MEAN, seed, None), simulated(MEAN, seed))


def failing(answer: Answer, when: Callable[[int], bool]) -> Answer:
    """Let the trials of these orders fail, for no fault of the server."""

    def answer_or_fail(request: TrialRequest, order: int) -> Trial:
        trial = answer(request, order)
        if not when(order):
            return trial
        failure = "no space left for the log"
        return msgspec.structs.replace(
            trial, state=TrialState.FAILED, measured=None, cost_s=3.0, failure=failure
        )

    return answer_or_fail


def disturbed(answer: Answer, seed: int) -> Answer:
    """Let trials end in any state, with responses that mean nothing and empty windows."""
    draws = Random(seed)
    weights = [draws.choice((0.0, 0.3, 2.0)) for _ in TrialState]
    weights[0] = draws.choice((1.0, 5.0, 20.0))

    def answer_at_random(request: TrialRequest, order: int) -> Trial:
        trial = answer(request, order)
        (state,) = draws.choices(list(TrialState), weights)
        factor, nothing = draws.lognormvariate(0.0, 1.0), draws.random()
        said = trial.measured
        assert said is not None
        if nothing < 0.1 or said.response_ms is None:
            due = 0 if nothing < 0.05 else said.due
            said = msgspec.structs.replace(said, due=due, failed=0, response_ms=None)
        else:
            times = msgspec.structs.asdict(said.response_ms)
            response = ResponseMs(**{name: ms * factor for name, ms in times.items()})
            said = msgspec.structs.replace(said, response_ms=response)
        silent = state in (TrialState.SERVER_LOST, TrialState.FAILED) or (
            state is TrialState.GENERATOR_LIMITED and nothing < 0.5
        )
        return msgspec.structs.replace(
            trial, state=state, measured=None if silent else said, failure="disturbed"
        )

    return answer_at_random


def assert_complete(peak: PeakRate, trials: list[Trial], goal: Goal) -> None:
    """Check what every answer must agree on with its trials."""
    assert peak.trials == len(trials)
    assert peak.cost_s == pytest.approx(sum(trial.cost_s for trial in trials))
    assert peak.confidence == goal.confidence
    own_s = {"strawman": goal.trial_length_s or STRAWMAN_S}
    assert peak.run_length_s == own_s.get(peak.policy, goal.run_length_s)
    assert peak.sentences
    if peak.rate_per_s is None or peak.rate_per_s.half_width_frac is None:
        assert peak.accuracy is None, "no accuracy without an interval"
    else:
        reached = 1 - peak.rate_per_s.half_width_frac
        assert peak.accuracy == pytest.approx(max(0.0, reached))
        low, high = ends(peak)
        assert 0 <= low <= peak.rate_per_s.value <= high
    if peak.verdict is PeakVerdict.FOUND and peak.rate_per_s is not None:
        half = peak.rate_per_s.half_width_frac
        assert half is None or half <= goal.error_frac * (1 + ROUNDING), "found is as was asked"
    if peak.lower_bound_per_s is not None and peak.upper_bound_per_s is not None:
        assert peak.lower_bound_per_s < peak.upper_bound_per_s
    told = {
        t.request.rate_per_s for t in trials if t.state in (TrialState.DONE, TrialState.ABORTED)
    }
    rates = [load.rate_per_s for load in peak.loads]
    assert rates == sorted(set(rates))
    assert told <= set(rates)
    assert sum(load.trials for load in peak.loads) <= len(trials)
    encoded = msgspec.json.encode(peak)
    assert msgspec.json.decode(encoded, type=PeakRate) == peak, "no number may be infinite"


def assert_near(peak: PeakRate, truth_per_s: float) -> None:
    """Check a search of moderate noise: all numbers within what any policy here promises."""
    assert peak.verdict is PeakVerdict.FOUND
    assert peak.limited_by == "server"
    assert peak.rate_per_s is not None
    assert peak.rate_per_s.value == pytest.approx(truth_per_s, rel=0.15)
    low, high = ends(peak)
    assert low <= truth_per_s * 1.05
    assert high >= truth_per_s * 0.95


def ends(peak: PeakRate) -> tuple[float, float]:
    """Return the ends of the interval, or of the bounds where the policy states no interval."""
    low, high = peak.lower_bound_per_s, peak.upper_bound_per_s
    if peak.rate_per_s is not None and peak.rate_per_s.low is not None:
        low, high = peak.rate_per_s.low, peak.rate_per_s.high
    assert low is not None
    assert high is not None
    return low, high


class PolicyConformance:
    """Inherit it; pytest runs every method below on the policy that `make` makes."""

    @pytest.fixture
    def make(self) -> Maker:
        """Return what makes the policy."""
        raise NotImplementedError

    def test_the_peak_of_a_queue_is_found(self, make: Maker) -> None:
        """By the mean, for two seeds."""
        for seed in (1, 5):
            peak, trials = undisturbed(make, seed)
            assert_complete(peak, trials, MEAN)
            assert_near(peak, PEAK_PER_S)

    def test_the_same_peak_is_found_by_a_percentile(self, make: Maker) -> None:
        """95% within ln(20) x 40 ms is the same load as a mean of 40 ms."""
        peak, trials = search(make(P95, 1, None), simulated(P95))
        assert_complete(peak, trials, P95)
        assert_near(peak, PEAK_PER_S)
        assert any(load.percentile_ms is not None for load in peak.loads)

    def test_the_stricter_of_two_thresholds_counts(self, make: Maker) -> None:
        """95% within 60 ms is 200 requests/s; the mean is 20 ms there."""
        both = Goal(threshold=Threshold(mean_ms=40.0, percentile=0.95, limit_ms=20 * math.log(20)))
        peak, trials = search(make(both, 1, None), simulated(both))
        assert_complete(peak, trials, both)
        assert_near(peak, 200.0)

    def test_a_seed_gives_the_same_conversation(self, make: Maker) -> None:
        """Trials and answer, to the last digit."""
        assert search(make(MEAN, 5, None), simulated(MEAN, 5)) == undisturbed(make, 5)

    def test_stored_trials_bring_it_to_the_same_point(self, make: Maker) -> None:
        """An experiment is resumed by replay; here in the middle."""
        peak, trials = undisturbed(make, 5)
        kept = len(trials) // 2
        policy = make(MEAN, 5, None)
        for trial in trials[:kept]:
            assert policy.ask() == trial.request
            policy.tell(trial)
        again, rest = search(policy, simulated(MEAN, 5, first_order=kept))
        assert again == peak
        assert [t.request for t in rest] == [t.request for t in trials[kept:]]

    def test_asked_again_it_says_the_same_and_the_answer_so_far_is_always_there(
        self, make: Maker
    ) -> None:
        """Also before the first trial; it owns up to being unfinished, and changes nothing."""
        peak, _ = undisturbed(make, 1)
        policy = make(MEAN, 1, None)
        before = policy.answer_now()
        assert (before.verdict, before.trials, before.rate_per_s) == (PeakVerdict.DEADLINE, 0, None)
        told: list[Trial] = []
        for trial in converse(policy, simulated(MEAN)):
            so_far = policy.answer_now()
            assert so_far.verdict is PeakVerdict.DEADLINE
            assert_complete(so_far, told, MEAN)
            assert policy.ask() == trial.request
            told.append(trial)
        assert policy.ask() == policy.ask() == peak
        assert policy.answer_now() == peak

    def test_what_it_asks_can_be_run(self, make: Maker) -> None:
        """Loads above 0 and up to the highest, windows of a sensible length."""
        goal = msgspec.structs.replace(MEAN, rate_max_per_s=600.0)
        for trial in converse(make(goal, 1, None), simulated(goal)):
            assert 0 < trial.request.rate_per_s <= 600.0
            assert 0 < trial.request.seconds <= max(goal.run_length_s, SECONDS_MAX)

    @pytest.mark.parametrize(
        ("rate_per_s", "sd_log"),
        [
            (45.0, 0.1),
            (1125.0, None),
            pytest.param(215.0, None, marks=LONG),
            pytest.param(1125.0, 0.1, marks=LONG),
        ],
    )
    def test_a_wrong_word_beforehand_does_not_mislead_it(
        self, make: Maker, rate_per_s: float, sd_log: float | None
    ) -> None:
        """Whether it uses the prior or not: a fifth, about right, five times too high."""
        prior = Prior(rate_per_s=rate_per_s, sd_log=sd_log)
        peak, trials = search(make(MEAN, 1, prior), simulated(MEAN))
        assert_complete(peak, trials, MEAN)
        assert_near(peak, PEAK_PER_S)

    def test_a_server_that_never_saturates(self, make: Maker) -> None:
        """The peak is at least the highest rate; no number is made up."""
        goal = msgspec.structs.replace(MEAN, rate_max_per_s=150.0)
        peak, trials = search(make(goal, 1, None), simulated(goal))
        assert_complete(peak, trials, goal)
        assert peak.verdict is PeakVerdict.NEVER_SATURATED
        assert (peak.rate_per_s, peak.upper_bound_per_s) == (None, None)
        assert peak.limited_by == "generator"
        assert peak.lower_bound_per_s == pytest.approx(150.0, rel=0.01)
        assert max(trial.request.rate_per_s for trial in trials) <= 150.0

    def test_a_server_that_is_saturated_at_every_load(self, make: Maker) -> None:
        """One request alone takes longer than the threshold."""
        slow = {"service_ms": 60.0, "service": {"kind": "fixed"}}
        peak, trials = search(make(MEAN, 1, None), simulated(MEAN, system=slow))
        assert_complete(peak, trials, MEAN)
        assert peak.verdict is PeakVerdict.ALWAYS_SATURATED
        assert (peak.rate_per_s, peak.lower_bound_per_s) == (None, None)
        assert peak.upper_bound_per_s is not None
        assert len(trials) <= 60

    def test_a_generator_that_gives_out_first(self, make: Maker) -> None:
        """It is named, with the load that the server held."""
        peak, trials = search(make(MEAN, 1, None), simulated(MEAN, generator_max_per_s=120.0))
        assert_complete(peak, trials, MEAN)
        assert peak.verdict is PeakVerdict.GENERATOR_LIMITED
        assert peak.limited_by == "generator"
        assert peak.rate_per_s is None
        assert peak.lower_bound_per_s is not None
        assert 60.0 <= peak.lower_bound_per_s <= 120.0

    def test_a_generator_that_gives_out_beyond_the_peak_does_not_matter(self, make: Maker) -> None:
        """Its limit is met on the way only."""
        peak, trials = search(make(MEAN, 1, None), simulated(MEAN, generator_max_per_s=330.0))
        assert_complete(peak, trials, MEAN)
        assert_near(peak, PEAK_PER_S)

    def test_a_server_that_dies_before_it_saturates(self, make: Maker) -> None:
        """The load that kills it is an upper bound; it is not killed for sport."""
        peak, trials = search(make(MEAN, 1, None), simulated(MEAN, dies_above_per_s=160.0))
        assert_complete(peak, trials, MEAN)
        assert peak.verdict is PeakVerdict.SERVER_LOST
        assert peak.lower_bound_per_s is not None
        assert peak.upper_bound_per_s is not None
        assert 100.0 <= peak.lower_bound_per_s <= 160.0 < peak.upper_bound_per_s
        assert sum(trial.state is TrialState.SERVER_LOST for trial in trials) <= 20

    def test_a_server_that_dies_far_beyond_its_peak_has_one(self, make: Maker) -> None:
        """Losing it on the way says only that the peak is lower."""
        peak, trials = search(make(MEAN, 1, None), simulated(MEAN, dies_above_per_s=300.0))
        assert_complete(peak, trials, MEAN)
        assert_near(peak, PEAK_PER_S)

    def test_trials_that_all_fail_end_it_with_the_reason(self, make: Maker) -> None:
        """After a few, in the words of the failure."""
        peak, trials = search(make(MEAN, 1, None), failing(simulated(MEAN), lambda _: True))
        assert_complete(peak, trials, MEAN)
        assert peak.verdict is PeakVerdict.FAILED
        assert len(trials) <= 10
        assert "no space left" in " ".join([*peak.sentences, *map(str, peak.findings)])

    def test_a_trial_that_fails_now_and_then_runs_again(self, make: Maker) -> None:
        """It says nothing, so it changes nothing of the answer but the cost."""
        answer = failing(simulated(MEAN), lambda order: order % 4 == 1)
        peak, trials = search(make(MEAN, 1, None), answer)
        assert_complete(peak, trials, MEAN)
        assert_near(peak, PEAK_PER_S)
        for one, other in itertools.pairwise(trials):
            if one.state is TrialState.FAILED:
                assert other.request == one.request

    @pytest.mark.parametrize("seed", [0, 1, *(pytest.param(n, marks=LONG) for n in range(2, 12))])
    def test_whatever_trials_say_it_ends_with_a_whole_answer(self, make: Maker, seed: int) -> None:
        """Any state in any order, any response, seeds out of this world, other goals."""
        draws = Random(100 + seed)
        threshold = draws.choice((MEAN.threshold, P95.threshold))
        goal = Goal(
            threshold=threshold,
            accuracy=draws.choice((0.5, 0.9)),
            run_length_s=draws.choice((10.0, 180.0)),
            rate_max_per_s=draws.choice((30.0, 700.0)),
            deadline_s=draws.choice((None, 5000.0)),
        )
        rate = draws.choice((None, 1e-3, 100.0, 1e7))
        prior = None if rate is None else Prior(rate_per_s=rate, sd_log=draws.choice((None, 0.01)))
        peak, trials = search(make(goal, seed, prior), disturbed(simulated(goal, seed), seed))
        assert_complete(peak, trials, goal)
        assert all(0 < t.request.rate_per_s <= (goal.rate_max_per_s or 0.0) for t in trials)

    def test_no_trial_is_begun_that_would_end_after_the_deadline(self, make: Maker) -> None:
        """To the second: with one second too few for a trial of the middle, it is not begun.

        It is a trial that was measured to its end, and so was the one before it: what they cost
        besides their windows is always the same.
        """
        _, trials = undisturbed(make, 1)
        whole = [t.measured is not None and not t.measured.aborted for t in trials]
        begun = max(n for n in range(1, len(trials) // 2 + 1) if whole[n - 1] and whole[n])
        spent_s = sum(trial.cost_s for trial in trials[:begun])
        goal = msgspec.structs.replace(MEAN, deadline_s=spent_s + trials[begun].cost_s - 1.0)
        peak, kept = search(make(goal, 1, None), simulated(goal))
        assert_complete(peak, kept, goal)
        assert kept == trials[:begun]
        assert peak.verdict is PeakVerdict.DEADLINE
        assert peak.limited_by == "time"
        assert "deadline" in " ".join(peak.sentences)

    def test_a_deadline_too_short_for_any_trial(self, make: Maker) -> None:
        """Is said at once, without a number."""
        goal = msgspec.structs.replace(MEAN, deadline_s=4.0)
        peak, trials = search(make(goal, 1, None), simulated(goal))
        assert_complete(peak, trials, goal)
        assert peak.verdict is PeakVerdict.DEADLINE
        assert (peak.rate_per_s, trials) == (None, [])
        assert "deadline" in " ".join(peak.sentences)


class TwoModesConformance:
    """What every policy must do with a server of two modes: the dearest rule, apart."""

    modes_said_of_five = 4
    """How often, of five searches, a server with two modes must be called one."""

    @pytest.mark.timeout(900)
    def test_two_modes_are_not_passed_over_in_silence(self, make: Maker) -> None:
        """In half of the trials all takes 2.5 times as long: peaks of 225 and of 75.

        Whatever is answered lies about these, and says that trials contradict each other; a search
        may by chance never see both modes where it matters.
        """
        modes = {"slow_mode_share": 0.5, "slow_mode_factor": 2.5}
        said = 0
        for seed in range(2, 7):
            peak, trials = search(make(MEAN, seed, None), simulated(MEAN, seed, system=modes))
            assert_complete(peak, trials, MEAN)
            if peak.rate_per_s is not None:
                assert 50.0 <= peak.rate_per_s.value <= 250.0
            said += peak.verdict is PeakVerdict.IRREGULAR or bool(peak.findings)
        assert said >= self.modes_said_of_five
