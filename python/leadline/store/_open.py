"""Which store: the one named, else LEADLINE_STORE, else a file in the user's data folder."""

from __future__ import annotations

import os
from pathlib import Path

from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from leadline.store._base import Store
from leadline.store._place import masked
from leadline.store._sql import SqlStore
from leadline.store.errors import StoreError

VARIABLE = "LEADLINE_STORE"


def default_path() -> Path:
    """Return the store's file when nobody names one (XDG Base Directory)."""
    # The specification: a relative XDG_DATA_HOME is invalid and ignored.
    data = os.environ.get("XDG_DATA_HOME", "")
    home = Path(data) if Path(data).is_absolute() else Path.home() / ".local" / "share"
    return home / "leadline" / "leadline.sqlite"


def open_store(url: str | None = None, *, reading: bool = False) -> Store:
    """Open a store, making it when it is not there.

    Args:
        url: a path, or a URL such as `sqlite:///file` or `postgresql+psycopg://host/name`.
        reading: only to look: where there is none it holds nothing, and none is made; one that
            cannot be written, as on a read-only file system, can be read.

    Raises:
        StoreError: it cannot be opened, is not a Leadline store, is damaged, or is newer than
            this Leadline.

    """
    named = url if url is not None else os.environ.get(VARIABLE) or None
    if named is None:
        path = default_path()
        if not reading:
            _make_folder(path.parent)
        return _open_file(path, reading=reading)
    if not named.strip():
        raise StoreError("the store's name is empty; give --store FILE or a database URL")
    if "://" not in named:
        return _open_file(Path(named).expanduser(), reading=reading)
    try:
        parsed = make_url(named)
    except (ArgumentError, ValueError) as error:  # the latter of a port
        raise StoreError(
            f"{masked(named)!r} is not a database URL: {masked(str(error))}"
        ) from error
    if "@" in (parsed.host or ""):
        raise StoreError(
            f"{masked(named)!r} has two @: write the one in the name or password as %40, and other "
            "signs of an address there likewise (/ as %2F, : as %3A)"
        )
    if parsed.get_backend_name() == "sqlite" and parsed.database not in (None, "", ":memory:"):
        return _open_file(Path(str(parsed.database)), reading=reading)
    return SqlStore(parsed, reading=reading)


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"the store's folder {folder} cannot be made ({error.strerror}); name a store of your "
            "own with --store FILE"
        ) from error


def _open_file(path: Path, *, reading: bool) -> Store:
    if path.is_dir():
        raise StoreError(
            f"{path} is a directory; name a file in it: --store {path}/leadline.sqlite"
        )
    if not path.parent.is_dir() and not (reading and path == default_path()):
        folder = masked(str(path.parent))
        raise StoreError(f"{folder} does not exist; make it first: mkdir -p {folder}")
    return SqlStore(make_url("sqlite://").set(database=str(path.absolute())), reading=reading)
