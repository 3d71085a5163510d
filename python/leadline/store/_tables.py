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

SCHEMA_VERSION = 3
"""1: surveys and points. 2: validations, and points that belong to one. 3: studies of file caches,
the same."""

metadata = MetaData()

schema = Table(
    "leadline_schema",
    metadata,
    Column("version", Integer, nullable=False),
)

surveys = Table(
    "leadline_surveys",
    metadata,
    # Times of different machines' clocks do not order surveys; this does.
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("survey_id", Text, nullable=False, unique=True),
    Column("system", Text, nullable=False, index=True),
    Column("target", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("wall_s", Float),
    Column("start_document", Text, nullable=False),
    Column("survey_document", Text),
    CheckConstraint("status IN ('running', 'stopped', 'done')", name="status_known"),
)

validations = Table(
    "leadline_validations",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("validation_id", Text, nullable=False, unique=True),
    Column("survey_id", Text, ForeignKey(surveys.c.survey_id), nullable=False, index=True),
    Column("started_at", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("start_document", Text, nullable=False),
    Column("validation_document", Text),
    CheckConstraint("status IN ('running', 'stopped', 'done')", name="validation_status_known"),
)

studies = Table(
    "leadline_studies",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("study_id", Text, nullable=False, unique=True),
    Column("system", Text, nullable=False, index=True),
    Column("target", Text, nullable=False),
    Column("started_at", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("start_document", Text, nullable=False),
    Column("study_document", Text),
    CheckConstraint("status IN ('running', 'stopped', 'done')", name="study_status_known"),
)

points = Table(
    "leadline_points",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("point_id", Text, nullable=False, unique=True),
    Column("survey_id", Text, ForeignKey(surveys.c.survey_id), index=True),
    Column("validation_id", Text, ForeignKey(validations.c.validation_id)),
    Column("study_id", Text, ForeignKey(studies.c.study_id)),
    Column("position", Integer, nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("survey_id", "position", name="one_point_per_position"),
)

one_validation_point = Index(
    "one_point_per_validation_position", points.c.validation_id, points.c.position, unique=True
)

one_study_point = Index(
    "one_point_per_study_position", points.c.study_id, points.c.position, unique=True
)
