"""Readings taken while others had the processors count less, and no more than that."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from leadline.models.joint import fit_joint
from leadline.models.learning import Box, spread_out
from leadline.models.model import Floats, disturbance_ln_sd, sample_of
from leadline.record import Interval, Measurement, Offered, OtherLoad
from leadline.record.finding import Finding
from leadline.studies.measurement.text import idle_machine_mb_s, measurement_rows
from leadline.studies.survey.sentences import survey_findings
from leadline.studies.survey.study import LEARN_FRAC
from leadline.units import format_rate
from proving.samples import sample_point
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


def run_beside(
    waited: float | None, *, processes: int, used: float, others: float = 1.0
) -> Measurement:
    """A reading of 1,000 MB/s whose workers waited for a processor so many seconds per second."""
    point = sample_point("p")
    result = msgspec.structs.replace(
        point.result,
        throughput_mb_s=Interval(1000.0, 900.0, None, 2),
        foreign_cpu=others,
        cpu_user=0.1 * used,
        cpu_system=0.9 * used,
        offered=None,
        other_load=OtherLoad(waited_cpu=waited),
    )
    return msgspec.structs.replace(
        point,
        result=result,
        workload=point.workload.with_value("process_num", processes),
        facts={"cpu_count": PROCESSORS},
    )


@pytest.mark.parametrize(
    ("waited", "processes", "used", "others", "mb_s"),
    [
        # Two workers that had a processor between them and a loop beside each: twice as fast.
        (1.0, 2, 1.0, 1.0, 2000.0),
        # One worker that waits for the disk most of its time gains what it waited, no more.
        (0.2, 1, 0.1, 1.0, 1250.0),
        # Four workers that wait for each other alone have both processors already.
        (2.0, 4, 2.0, 1.0, 1000.0),
        # Four beside two loops, of whose waiting half is each other's.
        (3.0, 4, 1.0, 1.0, 2000.0),
        # Sixteen that come at once, on a machine that nobody else uses, wait for each other.
        (2.0, 16, 0.5, 0.05, 1000.0),
        (0.0, 1, 1.0, 1.0, 1000.0),
        (None, 1, 1.0, 1.0, None),
    ],
)
def test_on_an_idle_machine_nothing_waits_and_no_processor_is_used_twice(
    waited: float | None, processes: int, used: float, others: float, mb_s: float | None
) -> None:
    point = run_beside(waited, processes=processes, used=used, others=others)
    found = idle_machine_mb_s(point)
    told = dict(measurement_rows(point)).get("idle machine")
    assert (told is None) == (mb_s is None or mb_s < 1050)
    if mb_s is None:
        assert found is None
        return
    assert found is not None
    assert (found.value, found.low) == pytest.approx((mb_s, 0.9 * mb_s))
    assert told is None or format_rate(mb_s) in told


def test_an_open_loop_keeps_its_rate_on_an_idle_machine() -> None:
    point = run_beside(1.0, processes=2, used=1.0)
    offered = Offered(
        rate_per_s=1.0,
        due=1,
        late_target=0,
        late_generator=0,
        missed=0,
        completed_per_s=1.0,
        shortfall_frac=0.0,
        fell_short=None,
    )
    result = msgspec.structs.replace(point.result, offered=offered)
    assert result.idle_gain(2, PROCESSORS) is None


def test_a_survey_beside_others_says_what_its_levels_would_reach_alone() -> None:
    """The level that waits most is told, with both rates."""
    run = surveyed(PROFILE)
    survey, points = run.survey, run.points
    busy = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result,
                foreign_cpu=1.0,
                cpu_user=0.0,
                cpu_system=0.5,
                other_load=OtherLoad(waited_cpu=0.5 * point.workload.process_num),
            ),
        )
        for point in points
    ]
    facts = {**survey.start.facts, "cpu_count": PROCESSORS}
    start = msgspec.structs.replace(survey.start, facts=facts)
    found = survey_findings(msgspec.structs.replace(survey, start=start), busy)
    said = next(each for each in found if each.code == "points_foreign_load")
    region = survey.regions[0]
    assert said.values["level"] == region.name
    assert said.values["idle_mb_s"] == pytest.approx(2 * region.throughput_mb_s.value)
    assert "; on an idle machine " in str(said)


def test_what_several_runs_found_alike_is_told_once() -> None:
    point = sample_point("p")
    alike = [Finding.of("stall", target_s=seconds, start_s=0.5) for seconds in (1.0, 2.0, 3.0)]
    result = msgspec.structs.replace(
        point.result, findings=(alike[0], Finding.of("no_interval"), *alike[1:])
    )
    rows = measurement_rows(msgspec.structs.replace(point, result=result, findings=()))
    said = [text for name, text in rows if name == "warning"]
    assert len(said) == 2
    assert said[0] == f"{alike[0]} (and 2 more like it)"
