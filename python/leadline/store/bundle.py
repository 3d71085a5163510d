"""Studies in one file, to be taken to another machine: a store of their own, compressed."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import make_url

from leadline.record.study import StudyStart
from leadline.store._base import Store, Stored
from leadline.store._open import open_store
from leadline.store._sql import SqlStore
from leadline.store.errors import StoreError

_SQLITE = b"SQLite format 3\0"
_BYTES_MAX = 2 << 30
"""Of what a bundle holds; more is no bundle of ours."""


def make_bundle(store: Store, study_id: str) -> bytes:
    """Return a study and those that it is about, as the bytes of a file."""
    with SqlStore(make_url("sqlite://")) as own:
        for each in reversed(list(_lineage(store, study_id))):
            _copy(store, own, each)
        return gzip.compress(own.serialized(), mtime=0)


def open_bundle(path: Path) -> Store:
    """Open a bundle, or the file of a whole store, to be read.

    Raises:
        StoreError: it cannot be read, or is neither.

    """
    try:
        with path.open("rb") as file:
            if file.read(len(_SQLITE)) == _SQLITE:
                return open_store(str(path), reading=True)
        with gzip.open(path) as bundle:
            data = bundle.read(_BYTES_MAX + 1)
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or str(error)
        raise StoreError(
            f"{path} cannot be read as a bundle: {said}; `leadline export ID -o FILE.leadline` "
            "makes one"
        ) from error
    if len(data) > _BYTES_MAX or not data.startswith(_SQLITE):
        raise StoreError(
            f"{path} holds no studies; `leadline export ID -o FILE.leadline` makes a bundle"
        )
    return SqlStore.of_bytes(data, shown=str(path))


def import_all(source: Store, into: Store) -> Iterator[tuple[str, bool]]:
    """Copy every study of a bundle or store; yield each id, and whether it was new."""
    for summary in reversed(source.list()):
        yield summary.study_id, _copy(source, into, summary.study_id)


def _lineage(store: Store, study_id: str) -> Iterator[str]:
    """Yield a study, what it is about, and so on."""
    found: Stored[StudyStart, Any] = store.find(study_id)
    yield study_id
    if found.start.parent is not None:
        yield from _lineage(store, found.start.parent)


def _copy(source: Store, into: Store, study_id: str) -> bool:
    """Copy a study whose parent is there; false where it is stored already.

    Raises:
        StoreError: a document of it cannot be read, which is not spread.

    """
    source.find(study_id)
    source.items(study_id)
    return into.take(*source.rows_of(study_id))
