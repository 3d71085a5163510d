"""Surveys of simulated systems, each made once in a run of the tests, whichever process asks first.

A seed gives the same survey in every process (`simulation/test_profiles.py` holds that), so the
processes of one run share what one of them simulated. Nothing outlives the run.
"""

from __future__ import annotations

import fcntl
import functools
import os
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from leadline.record.survey import SURVEY
from leadline.store import Store
from leadline.testing.simulation import (
    SimulatedCacheStudy,
    SimulatedSurvey,
    simulate_cache_study,
    simulate_survey,
)

FOLDER = "LEADLINE_TEST_RUN"
"""Names the folder that this run of the tests shares among its processes (`conftest.py`)."""

Made = TypeVar("Made")

SEED = 11
"""Whoever needs any survey of a profile asks for this one: it is then there already."""


def _once(name: str, make: Callable[[], Made]) -> Made:
    folder = os.environ.get(FOLDER)
    if folder is None:
        return make()
    path = Path(folder) / name
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            path.write_bytes(pickle.dumps(make()))
        made: Made = pickle.loads(path.read_bytes())  # noqa: S301 - written by this run
        return made


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
    return _once(name, lambda: simulate_survey(profile, seed, **asked))


@functools.cache
def studied(profile: str, seed: int = SEED) -> SimulatedCacheStudy:
    """Return `simulate_cache_study(profile, seed)`."""
    return _once(f"study-{profile}-{seed}", lambda: simulate_cache_study(profile, seed))


def keep(store: Store, *runs: SimulatedSurvey) -> None:
    """Put finished surveys into a store."""
    for run in runs:
        start = run.survey.start
        store.begin(SURVEY, start)
        for point in run.points:
            store.add(start.study_id, point)
        store.end(start.study_id, run.survey, run.survey.status)
