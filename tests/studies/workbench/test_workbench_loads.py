"""Loads, thresholds and intervals of the rate: what every policy of the workbench rests on."""

from __future__ import annotations

import math
import random
from collections.abc import Iterable

import msgspec
import pytest

from leadline.record.workbench import Measured, Threshold, Trial, TrialRequest, TrialState
from leadline.stats import student_t
from leadline.studies.workbench.loads import (
    RATIO_MAX,
    LoadTrials,
    _peak_if,
    bounds,
    contradiction,
    load_rows,
    measured_ratio,
    percentile_ms,
    rate_interval,
    threshold_ratio,
    two_modes,
)
from scripted_server import measured, one_queue, trial

MEAN = Threshold(mean_ms=40.0)
P95 = Threshold(percentile=0.95, limit_ms=100.0)


def by_load(trials: Iterable[Trial], threshold: Threshold) -> dict[float, LoadTrials]:
    """Group trials by the load that was asked for, in the order of first asking."""
    loads: dict[float, LoadTrials] = {}
    for each in trials:
        rate_per_s = each.request.rate_per_s
        loads.setdefault(rate_per_s, LoadTrials(rate_per_s)).add(each, threshold)
    return loads


def request(rate_per_s: float, seconds: float = 180.0) -> TrialRequest:
    return TrialRequest(rate_per_s=rate_per_s, seconds=seconds)


def load_of(rate_per_s: float, *means_ms: float) -> LoadTrials:
    load = LoadTrials(rate_per_s)
    for order, mean_ms in enumerate(means_ms):
        load.add(trial(request(rate_per_s), order, mean_ms), MEAN)
    return load


def test_the_ratio_is_one_at_the_threshold() -> None:
    assert measured_ratio(MEAN, measured(100, 60, 40.0)) == pytest.approx(1.0)
    assert measured_ratio(MEAN, measured(100, 60, 60.0)) == pytest.approx(1.5)


@pytest.mark.parametrize("percentile", [0.3, 0.5, 0.8, 0.95, 0.97, 0.995])
def test_the_percentile_of_exponential_times_is_found_between_those_reported(
    percentile: float,
) -> None:
    threshold = Threshold(percentile=percentile, limit_ms=20.0)
    found = percentile_ms(threshold, measured(1000, 60, 30.0))
    exact = -30 * math.log(1 - percentile)
    assert found == pytest.approx(max(exact, 30 * math.log(2)), rel=1e-6)


@pytest.mark.parametrize("mean_ms", [20.0, 27.0, 28.4, 28.7, 33.0])
def test_the_share_counted_decides_a_percentile_that_nobody_reports(mean_ms: float) -> None:
    threshold = Threshold(percentile=0.97, limit_ms=100.0)
    window = measured(10_000, 60, mean_ms, limit_ms=100.0)
    share_over = sum(batch.over for batch in window.batches) / window.due
    assert (percentile_ms(threshold, window) > 100.0) == (share_over > 0.03)


@pytest.mark.parametrize(("over_share", "saturated"), [(0.02, False), (0.04, True)])
def test_what_was_counted_beats_what_is_taken_between_percentiles(
    over_share: float, saturated: bool
) -> None:
    """p95 is 60 ms and p99 is 300 ms: between them, only the count knows where 97% are."""
    window = measured(10_000, 60, 20.0)
    assert window.response_ms is not None
    over = round(over_share * window.due)
    batch = msgspec.structs.replace(window.batches[0], over=over)
    response = msgspec.structs.replace(
        window.response_ms, p50=20.0, p90=40.0, p95=60.0, p99=300.0, p99_9=400.0, max=500.0
    )
    window = msgspec.structs.replace(window, batches=(batch,), response_ms=response)
    threshold = Threshold(percentile=0.97, limit_ms=100.0)
    assert (percentile_ms(threshold, window) > 100.0) == saturated


