"""A simulated server fitted to the trials of a real search: what other policies are tried on.

It is M/G/k in virtual time: k workers, a capacity, a coefficient of variation. They are chosen
from a grid so that the same loads, simulated, give the responses that were measured. It stands for
the server at these loads only, and says how far off it is.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import msgspec
import numpy as np

from leadline.record import derive_seed
from leadline.record.wording import format_count
from leadline.record.workbench import (
    Experiment,
    Fare,
    Goal,
    Measured,
    PeakRate,
    Prior,
    SimulatedServer,
    Threshold,
    Trial,
    TrialOrder,
    TrialRequest,
    TrialState,
)
from leadline.servers import run_trial
from leadline.studies.workbench.loads import measured_ratio
from leadline.studies.workbench.policies import POLICIES, open_policy
from leadline.units import format_percent

TRIALS_MIN = 3
MISFIT_MAX = 0.35
"""Median difference of the logarithms of mean responses; beyond it nothing is compared."""
_REQUESTS_MAX = 150_000
"""Simulated for one candidate: they decide what the fit costs, some 5 ms."""
_CVS = (0.3, 1.0, 2.0, 4.0)
_WORKERS_MAX = 512
_SATURATED = 0.97
"""A server that completed less than this share of what was due was at its capacity."""
_NEAR_RATIO = 2.0
_BETWEEN_TRIALS_SD = 0.01


class Twin(msgspec.Struct, frozen=True, kw_only=True):
    """The fitted server."""

    server: SimulatedServer
    workers: int
    service_ms: float
    cv: float
    misfit: float
    """Median difference of the logarithms of its mean responses and the measured ones, at loads
    that are not far beyond the threshold: there a response says more of the moment."""
    trials: int

    @property
    def words(self) -> str:
        """Say what it is."""
        return (
            f"a simulated server fitted to {format_count(self.trials, 'trial')}: "
            f"{format_count(self.workers, 'worker')} of {self.service_ms:.3g} ms with a "
            f"coefficient of variation of {self.cv:g}; its responses are "
            f"{format_percent(self.misfit)} off (median)"
        )


class NoTwin(Exception):
    """No simulated server stands for the trials; the message says why."""


def fit_twin(trials: Sequence[Trial], threshold: Threshold) -> Twin:
    """Return the simulated server that is most like these trials.

    Raises:
        NoTwin: there are too few of them, or nothing simulated is like them.

    """
    usable = [
        (trial, trial.measured)
        for trial in trials
        if trial.state in (TrialState.DONE, TrialState.ABORTED) and trial.measured is not None
        if trial.measured.response_ms is not None and trial.measured.response_ms.mean > 0
    ]
    if len(usable) < TRIALS_MIN or len({trial.request.rate_per_s for trial, _ in usable}) < 2:
        raise NoTwin(f"only {format_count(len(usable), 'trial')} can be compared with")
    seen = [_Seen.of(trial, measured, threshold) for trial, measured in _spread(usable)]
    # Beyond the capacity a response says how long the trial was, no more.
    seen = [each for each in seen if each.completed_frac >= _SATURATED]
    if not seen:
        raise NoTwin("every trial was beyond the server's capacity")
    best = min(
        (_candidate(seen, threshold, *of) for of in _grid([m for _, m in usable])),
        key=lambda found: found[0],
    )
    _, misfit, (workers, service_ms, cv) = best
    if misfit > MISFIT_MAX:
        raise NoTwin(
            f"no simple queue is like this server: the nearest is {format_percent(misfit)} off"
        )
    warm_up_s = usable[-1][1].warm_up_s
    overhead_s = float(np.median([trial.cost_s - found.seconds for trial, found in usable]))
    system = _system(workers, service_ms, cv) | {
        "between_trials_sd": _BETWEEN_TRIALS_SD,
        "warm_up_s": warm_up_s,
        "set_up_s": max(0.0, overhead_s - warm_up_s),
    }
    return Twin(
        server=SimulatedServer(system=system),
        workers=workers,
        service_ms=service_ms,
        cv=cv,
        misfit=misfit,
        trials=len(usable),
    )


class _Seen(msgspec.Struct, frozen=True):
    """What of a trial a candidate is to repeat."""

    rate_per_s: float
    seconds: float
    response_ms: float
    tail_ms: float
    completed_frac: float
    ratio: float
    """Over the threshold."""

    @staticmethod
    def of(trial: Trial, measured: Measured, threshold: Threshold) -> _Seen:
        response = measured.response_ms
        if response is None:
            raise NoTwin("a trial has no response")
        offered = measured.offered_per_s or trial.request.rate_per_s
        return _Seen(
            trial.request.rate_per_s,
            measured.seconds,
            response.mean,
            response.p95,
            measured.completed_per_s / offered,
            measured_ratio(threshold, measured),
        )


def _spread(usable: Sequence[tuple[Trial, Measured]]) -> Iterable[tuple[Trial, Measured]]:
    """At most two trials of each load: a load that was visited often weighs no more."""
    by_rate = sorted(usable, key=lambda pair: pair[0].request.rate_per_s)
    for _, group in itertools.groupby(by_rate, key=lambda pair: pair[0].request.rate_per_s):
        yield from list(group)[:2]


def _grid(found: Sequence[Measured]) -> Iterable[tuple[int, float, float]]:
    """Candidates: workers, service in milliseconds, coefficient of variation."""
    floor_ms = min(each.response_ms.mean for each in found if each.response_ms is not None)
    saturated = [
        each.completed_per_s
        for each in found
        if each.completed_per_s < _SATURATED * each.offered_per_s
    ]
    if saturated:
        capacities = [max(saturated) * factor for factor in (0.97, 1.0, 1.03, 1.07)]
    else:
        most = max(each.completed_per_s for each in found)
        capacities = [most * factor for factor in (1.02, 1.07, 1.15, 1.3, 1.6)]
    about = capacities[0] * floor_ms / 1000
    counts = {
        min(_WORKERS_MAX, max(1, round(about * factor))) for factor in (0.25, 0.5, 0.75, 1.0)
    } | {1}
    for workers, capacity, cv in itertools.product(sorted(counts), capacities, _CVS):
        yield workers, 1000 * workers / capacity, cv


def _candidate(
    seen: Sequence[_Seen], threshold: Threshold, workers: int, service_ms: float, cv: float
) -> tuple[float, float, tuple[int, float, float]]:
    """Return its loss, its misfit and itself."""
    server = SimulatedServer(system=_system(workers, service_ms, cv) | {"warm_up_s": 2.0})
    losses, differences = [], []
    for number, each in enumerate(seen):
        seconds = max(1.0, min(each.seconds, _REQUESTS_MAX / len(seen) / each.rate_per_s))
        request = TrialRequest(rate_per_s=each.rate_per_s, seconds=seconds)
        trial = run_trial(
            TrialOrder(
                server=server,
                sample={},
                threshold=threshold,
                request=request,
                order=0,
                seed=derive_seed(1, number),
            )
        )
        measured = trial.measured
        if measured is None or measured.response_ms is None:
            continue
        mean = abs(math.log(measured.response_ms.mean / each.response_ms))
        tail = abs(math.log(max(measured.response_ms.p95, 1e-6) / max(each.tail_ms, 1e-6)))
        losses.append(min(4.0, mean / 0.1) + min(4.0, tail / 0.2))
        if each.ratio < _NEAR_RATIO:
            differences.append(mean)
    if not differences:
        return math.inf, math.inf, (workers, service_ms, cv)
    return float(np.mean(losses)), float(np.median(differences)), (workers, service_ms, cv)


def _system(workers: int, service_ms: float, cv: float) -> dict[str, object]:
    return {
        "workers": workers,
        "service_ms": service_ms,
        "service": {"kind": "lognormal", "cv": cv},
    }


# Policy comparison on the same server: each searches its twin.

REPETITIONS = 3
SEED_OFF = 1.25
"""Policies that take a seed are given one this far from what was found."""
_FARES_REQUESTS_MAX = 15_000_000
"""Simulated for all repetitions of one policy: about a second. One that needs more is left out."""
_TRIALS_MAX = 200


def with_fares(experiment: Experiment) -> Experiment:
    """Return a finished peak search with the policy comparison; never fails.

    What cannot be compared says why in `fares_on`. The deadline is left out: the question is what
    each would have needed.
    """
    own = experiment.peaks[0] if experiment.peaks else None
    if own is None or own.peak is None or own.peak.rate_per_s is None:
        return experiment
    goal = msgspec.structs.replace(experiment.start.goal, deadline_s=None)
    try:
        twin = fit_twin(own.trials, goal.threshold)
    except NoTwin as error:
        return msgspec.structs.replace(experiment, fares_on=f"not compared: {error}")
    near = Prior(rate_per_s=SEED_OFF * own.peak.rate_per_s.value)
    fares, left_out = [], []
    for name in POLICIES:
        seeds = [derive_seed(experiment.start.seed, 1000 + n) for n in range(REPETITIONS)]
        found = list(_searches(name, goal, near, twin.server, seeds))
        if len(found) < REPETITIONS:
            left_out.append(name)
        else:
            fares.append(_fare(name, found))
    words = twin.words + "; policies that take a seed were given one 25% above what was found"
    if left_out:
        words += f"; left out, because they take long: {', '.join(left_out)}"
    fares.sort(key=lambda fare: fare.cost_s)
    return msgspec.structs.replace(experiment, fares=tuple(fares), fares_on=words)


def _searches(
    name: str, goal: Goal, near: Prior, server: SimulatedServer, seeds: Iterable[int]
) -> Iterable[PeakRate]:
    """Search once with each seed, as long as they are within what may be simulated."""
    prior = near if name.endswith("-seeded") else None
    requests = 0.0
    for seed in seeds:
        policy = open_policy(name, goal, seed, prior)
        for order in range(_TRIALS_MAX + 1):
            asked = policy.ask()
            if isinstance(asked, PeakRate):
                yield asked
                break
            requests += asked.rate_per_s * asked.seconds
            if requests > _FARES_REQUESTS_MAX or order == _TRIALS_MAX:
                return
            policy.tell(
                run_trial(
                    TrialOrder(
                        server=server,
                        sample={},
                        threshold=goal.threshold,
                        request=asked,
                        order=order,
                        seed=derive_seed(seed, order),
                    )
                )
            )


def _fare(name: str, found: list[PeakRate]) -> Fare:
    by_cost = sorted(found, key=lambda peak: peak.cost_s)
    middle = by_cost[len(by_cost) // 2]
    rates = [peak.rate_per_s.value for peak in found if peak.rate_per_s is not None]
    return Fare(
        policy=name,
        verdict=middle.verdict,
        rate_per_s=float(np.median(rates)) if rates else None,
        cost_s=middle.cost_s,
        cost_low_s=by_cost[0].cost_s,
        cost_high_s=by_cost[-1].cost_s,
        trials=middle.trials,
        repetitions=len(found),
    )
