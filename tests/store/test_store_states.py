"""The store as a state machine beside a model of it: crashed and failed at any step, reopened.

Held after each step: everything that was promised is there, nothing of what was refused or cut
short is, and two who have it open see the same.
"""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from explored_states import explored
from leadline.record import Measurement, Status
from leadline.record.file_cache import CACHE
from leadline.record.measurement import MEASUREMENT
from leadline.record.study import Records
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION
from leadline.store import Store, StoreError, UpdateFinishedError
from proving.samples import (
    sample_cache_start,
    sample_cache_study,
    sample_point,
    sample_start,
    sample_survey,
    sample_validation,
    sample_validation_start,
    stored_measurement,
)
from store_steps import NAME, Failed, Steps, opened, stepping

STEPS_MOST = 25
"""More than any transaction here has."""
GROUPS = ("", "beside", "runs of 0")
Act = Callable[[Store], None]


@dataclass
class Kept:
    """What the model knows of a study."""

    records: Records[Any, Any]
    start: Any
    status: Status = Status.RUNNING
    answer: Any = None
    groups: dict[str, list[Measurement]] = field(default_factory=dict)

    @property
    def items(self) -> tuple[Measurement, ...]:
        return tuple(item for group in self.groups.values() for item in group)

    def copy(self) -> Kept:
        groups = {name: [*items] for name, items in self.groups.items()}
        return Kept(self.records, self.start, self.status, self.answer, groups)


def start_of(kind: str, study_id: str, parent: str | None) -> tuple[Records[Any, Any], Any]:
    if kind == VALIDATION.kind and parent is not None:
        return VALIDATION, sample_validation_start(study_id, parent)
    if kind == CACHE.kind:
        return CACHE, sample_cache_start(study_id)
    if kind == MEASUREMENT.kind:
        return MEASUREMENT, msgspec.structs.replace(stored_measurement().start, study_id=study_id)
    return SURVEY, sample_start(study_id)


def answer_of(study: Kept, status: Status) -> Any:
    if study.records is VALIDATION:
        return sample_validation(study.start, status)
    if study.records is CACHE:
        return sample_cache_study(study.start, status)
    return (
        stored_measurement().answer
        if study.records is MEASUREMENT
        else sample_survey(study.start, status)
    )