def counted(over: int, **reported_ms: float) -> Measured:
    """A window of ten million requests of which so many took longer than the limit."""
    window = measured(100_000, 100, 10.0)
    assert window.response_ms is not None
    batch = msgspec.structs.replace(window.batches[0], over=over)
    response = msgspec.structs.replace(window.response_ms, **reported_ms)
    return msgspec.structs.replace(window, batches=(batch,), response_ms=response)


def test_a_percentile_that_the_count_contradicts_is_left_out() -> None:
    """99% within 90 ms is said and 97% within 100 ms was counted: 98% took longer."""
    window = counted(300_000, p50=20.0, p90=40.0, p95=60.0, p99=90.0, p99_9=400.0, max=500.0)
    found = percentile_ms(Threshold(percentile=0.98, limit_ms=100.0), window)
    assert 100.0 < found < 400.0


def test_a_percentile_of_the_very_share_that_was_counted_stands_beyond_it() -> None:
    window = counted(100_000, p50=20.0, p90=40.0, p95=60.0, p99=300.0, p99_9=400.0, max=500.0)
    assert 300.0 < percentile_ms(Threshold(percentile=0.995, limit_ms=100.0), window) < 400.0


def test_between_shares_that_are_nearly_all_the_longest_time_stands() -> None:
    window = counted(1, p50=20.0, p90=40.0, p95=60.0, p99=70.0, p99_9=80.0, max=500.0)
    threshold = Threshold(percentile=1 - 5e-8, limit_ms=100.0)
    assert percentile_ms(threshold, window) == 500.0


def test_a_window_of_one_request_says_how_long_it_took() -> None:
    one = trial(request(0.05, 20.0), 0, 20.0)
    assert one.measured is not None
    assert one.measured.due == 1
    (row,) = load_rows(by_load([one], MEAN).values(), MEAN, 0.95)
    assert row.response_ms is not None
    assert row.response_ms.value == pytest.approx(20.0)


def test_requests_that_failed_are_within_no_time() -> None:
    window = msgspec.structs.replace(measured(100, 60, 10.0), failed=360)
    assert percentile_ms(P95, window) == math.inf
    assert measured_ratio(P95, window) == RATIO_MAX


def test_either_threshold_saturates() -> None:
    both = Threshold(mean_ms=40.0, percentile=0.95, limit_ms=60.0)
    assert measured_ratio(both, measured(100, 60, 30.0)) == pytest.approx(math.log(20) / 2)
    lax = Threshold(mean_ms=40.0, percentile=0.95, limit_ms=1000.0)
    assert measured_ratio(lax, measured(100, 60, 30.0)) == pytest.approx(0.75)


def test_an_aborted_trial_is_saturated_whatever_it_has_measured() -> None:
    given_up = trial(request(100), 0, 30.0, TrialState.ABORTED)
    ratio = threshold_ratio(MEAN, given_up)
    assert ratio == pytest.approx(1.1)


@pytest.mark.parametrize(
    "state", [TrialState.FAILED, TrialState.SERVER_LOST, TrialState.GENERATOR_LIMITED]
)
def test_a_trial_that_says_nothing_has_no_ratio(state: TrialState) -> None:
    assert threshold_ratio(MEAN, trial(request(100), 0, state=state)) is None


def test_two_trials_have_students_interval_with_one_degree_of_freedom() -> None:
    interval = load_of(100, 30.0, 34.0).ratio_interval(0.95)
    half = student_t(1, 0.95) * math.sqrt(8.0 / 2) / 40
    assert interval == pytest.approx((0.8 - half, 0.8 + half))
    assert student_t(1, 0.95) == pytest.approx(12.706, abs=1e-3)


def test_saturated_only_where_the_interval_says_so() -> None:
    assert load_of(100, 30.0, 30.2).saturated(0.95, 0.1) is False
    assert load_of(100, 30.0, 38.0).saturated(0.95, 0.1) is None
    assert load_of(100, 50.0, 50.2).saturated(0.95, 0.1) is True
    assert load_of(100, 41.0).saturated(0.95, 0.1) is None
    assert load_of(100, 50.0).saturated(0.95, 0.1) is True
    assert load_of(100, 30.0).saturated(0.95, 0.1) is False


