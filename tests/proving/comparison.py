"""Comparisons of simulated systems, held against the truth that only a simulation knows."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass

import msgspec
import numpy as np

from leadline.engine import Limits, NothingCompleted, Target, open_engine
from leadline.models.predictor import Predictor
from leadline.record import Workload
from leadline.record.comparison import SystemsComparison
from leadline.studies.comparison.contenders import Named
from leadline.studies.comparison.document import Question, Terms, compare_systems
from proving.simulation import SimulatedSurvey, simulate_survey

PAPER_MACHINES = (
    "hp-730",
    "convex-c240",
    "decstation-5000-sprite",
    "solbourne-5e905",
    "sparcstation-1plus",
)
_LONGER_S = (10.0, 60.0, 300.0)
"""Virtual seconds until some request has surely ended; what it took is of no account."""


@functools.cache
def true_mb_s(profile: str, workload: Workload) -> float:
    """Return the expected throughput of any workload, beyond the profile's surveyed range too."""
    target = Target.parse(f"sim:{profile}")
    # The hint bounds what a survey asks for; the law itself has no such bound.
    system = {name: part for name, part in (target.profile or {}).items() if name != "survey"}
    with open_engine(msgspec.structs.replace(target, profile=system)) as engine:
        for seconds in _LONGER_S:
            limits = Limits(
                warm_up_s_max=5.0,
                measure_s_min=1.0,
                measure_s_max=seconds,
                accuracy=0.05,
                total_s_max=3600.0,
            )
            with suppress(NothingCompleted):
                result = engine.run(workload, seed=1, limits=limits)
                assert result.simulated is not None
                return result.simulated.law_mb_s
    raise NothingCompleted(f"no request of {workload} ended on {profile}")


@functools.lru_cache(maxsize=16)
def _run(profile: str, seed: int, learn_frac: float) -> SimulatedSurvey:
    return simulate_survey(profile, seed, learn_frac=learn_frac)


@functools.lru_cache(maxsize=32)
def surveyed(
    profile: str,
    seed: int,
    *,
    model: str | None = None,
    extrapolate: bool = False,
    learn_frac: float = 0.0,
) -> Predictor:
    """Survey a simulated system and fit a model."""
    run = _run(profile, seed, learn_frac)
    return Predictor(run.survey, run.points, model=model, extrapolate=extrapolate)


@dataclass(frozen=True)
class HeldRatio:
    """One compared workload and the true ratio behind it."""

    title: str | None
    workload: Workload
    true_ratio: float
    ratio: float
    low: float
    high: float
    verdict: str
    verdict_alone: str

    @property
    def covered(self) -> bool:
        """Whether the stated interval holds the truth."""
        return self.low <= self.true_ratio <= self.high

    @property
    def right_winner(self) -> bool:
        """Whether the ratio lies on the same side of 1 as the truth."""
        return (self.ratio > 1) == (self.true_ratio > 1)

    @property
    def wrong_verdict(self) -> bool:
        """Whether the slower system is named the faster one, as if that were sure."""
        return self.verdict == ("b" if self.true_ratio > 1 else "a")


def held_comparison(
    profiles: tuple[str, str],
    predictors: tuple[Predictor, Predictor],
    questions: Sequence[Question],
) -> tuple[SystemsComparison, tuple[HeldRatio, ...]]:
    """Compare two surveyed profiles and put the truth beside every ratio."""
    systems = [Named(f"system {index}", each) for index, each in enumerate(predictors)]
    document = compare_systems(systems, Terms(questions=questions))
    held = []
    for pair in document.pairs:
        if pair.ratio is None:
            continue
        truths = [true_mb_s(profile, pair.workload) for profile in profiles]
        low, high = pair.ratio.low, pair.ratio.high
        assert low is not None
        assert high is not None
        held.append(
            HeldRatio(
                title=pair.title,
                workload=pair.workload,
                true_ratio=truths[0] / truths[1],
                ratio=pair.ratio.value,
                low=low,
                high=high,
                verdict=pair.verdict,
                verdict_alone=pair.verdict_alone,
            )
        )
    return document, tuple(held)


def random_questions(
    predictors: Sequence[Predictor], count: int, seed: int
) -> tuple[Question, ...]:
    """Draw workloads at random from what all systems were surveyed for, sizes on log scales."""
    rng = np.random.default_rng(seed)
    ranges = [predictor.ranges for predictor in predictors]

    def drawn(name: str) -> float:
        low = max(getattr(each, name).low for each in ranges)
        high = min(getattr(each, name).high for each in ranges)
        return math.exp(rng.uniform(math.log(low), math.log(high)))

    found: list[Question] = []
    while len(found) < count:
        workload = Workload(
            unique_bytes=round(drawn("unique_bytes")),
            size_mean=round(drawn("size_mean")),
            read_frac=round(rng.uniform(0, 1), 3),
            seq_frac=round(rng.uniform(0, 1), 3),
            process_num=round(drawn("process_num")),
        )
        if all(each.holds(workload) for each in ranges):
            found.append(Question(None, workload))
    return tuple(found)