class Stores(RuleBasedStateMachine):
    """A store, another process that has it open as well, and what should be in it."""

    @initialize()
    def begin(self) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="leadline-stores-"))
        (self.root / "at").mkdir()
        self.path = self.root / "at" / NAME
        self.numbers = itertools.count()
        self.known: dict[str, Kept] = {}
        self.store, self.other = opened(self.path), opened(self.path)

    def teardown(self) -> None:
        if hasattr(self, "root"):
            self.store.close()
            self.other.close()
            shutil.rmtree(self.root)

    def drawn(self, number: int) -> str:
        return [*self.known][number % len(self.known)]

    # ---- what is done, well or not ----

    def does(self, act: Act, after: dict[str, Kept], how: str, step: int) -> None:
        """Do something that the store must take: whole, cut by a crash, or failing."""
        steps = Steps(
            crash_at=step if how == "crash" else None, fail_at=step if how == "fail" else None
        )
        failed = False
        with stepping(self.store, self.path, steps):
            try:
                act(self.store)
            except Failed:
                failed = True
        assert steps.taken <= STEPS_MOST, "else its last steps are never reached"
        if steps.crashed is not None:
            self.goes_on_with(steps.crashed)
        if not failed and (steps.crashed is None or steps.committed):
            self.known = after

    def goes_on_with(self, path: Path) -> None:
        """The next processes find what a crash left."""
        self.store.close()
        self.other.close()
        shutil.rmtree(self.path.parent)
        path.parent.rename(self.path.parent)
        self.store, self.other = opened(self.path), opened(self.path)

    def changed(self, study_id: str) -> tuple[dict[str, Kept], Kept]:
        after = {name: study.copy() for name, study in self.known.items()}
        return after, after[study_id]

    HOW = st.sampled_from(["well", "well", "crash", "fail"])
    STEP = st.integers(0, STEPS_MOST)
    WHICH = st.integers(0, 9)

    @rule(
        kind=st.sampled_from([SURVEY.kind, VALIDATION.kind, CACHE.kind, MEASUREMENT.kind]),
        which=WHICH,
        how=HOW,
        step=STEP,
    )
    def a_study_begins(self, kind: str, which: int, how: str, step: int) -> None:
        surveys = [name for name, each in self.known.items() if each.records is SURVEY]
        parent = surveys[which % len(surveys)] if surveys else None
        study_id = f"study-{next(self.numbers)}"
        records, start = start_of(kind, study_id, parent)
        after = {**self.known, study_id: Kept(records, start)}
        self.does(lambda store: store.begin(records, start), after, how, step)

    @precondition(lambda self: bool(self.known))
    @rule(which=WHICH, group=st.sampled_from(GROUPS), how=HOW, step=STEP)
    def an_item_is_added(self, which: int, group: str, how: str, step: int) -> None:
        study_id = self.drawn(which)
        after, study = self.changed(study_id)
        order = len(study.groups.get(group, ()))
        item = sample_point(f"point-{next(self.numbers)}", order)
        if study.status is Status.DONE:
            with pytest.raises(UpdateFinishedError, match="is done"):
                self.store.add(study_id, item, group)
            return
        study.groups.setdefault(group, []).append(item)
        if study.status is Status.STOPPED:
            study.status, study.answer = Status.RUNNING, None
        self.does(lambda store: store.add(study_id, item, group), after, how, step)

    @precondition(lambda self: bool(self.known))
    @rule(which=WHICH, status=st.sampled_from([Status.STOPPED, Status.DONE]), how=HOW, step=STEP)
    def a_study_ends(self, which: int, status: Status, how: str, step: int) -> None:
        study_id = self.drawn(which)
        after, study = self.changed(study_id)
        answer = answer_of(study, status)
        if study.status is Status.DONE:
            with pytest.raises(UpdateFinishedError, match="is done"):
                self.store.end(study_id, answer, status)
            return
        study.status, study.answer = status, answer
        self.does(lambda store: store.end(study_id, answer, status), after, how, step)

    @rule(crash=st.booleans())
    def it_is_opened_anew(self, *, crash: bool) -> None:
        if crash:
            steps = Steps()
            steps.crash(self.path)
            assert steps.crashed is not None
            self.goes_on_with(steps.crashed)
            return
        self.store.close()
        self.store = opened(self.path)

    @rule()
    def the_other_writes_from_now_on(self) -> None:
        self.store, self.other = self.other, self.store

    # ---- what is refused ----

    @precondition(lambda self: bool(self.known))
    @rule(which=WHICH, group=st.sampled_from(GROUPS), off=st.sampled_from([-1, 1, 7]))
    def a_place_that_is_not_next_is_refused(self, which: int, group: str, off: int) -> None:
        study_id = self.drawn(which)
        order = len(self.known[study_id].groups.get(group, ())) + off
        if order >= 0:
            with pytest.raises(StoreError):
                self.store.add(study_id, sample_point("elsewhere", order), group)

    @precondition(lambda self: any(study.items for study in self.known.values()))
    @rule(which=WHICH, group=st.sampled_from(GROUPS))
    def an_id_that_is_taken_is_refused(self, which: int, group: str) -> None:
        study_id = self.drawn(which)
        taken = next(study for study in self.known.values() if study.items).items[0]
        order = len(self.known[study_id].groups.get(group, ()))
        with pytest.raises(UpdateFinishedError):
            self.store.add(study_id, sample_point(taken.point_id, order, 50.0), group)

    @precondition(lambda self: bool(self.known))
    @rule(which=WHICH)
    def what_was_begun_is_not_begun_again(self, which: int) -> None:
        study = self.known[self.drawn(which)]
        with pytest.raises(UpdateFinishedError, match="begun already"):
            self.store.begin(study.records, study.start)

    @precondition(lambda self: bool(self.known))
    @rule(which=WHICH)
    def what_cannot_be_written_leaves_nothing(self, which: int) -> None:
        study_id = self.drawn(which)
        order = len(self.known[study_id].groups.get("", ()))
        with pytest.raises(StoreError):
            self.store.add(study_id, sample_point("endless", order, float("inf")))

    # ---- what always holds ----

    @invariant()
    def both_see_what_the_model_has(self) -> None:
        for store in (self.store, self.other) if hasattr(self, "store") else ():
            found = {each.study_id: each for each in store.list()}
            assert [*found] == [*reversed(self.known)], "the newest first"
            for study_id, study in self.known.items():
                stored = store.find(study_id, study.records)
                assert (stored.start, stored.status, stored.answer) == (
                    study.start,
                    study.status,
                    study.answer,
                )
                assert store.items(study_id) == study.items
                assert found[study_id].items == len(study.items)


