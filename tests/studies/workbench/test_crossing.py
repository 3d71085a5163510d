"""Where a device's response crosses its target, on known truth that no model made."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from leadline.record.workbench import (
    Batch,
    Measured,
    ResponseMs,
    Threshold,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.policies.evidence import BESIDE_MIN, Point, crossing, point

TRUE_PER_S = 60_000.0


STEEPER = 3.0
"""The share of late requests goes with the cube of the percentile."""


def drawn(seed: int, slope: float, scatter: float, together: float, count: int) -> list[Point]:
    """Trials beside the crossing whose errors are log-normal and follow each other."""
    chance = random.Random(seed)
    error, points = chance.gauss(0, scatter), list[Point]()
    for _ in range(count):
        x = chance.uniform(-0.15, 0.15)
        error = together * error + math.sqrt(1 - together**2) * chance.gauss(0, scatter)
        # The expected share of late requests is at its limit, not its median.
        response = slope * x + error - STEEPER * scatter**2 / 2
        points.append(Point(math.log(TRUE_PER_S) + x, response, STEEPER * response))
    return points


@pytest.mark.parametrize("slope", [4.0, 12.0])
@pytest.mark.parametrize(("scatter", "together"), [(0.1, 0.0), (0.3, 0.0), (0.3, 0.5)])
def test_the_interval_holds_the_truth(slope: float, scatter: float, together: float) -> None:
    found = [crossing(drawn(seed, slope, scatter, together, 12), 0.95) for seed in range(200)]
    known = [each for each in found if each is not None]
    assert len(known) >= 120
    assert sum(each.covers(TRUE_PER_S) for each in known) >= 0.95 * len(known)
    halves = [each.half_width_frac for each in known]
    assert all(half is not None and half >= 0.049 for half in halves)


@pytest.mark.parametrize(
    "points",
    [
        drawn(1, 8.0, 0.1, 0.0, BESIDE_MIN - 1),
        [Point(x, y + 3, z) for x, y, z in drawn(1, 8.0, 0.1, 0.0, 12)],  # all over the threshold
        [Point(x, y - 1, z) for x, y, z in drawn(1, 2.0, 0.1, 0.0, 12)],  # all below
        [],
    ],
)
def test_without_enough_trials_on_both_sides_there_is_no_crossing(points: list[Point]) -> None:
    assert crossing(points, 0.95) is None


@pytest.mark.parametrize(
    "points",
    [
        [Point(x, -y, -z) for x, y, z in drawn(1, 4.0, 0.1, 0.0, 12)],  # falls with the load
        drawn(1, 0.0, 0.5, 0.0, 12),
        [Point(11.0, y, z) for _, y, z in drawn(1, 4.0, 0.3, 0.0, 12)],
    ],
)
def test_trials_that_tell_no_slope_tell_no_narrow_crossing(points: list[Point]) -> None:
    found = crossing(points, 0.95)
    assert found is None or (found.half_width_frac or 1) > 0.1


def test_responses_without_any_scatter_have_the_narrowest_interval() -> None:
    places = [0.02 * place - 0.1 for place in range(12)]
    found = crossing([Point(math.log(TRUE_PER_S) + x, 4 * x, 4 * x) for x in places], 0.95)
    assert found is not None
    assert found.value == pytest.approx(TRUE_PER_S, rel=0.01)
    assert found.half_width_frac == pytest.approx(0.05, abs=0.01)


def test_trials_far_from_the_threshold_have_no_part_in_it() -> None:
    beside = drawn(2, 8.0, 0.1, 0.0, 10)
    told = ((4000.0, -6.0), (150_000.0, 4.0), (30_000.0, -1.0))
    far = [Point(math.log(rate), y, y) for rate, y in told]
    assert crossing([*beside, *far], 0.95) == crossing(beside, 0.95)


def trial(over: int, seconds: float = 20.0, mean_ms: float = 2.0) -> Trial:
    response = ResponseMs(mean=mean_ms, p50=2, p90=3, p95=3, p99=4, p99_9=6, max=9)
    measured = Measured(
        seconds=seconds,
        warm_up_s=1.0,
        due=20_000,
        unanswered=0,
        failed=0,
        completed_per_s=1000.0,
        response_ms=response,
        batches=(Batch(due=20_000, mean_ms=mean_ms, over=over, completed=20_000),),
        aborted=False,
    )
    request = TrialRequest(rate_per_s=1000.0, seconds=20.0)
    return Trial(
        order=0, request=request, seed=1, state=TrialState.DONE, cost_s=21.0, measured=measured
    )


def told(threshold: Threshold, of: Trial) -> tuple[float, float]:
    found = point(threshold, of, 20.0)
    assert found is not None
    assert found.load == pytest.approx(math.log(1000.0))
    return math.exp(found.response), math.exp(found.counted)


def test_a_trial_tells_its_response_and_what_is_counted_over_their_limits() -> None:
    p99 = Threshold(percentile=0.99, limit_ms=5.0)
    assert told(p99, trial(200)) == pytest.approx((1.0, 1.0), abs=0.01)
    late = told(p99, trial(400))
    assert late[0] > 1
    assert late[1] == pytest.approx(2, abs=0.01)
    mean = Threshold(mean_ms=1.0)
    assert told(mean, trial(200)) == pytest.approx((2.0, 2.0))
    assert point(p99, trial(200, seconds=10.0), 20.0) is None
    cut = msgspec.structs.replace(trial(200), state=TrialState.ABORTED)
    assert point(p99, cut, 20.0) is None
