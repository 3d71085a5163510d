"""Bring an older store to this version, in the transaction that opens it."""

from __future__ import annotations

from sqlalchemy import Connection
from sqlalchemy.schema import CreateColumn

from leadline.store._tables import (
    SCHEMA_VERSION,
    one_validation_point,
    points,
    schema,
    validations,
)


def migrate(connection: Connection, version: int) -> None:
    """Add what came after `version`; nothing that is stored changes."""
    if version < 2:
        validations.create(connection)
        column = str(CreateColumn(points.c.validation_id).compile(dialect=connection.dialect))
        # ALTER TABLE has no form in SQLAlchemy Core; both names are our own.
        connection.exec_driver_sql(
            f"ALTER TABLE {points.name} ADD COLUMN {column} "
            f"REFERENCES {validations.name} (validation_id)"
        )
        one_validation_point.create(connection)
    connection.execute(schema.update().values(version=SCHEMA_VERSION))


def tables_of(version: int) -> set[str]:
    """Names of the tables that a store of this version has."""
    names = {table.name for table in schema.metadata.sorted_tables}
    return names - {validations.name} if version < 2 else names
