"""The contract that every store keeps; `proving.store_conformance` checks it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self

from leadline.record.study import A_co, Answer, Item, Records, S_co, Status, StudyStart, Summary


@dataclass(frozen=True)
class Stored(Generic[S_co, A_co]):
    """A study without its items."""

    kind: str
    start: S_co
    status: Status
    answer: A_co | None
    """None while it runs."""


Row = dict[str, Any]
"""Of a table, by column, without the number that orders it in its own store."""


@dataclass(frozen=True)
class StoredItem:
    """An item, and where it belongs."""

    kind: str
    study_id: str
    document: Any


class Keeper(Protocol):
    """What a running study needs of a store."""

    def begin(self, records: Records[S_co, A_co], start: StudyStart) -> None:
        """Record what decides a study, before its first item.

        Raises:
            UpdateFinishedError: it was begun already.
            StoreError: its parent was never begun.

        """

    def add(self, study_id: str, item: Item, group: str = "") -> None:
        """Record the next item of a group of a study.

        A study that was stopped runs again from here, and the answer of its stop is no more.

        Raises:
            UpdateFinishedError: the study is done, or the item's place or id is taken.
            StoreError: the study was never begun, or items before this one are missing.

        """

    def end(self, study_id: str, answer: Answer, status: Status) -> None:
        """Record the answer, `stopped` or `done`.

        Raises:
            UpdateFinishedError: the study is done, or began otherwise than its answer says.
            StoreError: it was never begun, or the status is `running`.

        """


class Store(Keeper, Protocol):
    """Keeps studies of every kind in `leadline.record.kinds.KINDS`, with their items and answers.

    Durability: when a method that begins, adds or ends something returns, the document survives a
    kill of the process and a loss of power (as far as the device keeps its promises). When one
    raises, nothing of it is kept.

    Threading: every method may be called from any thread, and from several processes at once. Two
    that write one study are told apart by their items' places: the slower one is refused.

    Ownership: documents are immutable, those given and those returned; nothing is shared.

    Immutability: an item is never changed, nor removed but with its whole study. A study that is
    `done` takes neither items nor another end; one that is `stopped` may go on and end again.
    Breaking either raises `UpdateFinishedError`, whatever the document says.

    References: `ref` is a study's id, the name of its system (which means the newest study of it,
    where a kind is `named`), or the first four or more characters of exactly one id; tried in this
    order, over all kinds or over the one asked for.

    Every method raises `StoreError` when the store is damaged or cannot be reached.
    """

    def find(self, ref: str, kind: Records[S_co, A_co] | None = None) -> Stored[S_co, A_co]:
        """Return a study. Raises `StoreError` for an unknown or ambiguous reference."""

    def items(self, study_id: str, group: str | None = None) -> tuple[Any, ...]:
        """Return a study's items, or one group's, in their order; none for an unknown id.

        Groups follow each other in the order in which they began.
        """

    def list(
        self, kind: Records[Any, Any] | None = None, parent: str | None = None
    ) -> tuple[Summary, ...]:
        """Return a summary of every study, or of those of a kind or a parent, the newest first."""

    def item(self, ref: str) -> StoredItem:
        """Return an item by its id or an unambiguous beginning (at least 4 characters) of it."""

    def remove(self, study_id: str) -> None:
        """Remove a study with its items and its answer.

        Raises:
            StoreError: it was never begun, or another study is about it and must go first.

        """

    def rows_of(self, study_id: str) -> tuple[Row, Sequence[Row]]:
        """Return the row of a study and those of its items, as another store takes them."""

    def take(self, study: Row, rows: Sequence[Row]) -> bool:
        """Store the rows of a study; false where one of this id is stored already.

        Raises:
            StoreError: its parent is not stored.

        """

    def close(self) -> None:
        """Let go of the connections; further calls open new ones."""

    def __enter__(self) -> Self:
        """Return the store itself."""

    def __exit__(self, *raised: object) -> None:
        """Close."""
