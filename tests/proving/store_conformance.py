"""What every store must do; a backend's tests inherit `StoreConformance` and say how to open it.

class TestMyStore(StoreConformance):
    def open(self, place: Path) -> Store:
        return MyStore(place)
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import msgspec
import pytest

from leadline.record import Status
from leadline.record.file_cache import CACHE
from leadline.record.kinds import KINDS
from leadline.record.study import ElapsedAnswer
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import Store, Stored, StoredItem, StoreError, UpdateFinishedError
from proving.samples import (
    keep_study,
    sample_cache_start,
    sample_point,
    sample_start,
    sample_studies,
    sample_survey,
    sample_validation_start,
)
from proving.study_sample import StudySample

STUDIES = {study.records.kind: study for study in sample_studies()}
every_kind = pytest.mark.parametrize("study", STUDIES.values(), ids=STUDIES)


def in_order(study: StudySample) -> tuple[Any, ...]:
    """Return a study's items as a store returns them: group after group."""
    groups = dict.fromkeys(group for group, _ in study.items)
    return tuple(item for group in groups for own, item in study.items if own == group)


class StoreConformance:
    """Inherit it; pytest runs every method below on the store that `open` returns."""

    def open(self, place: Path) -> Store:
        """Open the store kept at `place`, an empty directory at first; the same one every time."""
        raise NotImplementedError

    @pytest.fixture
    def store(self, tmp_path: Path) -> Store:
        """Return an empty store."""
        return self.open(tmp_path)

    @pytest.fixture
    def survey(self, store: Store) -> Store:
        """Return a store with a survey of no points, which runs."""
        store.begin(SURVEY, sample_start())
        return store

    def test_every_kind_has_a_sample(self) -> None:
        """So that the tests below are of every kind."""
        assert tuple(study.records for study in STUDIES.values()) == KINDS

    @every_kind
    def test_a_study_comes_back_as_it_was(
        self, store: Store, tmp_path: Path, study: StudySample
    ) -> None:
        """For others too, as soon as each call returned; 64-bit seeds and None included."""
        parent = study.start.parent
        if parent is not None:
            store.begin(SURVEY, sample_start(parent))
        keep_study(store, study, None)
        with self.open(tmp_path) as other:
            running = other.find(study.study_id, study.records)
            assert running == Stored(study.records.kind, study.start, Status.RUNNING, None)
            assert other.items(study.study_id) == in_order(study)
        store.end(study.study_id, study.answer, Status.DONE)
        done: Stored[Any, Any] = store.find(study.study_id)
        assert done == Stored(study.records.kind, study.start, Status.DONE, study.answer)
        measured = [item for _, item in study.items if item.item_id is not None]
        for item in measured:
            expected = StoredItem(study.records.kind, study.study_id, item)
            assert store.item(item.item_id) == expected
        (summary,) = store.list(study.records)
        assert summary.items == len(measured) > 0
        told = ("study_id", "system", "target", "started_at", "parent")
        assert [getattr(summary, name) for name in told] == [
            getattr(study.start, name) for name in told
        ]
        assert (summary.status, summary.wall_s) == (Status.DONE, study.answer.wall_s)

    @every_kind
    def test_a_study_that_is_done_takes_nothing_more(
        self, store: Store, study: StudySample
    ) -> None:
        """Neither items, nor another end, nor another start."""
        if study.start.parent is not None:
            store.begin(SURVEY, sample_start(study.start.parent))
        keep_study(store, study)
        group, first = study.items[0]
        with pytest.raises(UpdateFinishedError, match="is done; a finished one never changes"):
            store.add(study.study_id, first, f"{group} again")
        with pytest.raises(UpdateFinishedError, match="is done"):
            store.end(study.study_id, study.answer, Status.STOPPED)
        with pytest.raises(UpdateFinishedError, match="begun already"):
            store.begin(study.records, study.start)
        assert store.items(study.study_id) == in_order(study)
        assert store.find(study.study_id).status is Status.DONE

    def test_a_stopped_study_goes_on(self, survey: Store) -> None:
        """It is stopped until it has an item more; the answer of its stop is no more then."""
        stopped = sample_survey(sample_start(), Status.STOPPED)
        survey.end("survey-a", stopped, Status.STOPPED)
        assert survey.find("survey-a", SURVEY).answer == stopped
        survey.add("survey-a", sample_point("point-0"))
        again = survey.find("survey-a", SURVEY)
        assert (again.status, again.answer) == (Status.RUNNING, None)
        assert survey.list()[0].wall_s is None
        survey.end("survey-a", sample_survey(sample_start()), Status.DONE)
        assert survey.list()[0].status is Status.DONE

    def test_items_come_in_order_without_a_gap(self, survey: Store) -> None:
        """Each group from 0: a place is taken once, and none is left out."""
        with pytest.raises(StoreError, match=r"item 1 of survey survey-a does not follow.* 0"):
            survey.add("survey-a", sample_point("point-1", 1))
        first = sample_point("point-0")
        survey.add("survey-a", first)
        with pytest.raises(UpdateFinishedError, match="item 0 of survey survey-a is stored"):
            survey.add("survey-a", sample_point("other", 0, 200.0))
        survey.add("survey-a", sample_point("point-1", 1))
        survey.add("survey-a", sample_point("beside-0"), "beside")
        assert [point.point_id for point in survey.items("survey-a")] == [
            "point-0",
            "point-1",
            "beside-0",
        ]
        assert survey.items("survey-a", "beside") == (sample_point("beside-0"),)
        assert survey.items("survey-a")[0] == first
        assert survey.items("nobody") == ()

    def test_the_slower_of_two_writers_is_refused(self, survey: Store, tmp_path: Path) -> None:
        """Both went on from the same items; nothing of the first is lost."""
        with self.open(tmp_path) as other:
            survey.add("survey-a", sample_point("mine"))
            with pytest.raises(UpdateFinishedError, match=r"item 0 .* is stored already"):
                other.add("survey-a", sample_point("yours"))
        assert [point.point_id for point in survey.items("survey-a")] == ["mine"]

    def test_an_id_belongs_to_one_item(self, survey: Store) -> None:
        """Whatever study asks for it again."""
        survey.add("survey-a", sample_point("point-0"))
        survey.begin(CACHE, sample_cache_start())
        with pytest.raises(UpdateFinishedError, match="item point-0 is stored already"):
            survey.add("study-a", sample_point("point-0"))

    def test_what_was_never_begun_takes_nothing(self, store: Store) -> None:
        """Items, answers and validations without a start could not be explained later."""
        with pytest.raises(StoreError, match="never begun"):
            store.add("nobody", sample_point("point-0"))
        with pytest.raises(StoreError, match="never begun"):
            store.end("nobody", ElapsedAnswer(wall_s=1.0), Status.DONE)
        with pytest.raises(StoreError, match="survey-a was never begun"):
            store.begin(VALIDATION, sample_validation_start())
        assert store.list() == ()

    def test_the_answer_is_an_end_of_this_very_start(self, survey: Store) -> None:
        """Another start would rewrite history, and `running` is no end."""
        other = msgspec.structs.replace(sample_start(), seed=99)
        with pytest.raises(UpdateFinishedError, match="never changed"):
            survey.end("survey-a", sample_survey(other), Status.DONE)
        with pytest.raises(StoreError, match="still runs"):
            survey.end("survey-a", sample_survey(sample_start(), Status.RUNNING), Status.RUNNING)
        assert survey.find("survey-a", SURVEY).answer is None

    def test_references(self, store: Store) -> None:
        """An id, a name (its newest study), an unambiguous beginning; nothing else."""
        for name, system in (("abcd-1", "disk"), ("abcd-2", "disk"), ("xyzw-1", "tape")):
            store.begin(SURVEY, sample_start(name, system))
        assert store.find("abcd-1", SURVEY).start.study_id == "abcd-1"
        assert store.find("disk", SURVEY).start.study_id == "abcd-2"
        assert store.find("xyzw").start.study_id == "xyzw-1"
        with pytest.raises(StoreError, match=r"abcd-1, abcd-2.*type more"):
            store.find("abcd")
        for unknown in ("xyz", "XYZW", "%", "xyz_", ""):
            with pytest.raises(StoreError, match=r"no survey or system .*: disk, tape"):
                store.find(unknown)
        with pytest.raises(StoreError, match=r"no study of a page cache 'abcd-1'.*leadline cache"):
            store.find("abcd-1", CACHE)

    def test_a_name_is_of_the_newest_study_that_goes_by_it(self, store: Store) -> None:
        """Of any kind that is named, or of the kind asked for; an id goes before a name."""
        for study in STUDIES.values():
            keep_study(store, study)
        assert [item.study_id for item in store.list() if item.system == "disk"] == [
            "measurement-a",
            "study-a",
            "validation-a",
            "survey-a",
        ]
        assert store.find("disk").kind == "cache"
        assert store.find("disk", SURVEY).kind == "survey"
        with pytest.raises(StoreError, match=r"no validation 'disk'.*leadline validate"):
            store.find("disk", VALIDATION)
        store.begin(SURVEY, sample_start("disk", "other"))
        assert store.find("disk").start.study_id == "disk"

    def test_items_by_reference(self, survey: Store) -> None:
        """A beginning does if only one item has it."""
        for order, name in enumerate(("point-aa", "point-ab")):
            survey.add("survey-a", sample_point(name, order))
        assert survey.item("point-ab").document.point_id == "point-ab"
        with pytest.raises(StoreError, match="may be any of point-aa, point-ab; type more"):
            survey.item("point-")
        with pytest.raises(StoreError, match="no point 'poi'"):
            survey.item("poi")

    def test_lists_are_newest_first_and_of_a_kind_or_a_parent(self, survey: Store) -> None:
        """A study of another kind is not among them."""
        survey.begin(SURVEY, sample_start("survey-b"))
        for name, parent in (("first", "survey-a"), ("other", "survey-b"), ("last", "survey-a")):
            survey.begin(VALIDATION, sample_validation_start(name, parent))
        survey.add("first", sample_point("point-0"))
        found = survey.list(VALIDATION, "survey-a")
        assert [(item.study_id, item.items) for item in found] == [("last", 0), ("first", 1)]
        assert {item.parent for item in found} == {"survey-a"}
        assert [item.study_id for item in survey.list(SURVEY)] == ["survey-b", "survey-a"]
        assert len(survey.list()) == 5

    def test_what_cannot_be_read_again_is_refused(self, survey: Store) -> None:
        """Not a number is no measurement, and JSON could not say it; nothing of it is kept."""
        stopped = sample_survey(sample_start(), Status.STOPPED)
        survey.end("survey-a", stopped, Status.STOPPED)
        with pytest.raises(StoreError, match="not finite"):
            survey.add("survey-a", sample_point("point-0", mb_s=float("nan")))
        assert survey.items("survey-a") == ()
        assert survey.find("survey-a").status is Status.STOPPED

    def test_many_threads_at_once(self, store: Store) -> None:
        """No item is lost or doubled."""
        names = ("survey-a", "survey-b", "survey-c", "survey-d")

        def keep(name: str) -> None:
            store.begin(SURVEY, sample_start(name))
            for order in range(5):
                store.add(name, sample_point(f"{name}-{order}", order))

        with ThreadPoolExecutor(len(names)) as pool:
            list(pool.map(keep, names))
        assert {(item.study_id, item.items) for item in store.list()} == {
            (name, 5) for name in names
        }

    def test_threads_that_write_one_study_take_turns(self, survey: Store) -> None:
        """Of all that want a place, one gets it."""

        def add(number: int) -> bool:
            try:
                survey.add("survey-a", sample_point(f"point-{number}"))
            except UpdateFinishedError:
                return False
            return True

        with ThreadPoolExecutor(4) as pool:
            assert sum(pool.map(add, range(8))) == 1
        assert len(survey.items("survey-a")) == 1
