"""Studies that are one document each, which grows until it is done: plain files, streams."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from sqlalchemy import (
    CheckConstraint,
    Column,
    Connection,
    Integer,
    MetaData,
    Select,
    Table,
    Text,
    func,
    select,
    update,
)

from leadline.record.files import FilesStudy
from leadline.record.streaming import StreamStudy
from leadline.record.survey import SurveyStatus
from leadline.store.errors import StoreError, UpdateFinishedError

metadata = MetaData()
Study = TypeVar("Study", FilesStudy, StreamStudy)


@dataclass(frozen=True)
class Kind(Generic[Study]):
    """One kind of study, and where it is kept."""

    table: Table
    document: type[Study]
    said: str
    """What a person calls it."""
    made_by: str
    """The command that makes one."""
    measured: Callable[[Study], list[Any]]
    """What was measured, in its order: a longer document begins with what is stored."""


def _table(name: str) -> Table:
    return Table(
        f"leadline_{name}",
        metadata,
        Column("sequence", Integer, primary_key=True, autoincrement=True),
        Column("study_id", Text, nullable=False, unique=True),
        Column("system", Text, nullable=False, index=True),
        Column("started_at", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("document", Text, nullable=False),
        CheckConstraint("status IN ('running', 'stopped', 'done')", name=f"{name}_status_known"),
    )


FILES = Kind(
    table=_table("files"),
    document=FilesStudy,
    said="study of plain files",
    made_by="leadline files DIR",
    measured=lambda study: [row.runs for row in study.rows],
)
STREAMS = Kind(
    table=_table("streams"),
    document=StreamStudy,
    said="stream study",
    made_by="leadline stream sort SRC DST",
    measured=lambda study: list(study.runs),
)


def keep(
    connection: Connection, kind: Kind[Study], study: Study, document: str, *, new: bool
) -> None:
    """Insert a new study, or put a longer document in the place of the stored one."""
    table, start = kind.table, study.start
    values: dict[str, Any] = {"status": study.status.value, "document": document}
    if not new:
        own = table.c.study_id == start.study_id
        connection.execute(update(table).where(own).values(**values))
        return
    connection.execute(
        table.insert().values(
            study_id=start.study_id, system=start.system, started_at=start.started_at, **values
        )
    )


def require_growth(kind: Kind[Study], stored: Study, study: Study) -> None:
    """Refuse a document that is not the stored one with more in it.

    Raises:
        UpdateFinishedError: the stored one is done, began otherwise, or has runs that this lacks.

    """
    name = study.start.study_id
    if stored.status is SurveyStatus.DONE:
        raise UpdateFinishedError(f"study {name} is done; a finished one never changes")
    if stored.start != study.start:
        raise UpdateFinishedError(f"study {name} began otherwise; a start is never changed")
    had = kind.measured(stored)
    if had != kind.measured(study)[: len(had)]:
        raise UpdateFinishedError(f"study {name} has other runs; what was measured never changes")


def by_id(kind: Kind[Any], study_id: str) -> Select[Any]:
    """Return the query of one study, locked where the database can."""
    return select(kind.table).where(kind.table.c.study_id == study_id).with_for_update()


def newest_first(kind: Kind[Any]) -> Select[Any]:
    """Return the query of what a list of them shows."""
    table = kind.table
    wanted = (table.c[name] for name in ("study_id", "system", "started_at", "status"))
    return select(*wanted).order_by(table.c.sequence.desc())


def find(connection: Connection, kind: Kind[Any], ref: str, prefix_min: int) -> Any:
    """Return a study's row by its id, its system (the newest) or the beginning of its id; or None.

    Raises:
        StoreError: several begin so.

    """
    table = kind.table
    newest = select(table).order_by(table.c.sequence.desc())
    row = (
        connection.execute(newest.where(table.c.study_id == ref)).first()
        or connection.execute(newest.where(table.c.system == ref)).first()
    )
    if row is not None or len(ref) < prefix_min:
        return row
    rows = connection.execute(newest.where(func.substr(table.c.study_id, 1, len(ref)) == ref)).all()
    if len(rows) > 1:
        found = ", ".join(sorted(each.study_id for each in rows)[:5])
        raise StoreError(f"{ref!r} may be any of {found}; type more of it")
    return rows[0] if rows else None
