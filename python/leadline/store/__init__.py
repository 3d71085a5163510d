"""Keeps surveys, validations and their points; the only package that knows SQL."""

from leadline.store._base import (
    CacheStudySummary,
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
