"""A device whose response is at its floor until it steps over the target, which no queue's does."""

from __future__ import annotations

import math

import msgspec
import pytest

from leadline.record import Interval
from leadline.record.workbench import (
    Batch,
    Goal,
    Measured,
    PeakRate,
    PeakVerdict,
    ResponseMs,
    Threshold,
    Trial,
    TrialRequest,
    TrialState,
)
from leadline.studies.workbench.policies import open_policy
from leadline.studies.workbench.policies.curve import curve
from leadline.studies.workbench.search import within_seen

THRESHOLD = Threshold(percentile=0.99, limit_ms=5.0)
GOAL = Goal(threshold=THRESHOLD, run_length_s=20.0, rate_start_per_s=500.0)
PARTS = 60
FLOOR_MS = 0.15


def ran(request: TrialRequest, place: int, capacity_per_s: float) -> Trial:
    """What it answers at a rate: at its floor, or with a backlog that grows from the start."""
    rate, part_s = request.rate_per_s, request.seconds / PARTS
    excess = max(rate / capacity_per_s - 1, 0.0)
    batches: list[Batch] = []
    aborted = False
    for at in range(PARTS):
        wait_ms = 1e3 * excess * (at + 0.5) * part_s + FLOOR_MS
        due = round(rate * part_s)
        over = due if wait_ms > 5 else round(0.0005 * due)
        batches.append(
            Batch(due=due, mean_ms=wait_ms, over=over, completed=round(due / (1 + excess)))
        )
        mean_ms = sum(batch.mean_ms for batch in batches) / len(batches)
        if request.abort_above_ms is not None and mean_ms > request.abort_above_ms:
            aborted = True
            break
    late = sum(batch.over for batch in batches) / sum(batch.due for batch in batches)
    slow_ms = batches[-1].mean_ms if late > 0.01 else 1.0
    response = ResponseMs(
        mean=mean_ms,
        p50=FLOOR_MS,
        p90=slow_ms,
        p95=slow_ms,
        p99=slow_ms,
        p99_9=slow_ms,
        max=slow_ms,
    )
    measured = Measured(
        seconds=len(batches) * part_s,
        warm_up_s=1.0,
        due=sum(batch.due for batch in batches),
        unanswered=0,
        failed=0,
        completed_per_s=rate / (1 + excess),
        response_ms=response,
        batches=tuple(batches),
        aborted=aborted,
    )
    return Trial(
        order=place,
        request=request,
        seed=place,
        state=TrialState.ABORTED if aborted else TrialState.DONE,
        cost_s=measured.seconds + 1,
        measured=measured,
    )


@pytest.mark.parametrize(
    "capacity_per_s", [700.0, pytest.param(9_000.0, marks=pytest.mark.long), 100_000.0]
)
@pytest.mark.parametrize("seed", [1, 2, pytest.param(3, marks=pytest.mark.long)])
def test_the_interval_holds_the_step(capacity_per_s: float, seed: int) -> None:
    policy = curve(GOAL, seed)
    policy.on_storage = True
    for place in range(60):
        asked = policy.ask()
        if isinstance(asked, PeakRate):
            break
        policy.tell(ran(asked, place, capacity_per_s))
    assert isinstance(asked, PeakRate)
    rate = asked.rate_per_s
    assert rate is not None
    assert rate.covers(capacity_per_s), (rate, asked.sentences)
    if asked.verdict is PeakVerdict.FOUND:
        assert rate.half_width_frac is not None
        assert rate.half_width_frac <= GOAL.error_frac


def answer(rate: Interval, low: float, high: float) -> PeakRate:
    policy = open_policy("curve", GOAL, 1, None)
    return msgspec.structs.replace(
        policy.answer_now(),
        verdict=PeakVerdict.FOUND,
        rate_per_s=rate,
        lower_bound_per_s=low,
        upper_bound_per_s=high,
    )


def test_an_interval_beyond_the_loads_seen_is_widened_to_them_and_not_told_as_found() -> None:
    found = within_seen(answer(Interval(77_000, 65_500, 87_200, 9), 101_830, 195_888), GOAL)
    assert found.verdict is PeakVerdict.IRREGULAR
    assert found.rate_per_s is not None
    assert (found.rate_per_s.low, found.rate_per_s.high) == (65_500, 195_888)
    assert found.rate_per_s.value == pytest.approx(math.sqrt(101_830 * 195_888))


def test_a_rate_between_the_loads_seen_is_left_as_it_is() -> None:
    own = answer(Interval(77_000, 65_500, 87_200, 9), 70_000, 90_000)
    assert within_seen(own, GOAL) == own
