"""Studies of plain files (KM83): one document each, which grows until it is done.

The table came later than the others. Older Leadlines do not look at it, so it is added to a store
that lacks it without a new version of the schema.
"""

from __future__ import annotations

from typing import Any

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
from leadline.record.survey import SurveyStatus
from leadline.store.errors import StoreError, UpdateFinishedError

metadata = MetaData()

files = Table(
    "leadline_files",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("study_id", Text, nullable=False, unique=True),
    Column("system", Text, nullable=False, index=True),
    Column("started_at", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("document", Text, nullable=False),
    CheckConstraint("status IN ('running', 'stopped', 'done')", name="files_status_known"),
)


def keep(connection: Connection, study: FilesStudy, document: str, *, new: bool) -> None:
    """Insert a new study, or put a longer document in the place of the stored one."""
    start = study.start
    values: dict[str, Any] = {"status": study.status.value, "document": document}
    if not new:
        own = files.c.study_id == start.study_id
        connection.execute(update(files).where(own).values(**values))
        return
    connection.execute(
        files.insert().values(
            study_id=start.study_id, system=start.system, started_at=start.started_at, **values
        )
    )


def require_growth(stored: FilesStudy, study: FilesStudy) -> None:
    """Refuse a document that is not the stored one with more in it.

    Raises:
        UpdateFinishedError: the stored one is done, began otherwise, or has rows that this lacks.

    """
    name = study.start.study_id
    if stored.status is SurveyStatus.DONE:
        raise UpdateFinishedError(f"study {name} is done; a finished one never changes")
    if stored.start != study.start:
        raise UpdateFinishedError(f"study {name} began otherwise; a start is never changed")
    if [row.runs for row in stored.rows] != [row.runs for row in study.rows[: len(stored.rows)]]:
        raise UpdateFinishedError(f"study {name} has other runs; what was measured never changes")


def by_id(study_id: str) -> Select[Any]:
    """Return the query of one study, locked where the database can."""
    return select(files).where(files.c.study_id == study_id).with_for_update()


def find(connection: Connection, ref: str, prefix_min: int) -> Any:
    """Return a study's row by its id, its system (the newest) or the beginning of its id; or None.

    Raises:
        StoreError: several begin so.

    """
    newest = select(files).order_by(files.c.sequence.desc())
    row = (
        connection.execute(newest.where(files.c.study_id == ref)).first()
        or connection.execute(newest.where(files.c.system == ref)).first()
    )
    if row is not None or len(ref) < prefix_min:
        return row
    rows = connection.execute(newest.where(func.substr(files.c.study_id, 1, len(ref)) == ref)).all()
    if len(rows) > 1:
        found = ", ".join(sorted(each.study_id for each in rows)[:5])
        raise StoreError(f"{ref!r} may be any of {found}; type more of it")
    return rows[0] if rows else None
