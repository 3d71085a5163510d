"""How the other policies would have fared on the same server: each searches its twin."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np

from leadline.record import derive_seed
from leadline.record.workbench import (
    Experiment,
    Fare,
    Goal,
    PeakRate,
    Prior,
    SimulatedServer,
    TrialOrder,
)
from leadline.servers import run_trial
from leadline.studies.workbench.policies import POLICIES, open_policy
from leadline.studies.workbench.twin import NoTwin, fit_twin

REPETITIONS = 3
SEED_OFF = 1.25
"""Policies that take a seed are given one this far from what was found."""
_REQUESTS_MAX = 15_000_000
"""Simulated for all repetitions of one policy: about a second. One that needs more is left out."""
_TRIALS_MAX = 200


def with_fares(experiment: Experiment) -> Experiment:
    """Return a finished peak search with how every policy would have fared; never fails.

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
    words = twin.words + "; policies that take a seed were given one 25 % above what was found"
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
            if requests > _REQUESTS_MAX or order == _TRIALS_MAX:
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
