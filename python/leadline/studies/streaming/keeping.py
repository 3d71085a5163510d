"""A stream study that is kept as it grows: nothing before something is known, then item by item."""

from __future__ import annotations

import time
from typing import NamedTuple

import msgspec

from leadline.record import Status, point_id
from leadline.record.finding import Finding
from leadline.record.streaming import (
    STREAM,
    Capacities,
    CapacitiesKnown,
    RunEnded,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from leadline.record.study import Said
from leadline.store import Keeper


class Before(NamedTuple):
    """What earlier sittings kept."""

    study: StreamStudy
    items: int
    """How many: what comes next has the order after them."""


class KeptStream:
    """A study, and how much of it is kept; every change is a new document."""

    def __init__(self, store: Keeper, start: StreamStart, before: Before | None = None) -> None:
        """Begin a study, or take up a stored one where it was left."""
        self._store = store
        self._begun = before is not None
        self._items = 0 if before is None else before.items
        self._began_s = time.monotonic() - (0.0 if before is None else before.study.wall_s)
        self.study = (
            StreamStudy(start=start, status=Status.RUNNING)
            if before is None
            else msgspec.structs.replace(
                before.study, status=Status.RUNNING, sentences=(), findings=()
            )
        )

    @property
    def wall_s(self) -> float:
        """Time since the study began."""
        return time.monotonic() - self._began_s

    def begin(self) -> None:
        """Keep the start, if it is not kept."""
        if not self._begun:
            self._store.begin(STREAM, self.study.start)
            self._begun = True

    def doubt(self, found: Finding) -> None:
        """Say why no capacities are known; it is kept once something is measured."""
        self.study = msgspec.structs.replace(self.study, findings=(found,))

    def add_capacities(self, found: Capacities) -> None:
        """Keep what the machine can do; a later answer counts."""
        self._add(CapacitiesKnown(order=self._items, wall_s=self.wall_s, capacities=found))
        self.study = msgspec.structs.replace(self.study, capacities=found)

    def add_run(self, run: StreamRun) -> None:
        """Keep a run that ended."""
        doubts = self.study.findings
        if self._items == 0 and doubts:
            self._add(CapacitiesKnown(order=0, wall_s=self.wall_s, capacities=None, doubts=doubts))
        own = point_id(self.study.start.study_id, self._items)
        self._add(RunEnded(order=self._items, item_id=own, wall_s=self.wall_s, run=run))
        self.study = msgspec.structs.replace(self.study, runs=(*self.study.runs, run))

    def end(
        self, status: Status, sentences: tuple[str, ...], findings: tuple[Finding, ...]
    ) -> None:
        """Keep the answer, if anything is kept."""
        answer = Said(sentences=sentences, findings=findings, wall_s=self.wall_s)
        said = msgspec.structs.asdict(answer)
        self.study = msgspec.structs.replace(self.study, status=status, **said)
        if self._begun:
            self._store.end(self.study.start.study_id, answer, status)

    def _add(self, item: CapacitiesKnown | RunEnded) -> None:
        self.begin()
        self._store.add(self.study.start.study_id, item)
        self._items += 1
