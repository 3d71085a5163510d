"""Bring an older store to this version, in the transaction that opens it."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Column, Connection, Index, Table
from sqlalchemy.schema import CreateColumn

from leadline.store._tables import (
    SCHEMA_VERSION,
    one_study_point,
    one_validation_point,
    points,
    schema,
    studies,
    validations,
)

_OWNERS: dict[int, tuple[Table, Column[Any], Index]] = {
    2: (validations, points.c.validation_id, one_validation_point),
    3: (studies, points.c.study_id, one_study_point),
}
"""What each version added: a table of owners of points, and the points' column that names one."""


def migrate(connection: Connection, version: int) -> None:
    """Add what came after `version`; nothing that is stored changes."""
    for added, (owners, column, index) in _OWNERS.items():
        if version >= added:
            continue
        owners.create(connection)
        text = str(CreateColumn(column).compile(dialect=connection.dialect))
        # ALTER TABLE has no form in SQLAlchemy Core; both names are our own.
        connection.exec_driver_sql(
            f"ALTER TABLE {points.name} ADD COLUMN {text} REFERENCES {owners.name} ({column.name})"
        )
        index.create(connection)
    connection.execute(schema.update().values(version=SCHEMA_VERSION))


def tables_of(version: int) -> set[str]:
    """Names of the tables that a store of this version has."""
    later = {owners.name for added, (owners, _, _) in _OWNERS.items() if version < added}
    return {table.name for table in schema.metadata.sorted_tables} - later
