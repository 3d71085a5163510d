"""Keeps studies of every kind; the only package that knows SQL.

What opens a store is resolved on first use: SQLAlchemy takes longer to load than most commands
take, and ranks of a cluster keep nothing.
"""

from typing import TYPE_CHECKING

from leadline.lazy_import import names_from
from leadline.store._base import Keeper, Store, Stored, StoredItem
from leadline.store.errors import NotStored, StoreError, UpdateFinishedError

if TYPE_CHECKING:
    from leadline.store._open import default_path, open_store
    from leadline.store.export import FORMATS, export_rows, rows

_HOMES = {
    "FORMATS": "leadline.store.export",
    "default_path": "leadline.store._open",
    "export_rows": "leadline.store.export",
    "open_store": "leadline.store._open",
    "rows": "leadline.store.export",
}

__all__ = [
    "FORMATS",
    "Keeper",
    "NotStored",
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


__getattr__ = names_from(__name__, _HOMES)
