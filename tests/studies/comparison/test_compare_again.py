"""What `compare --measure` opens is the system that was surveyed, as it was surveyed."""

from __future__ import annotations

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

import compare_fixture as made
from leadline.engine import Limits, Target, load_profile
from leadline.errors import LeadlineError
from leadline.models.predictor import Predictor
from leadline.record import Status, Workload
from leadline.record.survey import SURVEY
from leadline.store import open_store
from leadline.studies.comparison import command as compare
from leadline.studies.comparison.contenders import Named
from leadline.studies.comparison.document import ComparisonRefused
from leadline.studies.comparison.run import MeasureOptions, measure_now, require_same_system
from leadline.studies.conduct import Watcher
from leadline.studies.resume import find_unfinished
from leadline.studies.survey.study import surveyed_target
from shared_surveys import surveyed

LIMITS = Limits(
    warm_up_s_max=30.0, measure_s_min=30.0, measure_s_max=60.0, accuracy=0.005, total_s_max=3600.0
)
ASKED = MeasureOptions(2, LIMITS, lambda number: number)


@pytest.fixture(scope="module")
def hp() -> Named:
    run = surveyed("hp-730")
    return Named("hp", Predictor(run.survey, run.points))


def changed(system: Named, name: str, **start: object) -> Named:
    predictor = copy.copy(system.predictor)
    predictor.survey = made.renamed(system.predictor.survey, name, **start)
    return Named(name, predictor)


def test_a_simulated_system_is_the_one_that_was_surveyed_not_what_its_file_says_now(
    tmp_path: Path, hp: Named
) -> None:
    file = tmp_path / "mine.toml"
    file.write_text("name = 'other'\n")
    stored = made.renamed(hp.predictor.survey, "x", target=f"sim:{file}")
    assert surveyed_target(stored).profile == load_profile("hp-730")


def test_an_unfinished_survey_is_found_again_however_its_directory_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hp: Named
) -> None:
    (tmp_path / "disk").mkdir()
    monkeypatch.chdir(tmp_path)
    start = hp.predictor.survey.start
    with open_store("sqlite://") as store:
        store.begin(SURVEY, msgspec.structs.replace(start, target=Target.parse("disk").text))
        for text in ("disk", "./disk/", str(tmp_path / "disk")):
            assert find_unfinished(store, SURVEY, start.system, Target.parse(text).text)
        assert store.list()[0].status is not Status.DONE


class Heard(Watcher):
    """Remembers what was said."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, text: str) -> None:
        self.said.append(text)


def test_a_system_that_changed_since_its_survey_is_not_measured(hp: Named) -> None:
    facts = hp.predictor.survey.start.facts
    other = changed(hp, "other", facts=facts | {"simulated_system": "convex"})
    with (
        open_store("sqlite://") as store,
        pytest.raises(ComparisonRefused, match=r"other is not .* surveyed: simulated_system"),
    ):
        measure_now(store, [hp, other], [made.INSIDE], ASKED, Watcher())
    rebuilt: Any = SimpleNamespace(facts=facts | {"engine_build": "new"})
    before, heard = changed(hp, "hp", facts=facts | {"engine_build": "old"}), Heard()
    require_same_system(before, rebuilt, heard)
    assert heard.said == ["note: hp: engine_build: old then, new now"]


def test_the_surveys_cap_on_bytes_holds_for_measuring_too(hp: Named) -> None:
    plan = msgspec.structs.replace(hp.predictor.survey.start.plan, unique_bytes_max=2**20)
    capped = changed(hp, "capped", plan=plan)
    large = Workload(unique_bytes=2 * 2**20, size_mean=8192)
    with open_store("sqlite://") as store:
        found = measure_now(store, [hp, capped], [large], ASKED, Watcher())
    assert {(each.where, each.code) for each in found[large].findings} == {
        ("capped", "not_comparable")
    }


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"output": Path("page.doc")}, "cannot write a comparison"),
        ({"fail_if": ["slower=5%"]}, "two"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_the_store_is_opened(
    options: dict[str, Any], said: str
) -> None:
    nothing: Any = SimpleNamespace(obj=None)
    with pytest.raises(LeadlineError, match=said):
        compare.command(nothing, surveys=["a", "b", "c"], measure=True, **options)
