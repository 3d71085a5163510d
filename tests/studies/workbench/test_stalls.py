"""Trials that one stall decides: recognised, tried again, and never taken for a limit."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from leadline.record.result import OtherLoad, Stall
from leadline.record.workbench import (
    Batch,
    Goal,
    PeakRate,
    PeakVerdict,
    SimulatedServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialState,
)
from leadline.servers import run_trial
from leadline.servers.storage import _stalled_in
from leadline.studies.workbench.belief import MODEL_SD_LOG, Posterior
from leadline.studies.workbench.loads import (
    is_clear,
    stalled_trial,
    stalls_of,
    stood_still,
    threshold_ratio,
)
from leadline.studies.workbench.policies import open_policy
from leadline.studies.workbench.policies.curve import curve
from leadline.studies.workbench.reading import aims, read
from proving.peak_truth import truth
from proving.samples import sample_result

SERVER = SimulatedServer(
    system={"workers": 2, "service_ms": 10.0, "service": {"kind": "exponential"}}
)
MEAN = Threshold(mean_ms=40.0)
GOAL = Goal(threshold=MEAN)


def stalled(trial: Trial) -> Trial:
    """Let one part of a window wait so long that the whole trial is over the threshold."""
    measured = trial.measured
    assert measured is not None
    assert measured.response_ms is not None
    batches = [*measured.batches]
    place = max(range(10, 50), key=lambda at: batches[at].due)
    late_ms = 60.0 * measured.due / batches[place].due
    batches[place] = msgspec.structs.replace(batches[place], mean_ms=late_ms)
    mean_ms = sum(batch.due * batch.mean_ms for batch in batches) / measured.due
    response = msgspec.structs.replace(measured.response_ms, mean=mean_ms, max=2 * late_ms)
    return msgspec.structs.replace(
        trial,
        measured=msgspec.structs.replace(measured, batches=tuple(batches), response_ms=response),
        stalled_in="processor",
    )


def searched(
    stalls: Callable[[int], bool], start_per_s: float = 50.0
) -> tuple[PeakRate, list[Trial]]:
    """Search for the server's peak; trials at some places meet a stall."""
    goal = msgspec.structs.replace(GOAL, rate_start_per_s=start_per_s)
    policy = open_policy("curve", goal, 1, None)
    trials: list[Trial] = []
    while not isinstance(asked := policy.ask(), PeakRate):
        assert len(trials) < 100
        place = len(trials)
        order = TrialOrder(
            server=SERVER, sample={}, threshold=MEAN, request=asked, order=place, seed=place
        )
        trial = run_trial(order)
        if stalls(place):
            trial = stalled(trial)
        trials.append(trial)
        policy.tell(trial)
    return asked, trials


def one_trial(rate_per_s: float, threshold: Threshold = MEAN) -> Trial:
    policy = open_policy("curve", msgspec.structs.replace(GOAL, threshold=threshold), 1, None)
    request = policy.ask()
    assert not isinstance(request, PeakRate)
    request = msgspec.structs.replace(request, rate_per_s=rate_per_s, abort_above_ms=None)
    return run_trial(
        TrialOrder(server=SERVER, sample={}, threshold=threshold, request=request, order=0, seed=1)
    )


@pytest.mark.parametrize("place", [0, 1, 4])
def test_one_stalled_trial_is_retried_and_changes_no_answer(place: int) -> None:
    peak, trials = searched(lambda at: at == place)
    if stalled_trial(trials[place], MEAN) is None:
        assert (threshold_ratio(MEAN, trials[place]) or 0) > 2, "it was an overload anyway"
        return
    assert peak.disturbed == (place,)
    assert trials[place + 1].request == trials[place].request
    assert peak.verdict is PeakVerdict.FOUND
    assert peak.rate_per_s is not None
    assert peak.rate_per_s.covers(truth(SERVER, GOAL).rate_per_s)
    (warning,) = map(str, peak.findings)
    assert f"Trial {place + 1} at" in warning
    assert ", others used the processors in its window, longest response" in warning
    assert "not counted, retried at the same rate: target met" in warning


@pytest.mark.parametrize(
    ("changes", "where"),
    [
        ({}, "target"),
        ({"stalls": (Stall(1.0, 0.3, False),)}, "target"),
        ({"stalls": (Stall(1.0, 0.3, True),), "foreign_cpu": 1.5}, "engine"),
        ({"foreign_cpu": 1.5}, "processor"),
        ({"other_load": OtherLoad(steal_cpu=0.4)}, "processor"),
    ],
)
def test_what_a_stall_was_in_is_told_from_what_was_measured(
    changes: dict[str, Any], where: str
) -> None:
    assert _stalled_in(msgspec.structs.replace(sample_result(), **changes)) == where


