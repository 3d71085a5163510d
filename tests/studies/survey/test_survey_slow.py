"""A survey of slow storage: no request larger than a point holds, and no budget that cannot do."""

from __future__ import annotations

import re

import pytest

from leadline.record import Status
from leadline.studies.survey.plan import PlanRefused
from proving.simulation import SimulatedSurvey, simulate_survey

SLOW = "sparcstation-1plus"
SLOWER = "sparcstation-1plus-nfs"


@pytest.fixture(scope="module")
def hurried() -> SimulatedSurvey:
    """The issue's slow disk in half of the issue's time, where one request takes two seconds."""
    return simulate_survey(SLOW, 3, budget_s=60.0)


def test_slow_storage_is_surveyed_to_the_end(hurried: SimulatedSurvey) -> None:
    assert hurried.survey.status is Status.DONE
    assert len(hurried.points) == hurried.survey.start.plan.points
    assert hurried.survey.wall_s <= 60.0


def test_what_longer_points_took_is_told(hurried: SimulatedSurvey) -> None:
    [told] = [text for text in map(str, hurried.survey.findings) if "lengthened: " in text]
    own_s = 0.55 * hurried.survey.start.plan.point_s
    longer = [p for p in hurried.points if p.result.wall_s > 2 * own_s]
    assert longer
    assert f"{len(longer)} of {len(hurried.points)} points" in told
    found = re.search(r"took ([\d.]+) s more of the budget", told)
    assert found is not None
    assert sum(p.result.wall_s for p in longer) < float(found[1]) < 60.0


def test_once_scouted_no_request_is_larger_than_a_point_holds(hurried: SimulatedSurvey) -> None:
    after = [p for p in hurried.points if p.stage not in ("scout", "ends")]
    assert max(p.workload.size_mean for p in after) < hurried.survey.start.plan.size_mean_max
    assert max(p.result.wall_s for p in after) < 2 * hurried.survey.start.plan.point_s


def test_with_time_sizes_go_up_until_they_gain_nothing() -> None:
    roomy = simulate_survey(SLOW, 3, budget_s=3600.0)
    largest = max(point.workload.size_mean for point in roomy.points)
    assert largest > roomy.survey.start.plan.size_mean_max
    assert not [found for found in roomy.survey.findings if found.code == "points_lengthened"]


@pytest.mark.parametrize("budget_s", [60.0, 120.0])
def test_a_budget_that_cannot_hold_its_requests_is_refused_with_one_that_can(
    budget_s: float,
) -> None:
    with pytest.raises(PlanRefused, match="a request of 2 MiB") as refused:
        simulate_survey(SLOWER, 3, budget_s=budget_s)
    found = re.search(r"Give --budget (\d+)s or more", str(refused.value))
    assert found is not None
    assert float(found[1]) > budget_s
    assert simulate_survey(SLOWER, 3, budget_s=float(found[1])).survey.status is Status.DONE
