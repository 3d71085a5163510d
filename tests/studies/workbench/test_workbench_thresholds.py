"""What decides in the workbench, on either side of where it decides: modes, bounds, endings."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from leadline.record.workbench import (
    Batch,
    Goal,
    PeakRate,
    PeakVerdict,
    Threshold,
    TrialRequest,
    TrialState,
)
from leadline.stats import student_t
from leadline.studies.workbench.loads import (
    LoadTrials,
    _peak_if,
    measured_ratio,
    percentile_ms,
    rate_interval,
    two_modes,
)
from leadline.studies.workbench.policies import open_policy
from leadline.studies.workbench.policies.algorithm2 import Visit, bracket
from leadline.studies.workbench.policies.ladders import pick_binary, pick_by_model, predict
from scripted_server import measured, search, trial

THRESHOLD = Threshold(mean_ms=40.0)
GOAL = Goal(threshold=THRESHOLD)


def asked_for(rate_per_s: float) -> TrialRequest:
    return TrialRequest(rate_per_s=rate_per_s, seconds=180.0)


def load_of(rate_per_s: float, *ratios: float, lost: int = 0) -> LoadTrials:
    """A load with these responses over the threshold, and so many lost servers."""
    load = LoadTrials(rate_per_s)
    for order, ratio in enumerate(ratios):
        load.add(trial(asked_for(rate_per_s), order, 40.0 * ratio), THRESHOLD)
    for order in range(lost):
        load.add(trial(asked_for(rate_per_s), order, state=TrialState.SERVER_LOST), THRESHOLD)
    return load


@pytest.mark.parametrize(("apart", "kinds"), [(0.059, False), (0.061, True)])
def test_two_modes_are_four_times_their_own_spread_apart(apart: float, kinds: bool) -> None:
    """Three either side, 0.01 from each other: a spread of 0.01, and a gap 0.02 less than apart."""
    group = np.array([-0.01, 0.0, 0.01])
    assert two_modes(list(np.exp(np.concatenate([group, group + apart])))) is kinds


def test_a_mode_holds_fifteen_in_a_hundred_trials_or_more() -> None:
    assert two_modes([1.0] * 26 + [1.1] * 4) is False
    assert two_modes([1.0, 1.1]) is False
    assert two_modes([1.0] * 6) is False, "no gap at all"
    assert two_modes([1.0] * 25 + [1.1] * 5)
    assert two_modes([1.0] * 5 + [1.1] * 25)
    assert not two_modes([1.0] * 4 + [1.1] * 26)
    assert two_modes([0.0] * 3 + [1.0] * 3), "no time at all is a short time"


@pytest.mark.parametrize(
    ("ratio", "saturated"), [(1.101, True), (1.099, None), (0.901, None), (0.899, False)]
)
def test_one_trial_tells_its_load_outside_of_the_region_only(
    ratio: float, saturated: bool | None
) -> None:
    assert load_of(100.0, ratio).saturated(0.95, 0.1) is saturated


@pytest.mark.parametrize(
    ("lost", "well", "kills"), [(1, 0, False), (2, 0, True), (2, 1, True), (2, 2, False)]
)
def test_a_load_kills_when_more_servers_were_lost_than_answered(
    lost: int, well: int, kills: bool
) -> None:
    load = load_of(100.0, *[0.5] * well, lost=lost)
    assert (load.kills, load.lost) == (kills, lost)
    assert load.ratio == (1e6 if kills else 0.5 if well else None)


def test_a_chord_is_drawn_to_a_load_with_clearly_less_response_only() -> None:
    """Seven tenths of it: 1 / R falls from 1 / 0.86 to 1 / 1.25 over 80, else in proportion."""
    fall = (1 / 0.86 - 1 / 1.25) / 80
    assert _peak_if(1.25, 480.0, [load_of(400.0, 0.86)]) == pytest.approx(480 + (0.8 - 1) / fall)
    assert _peak_if(1.25, 480.0, [load_of(400.0, 0.89)]) == pytest.approx(480 / 1.25)
    nothing = (1000.0 - 0.8) / 380
    assert _peak_if(1.25, 480.0, [load_of(100.0, 0.0)]) == pytest.approx(480 - 0.2 / nothing)


def test_of_loads_below_the_nearest_gives_the_chord() -> None:
    below = [load_of(100.0, 0.01), load_of(400.0, 0.86), load_of(200.0, 0.02)]
    assert _peak_if(1.25, 480.0, below) == _peak_if(1.25, 480.0, below[1:2])


SURE = (1.1, 0.9, 1.0)
"""A mean of 1, known to 0.25 either way."""


def ends(middle: LoadTrials, *others: LoadTrials) -> list[float | None]:
    found = rate_interval(middle, [*others, middle], 0.95)
    assert found is not None
    assert found.value == middle.rate_per_s
    return [found.low, found.high]


def test_only_loads_told_from_the_peak_on_their_own_side_bound_its_interval() -> None:
    half = student_t(2) * 0.1 / math.sqrt(3)
    low, high = 470 / (1 + half), 470 / (1 - half)
    middle = load_of(470.0, *SURE)
    above, below = (1.20, 1.201, 1.202), (0.95, 0.951, 0.952)
    assert ends(middle) == pytest.approx([low, high])
    assert ends(middle, load_of(480.0, *above)) == pytest.approx([low, 480.0])
    assert ends(middle, load_of(480.0, *below)) == pytest.approx([low, high])
    assert ends(middle, load_of(460.0, *below)) == pytest.approx([460.0, high])
    assert ends(middle, load_of(460.0, *above)) == pytest.approx([low, high])
    unsure = load_of(480.0, 1.5, 1.75, 2.0)
    assert ends(middle, unsure) == pytest.approx([low, high]), "told at 95%, not at 99.9"
    assert ends(middle, load_of(480.0, 1.74, 1.75, 1.76)) == pytest.approx([low, 480.0])


def test_an_interval_wider_than_twice_the_rate_is_none() -> None:
    """In proportion: from 1 / (1 + h) to 1 / (1 - h), 1.9 and 2.1 of the rate apart."""
    for half, stated in ((0.603, True), (0.632, False)):
        scatter = half * math.sqrt(3) / student_t(2)
        found = ends(load_of(100.0, 1 - scatter, 1.0, 1 + scatter))
        wanted = [100 / (1 + half), 100 / (1 - half)]
        assert found == (pytest.approx(wanted) if stated else [None, None])


def test_an_interval_of_a_rate_does_not_reach_below_none() -> None:
    """A chord so flat that it is at the threshold at less than no load."""
    low, high = ends(load_of(480.0, 1.5, 2.0, 2.5), load_of(100.0, 1.3))
    assert low == 0.0
    assert high is not None
    assert high > 480.0


def verdict_at(rate_per_s: float, *ratios: float) -> PeakVerdict | float:
    """What `binary` says next: how it ends, or the load it goes on with."""
    policy = open_policy("binary", GOAL, 1)
    for order, ratio in enumerate(ratios):
        policy.tell(trial(asked_for(rate_per_s), order, 40.0 * ratio))
    said = policy.ask()
    return said.verdict if isinstance(said, PeakRate) else said.rate_per_s


@pytest.mark.parametrize(
    ("ratio", "said"),
    [(1.099, PeakVerdict.FOUND), (1.101, 50.0), (0.901, PeakVerdict.FOUND), (0.899, 200.0)],
)
def test_a_load_is_the_peak_within_the_region_and_told_from_it_outside(
    ratio: float, said: PeakVerdict | float
) -> None:
    """Two trials that agree: the region is a tenth of the threshold either way."""
    assert verdict_at(100.0, ratio, ratio * (1 + 1e-6)) == said


@pytest.mark.parametrize(
    ("ratios", "lost", "said"),
    [((0.5,), 1, 100.0), ((0.5, 0.5), 1, 200.0), ((), 1, 100.0), ((), 2, 50.0), ((0.5,), 2, 50.0)],
)
def test_a_server_that_was_lost_once_is_no_trial_of_its_load(
    ratios: tuple[float, ...], lost: int, said: float
) -> None:
    policy = open_policy("binary", GOAL, 1)
    for order, ratio in enumerate(ratios):
        policy.tell(trial(asked_for(100.0), order, 40.0 * ratio))
    for order in range(lost):
        policy.tell(trial(asked_for(100.0), 9 + order, state=TrialState.SERVER_LOST))
    asked = policy.ask()
    assert isinstance(asked, TrialRequest)
    assert asked.rate_per_s == said


def test_a_load_needs_two_trials_and_the_accuracy_that_was_asked() -> None:
    """Two trials 2 x apart are known to 12.7 x of their mean: a tenth was asked."""
    assert verdict_at(100.0, 1.0) == 100.0
    assert isinstance(verdict_at(100.0, 1 - 0.0078, 1 + 0.0078), PeakVerdict)
    assert verdict_at(100.0, 1 - 0.0080, 1 + 0.0080) == 100.0


def test_a_load_whose_response_is_never_known_is_given_up_after_a_hundred_trials() -> None:
    def told(trials: int, ratios: tuple[float, ...]) -> PeakRate | TrialRequest:
        policy = open_policy("binary", GOAL, 1)
        for order in range(trials):
            ratio = ratios[order % len(ratios)]
            policy.tell(trial(asked_for(100.0), order, 40.0 * ratio))
        return policy.ask()

    scattered = (0.05, 0.3, 0.5, 0.8, 1.1, 1.5, 1.9, 2.6)
    assert isinstance(told(99, scattered), TrialRequest)
    gave_up = told(100, scattered)
    assert isinstance(gave_up, PeakRate)
    assert gave_up.verdict is PeakVerdict.GAVE_UP
    assert gave_up.sentences[0].startswith("Gave up: 100 trials at 100 requests/s differ so much")
    irregular = told(100, (0.1, 1.9))
    assert isinstance(irregular, PeakRate)
    assert irregular.verdict is PeakVerdict.IRREGULAR
    assert "100 trials at 100 requests/s are of two kinds" in irregular.sentences[0]


@pytest.mark.parametrize(
    ("policy", "trials"), [("binary", 1000), ("strawman", 2000), ("mlrsearch", 400)]
)
def test_a_search_without_an_end_is_given_up(policy: str, trials: int) -> None:
    def told(count: int) -> str:
        search = open_policy(policy, GOAL, 1)
        for order in range(count):
            search.tell(trial(asked_for(100.0 + order), order, 20.0))
        said = search.ask()
        return said.sentences[0] if isinstance(said, PeakRate) else ""

    assert told(trials).startswith(f"Gave up after {trials} trials.")
    assert not told(trials - 1).startswith("Gave up")


def test_the_model_is_given_up_after_sixty_loads() -> None:
    """A load that the search comes back to at once is no other load."""

    def told(loads: int) -> str:
        policy = open_policy("model-guided", GOAL, 1)
        for order in range(2 * loads):
            policy.tell(trial(asked_for(100.0 + order // 2), order, 20.0))
        said = policy.ask()
        return said.sentences[0] if isinstance(said, PeakRate) else ""

    assert told(61).startswith("Did not converge in 60 loads.")
    assert told(60) == ""


def test_a_load_at_the_threshold_saturates() -> None:
    def visits(*pairs: tuple[float, float]) -> list[Visit]:
        return [Visit(rate, ratio) for rate, ratio in pairs]

    assert bracket(visits((50, 0.2), (100, 1.0))) == (50, 100)
    assert bracket(visits((50, 0.2), (100, 1.0), (75, 1.5), (60, 0.99))) == (60, 75)
    assert pick_binary(visits((50, 0.1), (100, 1.0)), 50) == 75
    assert pick_binary(visits((50, 0.1), (100, 1.5)), 50) == 75
    assert pick_binary(visits((50, 0.1), (100, 3.0), (75, 1.0)), 50) == 62.5
    assert pick_binary(visits((50, 1.0)), 50) == 25
    assert pick_by_model(visits((50, 1.0)), 50) == 25
    assert pick_by_model(visits((50, 0.999)), 50) == 100


def test_a_model_whose_peak_is_at_less_than_no_load_says_nothing() -> None:
    """1 / R falls from 1/3 to 1/5 over 50: it is 1 at -200."""
    assert predict(Visit(100, 5.0), Visit(50, 3.0)) is None
    assert predict(Visit(100, 2.0), Visit(50, 4 / 3)) is None, "at none"
    assert predict(Visit(100, 5.0), Visit(50, 0.5)) == pytest.approx(50 + 50 / 1.8)


def test_a_response_of_one_trial_has_no_accuracy() -> None:
    policy = open_policy("binary", GOAL, 1)
    assert policy._accuracy(load_of(100.0, 1.0)) == 0.0  # type: ignore[attr-defined]
    assert policy._accuracy(load_of(100.0, 0.3, 0.3)) == pytest.approx(1.0)  # type: ignore[attr-defined]
    known = policy._accuracy(load_of(100.0, 0.9, 1.1))  # type: ignore[attr-defined]
    assert known == pytest.approx(1 - student_t(1) * 0.1)


def test_the_strawmans_first_load_saturates_just_above_the_threshold() -> None:
    above, _ = search(open_policy("strawman", GOAL, 1), lambda _: 41.0, noise=1e-4)
    assert above.verdict is PeakVerdict.ALWAYS_SATURATED
    below, trials = search(
        open_policy("strawman", GOAL, 1), lambda rate: 39.0 if rate < 60 else 41.0, noise=1e-4
    )
    assert (below.verdict, len(trials)) == (PeakVerdict.FOUND, 20)
    assert (below.lower_bound_per_s, below.upper_bound_per_s) == (50, 100)


def test_the_strawman_ends_where_the_server_does_not_survive() -> None:
    policy = open_policy("strawman", GOAL, 1)
    for order in range(12):
        state = TrialState.DONE if order < 10 else TrialState.SERVER_LOST
        rate = 50.0 if order < 10 else 100.0
        policy.tell(trial(asked_for(rate), order, 20.0, state))
    lost = policy.ask()
    assert isinstance(lost, PeakRate)
    assert lost.verdict is PeakVerdict.SERVER_LOST
    assert lost.sentences[0] == "The server does not survive 100 requests/s."


def test_the_strawman_has_a_number_once_the_next_load_is_known_to_saturate() -> None:
    def told(next_ratio: float) -> float | None:
        policy = open_policy("strawman", GOAL, 1)
        loads = [(50.0, 0.5)] * 10 + [(100.0, next_ratio), (150.0, 3.0)]
        for order, (rate, ratio) in enumerate(loads):
            policy.tell(trial(asked_for(rate), order, 40.0 * ratio))
        found = policy.answer_now().rate_per_s
        return None if found is None else found.value

    assert told(1.5) == 50.0
    assert told(0.9) is None, "what lies between is not known yet"


def test_a_window_without_counts_is_read_by_its_percentiles() -> None:
    window = measured(100.0, 60.0, 20.0)
    tail = Threshold(percentile=0.95, limit_ms=40.0)
    for batches in ((), (Batch(due=0, mean_ms=0.0, over=0, completed=0),)):
        plain = msgspec.structs.replace(window, batches=batches)
        assert percentile_ms(tail, plain) == pytest.approx(20.0 * math.log(20))
    silent = msgspec.structs.replace(window, response_ms=None)
    assert percentile_ms(tail, silent) == math.inf
    assert measured_ratio(tail, silent) == 1e6
    with pytest.raises(ValueError, match="without a percentile"):
        percentile_ms(THRESHOLD, window)


def test_a_reported_percentile_at_the_limit_gives_way_to_what_was_counted() -> None:
    """92% were within 40 ms, which is said to be the 90th: that one is below by the count."""
    window = measured(100.0, 60.0, 20.0)
    assert window.response_ms is not None
    batch = msgspec.structs.replace(window.batches[0], over=480)
    response = msgspec.structs.replace(window.response_ms, p50=20.0, p90=40.0)
    counted = msgspec.structs.replace(window, batches=(batch,), response_ms=response)
    wanted = 20.0 + 20.0 * math.log(0.5 / 0.1) / math.log(0.5 / 0.08)
    found = percentile_ms(Threshold(percentile=0.9, limit_ms=40.0), counted)
    assert found == pytest.approx(wanted)


def test_a_counted_share_takes_failed_requests_for_late() -> None:
    """Of 6000, 240 over 40 ms and 120 that failed: 94% were within."""
    window = measured(100.0, 60.0, 10.0)
    batch = msgspec.structs.replace(window.batches[0], over=240)
    counted = msgspec.structs.replace(window, batches=(batch,), failed=120)
    assert percentile_ms(Threshold(percentile=0.9401, limit_ms=40.0), counted) > 40.0
    assert percentile_ms(Threshold(percentile=0.94, limit_ms=40.0), counted) == pytest.approx(40.0)
    assert percentile_ms(Threshold(percentile=0.9399, limit_ms=40.0), counted) < 40.0
