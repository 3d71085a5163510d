"""When `curve` stops and what it then states, on posteriors that are given and not fitted."""

from __future__ import annotations

import math
from statistics import NormalDist
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import ndtri

from leadline.record.workbench import (
    Goal,
    PeakRate,
    PeakVerdict,
    Prior,
    Threshold,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.policies.curve import TRIALS_MAX, Curve
from scripted_server import trial

GOAL = Goal(threshold=Threshold(mean_ms=40.0))
PEAK_PER_S = 200.0
OVERLOAD_MS = 5000.0


def normal_peaks(half: float, confidence: float = 0.95) -> np.ndarray:
    """A posterior about 200/s whose interval at this confidence is `half` of the rate either way.

    The logarithms are normal; half the interval of the rate is then sinh(z sd).
    """
    sd = math.asinh(half) / NormalDist().inv_cdf(0.5 + confidence / 2)
    ranks = (np.arange(100_001) + 0.5) / 100_001
    return math.log(PEAK_PER_S) + sd * np.asarray(ndtri(ranks))


PEAKS = {half: normal_peaks(half) for half in (0.01, 0.0845, 0.0855, 0.0995, 0.1005, 0.4)}


def searched(
    peaks: np.ndarray,
    trials: int,
    goal: Goal = GOAL,
    *,
    overload_ms: float = OVERLOAD_MS,
    two_modes: float = 0.0,
    seconds: float = 30.0,
) -> Curve:
    """A search told one load that holds, one overload, then loads at 195/s, `trials` in all."""
    curve = Curve(goal, 1, None)
    given = SimpleNamespace(
        log_peak=peaks,
        log_capacity=np.full(9, math.log(240.0)),
        two_modes=two_modes,
        stalls_alone=0.0,
        learn=lambda _: None,
    )
    curve._beliefs = [(aim, given) for aim, _ in curve._beliefs]  # type: ignore[misc]
    loads = [(50.0, 5.0), (400.0, overload_ms), *[(195.0, 30.0)] * (trials - 2)]
    for order, (rate, mean_ms) in enumerate(loads[:trials]):
        curve.tell(trial(TrialRequest(rate_per_s=rate, seconds=seconds), order, mean_ms))
    return curve


def answer(curve: Curve) -> PeakRate:
    asked = curve.ask()
    assert isinstance(asked, PeakRate)
    return asked


@pytest.mark.parametrize(
    ("half", "trials", "settled"),
    [
        (0.0845, 5, True),
        (0.0855, 5, False),
        (0.0845, 7, True),
        (0.0855, 7, False),
        (0.0855, 8, True),
        (0.0995, 8, True),
        (0.1005, 8, False),
        (0.1005, 13, False),
        (0.0995, 14, True),
    ],
)
def test_it_stops_at_the_error_asked_for_and_a_part_of_it_while_trials_are_few(
    half: float, trials: int, settled: bool
) -> None:
    """± 10% asked: 8.5% is enough before the eighth trial, 10% from then on."""
    asked = searched(PEAKS[half], trials).ask()
    assert isinstance(asked, PeakRate) is settled
    if isinstance(asked, PeakRate):
        assert asked.verdict is PeakVerdict.FOUND


def test_it_stops_at_the_accuracy_that_was_asked_and_no_other() -> None:
    """± 1% is known: enough for 2% after five trials, not for 1.1% until the eighth."""
    for error, trials, settled in ((0.02, 5, True), (0.011, 5, False), (0.011, 8, True)):
        goal = Goal(threshold=GOAL.threshold, accuracy=1 - error)
        asked = searched(PEAKS[0.01], trials, goal).ask()
        assert isinstance(asked, PeakRate) is settled, (error, trials)


@pytest.mark.parametrize("trials", [3, 4])
def test_no_posterior_is_sure_enough_before_five_trials(trials: int) -> None:
    assert isinstance(searched(PEAKS[0.01], trials).ask(), TrialRequest)
    assert answer(searched(PEAKS[0.01], 5)).verdict is PeakVerdict.FOUND


def test_trials_that_say_nothing_do_not_count_as_trials() -> None:
    curve = searched(PEAKS[0.01], 4)
    request = TrialRequest(rate_per_s=195.0, seconds=30.0)
    curve.tell(trial(request, 4, state=TrialState.FAILED))
    assert curve.ask() == request


@pytest.mark.parametrize("half", [0.0845, 0.0995])
def test_the_interval_stated_is_that_of_the_posterior_at_the_goals_confidence(half: float) -> None:
    rate = answer(searched(PEAKS[half], 8)).rate_per_s
    assert rate is not None
    assert rate.half_width_frac == pytest.approx(half, rel=0.001)
    assert rate.value == pytest.approx(PEAK_PER_S, rel=1e-6)
    assert rate.low == pytest.approx(PEAK_PER_S * math.exp(-math.asinh(half)), rel=1e-4)
    assert rate.high == pytest.approx(PEAK_PER_S * math.exp(math.asinh(half)), rel=1e-4)
    assert rate.n == 8


def test_another_confidence_has_another_interval() -> None:
    goal = Goal(threshold=GOAL.threshold, confidence=0.8)
    rate = searched(normal_peaks(0.05, 0.8), 5, goal).answer_now().rate_per_s
    assert rate is not None
    assert rate.half_width_frac == pytest.approx(0.05, rel=0.001)


def test_it_gives_up_at_twenty_trials_and_says_what_it_reached() -> None:
    brief = Goal(threshold=GOAL.threshold, run_length_s=1.0)
    assert isinstance(searched(PEAKS[0.4], TRIALS_MAX - 1, brief, seconds=1.0).ask(), TrialRequest)
    gave_up = answer(searched(PEAKS[0.4], TRIALS_MAX, brief, seconds=1.0))
    assert (TRIALS_MAX, gave_up.trials) == (20, 20)
    assert gave_up.verdict is PeakVerdict.GAVE_UP
    assert gave_up.limited_by == "server"
    assert gave_up.accuracy == 0.0, "two and a half times the posterior's 40%, as logarithms"
    assert "known to 113.7% only" in gave_up.sentences[0]


def test_an_answer_before_the_search_is_settled_is_as_wide_as_that_of_one_that_gives_up() -> None:
    unsettled, settled = (searched(PEAKS[half], 8).answer_now() for half in (0.4, 0.0855))
    assert unsettled.rate_per_s is not None
    assert unsettled.rate_per_s.half_width_frac == pytest.approx(1.137, abs=0.001)
    assert settled.rate_per_s is not None
    assert settled.rate_per_s.half_width_frac == pytest.approx(0.0855, abs=0.001)


def test_it_gives_up_when_its_trials_cost_as_much_as_some_eight_long_ones() -> None:
    """Of 30 s and 15 s of set-up: 13 cost 585 s, 14 cost 630, and 8.25 long ones 619."""
    assert searched(PEAKS[0.4], 13).cost_s == 585.0
    assert isinstance(searched(PEAKS[0.4], 13).ask(), TrialRequest)
    gave_up = answer(searched(PEAKS[0.4], 14))
    assert (gave_up.verdict, gave_up.trials) == (PeakVerdict.GAVE_UP, 14)


def test_who_gives_up_on_trials_of_two_kinds_says_that_no_one_rate_answers() -> None:
    modes = answer(searched(PEAKS[0.4], 15, two_modes=0.51))
    assert modes.verdict is PeakVerdict.IRREGULAR
    assert modes.rate_per_s is not None
    assert "15 trials are of two kinds" in modes.sentences[0]
    assert "known to 113.7% only" in modes.sentences[0]
    assert answer(contradicted(15, peaks=PEAKS[0.4])).verdict is PeakVerdict.IRREGULAR
    assert answer(searched(PEAKS[0.4], 15, two_modes=0.5)).verdict is PeakVerdict.GAVE_UP


def test_loads_are_near_the_middle_of_the_posterior_and_long_once_it_is_narrow() -> None:
    """Between its quantiles of 35 and 65%: 0.385 standard deviations either way."""
    wide, narrow = searched(PEAKS[0.4], 4).ask(), searched(PEAKS[0.1005], 4).ask()
    for asked, half, seconds in ((wide, 0.4, 30.0), (narrow, 0.1005, 60.0)):
        assert isinstance(asked, TrialRequest)
        sd = math.asinh(half) / NormalDist().inv_cdf(0.975)
        assert abs(math.log(asked.rate_per_s / PEAK_PER_S)) <= 0.386 * sd
        assert asked.rate_per_s != pytest.approx(PEAK_PER_S, rel=1e-9)
        assert asked.seconds == seconds
        assert asked.abort_above_ms == 25 * 40.0
        assert asked.purpose == "search"


def test_every_third_trial_from_the_sixth_on_is_an_overload() -> None:
    kinds = []
    for trials in range(4, 13):
        asked = searched(PEAKS[0.4], trials).ask()
        assert isinstance(asked, TrialRequest)
        kinds.append(asked.rate_per_s > PEAK_PER_S * 1.3)
        if kinds[-1]:
            assert asked.rate_per_s == pytest.approx(1.15 * 240.0)
            assert (asked.seconds, asked.abort_above_ms) == (20.0, 100 * 40.0)
    assert kinds == [False, False, True, False, False, True, False, False, True]


@pytest.mark.parametrize(("capacity", "asked"), [(347.0, True), (348.5, False)])
def test_an_overload_that_is_far_from_the_peak_is_not_asked_for(
    capacity: float, asked: bool
) -> None:
    """1.15 times 347.8 is twice the peak of 200/s."""
    curve = searched(PEAKS[0.4], 6)
    for _, posterior in curve._beliefs:
        posterior.log_capacity = np.full(9, math.log(capacity))  # type: ignore[misc]
    assert (rate_asked(curve) > 390.0) is asked


def test_until_a_load_is_clearly_too_much_it_probes_upwards() -> None:
    """Twice the threshold is an overload; less is no word on the capacity."""
    probing = searched(PEAKS[0.01], 2, overload_ms=79.0).ask()
    assert isinstance(probing, TrialRequest)
    assert (probing.purpose, probing.seconds) == ("probe", 10.0)
    assert probing.rate_per_s == 800.0, "no less than twice the highest load"
    assert probing.abort_above_ms == 10 * 40.0
    searching = searched(PEAKS[0.01], 2, overload_ms=81.0).ask()
    assert isinstance(searching, TrialRequest)
    assert searching.purpose == "search"


def contradicted(
    trials: int, purpose: str = "search", two_modes: float = 0.0, peaks: np.ndarray = PEAKS[0.01]
) -> Curve:
    """As `searched`, but the fourth trial met 150/s at twice the threshold."""
    curve = searched(peaks, 3, two_modes=two_modes)
    request = TrialRequest(rate_per_s=150.0, seconds=30.0, purpose=purpose)  # type: ignore[arg-type]
    curve.tell(trial(request, 3, 80.0))
    for order in range(4, trials):
        curve.tell(trial(TrialRequest(rate_per_s=195.0, seconds=30.0), order, 18.0))
    return curve


def test_trials_that_contradict_each_other_are_said_and_searched_longer() -> None:
    """Saturated at 150/s, far from it at 195/s: twelve trials at least, and a word of warning."""
    assert isinstance(contradicted(11).ask(), TrialRequest)
    found = answer(contradicted(12))
    assert found.verdict is PeakVerdict.IRREGULAR
    assert found.rate_per_s is not None
    assert found.sentences[0].startswith("12 trials contradict each other")
    assert len(found.findings) == 1
    assert str(found.findings[0]).startswith("Saturated at 150 requests/s but far from it at 195:")
    assert answer(searched(PEAKS[0.01], 8)).findings == ()


def test_a_posterior_that_knows_of_two_modes_needs_no_more_trials_and_says_so() -> None:
    known = answer(contradicted(5, two_modes=0.51))
    assert known.verdict is PeakVerdict.FOUND
    assert tuple(map(str, known.findings)) == (
        "Trials are of two kinds, slower and faster ones; the rate is that of both.",
    )
    for half in (0.49, 0.5):
        assert isinstance(contradicted(11, two_modes=half).ask(), TrialRequest)
        assert answer(searched(PEAKS[0.01], 5, two_modes=half)).findings == ()


def test_a_probe_contradicts_nothing() -> None:
    """It may have met a cold server."""
    assert answer(contradicted(5, "probe")).findings == ()


def after(*trials: tuple[float, float | None], goal: Goal = GOAL, half: float = 0.01) -> Curve:
    """As `searched`, told these loads with their responses in ms; None: the server was lost."""
    curve = searched(PEAKS[half], 0, goal)
    for order, (rate, mean_ms) in enumerate(trials):
        request = TrialRequest(rate_per_s=rate, seconds=30.0)
        state = TrialState.SERVER_LOST if mean_ms is None else TrialState.DONE
        curve.tell(trial(request, order, mean_ms or 0.0, state))
    return curve


HELD, OVER = (150.0, 12.0), (400.0, OVERLOAD_MS)


def test_a_load_that_the_server_was_lost_at_is_tried_once_more() -> None:
    asked = after(HELD, (180.0, None)).ask()
    assert isinstance(asked, TrialRequest)
    assert asked.rate_per_s == 180.0
    again = after(HELD, (180.0, None), (180.0, None)).ask()
    assert isinstance(again, TrialRequest)
    assert again.rate_per_s == pytest.approx(math.sqrt(180.0 * 150.0)), "between held and lost"


def test_a_server_that_is_lost_close_above_what_it_holds_has_no_peak_to_be_told() -> None:
    """15% apart is close enough."""
    near = answer(after((157.0, 12.0), (180.0, None), (180.0, None)))
    assert (near.verdict, near.rate_per_s) == (PeakVerdict.SERVER_LOST, None)
    assert "lost at 180 requests/s before it is saturated" in near.sentences[0]
    assert isinstance(after((156.0, 12.0), (180.0, None), (180.0, None)).ask(), TrialRequest)


def test_a_peak_beyond_what_the_server_survives_is_not_found() -> None:
    """The posterior says 200/s; at 190/s the server dies, at 250 it does not matter."""
    trials = [HELD] * 4
    lost = answer(after(*trials, OVER, (190.0, None), (190.0, None)))
    assert lost.verdict is PeakVerdict.SERVER_LOST
    both = answer(after(*trials, OVER, *[(250.0, None)] * 2, *[(190.0, None)] * 2))
    assert "lost at 190 requests/s" in both.sentences[0]
    found = answer(after(*trials, OVER, (250.0, None), (250.0, None)))
    assert found.verdict is PeakVerdict.FOUND


def test_no_peak_is_found_of_a_server_that_held_no_load() -> None:
    """The model would have one anywhere: a quarter of the lowest load is tried first."""
    asked = after(*[(100.0, 90.0)] * 6).ask()
    assert isinstance(asked, TrialRequest)
    assert (asked.rate_per_s, asked.seconds) == (25.0, 30.0)
    always = answer(after((100.0, 90.0), *[(0.5, 90.0)] * 6))
    assert always.verdict is PeakVerdict.ALWAYS_SATURATED
    assert "even at 0.5 requests/s" in always.sentences[0]


def test_the_highest_load_that_may_be_offered_is_held_for_half_a_minute_before_it_is_the_end() -> (
    None
):
    goal = Goal(threshold=GOAL.threshold, rate_max_per_s=160.0)
    asked = after((50.0, 5.0), goal=goal).ask()
    assert isinstance(asked, TrialRequest)
    assert (asked.rate_per_s, asked.seconds) == (160.0, 30.0)
    never = answer(after((50.0, 5.0), (160.0, 12.0), goal=goal))
    assert never.verdict is PeakVerdict.NEVER_SATURATED
    assert never.limited_by == "generator"


def test_nothing_is_asked_far_below_what_was_held() -> None:
    """A posterior that lost its way is kept above 60% of it."""
    asked = after((390.0, 30.0), OVER, half=0.4).ask()
    assert isinstance(asked, TrialRequest)
    assert asked.rate_per_s == pytest.approx(0.6 * 390.0)


def test_a_run_shorter_than_a_trial_is_never_exceeded() -> None:
    goal = Goal(threshold=GOAL.threshold, run_length_s=7.0)
    for trials in (0, 1, 2, 6):
        asked = searched(PEAKS[0.4], trials, goal).ask()
        assert isinstance(asked, TrialRequest)
        assert asked.seconds == 7.0


def test_a_server_that_is_lost_at_the_lowest_load_is_said_to_be_lost() -> None:
    lost = answer(after(*[(100.0, 90.0)] * 6, (0.5, None), (0.5, None)))
    assert lost.verdict is PeakVerdict.SERVER_LOST
    assert "even at 0.5 requests/s" in lost.sentences[0]


def test_the_posterior_learns_of_trials_that_ended_and_of_no_others() -> None:
    curve = searched(PEAKS[0.01], 0)
    learned: list[float] = []
    for _, posterior in curve._beliefs:
        posterior.learn = lambda reading: learned.append(reading.rate_per_s)  # type: ignore[method-assign]
    states = (TrialState.DONE, TrialState.ABORTED, TrialState.SERVER_LOST, TrialState.FAILED)
    for order, state in enumerate((*states, TrialState.GENERATOR_LIMITED)):
        request = TrialRequest(rate_per_s=100.0 + order, seconds=30.0, abort_above_ms=4000.0)
        curve.tell(trial(request, order, 30.0, state))
    assert learned == [100.0, 101.0]


def test_of_two_thresholds_the_laxer_says_when_a_trial_is_given_up() -> None:
    for limit_ms, abort_ms in ((100.0, 1000.0), (30.0, 400.0)):
        both = Goal(threshold=Threshold(mean_ms=40.0, percentile=0.95, limit_ms=limit_ms))
        asked = searched(PEAKS[0.01], 0, both).ask()
        assert isinstance(asked, TrialRequest)
        assert asked.abort_above_ms == abort_ms


def rate_asked(curve: Curve) -> float:
    asked = curve.ask()
    assert isinstance(asked, TrialRequest)
    return asked.rate_per_s


@pytest.mark.parametrize(
    ("capacities", "rate"),
    [
        ((100.0, 150.0, 200.0, 240.0, 900.0), 1.2 * 240.0),
        ((80.0, 80.0, 80.0, 82.0, 900.0), 100.0),
        ((300.0, 300.0, 300.0, 340.0, 900.0), 400.0),
        ((300.0, 300.0, 300.0, 1e40, 1e50), 400.0),
    ],
)
def test_a_probe_goes_a_fifth_beyond_what_the_server_may_do_in_steps_of_two_to_eight(
    capacities: tuple[float, ...], rate: float
) -> None:
    """With three chances in four, after 50/s held."""
    curve = searched(PEAKS[0.01], 1)
    for _, posterior in curve._beliefs:
        posterior.log_capacity = np.log(capacities)  # type: ignore[misc]
    assert rate_asked(curve) == pytest.approx(rate)


def test_the_first_load_is_the_starts_or_a_fifth_above_what_was_said_and_never_above_the_most() -> (
    None
):
    assert rate_asked(Curve(GOAL, 1, None)) == GOAL.rate_start_per_s
    assert rate_asked(Curve(GOAL, 1, Prior(rate_per_s=100.0))) == pytest.approx(120.0)
    most = Goal(threshold=GOAL.threshold, rate_max_per_s=110.0)
    assert rate_asked(Curve(most, 1, Prior(rate_per_s=100.0))) == 110.0


def test_a_load_is_kept_a_twentieth_below_what_the_server_does_not_survive() -> None:
    """The posterior says 200/s, to half a percent: more than 95% of 209, less than that of 213."""
    assert rate_asked(after(HELD, OVER, *[(213.0, None)] * 2)) == pytest.approx(200.0, rel=0.005)
    between = rate_asked(after(HELD, OVER, *[(209.0, None)] * 2))
    assert between == pytest.approx(math.sqrt(209.0 * 150.0))
    nothing_held = rate_asked(after(*[(209.0, None)] * 2))
    assert nothing_held == pytest.approx(209.0 / 4), "a sixteenth is taken to be held"


def test_before_any_trial_there_is_no_estimate() -> None:
    assert searched(PEAKS[0.01], 0).answer_now().rate_per_s is None
    assert searched(PEAKS[0.01], 1).answer_now().rate_per_s is not None


def test_a_load_is_held_below_the_threshold_and_not_at_it() -> None:
    for mean_ms, held in ((39.9, 150.0), (40.0, 0.0), (60.0, 0.0)):
        assert after((150.0, mean_ms))._highest_held == held
    assert after((150.0, 39.9), (100.0, 30.0), (50.0, 25.0))._highest_held == 150.0
