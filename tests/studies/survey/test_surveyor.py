"""The conversation itself, with a script in place of a strategy."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec
import pytest

from leadline.record import Measurement, Plan, Workload, derive_seed
from leadline.studies.script import PointRequest
from leadline.studies.survey import strategy
from leadline.studies.survey.boundaries import SurveyReadings
from leadline.studies.survey.strategy import ResumeMismatch, Surveyor
from simulated_answers import answer, start, two_levels

BEGIN = start(seed=7)
FIRST, SECOND = (Workload(unique_bytes=size, size_mean=4096) for size in (2**20, 2**21))


class Scripted:
    """Asks for one point, thinks, asks for another, and thinks again before it ends."""

    def __init__(
        self,
        plan: Plan,
        seed: int,
        readings: SurveyReadings,
        recorded: Sequence[Measurement] = (),
        *,
        memory_bytes: int | None = None,
        processors: float | None = None,
        needed: Sequence[Workload] = (),
        at_once_bytes: float = math.inf,
        paged: bool = False,
    ) -> None:
        assert not needed, "the survey is for no application"
        self.at_once_bytes, self.memory_bytes = at_once_bytes, memory_bytes
        self.paged = paged
        assert processors == BEGIN.facts.get("cpu_count")
        self.given = (plan, seed, recorded)
        self.readings = readings
        self.thoughts: list[int] = []

    def script(self) -> Iterator[tuple[str, Workload] | None]:
        yield "first", FIRST
        yield None
        self.thoughts.append(len(self.readings.all))
        yield "second", SECOND
        yield None
        yield None
        self.thoughts.append(len(self.readings.all))


@pytest.fixture(autouse=True)
def scripted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strategy, "MiddleStrategy", Scripted)


def thoughts(surveyor: Surveyor) -> list[int]:
    assert isinstance(surveyor.strategy, Scripted)
    return surveyor.strategy.thoughts


def told(surveyor: Surveyor) -> Measurement:
    request = surveyor.ask()
    assert request is not None
    surveyor.tell(answer(request, two_levels))
    return surveyor.points[-1]


def test_points_are_asked_in_order_each_with_a_seed_of_its_own() -> None:
    surveyor = Surveyor(BEGIN)
    assert surveyor.ask() == PointRequest(0, "first", FIRST, derive_seed(7, 0))
    assert surveyor.ask() == surveyor.ask(), "asking changes nothing"
    told(surveyor)
    assert surveyor.ask() == PointRequest(1, "second", SECOND, derive_seed(7, 1))
    assert surveyor.strategy.readings.all == surveyor.points


def test_a_decision_is_taken_when_the_point_is_wanted_and_not_before() -> None:
    surveyor = Surveyor(BEGIN)
    told(surveyor)
    assert thoughts(surveyor) == []
    assert not surveyor.complete, "nobody knows yet"
    assert thoughts(surveyor) == []
    told(surveyor)
    assert thoughts(surveyor) == [1]
    assert not surveyor.complete
    assert surveyor.ask() is None
    assert thoughts(surveyor) == [1, 2]
    assert surveyor.complete
    assert surveyor.ask() is None


def test_a_begun_survey_is_not_complete() -> None:
    assert not Surveyor(BEGIN).complete


def test_recorded_points_are_told_and_known_to_the_strategy() -> None:
    before = Surveyor(BEGIN)
    points = [told(before), told(before)]
    resumed = Surveyor(BEGIN, points)
    assert resumed.points == points
    assert isinstance(resumed.strategy, Scripted)
    assert resumed.strategy.given == (BEGIN.plan, 7, tuple(points))
    assert resumed.ask() is None


def test_an_answer_to_another_question_is_refused_and_leaves_nothing() -> None:
    surveyor = Surveyor(BEGIN)
    request = surveyor.ask()
    assert request is not None
    right = answer(request, two_levels)
    with pytest.raises(ResumeMismatch, match="instead of resuming") as other:
        surveyor.tell(msgspec.structs.replace(right, workload=SECOND))
    assert other.value.exit_code == 2
    with pytest.raises(ResumeMismatch, match=f"seed {right.seed + 1}, the survey's point 0 has"):
        surveyor.tell(msgspec.structs.replace(right, seed=right.seed + 1))
    assert (surveyor.points, surveyor.strategy.readings.all) == ([], [])
    surveyor.tell(right)


def test_an_answer_that_nobody_asked_for_is_refused() -> None:
    surveyor = Surveyor(BEGIN)
    last = [told(surveyor), told(surveyor)][-1]
    with pytest.raises(ResumeMismatch, match="would have measured None"):
        surveyor.tell(last)


def test_the_start_says_which_strategy_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    class Other(Scripted):
        pass

    monkeypatch.setattr(strategy, "SeventyFiveStrategy", Other)
    assert isinstance(Surveyor(start(focal_mode="75%")).strategy, Other)
    assert not isinstance(Surveyor(BEGIN).strategy, Other)


def test_points_that_learn_have_a_sixteenth_of_a_memory_cap_in_requests() -> None:
    capped = msgspec.structs.replace(start(), cache_limit_bytes=64 * 2**20)
    free, held = (Surveyor(each).strategy for each in (start(), capped))
    assert isinstance(free, Scripted)
    assert isinstance(held, Scripted)
    assert (free.at_once_bytes, held.at_once_bytes) == (math.inf, 4 * 2**20)
    assert (free.memory_bytes, held.memory_bytes) == (None, 64 * 2**20)


@pytest.mark.parametrize(
    ("change", "paged"), [({}, True), ({"direct": True}, False), ({"backend": "simulated"}, False)]
)
def test_points_that_learn_are_of_whole_pages_too_where_there_is_a_page_cache(
    change: dict[str, Any], *, paged: bool
) -> None:
    begin = msgspec.structs.replace(start(), **({"direct": False, "backend": "pread"} | change))
    strategy = Surveyor(begin).strategy
    assert isinstance(strategy, Scripted)
    assert strategy.paged == paged
