"""What every command is given: the store, opened when first needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.store import Store


@dataclass
class Context:
    """Options given before the command's name."""

    store_url: str | None
    debug: bool = False

    def open_store(self) -> Store:
        """Open the store the user chose; it is made when there is none."""
        return self._open(reading=False)

    def read_store(self) -> Store:
        """Open the store the user chose only to look into it."""
        return self._open(reading=True)

    def _open(self, *, reading: bool) -> Store:
        from leadline.store import open_store  # noqa: PLC0415 - SQLAlchemy takes a while to load

        return open_store(self.store_url, reading=reading)
