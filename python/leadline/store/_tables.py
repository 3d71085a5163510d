"""The tables: documents as JSON text, with the columns that are searched beside them."""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

SCHEMA_VERSION = 1

metadata = MetaData()

schema = Table("leadline_schema", metadata, Column("version", Integer, nullable=False))

studies = Table(
    "leadline_studies",
    metadata,
    # Times of different machines' clocks do not order studies; this does.
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("id", Text, nullable=False, unique=True),
    Column("kind", Text, nullable=False),
    Column("name", Text, nullable=False, index=True),
    Column("target", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("parent", Text, ForeignKey("leadline_studies.id"), index=True),
    Column("status", Text, nullable=False),
    Column("wall_s", Float),
    Column("start", Text, nullable=False),
    Column("answer", Text),
    CheckConstraint("status IN ('running', 'stopped', 'done')", name="status_known"),
)

items = Table(
    "leadline_items",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("study", Text, ForeignKey(studies.c.id), nullable=False),
    Column("grp", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("id", Text, unique=True),
    Column("document", Text, nullable=False),
    UniqueConstraint("study", "grp", "position", name="one_item_per_position"),
)

Index("items_in_order", items.c.study, items.c.sequence)
