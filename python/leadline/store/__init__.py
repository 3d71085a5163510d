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
from leadline.store.export import FORMATS, export_points, rows

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
    "open_store",
    "rows",
]