def test_recurring_stalls_widen_the_interval_and_are_counted() -> None:
    peak, trials = searched(lambda at: at in (0, 2), start_per_s=4.0)
    assert peak.disturbed == (0, 2)
    assert [trials[at].request for at in (0, 2)] == [trials[at].request for at in (1, 3)]
    assert peak.rate_per_s is not None
    assert peak.rate_per_s.covers(truth(SERVER, GOAL).rate_per_s)
    assert len(peak.findings) >= 2
    assert peak.verdict in (PeakVerdict.FOUND, PeakVerdict.IRREGULAR)
    (told,) = (each for each in peak.sentences if each.startswith("Stalls recur ("))
    assert re.match(r"Stalls recur \((2|3) stalls in ", told)


def test_a_stall_that_comes_back_in_the_retry_is_no_limit_of_the_load() -> None:
    peak, trials = searched(lambda at: at in (0, 1))
    assert peak.disturbed == (0, 1)
    assert trials[2].request.rate_per_s > trials[0].request.rate_per_s, "two tries are enough"
    assert "retried at the same rate: stalled again" in str(peak.findings[0])
    assert "not retried" in str(peak.findings[1])
    assert peak.rate_per_s is not None
    assert peak.rate_per_s.covers(truth(SERVER, GOAL).rate_per_s)


DEVICE = {"workers": 8, "service_ms": 1.0, "service": {"kind": "exponential"}}
P99 = Threshold(percentile=0.99, limit_ms=20.0)


def device_search(seed: int, stall_ms: float, every_s: float) -> PeakRate:
    """Search for the peak of a device in trials of 20 s, within five minutes, as of storage."""
    server = SimulatedServer(system=DEVICE | {"stall_ms": stall_ms, "stalls_per_s": 1 / every_s})
    goal = Goal(threshold=P99, run_length_s=20.0, rate_start_per_s=500.0, deadline_s=300.0)
    policy = curve(goal, seed)
    policy.on_storage = True
    place = 0
    while not isinstance(asked := policy.ask(), PeakRate):
        order = TrialOrder(
            server=server, sample={}, threshold=P99, request=asked, order=place, seed=place
        )
        trial = run_trial(order)
        assert trial.measured is not None
        policy.tell(msgspec.structs.replace(trial, cost_s=1 + trial.measured.seconds))
        place += 1
    return asked


@pytest.mark.parametrize(
    ("seed", "stall_ms", "every_s"), [(1, 2000.0, 33.0), (2, 1900.0, 80.0), (3, 1800.0, 31.0)]
)
def test_a_device_that_stands_still_for_seconds_has_no_narrow_wrong_peak(
    seed: int, stall_ms: float, every_s: float
) -> None:
    """Stalls put more than 1% over the limit at any rate; without them there is a peak."""
    goal = Goal(threshold=P99, run_length_s=20.0)
    without = truth(SimulatedServer(system=DEVICE), goal).rate_per_s
    peak = device_search(seed, stall_ms, every_s)
    assert peak.rate_per_s is not None
    assert peak.rate_per_s.low is not None
    assert peak.rate_per_s.high is not None
    assert peak.rate_per_s.low < without < peak.rate_per_s.high
    if peak.verdict is PeakVerdict.IRREGULAR:
        assert peak.sentences[0].startswith("Stalls alone miss the target at any rate (")
        assert peak.rate_per_s.low == 0


def test_a_standstill_is_taken_out_of_a_percentile_with_the_requests_it_made_late() -> None:
    server = SimulatedServer(system=DEVICE | {"stall_ms": 1500.0, "stalls_per_s": 0.07})
    request = msgspec.structs.replace(one_trial(500.0, P99).request, seconds=20.0)
    order = TrialOrder(server=server, sample={}, threshold=P99, request=request, order=0, seed=0)
    trial = run_trial(order)
    assert stood_still(trial)
    assert (threshold_ratio(P99, trial) or 0) > 1
    found = stalls_of(trial, P99)
    assert found is not None
    assert sum(part.over for part in found.rest) == 0
    (aim,) = aims(P99)
    reading = read(trial, aim, found)
    assert reading is not None
    assert all(part.log_s < math.log(aim.limit_s) for part in reading.parts)


def test_a_retry_that_fails_leaves_the_stalled_trial_uncounted() -> None:
    policy = open_policy("curve", GOAL, 1, None)
    for place in range(3):
        asked = policy.ask()
        assert not isinstance(asked, PeakRate)
        order = TrialOrder(
            server=SERVER, sample={}, threshold=MEAN, request=asked, order=place, seed=place
        )
        trial = run_trial(order)
        if place == 0:
            trial = stalled(trial)
        if place == 1:
            trial = msgspec.structs.replace(trial, state=TrialState.FAILED, measured=None)
        policy.tell(trial)
    assert policy.answer_now().disturbed == (0,)


