"""A store in a database, through SQLAlchemy Core: SQLite by default, PostgreSQL by URL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, RowMapping, delete, func, select, update

from leadline.record.kinds import KINDS
from leadline.record.study import A_co, Answer, Item, Records, S_co, Status, StudyStart, Summary
from leadline.store._base import Row, Stored, StoredItem
from leadline.store._database import Database, encode
from leadline.store._tables import items, studies
from leadline.store.errors import NotStored, StoreError, UpdateFinishedError

_BY_NAME = {records.kind: records for records in KINDS}
_KNOWN_MOST = 10


class SqlStore(Database):
    """See `Store` for the contract."""

    def begin(self, records: Records[S_co, A_co], start: StudyStart) -> None:
        """Record what decides a study."""
        with self._transaction() as connection:
            if _locked(connection, start.study_id) is not None:
                raise UpdateFinishedError(f"{records.kind} {start.study_id} was begun already")
            if start.parent is not None and _locked(connection, start.parent) is None:
                raise StoreError(f"{start.parent} was never begun in {self._shown}")
            connection.execute(
                studies.insert().values(
                    id=start.study_id,
                    kind=records.kind,
                    name=start.system,
                    target=start.target,
                    started_at=start.started_at,
                    parent=start.parent,
                    status=Status.RUNNING.value,
                    start=encode(start),
                )
            )

    def add(self, study_id: str, item: Item, group: str = "") -> None:
        """Record the next item of a group; durable when this returns."""
        with self._transaction() as connection:
            study = self._going(connection, study_id)
            own = items.c.study == study_id, items.c.grp == group
            last = connection.execute(select(func.max(items.c.position)).where(*own)).scalar()
            after = 0 if last is None else last + 1
            where = f"item {item.order} of {study.kind} {study_id}" + (group and f", {group},")
            if item.order < after:
                raise UpdateFinishedError(f"{where} is stored already; it never changes")
            if item.order > after:
                raise StoreError(f"{where} does not follow: the next one is {after}")
            known = select(items.c.id).where(items.c.id == item.item_id)
            if item.item_id is not None and connection.execute(known).first() is not None:
                raise UpdateFinishedError(f"item {item.item_id} is stored already")
            connection.execute(
                items.insert().values(
                    study=study_id,
                    grp=group,
                    position=item.order,
                    id=item.item_id,
                    document=encode(item),
                )
            )
            if study.status == Status.STOPPED.value:
                again = {"status": Status.RUNNING.value, "answer": None, "wall_s": None}
                connection.execute(update(studies).where(studies.c.id == study_id).values(again))

    def end(self, study_id: str, answer: Answer, status: Status) -> None:
        """Record the answer."""
        if status is Status.RUNNING:
            raise StoreError(f"study {study_id} still runs; only an end can be recorded")
        with self._transaction() as connection:
            study = self._going(connection, study_id)
            start = getattr(answer, "start", None)
            # As read by today's record: one of an earlier version lacks what it did not ask.
            if start is not None and encode(start) != encode(
                self._decode(study.start, type(start))
            ):
                raise UpdateFinishedError(
                    f"{study.kind} {study_id} began otherwise than its answer says; a start is "
                    "never changed"
                )
            values = {"status": status.value, "answer": encode(answer), "wall_s": answer.wall_s}
            connection.execute(update(studies).where(studies.c.id == study_id).values(values))

    def remove(self, study_id: str) -> None:
        """Remove a study with its items and its answer."""
        with self._transaction() as connection:
            if _locked(connection, study_id) is None:
                raise StoreError(f"study {study_id} was never begun in {self._shown}")
            about = select(studies.c.id).where(studies.c.parent == study_id).limit(1)
            child = connection.execute(about).scalar()
            if child is not None:
                raise StoreError(
                    f"study {child[:8]} is about {study_id[:8]}; remove that one first"
                )
            connection.execute(delete(items).where(items.c.study == study_id))
            connection.execute(delete(studies).where(studies.c.id == study_id))

    def find(self, ref: str, kind: Records[S_co, A_co] | None = None) -> Stored[S_co, A_co]:
        """Return a study by its id, its system's name or the beginning of its id."""
        query = select(studies).order_by(studies.c.sequence.desc())
        named = [records.kind for records in KINDS if records.named and kind in (None, records)]
        if kind is not None:
            query = query.where(studies.c.kind == kind.kind)
        by_name = query.where(studies.c.name == ref, studies.c.kind.in_(named))
        with self._transaction() as connection:
            row = (
                connection.execute(query.where(studies.c.id == ref)).first()
                or connection.execute(by_name).first()
                or self._by_prefix(connection, query, studies.c.id, ref)
            )
            if row is None:
                raise NotStored(self._unknown(connection, ref, kind, named))
        records = self._records(row.kind)
        return Stored(
            kind=row.kind,
            start=self._decode(row.start, records.start),
            status=Status(row.status),
            answer=row.answer and self._decode(row.answer, records.answer),
        )

    def items(self, study_id: str, group: str | None = None) -> tuple[Any, ...]:
        """Return a study's items, or one group's, in their order."""
        query = (
            select(studies.c.kind, items.c.grp, items.c.document)
            .join_from(items, studies)
            .where(items.c.study == study_id)
            .order_by(items.c.sequence)
        )
        if group is not None:
            query = query.where(items.c.grp == group)
        groups: dict[str, list[Any]] = {}
        with self._transaction() as connection:
            for row in connection.execute(query):
                item = self._decode(row.document, self._records(row.kind).item)
                groups.setdefault(row.grp, []).append(item)
        return tuple(item for found in groups.values() for item in found)

    def list(
        self, kind: Records[Any, Any] | None = None, parent: str | None = None
    ) -> tuple[Summary, ...]:
        """Return a summary of every study asked for, the newest first."""
        own = items.c.study == studies.c.id
        whole = select(func.count(items.c.id)).where(own)
        parts = select(func.count()).select_from(items).where(own, items.c.id.is_(None))
        columns = (studies.c[name] for name in Summary.__struct_fields__ if name in studies.c)
        query = select(
            studies.c.id.label("study_id"),
            studies.c.name.label("system"),
            studies.c.start,
            *columns,
            whole.scalar_subquery().label("items"),
            parts.scalar_subquery().label("parts"),
        )
        if kind is not None:
            query = query.where(studies.c.kind == kind.kind)
        if parent is not None:
            query = query.where(studies.c.parent == parent)
        with self._transaction() as connection:
            rows = connection.execute(query.order_by(studies.c.sequence.desc())).mappings().all()
        return tuple(map(_summary, rows))

    def rows_of(self, study_id: str) -> tuple[Row, Sequence[Row]]:
        """Return the row of a study and those of its items, as another store takes them."""
        study = select(studies).where(studies.c.id == study_id)
        own = select(items).where(items.c.study == study_id).order_by(items.c.sequence)
        with self._transaction() as connection:
            row = connection.execute(study).mappings().one()
            rows = connection.execute(own).mappings().all()
        return _unnumbered(row), [_unnumbered(each) for each in rows]

    def take(self, study: Row, rows: Sequence[Row]) -> bool:
        """Store the rows of a study; false where one of this id is stored already."""
        with self._transaction() as connection:
            if _locked(connection, study["id"]) is not None:
                return False
            connection.execute(studies.insert().values(study))
            if rows:
                connection.execute(items.insert(), rows)
        return True

    def item(self, ref: str) -> StoredItem:
        """Return an item by its id or an unambiguous beginning of it."""
        query = select(items, studies.c.kind).join_from(items, studies)
        with self._transaction() as connection:
            row = connection.execute(query.where(items.c.id == ref)).first()
            row = row or self._by_prefix(connection, query, items.c.id, ref)
        if row is None:
            raise StoreError(
                f"no point {ref!r} in {self._shown}; `leadline export ID` lists those of a study"
            )
        document = self._decode(row.document, self._records(row.kind).item)
        return StoredItem(kind=row.kind, study_id=row.study, document=document)

    def _records(self, kind: str) -> Records[Any, Any]:
        records = _BY_NAME.get(kind)
        if records is None:
            raise self._damaged(f"a study in it is of the unknown kind {kind!r}")
        return records

    def _going(self, connection: Connection, study_id: str) -> Any:
        """Return and lock the row of a study that may still change."""
        row = _locked(connection, study_id)
        if row is None:
            raise StoreError(f"study {study_id} was never begun in {self._shown}")
        if row.status == Status.DONE.value:
            raise UpdateFinishedError(
                f"{row.kind} {study_id} is done; a finished one never changes"
            )
        return row

    def _unknown(
        self, connection: Connection, ref: str, kind: Records[Any, Any] | None, named: Sequence[str]
    ) -> str:
        if kind is not None and kind is not KINDS[0]:
            return f"no {kind.said} {ref!r} in {self._shown}; `{kind.made_by}` makes one"
        names = select(studies.c.name).where(studies.c.kind.in_(named)).distinct()
        found = connection.execute(names.order_by(studies.c.name).limit(_KNOWN_MOST)).scalars()
        return (
            f"no {KINDS[0].said} or system {ref!r} in {self._shown}; it holds the systems: "
            f"{', '.join(found) or 'none yet'} (`leadline systems` lists all)"
        )


class _Origin(msgspec.Struct):
    """What a study's start says of where it began."""

    facts: dict[str, Any] = msgspec.field(default_factory=dict)


def _summary(row: RowMapping) -> Summary:
    try:
        facts = msgspec.json.decode(row["start"], type=_Origin).facts
    except msgspec.MsgspecError:  # said where the study is opened
        facts = {}
    known = {name: facts.get(name) for name in ("host_name", "leadline_version")}
    columns = {name: row[name] for name in row if name != "start"}
    return Summary(**(columns | known | {"status": Status(row["status"])}))


def _unnumbered(row: RowMapping) -> Row:
    return {name: value for name, value in row.items() if name != "sequence"}


def _locked(connection: Connection, study_id: str) -> Any:
    query = select(studies.c.kind, studies.c.status, studies.c.start)
    return connection.execute(query.where(studies.c.id == study_id).with_for_update()).first()
