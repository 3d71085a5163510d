"""A simulated server fitted to trials, and how policies would have fared on it."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from leadline.record import Status
from leadline.record.workbench import (
    Experiment,
    PeakRate,
    PeakVerdict,
    SamplePeak,
    SimulatedServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
)
from leadline.servers import run_trial
from leadline.studies.workbench import fitted_server as fares
from leadline.studies.workbench.fitted_server import NoTwin, fit_twin, with_fares
from leadline.studies.workbench.policies import POLICIES
from leadline.studies.workbench.search import PeakSearch
from workbench_fixture import TEXT, peak_start

THRESHOLD = Threshold(mean_ms=40.0)


def trials_of(system: dict[str, Any], rates: list[float], seconds: float = 60.0) -> list[Trial]:
    return [
        run_trial(
            TrialOrder(
                server=SimulatedServer(system=system),
                sample={},
                threshold=THRESHOLD,
                order=order,
                request=TrialRequest(rate_per_s=rate, seconds=seconds),
                seed=order,
            )
        )
        for order, rate in enumerate(rates)
    ]


def mean_ms(trial: Trial) -> float:
    assert trial.measured is not None
    assert trial.measured.response_ms is not None
    return trial.measured.response_ms.mean


def peak_of(system: dict[str, Any]) -> float:
    """The rate at which three long trials have 40 ms in the mean."""
    low, high = 1.0, 2000.0
    for _ in range(11):
        middle = (low + high) / 2
        responses = [mean_ms(trial) for trial in trials_of(system, [middle] * 3, 120.0)]
        low, high = (middle, high) if sum(responses) < 3 * 40.0 else (low, middle)
    return low


def searched(text: str = TEXT, **options: Any) -> Experiment:
    """A finished search on this machine, without a store."""
    start = peak_start(text, **options)
    search = PeakSearch(start, start.samples[0])
    while not isinstance(order := search.ask(), PeakRate):
        search.tell(run_trial(order))
    own = SamplePeak(sample=start.samples[0], trials=tuple(search.trials), peak=order)
    return Experiment(start=start, status=Status.DONE, peaks=(own,))


@pytest.mark.parametrize(("workers", "cv"), [(1, 1.0), (4, 0.3), (8, 2.0)])
def test_the_twin_answers_as_the_server_whose_trials_it_saw(workers: int, cv: float) -> None:
    """At another load too, and its peak rate is theirs."""
    system = {"workers": workers, "service_ms": 10.0, "service": {"kind": "lognormal", "cv": cv}}
    capacity = 100.0 * workers
    seen = trials_of(system, [capacity * share for share in (0.1, 0.5, 0.8, 0.95, 1.4)])
    twin = fit_twin(seen, THRESHOLD)
    assert twin.workers / twin.service_ms * 1000 == pytest.approx(capacity, rel=0.04)
    assert twin.misfit < 0.2
    assert peak_of(twin.server.system) == pytest.approx(peak_of(system), rel=0.06)
    pair = [
        trials_of(either, [0.7 * capacity], 180.0)[0] for either in (system, twin.server.system)
    ]
    assert pair[0].cost_s == pytest.approx(pair[1].cost_s)
    true_ms, fitted_ms = map(mean_ms, pair)
    assert fitted_ms == pytest.approx(true_ms, rel=0.2)


def test_what_a_saturated_server_completes_is_its_capacity() -> None:
    """Where no response tells: at half the load, and at twice of it."""
    system = {"workers": 4, "service_ms": 10.0, "service": {"kind": "exponential"}}
    twin = fit_twin(trials_of(system, [40.0, 120.0, 200.0, 600.0, 800.0]), THRESHOLD)
    assert twin.workers / twin.service_ms * 1000 == pytest.approx(400.0, rel=0.015)


def test_too_little_is_no_twin() -> None:
    system = {"workers": 2, "service_ms": 10.0, "service": {"kind": "exponential"}}
    with pytest.raises(NoTwin, match="only 2 trials"):
        fit_twin(trials_of(system, [20.0, 100.0]), THRESHOLD)
    with pytest.raises(NoTwin, match="every trial was beyond the server's capacity"):
        fit_twin(trials_of(system, [400.0, 500.0, 600.0]), THRESHOLD)
    with pytest.raises(NoTwin, match="only 4 trials"):
        fit_twin(trials_of(system, [100.0] * 4), THRESHOLD)


def test_trials_like_no_queue_are_no_twin() -> None:
    """Responses that fall as the load rises."""
    system = {"workers": 8, "service_ms": 10.0, "service": {"kind": "exponential"}}
    trials = trials_of(system, [100.0, 200.0, 300.0, 400.0])

    def slower(trial: Trial, factor: float) -> Trial:
        assert trial.measured is not None
        response = trial.measured.response_ms
        assert response is not None
        scaled = msgspec.structs.replace(response, mean=factor * response.mean)
        measured = msgspec.structs.replace(trial.measured, response_ms=scaled)
        return msgspec.structs.replace(trial, measured=measured)

    odd = [slower(trial, 7.0 / (1 + number)) for number, trial in enumerate(trials)]
    with pytest.raises(NoTwin, match="no simple queue is like this server"):
        fit_twin(odd, THRESHOLD)


def test_every_policy_fares_somehow_and_the_deadline_is_none_of_their_business() -> None:
    found = with_fares(searched(deadline_s=1000.0))
    assert {fare.policy for fare in found.fares} == set(POLICIES)
    assert [fare.cost_s for fare in found.fares] == sorted(fare.cost_s for fare in found.fares)
    for fare in found.fares:
        assert fare.cost_low_s <= fare.cost_s <= fare.cost_high_s
        assert fare.repetitions == fares.REPETITIONS
    rates = [fare.rate_per_s for fare in found.fares if fare.verdict is PeakVerdict.FOUND]
    assert len(rates) > 3
    assert all(rate is not None and 150 < rate < 200 for rate in rates)
    assert max(fare.cost_s for fare in found.fares) > 1000
    assert with_fares(found) == found


def test_policies_that_would_simulate_too_long_are_left_out_by_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fares, "_FARES_REQUESTS_MAX", 100_000)
    found = with_fares(searched())
    names = {fare.policy for fare in found.fares}
    assert "strawman" not in names
    assert "left out, because they take long: " in found.fares_on
    assert all(name in found.fares_on for name in set(POLICIES) - names)


def test_without_a_rate_or_enough_trials_nothing_is_compared() -> None:
    none = searched(deadline_s=5.0)
    assert with_fares(none) == none
    own = searched().peaks[0]
    few = msgspec.structs.replace(
        searched(), peaks=(msgspec.structs.replace(own, trials=own.trials[:2]),)
    )
    assert with_fares(few).fares == ()
    assert with_fares(few).fares_on == "not compared: only 2 trials can be compared with"
