"""Which stored study `--resume` means, and what becomes of one that is stopped."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

import shared_surveys
from command import ended_after, leadline
from leadline.engine import TargetRefused
from leadline.record import Status
from leadline.record.streaming import STREAM, StreamStart
from leadline.record.study import TextAnswer
from leadline.store import Stored, open_store
from leadline.studies.resume import find_unfinished, kept_when_stopped

SCALING = StreamStart(
    study_id="a" * 32,
    system="here",
    started_at="2026-01-01T00:00:00+00:00",
    purpose="scaling",
    directories=("/disk",),
    seed=1,
    facts={},
)
RUN = msgspec.structs.replace(SCALING, study_id="b" * 32, purpose="run")
DONE = msgspec.structs.replace(SCALING, study_id="c" * 32)


def test_the_newest_unfinished_study_that_the_command_makes_is_meant() -> None:
    with open_store("sqlite://") as store:
        for start in (SCALING, RUN, DONE):
            store.begin(STREAM, start)
        answer = TextAnswer(sentences=(), findings=(), wall_s=1.0)
        store.end(DONE.study_id, answer, Status.DONE)
        found = find_unfinished(
            store, STREAM, "here", "/disk", meant=lambda start: start.purpose == "scaling"
        )
        assert found.start == SCALING
        assert find_unfinished(store, STREAM, "here", "/disk").start == RUN


def test_a_study_of_something_else_or_of_nobody_is_refused() -> None:
    with open_store("sqlite://") as store:
        store.begin(STREAM, SCALING)
        with pytest.raises(TargetRefused, match="is of /disk, not of /other"):
            find_unfinished(store, STREAM, "here", "/other")
        with pytest.raises(TargetRefused, match="no unfinished stream study of 'there'"):
            find_unfinished(store, STREAM, "there", "/disk")


def test_a_study_that_stops_keeps_what_it_found_and_hears_why() -> None:
    said = TextAnswer(sentences=("so far",), findings=(), wall_s=1.0)
    with open_store("sqlite://") as store:
        store.begin(STREAM, SCALING)
        store.begin(STREAM, RUN)
        with kept_when_stopped(store, SCALING.study_id, lambda: said):
            pass
        assert store.find(SCALING.study_id).status is Status.RUNNING
        with (
            pytest.raises(KeyboardInterrupt, match="why"),
            kept_when_stopped(store, SCALING.study_id, lambda: said),
        ):
            raise KeyboardInterrupt("why")
        found: Stored[Any, Any] = store.find(SCALING.study_id)
        assert (found.status, found.answer) == (Status.STOPPED, said)

        def cannot() -> TextAnswer:
            raise ZeroDivisionError

        with (
            pytest.raises(KeyboardInterrupt, match="why"),
            kept_when_stopped(store, RUN.study_id, cannot),
        ):
            raise KeyboardInterrupt("why")
        assert store.find(RUN.study_id).status is Status.RUNNING


COMMANDS = {
    "survey": ["survey", "sim:two-level", "--name", "hp-730", "--budget", "3m"],
    "cache": ["cache", "sim:hp-730", "--sizes-only"],
    "validation": ["validate", "hp-730", "--count", "8", "--no-rivals"],
}


@pytest.mark.parametrize("kind", COMMANDS)
def test_a_stopped_study_is_stopped_in_the_store_and_done_when_it_went_on(
    kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "store.sqlite"
    if kind == "validation":
        with open_store(str(path)) as store:
            shared_surveys.keep(store, shared_surveys.surveyed("hp-730"))
    stopped = ended_after(5, signal.SIGINT, *COMMANDS[kind], store=path)
    assert stopped.returncode == 3, stopped.stderr
    with open_store(str(path)) as store:
        study = store.list()[0]
        assert (study.kind, study.status, study.items) == (kind, Status.STOPPED, 5)
        answer = store.find(study.study_id).answer
        assert answer is not None
        assert answer.status is Status.STOPPED
    again = leadline(*COMMANDS[kind], "--resume", store=path)
    assert again.returncode == 0, again.stderr
    with open_store(str(path)) as store:
        assert store.list()[0].status is Status.DONE
