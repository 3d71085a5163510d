"""A store that remembers what could be read of a study after each change."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from leadline.record.study import A_co, Answer, Item, Records, S_co, Status, StudyStart
from leadline.store import Store, open_store

D = TypeVar("D")


class KeptDocuments(Generic[D]):
    """Keeps one study in memory."""

    def __init__(self, load: Callable[[Store, str], D]) -> None:
        self._store, self._load = open_store("sqlite://"), load
        self.documents: list[D] = []

    def begin(self, records: Records[S_co, A_co], start: StudyStart) -> None:
        self._store.begin(records, start)
        self._remember(start.study_id)

    def add(self, study_id: str, item: Item, group: str = "") -> None:
        self._store.add(study_id, item, group)
        self._remember(study_id)

    def end(self, study_id: str, answer: Answer, status: Status) -> None:
        self._store.end(study_id, answer, status)
        self._remember(study_id)

    def _remember(self, study_id: str) -> None:
        self.documents.append(self._load(self._store, study_id))
