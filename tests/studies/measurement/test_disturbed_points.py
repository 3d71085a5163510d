"""Readings taken while others had the processors count less, and no more than that."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from leadline.models.joint import fit_joint
from leadline.models.learning import Box, spread_out
from leadline.models.model import Floats, disturbance_ln_sd, sample_of
from leadline.record import Measurement, OtherLoad
from leadline.studies.survey.study import LEARN_FRAC
from shared_surveys import surveyed

PROFILE = "sparcstation-1plus"
PROCESSORS = 2


def beside(point: Measurement, share: float, slowed_to: float = 1.0) -> Measurement:
    """The same reading with others having a share of the processors, and slower for it."""
    rate = point.result.throughput_mb_s
    return msgspec.structs.replace(
        point,
        result=msgspec.structs.replace(
            point.result,
            throughput_mb_s=msgspec.structs.replace(
                rate,
                value=rate.value * slowed_to,
                low=None if rate.low is None else rate.low * slowed_to,
                high=None if rate.high is None else rate.high * slowed_to,
            ),
            foreign_cpu=0.5 * share * PROCESSORS,
            other_load=OtherLoad(steal_cpu=0.5 * share * PROCESSORS),
        ),
    )


def test_only_what_others_took_more_or_less_than_usual_counts() -> None:
    points = surveyed(PROFILE, learn_frac=LEARN_FRAC).points[:5]
    alone = [beside(point, 0.0) for point in points]
    assert not disturbance_ln_sd(alone, PROCESSORS).any()
    always = [beside(point, 0.4) for point in points]
    assert disturbance_ln_sd(always, PROCESSORS) == pytest.approx(np.zeros(5))
    once = [*alone[:4], beside(points[4], 0.5)]
    assert disturbance_ln_sd(once, PROCESSORS) == pytest.approx([0, 0, 0, 0, np.log(2) / 2])
    assert not disturbance_ln_sd(once, None).any()
    assert np.isfinite(disturbance_ln_sd([*alone[:4], beside(points[4], 9.0)], PROCESSORS)).all()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_fifth_of_the_readings_slowed_by_others_moves_predictions_less(seed: int) -> None:
    """Each by anything from nothing to a half, the most that a busy loop takes of two."""
    run = surveyed(PROFILE, learn_frac=LEARN_FRAC)
    random = np.random.default_rng(seed)
    points = [
        beside(point, 0.5, random.uniform(0.5, 1.0)) if random.random() < 0.2 else beside(point, 0)
        for point in run.points
    ]
    plan = run.survey.start.plan
    asked = spread_out(
        Box(
            (plan.unique_bytes_min, plan.unique_bytes_max),
            (plan.size_mean_min, plan.size_mean_max),
            (1.0, float(plan.process_num_max)),
        ),
        60,
        seed,
    )

    def expected(found: list[Measurement], processors: float | None) -> Floats:
        return fit_joint(sample_of(found, run.survey.boundaries, processors)).expect(asked).ln_mb_s

    undisturbed = expected(list(run.points), None)
    off = {known: np.abs(expected(points, known) - undisturbed) for known in (None, PROCESSORS)}
    assert np.mean(off[PROCESSORS]) < 0.7 * np.mean(off[None])
