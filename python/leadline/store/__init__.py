"""Keeps studies of every kind; the only package that knows SQL.

What opens a store is resolved on first use: SQLAlchemy takes longer to load than most commands
take, and ranks of a cluster keep nothing.
"""

import importlib
from typing import TYPE_CHECKING, Any

from leadline.store._base import Keeper, Store, Stored, StoredItem
from leadline.store.errors import StoreError, UpdateFinishedError

if TYPE_CHECKING:
    from leadline.store._open import default_path, open_store
    from leadline.store.export import FORMATS, export_rows, rows

_HOMES = {
    "FORMATS": "export",
    "default_path": "_open",
    "export_rows": "export",
    "open_store": "_open",
    "rows": "export",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"leadline.store.{_HOMES[name]}"), name)
