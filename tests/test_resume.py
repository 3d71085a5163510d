"""Which stored study `--resume` means."""

from __future__ import annotations

import msgspec
import pytest

from leadline.engine import TargetRefused
from leadline.record import Status
from leadline.record.streaming import STREAM, StreamStart
from leadline.record.study import Said
from leadline.store import open_store
from leadline.studies.resume import find_unfinished

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
        answer = Said(sentences=(), warnings=(), wall_s=1.0)
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