def test_a_store_keeps_its_word_in_whatever_order() -> None:
    run_state_machine_as_test(Stores, settings=explored(25, 20))


@pytest.mark.long
@pytest.mark.timeout(3600)
def test_a_store_keeps_its_word_in_very_many_orders() -> None:
    run_state_machine_as_test(Stores, settings=explored(1500, 50))


# ---- every step, one after the other, with a process that is really killed -----------------------


def prepared(path: Path) -> None:
    with opened(path) as store:
        store.begin(SURVEY, sample_start())
        store.add("survey-a", sample_point("point-0"))
        store.begin(SURVEY, sample_start("survey-b"))
        store.end(
            "survey-b", sample_survey(sample_start("survey-b"), Status.STOPPED), Status.STOPPED
        )


ACTS: dict[str, Act] = {
    "begin": lambda store: store.begin(SURVEY, sample_start("survey-c")),
    "begin of a child": lambda store: store.begin(VALIDATION, sample_validation_start()),
    "add": lambda store: store.add("survey-a", sample_point("point-1", 1)),
    "add to a stopped one": lambda store: store.add("survey-b", sample_point("point-1")),
    "stop": lambda store: store.end(
        "survey-a", sample_survey(sample_start(), Status.STOPPED), Status.STOPPED
    ),
    "end": lambda store: store.end("survey-a", sample_survey(sample_start()), Status.DONE),
}


class Dying(Steps):
    """Kills its process at a step, as `kill -9` does."""

    def __init__(self, at: int) -> None:
        super().__init__()
        self._at = at

    def take(self, path: Path, *, commits: bool) -> None:
        if self.taken == self._at:
            os.kill(os.getpid(), signal.SIGKILL)
        super().take(path, commits=commits)


def killed_at(path: Path, act: Act, step: int) -> bool:
    """Whether a process that does this was killed at this step; else it had fewer."""
    child = os.fork()
    if not child:
        try:
            store = opened(path)
            with stepping(store, path, Dying(step)):
                act(store)
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def told(path: Path) -> list[Any]:
    with opened(path) as store:
        return [
            (summary, store.find(summary.study_id), store.items(summary.study_id))
            for summary in store.list()
        ]


@pytest.mark.parametrize("name", ACTS)
def test_killed_at_every_step_nothing_of_it_is_there(tmp_path: Path, name: str) -> None:
    """All steps come before the commit; after the last one, all of it is there."""
    path, act = tmp_path / NAME, ACTS[name]
    prepared(path)
    before = told(path)
    step = 0
    while killed_at(path, act, step):
        assert told(path) == before, step
        step += 1
    assert step >= 6
    after = told(path)
    assert after != before, "the last one was not killed"