def test_a_server_that_stalls_in_every_trial_is_answered() -> None:
    peak, _ = searched(lambda _: True)
    assert len(peak.disturbed) <= 6
    assert peak.verdict is not PeakVerdict.FOUND or peak.rate_per_s is not None


def test_a_saturated_trial_is_no_stall() -> None:
    trial = one_trial(500.0)
    assert (threshold_ratio(MEAN, trial) or 0) > 1
    assert stalled_trial(trial, MEAN) is None


def test_a_stall_is_told_with_its_place_and_its_longest_response() -> None:
    calm = one_trial(60.0)
    assert stalled_trial(calm, MEAN) is None
    late = stalled(calm)
    found = stalled_trial(late, MEAN)
    assert found is not None
    assert late.measured is not None
    assert late.measured.response_ms is not None
    assert found.rate_per_s == 60.0
    assert found.longest_ms == late.measured.response_ms.max
    worst = max(range(60), key=lambda at: late.measured.batches[at].mean_ms)  # type: ignore[union-attr]
    assert found.at_s == pytest.approx(worst * late.measured.seconds / 60)


@pytest.mark.parametrize(
    ("mean_ms", "over", "parts_due", "clear"),
    [
        (2.0, 0, 100, True),
        (2.0, 4, 1000, True),
        (2.0, 6, 1000, False),  # 0.6% over: more than half of what 99% allows
        (2.0, 0, 40, False),  # of 400 requests none over says little of 1%
        (25.0, 0, 1000, False),
        (0.0, 0, 0, False),
    ],
)
def test_the_rest_is_clear_where_every_limit_is_far(
    mean_ms: float, over: int, parts_due: int, clear: bool
) -> None:
    threshold = Threshold(mean_ms=40.0, percentile=0.99, limit_ms=5.0)
    part = Batch(due=parts_due, mean_ms=mean_ms, over=over, completed=parts_due)
    assert is_clear([part] * 10, threshold) is clear


STALLING = SimulatedServer(system=dict(SERVER.system) | {"stall_ms": 400.0, "stalls_per_s": 0.1})


def calm_trial(server: SimulatedServer, seed: int) -> Trial:
    request = msgspec.structs.replace(one_trial(40.0).request, seconds=60.0)
    return run_trial(
        TrialOrder(server=server, sample={}, threshold=MEAN, request=request, order=0, seed=seed)
    )


def test_stalls_are_taken_out_of_a_calm_trial_with_what_they_cost() -> None:
    """As many as there are, and together as long as the formula of the queue they leave has it."""
    found = [stalls_of(calm_trial(STALLING, seed), MEAN) for seed in range(20)]
    known = [each for each in found if each is not None]
    assert len(known) >= 18
    idle, rate = 1 - 40.0 * 0.010 / 2, 40.0
    seconds = [(2 * s * idle / rate) ** 0.5 for each in known for s in each.excess_s]
    # Of exponential stalls of 0.4 s those above 0.2 s: six in ten of six a minute.
    assert len(seconds) / len(known) == pytest.approx(6 * 0.6, abs=1.5)
    assert sum(s * s for s in seconds) / len(known) == pytest.approx(6 * 2 * 0.4**2, rel=0.4)
    assert all(sum(b.due for b in each.rest) > 0 for each in known)


def test_a_steady_server_has_no_stalls_and_one_at_its_limit_is_not_calm() -> None:
    found = [stalls_of(calm_trial(SERVER, seed), MEAN) for seed in range(20)]
    assert sum(len(each.excess_s) for each in found if each is not None) <= 2
    assert stalls_of(one_trial(190.0), MEAN) is None


def test_seen_stalls_lower_the_peak_by_what_they_add_to_the_mean() -> None:
    (aim,) = aims(MEAN)

    def learnt(server: SimulatedServer) -> Posterior:
        posterior = Posterior(aim, 180.0, 1, None)
        for seed in range(4):
            trial = calm_trial(server, seed)
            reading = read(trial, aim, stalls_of(trial, MEAN))
            assert reading is not None
            posterior.learn(reading)
        return posterior

    stalling, steady = learnt(STALLING), learnt(SERVER)
    fallen = stalling.log_peak_unstalled.mean() - stalling.log_peak.mean()
    assert fallen > 0.1, "0.1/s of 0.4 s add 16 ms / (1 - load) to a target of 40"
    assert steady.log_peak_unstalled.mean() - steady.log_peak.mean() < 3 * MODEL_SD_LOG
