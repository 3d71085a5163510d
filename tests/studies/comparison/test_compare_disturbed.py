"""No verdict from two surveys that differ by no more than what disturbed them."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import msgspec
import pytest

import survey_fixture as made
from compare_fixture import atlas, question, quicker, systems
from leadline.record import Interval, Level, Survey
from leadline.record.comparison import Rule, SystemsComparison
from leadline.record.finding import Finding
from leadline.record.survey import DriftStep
from leadline.studies.comparison.contenders import Disturbance, disturbance_of, joined, withheld
from leadline.studies.comparison.document import Terms, compare_systems
from leadline.studies.comparison.ratio import LogRatio

OTHERS = Finding.of("survey_disturbed", lost_frac=0.5)
BUSY = math.log(2)
"""A busy loop on a machine of two processors takes up to half of what there is."""


def compared(new_is: float, *disturbances: float) -> SystemsComparison:
    """Compare a system with one `new_is` times as fast, each disturbed by a factor of so much."""
    pair = systems(atlas(), quicker(new_is))
    told = [
        replace(system, disturbance=Disturbance(ln, (OTHERS,) if ln else ()))
        for system, ln in zip(pair, disturbances, strict=True)
    ]
    return compare_systems(told, Terms([question()], rules=(Rule("slower", 0.05),)))


def test_a_difference_as_large_as_what_disturbed_a_survey_is_withheld() -> None:
    document = compared(0.57, 0.0, BUSY)
    (pair,) = document.pairs
    assert (pair.verdict, pair.verdict_alone) == ("inconclusive", "inconclusive")
    assert [each.code for each in pair.withheld] == ["verdict_withheld"]
    assert [(each.where, each.code) for each in pair.findings if each.where] == [
        ("rapid", "survey_disturbed")
    ]
    assert document.gate is not None
    assert not document.gate.failed
    assert document.gate.undecided


def test_what_disturbed_either_survey_counts() -> None:
    assert compared(0.57, BUSY / 2, BUSY / 2).pairs[0].verdict == "inconclusive"
    assert compared(0.57, BUSY / 3, BUSY / 3).pairs[0].verdict == "a"


def test_a_difference_just_beyond_what_disturbed_a_survey_is_not_shown_to_be() -> None:
    ratio = LogRatio(mean=-0.60, sd=0.05, df=20.0, n=40)
    assert withheld(ratio, 0.5), "0.60 - 2.09 * 0.05 is 0.496"
    assert not withheld(replace(ratio, mean=-0.61), 0.5)
    assert withheld(replace(ratio, mean=0.60), 0.5)
    assert not withheld(replace(ratio, mean=0.10), 0.5), "no verdict, and none to withhold"


def test_a_larger_difference_is_told_all_the_same() -> None:
    document = compared(0.4, 0.0, BUSY)
    assert document.pairs[0].verdict == "a"
    assert document.pairs[0].withheld == ()
    assert document.gate is not None
    assert document.gate.failed


def disturbed(survey: Survey, *, foreign: float = 0.0, steal: float = 0.0) -> Disturbance:
    points = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(
                point.result,
                foreign_cpu=foreign,
                other_load=msgspec.structs.replace(point.result.other_load, steal_cpu=steal),
            ),
        )
        for point in made.points(survey)
    ]
    return disturbance_of(survey, points)


def with_facts(survey: Survey, **changes: Any) -> Survey:
    facts = {**survey.start.facts, **changes}
    return msgspec.structs.replace(survey, start=msgspec.structs.replace(survey.start, facts=facts))


def still() -> Survey:
    return msgspec.structs.replace(with_facts(atlas(), cpu_count=2), drift_frac=None)


@pytest.mark.parametrize(("foreign", "steal", "factor"), [(1.0, 0.0, 2.0), (0.3, 0.2, 4 / 3)])
def test_processor_time_that_went_to_others_bounds_what_was_lost(
    foreign: float, steal: float, factor: float
) -> None:
    found = disturbed(still(), foreign=foreign, steal=steal)
    assert found.ln == pytest.approx(math.log(factor))
    assert "% of the processors' time" in str(found.findings[0])


def test_nothing_disturbed_is_nothing_to_say() -> None:
    assert disturbed(still()) == Disturbance()
    assert disturbed(with_facts(still(), cpu_count=None), foreign=1.0) == Disturbance()
    assert disturbance_of(still(), ()) == Disturbance()
    assert math.isfinite(disturbed(still(), foreign=64.0).ln)


@pytest.mark.parametrize(
    ("drift", "moved"),
    [
        (Interval(-0.2, -0.25, -0.15, 12), 0.2),
        (Interval(-0.2, -0.5, 0.1, 12), 0.0),
        (Interval(0.001, 0.0005, 0.0015, 12), 0.0),
    ],
    ids=["shown", "not shown", "too little to matter"],
)
def test_a_drift_counts_where_it_is_shown(drift: Interval, moved: float) -> None:
    found = disturbed(msgspec.structs.replace(still(), drift_frac=drift))
    assert found.ln == pytest.approx(-math.log1p(-moved))
    assert bool(found.findings) == bool(moved)


def test_a_step_counts_instead_of_the_drift_it_looks_like() -> None:
    step = DriftStep(Interval(-0.4, -0.45, -0.35, 12), 100.0, 120.0)
    drift = Interval(-0.2, -0.25, -0.15, 12)
    survey = msgspec.structs.replace(still(), drift_step=step, drift_frac=drift)
    assert disturbed(survey).ln == pytest.approx(-math.log(0.6))
    assert [*map(str, disturbed(survey).findings)] == ["it became 40% slower meanwhile"]


@pytest.mark.parametrize(
    ("shifted", "contrast", "counts"), [(12, 2.07, True), (3, 2.07, False), (12, 1.0, False)]
)
def test_many_points_without_a_steady_state_count_by_their_largest_shift(
    shifted: int, contrast: float, counts: bool
) -> None:
    survey = with_facts(still(), cpu_count=None)
    points = made.points(survey)[:34]
    levels = (Level(0.0, 1.0, 2190.0), Level(1.0, 1.0, 2190.0 * contrast))
    unsteady = [
        msgspec.structs.replace(
            point,
            result=msgspec.structs.replace(point.result, levels=levels if at < shifted else ()),
        )
        for at, point in enumerate(points)
    ]
    found = disturbance_of(survey, unsteady)
    assert found.ln == pytest.approx(math.log(contrast) if counts else 0.0)
    assert bool(found.findings) is counts
    if counts:
        said = "12 of 34 points not steady, level shifts up to x2.07"
        assert [*map(str, found.findings)] == [said]


def test_what_disturbed_a_survey_stands_beside_the_verdict_that_it_does_not_withhold() -> None:
    (pair,) = compared(0.4, 0.0, BUSY).pairs
    assert pair.verdict == "a"
    assert msgspec.structs.replace(OTHERS, where="rapid") in pair.findings


def test_what_disturbed_every_survey_of_a_side_is_in_no_spread() -> None:
    """Of two that drifted, the smaller drift is in both, and their difference does not show it."""
    calm = Disturbance()
    ones = [Disturbance(0.3), Disturbance(0.2)]
    assert joined(ones).ln == 0.2
    assert joined([*ones, calm]).ln == 0.0
    assert joined(ones[:1]) == ones[0]
