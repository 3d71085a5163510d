"""Keeps surveys, validations, studies and experiments; the only package that knows SQL."""

from leadline.store._base import (
    CacheStudySummary,
    ExperimentSummary,
    GrowingSummary,
    Store,
    SurveySummary,
    ValidationSummary,
)
from leadline.store._open import default_path, open_store
from leadline.store.errors import StoreError, UpdateFinishedError
from leadline.store.export import FORMATS, export_points, export_rows, rows

__all__ = [
    "FORMATS",
    "CacheStudySummary",
    "ExperimentSummary",
    "GrowingSummary",
    "Store",
    "StoreError",
    "SurveySummary",
    "UpdateFinishedError",
    "ValidationSummary",
    "default_path",
    "export_points",
    "export_rows",
    "open_store",
    "rows",
]
