"""Experiments of the workbench: their samples and trials are rows of their own.

A trial is a row, written once; an experiment's document is put together from them when it is read.
So a killed run loses at most the trial in flight, and a long experiment writes little at each step.
"""

from __future__ import annotations

from sqlalchemy import (
    CheckConstraint,
    Column,
    ForeignKey,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
)

metadata = MetaData()

experiments = Table(
    "leadline_experiments",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column("experiment_id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False, index=True),
    Column("started_at", Text, nullable=False),
    Column("status", Text, nullable=False),
    Column("start_document", Text, nullable=False),
    Column("answer_document", Text),
    CheckConstraint("status IN ('running', 'stopped', 'done')", name="experiment_status_known"),
)

samples = Table(
    "leadline_samples",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column(
        "experiment_id", Text, ForeignKey(experiments.c.experiment_id), nullable=False, index=True
    ),
    Column("sample", Text, nullable=False),
    Column("prior_document", Text),
    Column("peak_document", Text),
    UniqueConstraint("experiment_id", "sample", name="one_row_per_sample"),
)

trials = Table(
    "leadline_trials",
    metadata,
    Column("sequence", Integer, primary_key=True, autoincrement=True),
    Column(
        "experiment_id", Text, ForeignKey(experiments.c.experiment_id), nullable=False, index=True
    ),
    Column("sample", Text, nullable=False),
    Column("position", Integer, nullable=False),
    Column("document", Text, nullable=False),
    UniqueConstraint("experiment_id", "sample", "position", name="one_trial_per_position"),
)
