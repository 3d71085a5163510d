"""A survey counts what its points found, names each finding, and preconditions once."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from leadline.engine import Limits, Target, open_engine
from leadline.engine.simulated import SimulatedEngine
from leadline.record import (
    EngineResult,
    Generator,
    Level,
    Measurement,
    Preconditioned,
    Provenance,
    Stall,
    SurveyStart,
    Workload,
    WrittenBytes,
)
from leadline.record.finding import Finding
from leadline.record.survey import SURVEY
from leadline.store import open_store
from leadline.studies.survey.plan import PlanRefused
from leadline.studies.survey.sentences import survey_findings
from leadline.studies.survey.study import SurveyOptions, begin_survey, run_survey
from leadline.studies.survey.text import POINT_HEADS, point_rows, run_rows, sure_rows
from proving.samples import sample_point, sample_start, sample_survey


def points(*changes: dict[str, Any]) -> list[Measurement]:
    """Ten points, the first of them changed."""
    found = []
    for order in range(10):
        point = sample_point(f"p{order}", order=order)
        own = {"findings": ()} | (changes[order] if order < len(changes) else {})
        result = msgspec.structs.replace(point.result, **own)
        found.append(msgspec.structs.replace(point, result=result))
    return found


def warned(found: list[Measurement], start: SurveyStart | None = None) -> list[str]:
    survey = sample_survey(start or sample_start())
    return [str(each) for each in survey_findings(survey, found) if each.code != "no_boundary"]


BOUND = {"generator": Generator(3000.0, True)}
SHIFT = {"levels": (Level(0.0, 1.0, 800.0), Level(1.0, 1.0, 40.0))}
STALLED = {"stalls": (Stall(0.2, 1.02, False),)}
NAMED = (
    Finding.of("stall", target_s=1.02, start_s=0.5),
    Finding.of("level_shift", first_mb_s=800.0, until_s=1.0, last_mb_s=40.0),
    Finding.of("generator_bound", ceiling_iops=3000.0),
)


def test_a_clean_survey_has_no_warnings() -> None:
    unbound = {"generator": Generator(1e7, False), "levels": (Level(0.0, 2.0, 100.0),)}
    assert warned(points(unbound)) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (BOUND, "generator-bound: 2 of 10 points are within 20% of the null-backend ceiling"),
        (
            SHIFT,
            (
                "level shift: the rate changed within 2 of 10 points, most at point 1 "
                "(from 40 MB/s to 800 MB/s)"
            ),
        ),
        (STALLED, "stall: nothing completed for up to 1.02 s at 2 of 10 points"),
    ],
)
def test_a_finding_is_counted_over_the_points(change: dict[str, Any], said: str) -> None:
    (text,) = warned(points(change, change))
    assert said in text


def test_a_stall_of_the_generator_is_told_apart() -> None:
    (text,) = warned(points({"stalls": (Stall(0.2, 0.5, True),)}))
    assert text.endswith("at 1 of them Leadline itself did not run.")


def test_the_engines_own_words_for_a_counted_finding_are_not_said_twice() -> None:
    assert warned(points(*[{"findings": NAMED}] * 5)) == []


def test_findings_that_differ_in_their_numbers_are_one() -> None:
    def missed(rate_per_s: float) -> Finding:
        said = {"short_frac": 0.1, "waiting_requests": 9}
        return Finding.of("missed_rate", completed_per_s=rate_per_s, due_per_s=2000.0, **said)

    share = {"asked_bytes": 10**8, "device_bytes": 3 * 10**6, "cached_frac": 0.97}
    cached = Finding.of("cached_disk_number", **share)
    found = points(
        {"admissible": False, "findings": (missed(1912.0),)},
        {"admissible": False, "findings": (missed(908.0),)},
        {"admissible": False, "findings": (cached,)},
    )
    (text,) = warned(found)
    assert text == (
        f"3 of 10 points are not valid and are left out: {missed(1912.0)} (2); {cached} (1)."
    )


def test_what_was_found_before_the_first_point_is_among_the_warnings() -> None:
    start = msgspec.structs.replace(sample_start(), findings=(Finding.of("debug_build"),))
    assert warned(points(), start) == [str(Finding.of("debug_build"))]


def test_the_table_of_points_marks_what_was_found() -> None:
    rows = point_rows(points(BOUND | SHIFT, STALLED))
    column = POINT_HEADS.index("Found")
    assert [row[column] for row in rows[:3]] == [
        "generator-bound, level shift (2 rates)",
        "stall (1.02 s)",
        "",
    ]


def test_the_page_says_what_the_survey_rests_on() -> None:
    seen = {"provenance": Provenance(cached_share_from="residency", unchecked=("holes",))}
    done = Preconditioned(bytes=2**30, seconds=9.0, plateau=True, rounds=())
    wrote = {"written_bytes": WrittenBytes(2**30, 2**30, 0), "precondition": done}
    found = points(BOUND | STALLED | wrote, SHIFT | seen)
    survey = sample_survey(sample_start())
    sure = dict(sure_rows(survey, found, "none"))
    assert sure["Points bound by Leadline itself"] == "1 of 1"
    assert sure["Points with more than one rate"] == "1 of 10"
    assert sure["Points with a stall"] == "1 of 10, the longest 1.02 s"
    assert sure["Share from cache by looking into the cache"] == "1 of 10"
    assert sure["Not checked"] == "holes"
    ran = dict(run_rows(survey, found))
    assert (
        ran["Written (wear)"] == "2 GiB in all: 1 GiB to lay the data out and 1 GiB to precondition"
    )
    assert ran["Preconditioned"].startswith("1 GiB written")


class Recording:
    """A simulated engine that takes preconditioning as a real one would, for 50 s."""

    def __init__(self, engine: Any) -> None:
        self._engine: SimulatedEngine = engine
        self.asked: list[int | None] = []
        self.total_s: list[float] = []
        self.virtual = False
        self.memory_bytes = 2**28

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def run(
        self,
        workload: Workload,
        *,
        seed: int,
        limits: Limits,
        precondition_bytes_max: int | None = None,
        **others: Any,
    ) -> EngineResult:
        self.asked.append(precondition_bytes_max)
        self.total_s.append(limits.total_s_max)
        result = self._engine.run(workload, seed=seed, limits=limits, **others)
        if precondition_bytes_max is None:
            return result
        self._engine.skip_to(self._engine.clock_s + 50.0)
        done = Preconditioned(bytes=precondition_bytes_max, seconds=50.0, plateau=True, rounds=())
        return msgspec.structs.replace(result, precondition=done, total_s=result.total_s + 50.0)


@contextmanager
def recording() -> Any:
    with open_engine(Target.parse("sim:two-level"), run_seed=1) as engine:
        yield Recording(engine)


def test_preconditioning_comes_once_before_the_first_point_and_costs_no_budget() -> None:
    store = open_store("sqlite://")
    asked = SurveyOptions("two", 60.0, 2**31, 1, 0.02, "middle", 2**30)
    with recording() as engine:
        start = begin_survey(engine, Target.parse("sim:two-level"), asked)
        assert start.precondition_bytes_max == 2**30
        store.begin(SURVEY, start)
        survey = run_survey(engine, store, start)
        whole_s = engine.clock_s
    assert engine.asked == [2**30] + [None] * (len(engine.asked) - 1)
    first, second = store.items(start.study_id)[:2]
    assert second.clock_s == pytest.approx(first.result.total_s - 50.0, abs=0.01)
    assert survey.wall_s == pytest.approx(whole_s - 50.0)
    assert engine.total_s[0] > 60.0 >= engine.total_s[1]


def test_a_simulated_system_cannot_be_preconditioned() -> None:
    asked = SurveyOptions("two", 4000.0, None, 1, 0.02, "middle", 2**30)
    target = Target.parse("sim:two-level")
    with open_engine(target) as engine, pytest.raises(PlanRefused, match="real device"):
        begin_survey(engine, target, asked)
