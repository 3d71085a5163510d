"""What is kept of a trial: which batches make a part, and when completions are the capacity."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pytest

from leadline.record.workbench import Batch, Threshold, Trial, TrialRequest
from leadline.studies.workbench.reading import Aim, Reading, aims, read
from scripted_server import trial

MEAN, P95 = Aim(0.04, None), Aim(0.12, 0.05)


def told(means_ms: list[float], *, due: int = 100, over: int = 0, completed: int = 90) -> Trial:
    """A trial of 60 s with these batches."""
    request = TrialRequest(rate_per_s=50.0, seconds=60.0, abort_above_ms=1000.0)
    plain = trial(request, 0, 20.0)
    assert plain.measured is not None
    batches = tuple(
        Batch(due=due, mean_ms=mean, over=over, completed=completed) for mean in means_ms
    )
    window = msgspec.structs.replace(plain.measured, batches=batches, due=due * len(means_ms))
    return msgspec.structs.replace(plain, measured=window)


def reading(of: Trial, aim: Aim = MEAN) -> Reading:
    found = read(of, aim)
    assert found is not None
    return found


def test_a_window_is_read_in_a_start_a_middle_and_the_rest() -> None:
    """A sixth, a third, a half; the warm-up of 5 s came before."""
    found = reading(told([*[10.0] * 2, *[20.0] * 4, *[30.0] * 6]))
    assert [(part.from_s, part.to_s) for part in found.parts] == [(5, 15), (15, 35), (35, 65)]
    assert [math.exp(part.log_s) for part in found.parts] == pytest.approx([0.01, 0.02, 0.03])
    assert [part.count_variance for part in found.parts] == pytest.approx(
        [1 / 200, 1 / 400, 1 / 600]
    )
    assert (found.warm_up_s, found.seconds, found.rate_per_s) == (5.0, 60.0, 20.0)
    assert (found.busy, found.overloaded, found.abort_above_s) == (None, False, None)


def test_batches_count_by_their_requests() -> None:
    one = told([10.0] * 12)
    assert one.measured is not None
    uneven = [
        Batch(due=due, mean_ms=mean, over=0, completed=due)
        for due, mean in ((300, 10.0), (100, 50.0), *[(0, 0.0)] * 4, *[(10, 30.0)] * 6)
    ]
    window = msgspec.structs.replace(one.measured, batches=tuple(uneven))
    found = reading(msgspec.structs.replace(one, measured=window))
    assert [part.from_s for part in found.parts] == [5, 35], "a part without requests says nothing"
    assert math.exp(found.parts[0].log_s) == pytest.approx(0.02)


def test_a_percentile_is_told_by_the_share_that_was_late() -> None:
    """An exponential tail: P(R > L) = a^(L/Y); half a request is late where none was seen."""
    found = reading(told([10.0] * 12, over=5), P95)
    share = 10.5 / 201
    depth = -math.log(share)
    first = found.parts[0]
    assert math.exp(first.log_s) == pytest.approx(0.12 * math.log(20) / depth)
    assert first.count_variance == pytest.approx(3 / 10.5 / depth**2)
    none = reading(told([10.0] * 12), P95).parts[0]
    assert math.exp(none.log_s) == pytest.approx(0.12 * math.log(20) / math.log(201 / 0.5))
    every = reading(told([10.0] * 12, over=100), P95).parts[0]
    assert math.exp(every.log_s) == pytest.approx(0.12 * math.log(20) / -math.log(0.95))


def test_completions_count_while_every_batch_waited_long() -> None:
    """Three thresholds, 120 ms; the first of a run may have begun without a backlog."""
    found = reading(told([*[100.0] * 4, *[121.0] * 8]))
    assert found.busy is not None
    assert (found.busy.from_s, found.busy.step_s) == (30.0, 5.0)
    assert np.exp(found.busy.log_rates) == pytest.approx([18.0] * 7)
    assert found.overloaded, "35 of 60 s"
    assert reading(told([119.0] * 12)).busy is None
    longest = reading(told([*[121.0] * 4, 50.0, *[121.0] * 6, 50.0])).busy
    assert longest is not None
    assert (longest.from_s, len(longest.log_rates)) == (35.0, 5)


def test_half_of_the_window_busy_is_an_overload_and_a_sixth_says_something() -> None:
    lengths = {3: False, 6: False, 7: True}
    for run, overloaded in lengths.items():
        found = reading(told([*[50.0] * (12 - run), *[121.0] * run]))
        assert found.busy is not None
        assert len(found.busy.log_rates) == run - 1
        assert found.overloaded is overloaded, run
    assert reading(told([*[50.0] * 10, *[121.0] * 2])).busy is None
    assert reading(told([121.0] * 12, completed=0)).busy is None


def test_a_tight_threshold_still_waits_a_tenth_of_a_second() -> None:
    tight = Aim(0.001, None)
    assert reading(told([99.0] * 12), tight).busy is None
    assert reading(told([101.0] * 12), tight).busy is not None


def test_many_batches_are_read_in_at_most_twelve_groups() -> None:
    found = reading(told([200.0] * 60))
    assert found.busy is not None
    assert (found.busy.step_s, len(found.busy.log_rates)) == (5.0, 11)
    assert [(part.from_s, part.to_s) for part in found.parts] == [(5, 15), (15, 35), (35, 65)]
    assert np.exp(found.busy.log_rates) == pytest.approx([90.0] * 11)


def test_a_trial_that_was_given_up_says_that_it_was_above_its_bound() -> None:
    whole = told([10.0] * 12)
    assert whole.measured is not None
    given_up = msgspec.structs.replace(
        whole, measured=msgspec.structs.replace(whole.measured, aborted=True)
    )
    found = reading(given_up)
    assert (found.parts, found.abort_above_s) == ((), 1.0)
    unbounded = msgspec.structs.replace(
        given_up, request=msgspec.structs.replace(given_up.request, abort_above_ms=None)
    )
    assert len(reading(unbounded).parts) == 3
    for nothing in ({"due": 0}, {"seconds": 0.0}, {"batches": ()}):
        window = msgspec.structs.replace(whole.measured, **nothing)
        assert read(msgspec.structs.replace(whole, measured=window), MEAN) is None


def test_a_threshold_has_an_aim_for_each_thing_it_judges() -> None:
    mean, tail = Aim(0.04, None), Aim(0.1, 1 - 0.95)
    assert aims(Threshold(mean_ms=40.0)) == (mean,)
    assert aims(Threshold(percentile=0.95, limit_ms=100.0)) == (tail,)
    assert aims(Threshold(mean_ms=40.0, percentile=0.95, limit_ms=100.0)) == (mean, tail)
    assert (mean.gain, Aim(0.1, 0.05).gain) == pytest.approx((1.0, math.log(20)))
