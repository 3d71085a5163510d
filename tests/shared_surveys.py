"""Surveys of simulated systems, each made once in a run of the tests, whichever process asks first.

A seed gives the same survey in every process (`simulation/test_profiles.py` holds that), so the
processes of one run share what one of them simulated. Nothing outlives the run.
"""

from __future__ import annotations

import functools
from typing import Any

from leadline.record.survey import SURVEY
from leadline.store import Store
from proving.simulation import (
    SimulatedCacheStudy,
    SimulatedSurvey,
    simulate_cache_study,
    simulate_survey,
)
from shared_results import once

SEED = 11
"""Whoever needs any survey of a profile asks for this one: it is then there already."""


FAST = frozenset({"two-level", "no-cache", "three-level", "smooth-slope", "noisy"})
"""Their requests take microseconds: in the usual hours of virtual time a point has millions."""
FAST_BUDGET_S = 300.0


@functools.cache
def surveyed(profile: str, seed: int = SEED, **asked: Any) -> SimulatedSurvey:
    """Return `simulate_survey(profile, seed, **asked)`."""
    if profile in FAST:
        asked = {"budget_s": FAST_BUDGET_S} | asked
    words = (f"{key}={value}" for key, value in sorted(asked.items()))
    name = "-".join(["survey", profile, str(seed), *words])
    return once(name, lambda: simulate_survey(profile, seed, **asked))


@functools.cache
def studied(profile: str, seed: int = SEED) -> SimulatedCacheStudy:
    """Return `simulate_cache_study(profile, seed)`."""
    return once(f"study-{profile}-{seed}", lambda: simulate_cache_study(profile, seed))


def keep(store: Store, *runs: SimulatedSurvey) -> None:
    """Put finished surveys into a store."""
    for run in runs:
        start = run.survey.start
        store.begin(SURVEY, start)
        for point in run.points:
            store.add(start.study_id, point)
        store.end(start.study_id, run.survey, run.survey.status)
