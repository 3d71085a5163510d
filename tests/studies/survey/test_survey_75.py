"""CP94 section 7: the vector at 75% of everything is found, said, and its curves measured."""

from __future__ import annotations

import functools

import pytest

from leadline.record import PARAMETERS, Workload
from leadline.studies.survey.strategy import SeventyFiveStrategy, Surveyor, format_vector
from proving.simulation import SimulatedSurvey, simulate_survey
from simulated_answers import start

SETTLING = ("hp-730", "hp-720-dux", "rs6000-550")
FAST = ("two-level", "smooth-slope")
"""Of millions of requests a point, in virtual time."""


@functools.cache
def surveyed(system: str) -> SimulatedSurvey:
    return simulate_survey(system, 1, focal_mode="75%")


@pytest.mark.parametrize(
    "system",
    [*SETTLING[1:], *(pytest.param(each, marks=pytest.mark.long) for each in (*FAST, SETTLING[0]))],
)
def test_it_settles_and_measures_five_whole_curves_there(system: str) -> None:
    found = surveyed(system).survey
    assert found.settled
    assert not [each for each in found.findings if "unsettled" in each.code]
    curves = [found.unique_bytes_curve, *found.families[0].curves]
    assert {curve.parameter for curve in curves} == set(PARAMETERS)
    for curve in curves:
        assert len(curve.points) >= 6, curve.parameter


def test_the_papers_vector_comes_out() -> None:
    """CP94 Fig. 4: 21 MB, no reads, one process, nothing sequential; sizes are of another law."""
    focal = surveyed("sparcstation-1plus").survey.regions[0].focal
    assert 0.75 * 21e6 < focal.unique_bytes < 1.25 * 21e6
    assert (focal.read_frac, focal.process_num) == (0.0, 1)
    assert focal.seq_frac <= 0.25


@pytest.mark.long
def test_the_vector_is_said_with_how_the_search_ended() -> None:
    survey = surveyed("hp-730").survey
    [told] = [text for text in survey.sentences if text.startswith("Focal vector")]
    assert "1 process" in told
    assert "It settled after" in told


def vector(megabytes: int) -> Workload:
    return Workload(unique_bytes=megabytes * 2**20, size_mean=16384)


def searched(*megabytes: int) -> SeventyFiveStrategy:
    strategy = Surveyor(start(focal_mode="75%")).strategy
    assert isinstance(strategy, SeventyFiveStrategy)
    strategy.vectors = [vector(each) for each in megabytes]
    strategy.focal = strategy.vectors[-1]
    return strategy


def test_a_search_that_comes_back_says_between_which_vectors_and_when() -> None:
    turning = searched(1, 100, 200, 101)
    assert turning.cycle == (vector(100), vector(200))
    told = format_vector(turning)
    assert "goes round, as seen after 3 whole rounds: 100 MiB touched" in told
    assert ", then 200 MiB touched" in told


def test_a_search_that_creeps_or_stays_does_not_go_round() -> None:
    assert searched(1, 100, 200, 400).cycle == ()
    assert searched(1, 100, 101).cycle == ()
    assert "It had not settled after 3 whole rounds" in format_vector(searched(1, 100, 200, 400))


def test_a_turn_back_is_taken_half_way() -> None:
    strategy = searched(100)
    assert strategy._damped("unique_bytes", 400 * 2**20) == 400 * 2**20
    strategy.focal = vector(400)
    assert strategy._damped("unique_bytes", 100 * 2**20) == 200 * 2**20
