"""Studies of another machine: bundles that a command is given in place of a name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.terminal.context import Context
from leadline.terminal.talk import talk

if TYPE_CHECKING:
    from leadline.store import Store, Stored

SUFFIX = ".leadline"


def import_file(path: Path, store: Store) -> str:
    """Import a bundle or a whole store, say what is new, and return the id of its last study."""
    from leadline.store.bundle import import_all, open_bundle  # noqa: PLC0415 - it loads SQLAlchemy

    last = ""
    with open_bundle(path) as source:
        for last, new in import_all(source, store):
            found: Stored[Any, Any] = source.find(last)
            said = "imported" if new else "stored already:"
            talk(f"{said} {found.kind} {last[:8]} of {found.start.system}, from {path}")
    return last


def imported(own: Context, ref: str) -> str:
    """Return a reference as it is; import a bundle, and return the id of its study."""
    path = Path(ref)
    if path.suffix != SUFFIX or not path.is_file():
        return ref
    with own.open_store() as store:
        return import_file(path, store)