def test_a_load_that_kills_the_server_twice_saturates_it() -> None:
    load = LoadTrials(900.0)
    load.add(trial(request(900), 0, state=TrialState.SERVER_LOST), MEAN)
    assert not load.kills
    assert load.saturated(0.95, 0.1) is None
    load.add(trial(request(900), 1, state=TrialState.SERVER_LOST), MEAN)
    assert load.kills
    assert load.saturated(0.95, 0.1) is True


def test_the_lower_bound_lies_below_every_saturated_load() -> None:
    trials = [
        trial(request(rate), order, mean_ms)
        for order, (rate, mean_ms) in enumerate(
            [(100, 10), (100, 10), (200, 20), (200, 20), (300, 90), (300, 90), (400, 20), (400, 20)]
        )
    ]
    rows = load_rows(by_load(trials, MEAN).values(), MEAN, 0.95)
    assert [row.rate_per_s for row in rows] == [100, 200, 300, 400]
    assert rows[0].response_ms is not None
    assert rows[0].response_ms.value == pytest.approx(10)
    assert bounds(rows) == (200, 300)


def test_modes_are_seen_and_a_heavy_tail_is_not_one() -> None:
    draws = random.Random(4)
    near = [draws.lognormvariate(0, 0.05) for _ in range(8)]
    far = [draws.lognormvariate(1.5, 0.05) for _ in range(5)]
    assert two_modes(near + far)
    tails = [[draws.lognormvariate(0, 0.8) for _ in range(30)] for _ in range(100)]
    assert sum(map(two_modes, tails)) <= 1
    assert not two_modes(near)


def test_the_rates_interval_holds_the_peak_of_a_known_curve() -> None:
    """R = 1000 / (500 - λ): the peak is 475. Trials are at 470 with 10% noise."""
    response, peak = one_queue(500.0), 475.0
    covered, width = 0, 0.0
    for seed in range(400):
        draws = random.Random(seed)
        means = [response(470) * math.exp(0.1 * draws.gauss(0, 1)) for _ in range(8)]
        load = load_of(470, *means)
        below = load_of(235, response(235), response(235) * 1.01)
        found = rate_interval(load, [below, load], 0.95)
        assert found is not None
        assert found.low is not None
        assert found.high is not None
        covered += found.low <= peak <= found.high
        width += (found.high - found.low) / peak / 400
    assert 0.92 <= covered / 400 <= 0.99
    assert width < 0.02


def test_measured_loads_on_either_side_bound_the_rates_interval() -> None:
    middle = load_of(470, 10.0, 90.0, 41.0)
    below, above = load_of(460, 25.0, 25.1, 25.2), load_of(480, 70.0, 71.0, 70.5)
    found = rate_interval(middle, [below, middle, above], 0.95)
    assert found is not None
    assert found.low is not None
    assert 460 < found.low < 470
    assert (found.value, found.high) == (470, 480)


def test_a_rates_interval_without_another_load_takes_the_response_in_proportion() -> None:
    found = rate_interval(load_of(100, 39.0, 40.0, 41.0), [], 0.95)
    assert found is not None
    half = student_t(2, 0.95) / math.sqrt(3) / 40
    assert found.low == pytest.approx(100 / (1 + half))
    assert found.high == pytest.approx(100 / (1 - half))


def test_a_window_without_requests_says_nothing() -> None:
    empty = trial(request(0.001), 0, 20.0)
    assert empty.measured is not None
    assert empty.measured.due == 0
    assert threshold_ratio(MEAN, empty) is None
    (row,) = load_rows(by_load([empty], P95).values(), P95, 0.95)
    assert (row.trials, row.response_ms, row.percentile_ms, row.saturated) == (1, None, None, None)


