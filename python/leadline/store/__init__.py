"""Keeps studies of every kind; the only package that knows SQL."""

from leadline.store._base import Keeper, Store, Stored, StoredItem
from leadline.store._open import default_path, open_store
from leadline.store.errors import StoreError, UpdateFinishedError
from leadline.store.export import FORMATS, export_rows, rows

__all__ = [
    "FORMATS",
    "Keeper",
    "Store",
    "StoreError",
    "Stored",
    "StoredItem",
    "UpdateFinishedError",
    "default_path",
    "export_rows",
    "open_store",
    "rows",
]
