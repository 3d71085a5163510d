"""What every command is given: the store, opened when first needed."""

from __future__ import annotations

from dataclasses import dataclass

from leadline.store import Store, open_store


@dataclass
class Context:
    """Options given before the command's name."""

    store_url: str | None
    debug: bool = False

    def open_store(self) -> Store:
        """Open the store the user chose."""
        return open_store(self.store_url)
