"""Predictions of the paper's machines against the truth that a simulation knows."""

from __future__ import annotations

import math
import random
import statistics
from functools import cache

import pytest

from leadline.engine import Limits, Target, open_engine
from leadline.models.predictor import DEFAULT_MODEL, Predictor
from leadline.models.ranges import Span
from leadline.record import Prediction, Workload
from leadline.stats import student_t
from leadline.studies.survey.study import LEARN_FRAC
from shared_surveys import SEED, surveyed

LIMITS = Limits(
    warm_up_s_max=60.0, measure_s_min=60.0, measure_s_max=60.0, accuracy=0.02, total_s_max=1e6
)
MORE_SEEDS = (500, 501, 502)
MANY_SEEDS = tuple(range(520, 532))
WORKLOADS = 40


def holds_at_90_percent(prediction: Prediction, truth_mb_s: float) -> bool:
    half = student_t(prediction.df, 0.9) * prediction.ln_sd
    return abs(math.log(truth_mb_s / prediction.throughput_mb_s.value)) <= half


def drawn(predictor: Predictor, rng: random.Random) -> Workload:
    """A workload anywhere inside what was surveyed: even in logs of bytes, sizes and processes."""
    ranges = predictor.ranges
    while True:
        unique_bytes = round(_even(ranges.unique_bytes, rng) / 4096) * 4096
        region = ranges.nearest_region(unique_bytes)
        assert region is not None
        work = Workload(
            unique_bytes=unique_bytes,
            size_mean=round(_even(ranges.of(region.index, "size_mean"), rng)),
            read_frac=rng.random(),
            seq_frac=rng.random(),
            process_num=round(_even(ranges.of(region.index, "process_num"), rng)),
        )
        if ranges.holds(work):
            return work


def _even(span: Span, rng: random.Random) -> float:
    return math.exp(rng.uniform(math.log(span.low), math.log(span.high)))


@cache
def scored(
    profile: str, seeds: tuple[int, ...], model: str = "product", **asked: float
) -> list[tuple[Prediction, float, bool]]:
    """Predictions with the truth, and whether each lies in a boundary zone."""
    found = []
    with open_engine(Target.parse(f"sim:{profile}"), run_seed=7) as engine:
        for seed in seeds:
            run = surveyed(profile, seed, **asked)
            predictor = Predictor(run.survey, run.points, model=model)
            rng = random.Random(seed)
            works = [drawn(predictor, rng) for _ in range(WORKLOADS)]
            for work, prediction in zip(works, predictor.predict_all(works), strict=True):
                result = engine.run(work, seed=seed, limits=LIMITS)
                assert result.simulated is not None
                near = predictor.ranges.boundary_zone(work.unique_bytes) is not None
                found.append((prediction, result.simulated.law_mb_s, near))
    return found


def error(prediction: Prediction, truth_mb_s: float) -> float:
    return abs(prediction.throughput_mb_s.value / truth_mb_s - 1)


def median_error(found: list[tuple[Prediction, float, bool]]) -> float:
    return statistics.median(error(prediction, truth) for prediction, truth, _ in found)


QUICK = ["sparcstation-1plus", "decstation-5000-sprite", "convex-c240"]
MACHINES = [*QUICK, "hp-730"]


ERROR_SD = {"convex-c240": 0.05}
"""How much one survey's median error differs from the next's; 0.025 of the others."""


@pytest.mark.parametrize(
    ("profile", "seeds"),
    [
        *((profile, MORE_SEEDS) for profile in ("sparcstation-1plus", "convex-c240")),
        *(pytest.param(profile, MANY_SEEDS, marks=pytest.mark.long) for profile in MACHINES),
    ],
)
def test_median_error_is_as_small_as_the_papers(profile: str, seeds: tuple[int, ...]) -> None:
    """Bounds for n surveys: the paper's 10% and 8.5%, and twice what their mean is known to."""
    known_to = 2 * ERROR_SD.get(profile, 0.025) / math.sqrt(len(seeds))
    found = scored(profile, seeds)
    assert median_error(found) <= 0.10 + known_to
    enhanced = [error(p, truth) for p, truth, near in found if not near]
    assert statistics.median(enhanced) <= 0.085 + known_to


def test_nine_of_ten_intervals_hold_the_truth() -> None:
    held = [
        holds_at_90_percent(prediction, truth)
        for profile in QUICK
        for prediction, truth, _ in scored(profile, MORE_SEEDS)
    ]
    # Coverage differs by 0.09 (sd) between surveys of one machine, and these are nine.
    assert 0.83 <= statistics.mean(held) <= 0.97


LEARNED = ["sparcstation-1plus", "solbourne-5e905"]


def learned_and_not(profile: str) -> tuple[list[tuple[Prediction, float, bool]], ...]:
    """Predict one survey that learned by the default model and by the paper's."""
    return tuple(
        scored(profile, (SEED,), model, learn_frac=LEARN_FRAC)
        for model in (DEFAULT_MODEL, "product")
    )


@pytest.mark.parametrize("profile", [*LEARNED, pytest.param("hp-730", marks=pytest.mark.long)])
def test_the_default_model_beats_the_papers_on_the_same_points(profile: str) -> None:
    joint, product = learned_and_not(profile)
    assert [p.workload for p, _, _ in joint] == [p.workload for p, _, _ in product]
    assert median_error(joint) < 0.6 * median_error(product)
    assert median_error(joint) <= 0.06


def test_intervals_of_the_default_model_hold_the_truth_and_are_of_use() -> None:
    """These systems are of its form, where a doubt that is never narrowed is a little too wide."""
    found = [each for profile in LEARNED for each in learned_and_not(profile)[0]]
    held = [holds_at_90_percent(prediction, truth) for prediction, truth, _ in found]
    # Surveys differ by 0.09 (sd): two are 0.9 +- 0.13.
    assert statistics.mean(held) >= 0.77
    assert statistics.median(student_t(p.df, 0.9) * p.ln_sd for p, _, _ in found) <= 0.1