def test_an_interval_of_the_rate_that_says_nothing_has_no_ends() -> None:
    found = rate_interval(load_of(100, 20.0, 60.0), [], 0.95)
    assert found is not None
    assert (found.value, found.low, found.high, found.n) == (100, None, None, 2)


@pytest.mark.parametrize(
    ("trials", "seen"),
    [
        ([], None),
        ([(100.0, 44.0), (105.0, 20.0)], (100.0, 105.0)),
        ([(105.0, 20.0), (100.0, 44.0)], (100.0, 105.0)),
        ([(100.0, 43.9), (105.0, 20.0)], None),
        ([(100.0, 44.0), (105.0, 20.1)], None),
        ([(100.0, 44.0), (104.9, 20.0)], None),
        ([(100.0, 20.0), (105.0, 44.0)], None),
        ([(100.0, 20.0), (100.0, 400.0)], None),
        ([(80.0, 90.0), (100.0, 44.0), (105.0, 20.0), (120.0, 6.0), (130.0, 60.0)], (80.0, 120.0)),
    ],
)
def test_a_load_that_saturates_below_one_that_does_not_is_a_contradiction(
    trials: list[tuple[float, float]], seen: tuple[float, float] | None
) -> None:
    """By more than speed that differs a little from trial to trial can make: 5% of load."""
    told = [trial(request(rate), order, ms) for order, (rate, ms) in enumerate(trials)]
    assert contradiction(told, MEAN) == seen


def test_beyond_the_last_percentile_reported_times_rise_to_the_longest() -> None:
    """Exponentially, as if that were one in a million: 99.95% is 0.1 of the way in depth."""
    window = measured(10_000, 60, 20.0)
    assert window.response_ms is not None
    response = msgspec.structs.replace(window.response_ms, p99_9=100.0, max=200.0)
    threshold = Threshold(percentile=0.9995, limit_ms=500.0)
    found = percentile_ms(threshold, msgspec.structs.replace(window, response_ms=response))
    assert found == pytest.approx(100.0 + 100.0 * math.log(2) / math.log(1000), abs=0.01)


def test_a_load_of_which_nothing_is_known_has_no_ratio() -> None:
    load = LoadTrials(100.0)
    assert (load.ratio, load.ratio_interval(0.95), load.saturated(0.95, 0.1)) == (None, None, None)


def test_two_kinds_that_do_not_scatter_are_two_however_near() -> None:
    assert two_modes([1.0, 1.0, 1.0, 1.1, 1.1, 1.1])
    assert not two_modes([1.0, 1.0, 1.0, 1.1, 1.1])


def test_a_row_has_the_percentile_where_there_is_a_limit_and_an_answer() -> None:
    load = LoadTrials(100.0)
    answered = trial(request(100.0), 0, 30.0, limit_ms=100.0)
    assert answered.measured is not None
    silent = msgspec.structs.replace(answered.measured, response_ms=None)
    load.add(answered, P95)
    load.add(msgspec.structs.replace(answered, measured=silent), P95)
    (row,) = load_rows([load], P95, 0.95)
    assert row.percentile_ms is not None
    assert row.percentile_ms.value == pytest.approx(30.0 * math.log(20), rel=0.01)
    assert row.percentile_ms.n == 1
    (plain,) = load_rows([load], MEAN, 0.95)
    assert plain.percentile_ms is None


def test_two_loads_of_a_known_curve_give_its_peak() -> None:
    """R = 1000 / (500 - load) over 40 ms: the chord of 1 / R is the curve, and the peak 475."""
    below, far, near = load_of(400.0, 10.0), load_of(100.0, 2.5), load_of(477.0, 1000 / 23)
    assert _peak_if(1.25, 480.0, [below, far]) == pytest.approx(475.0)
    assert _peak_if(0.5, 450.0, [below]) == pytest.approx(475.0)
    assert _peak_if(1.25, 480.0, [near]) == pytest.approx(384.0), "too near: in proportion"
    assert _peak_if(1.25, 480.0, []) == pytest.approx(384.0)
