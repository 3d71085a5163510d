"""Studies in one file, to be taken to another machine: a store of their own, compressed."""

from __future__ import annotations

import base64
import binascii
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
_GZIP = b"\x1f\x8b"
_BEGIN, _END = b"-----BEGIN LEADLINE BUNDLE-----", b"-----END LEADLINE BUNDLE-----"
_BYTES_MAX = 2 << 30
"""Of what a bundle holds; more is no bundle of ours."""


def make_bundle(store: Store, study_id: str) -> bytes:
    """Return a study and those that it is about, as the bytes of a file."""
    with SqlStore(make_url("sqlite://")) as own:
        for each in reversed(list(_lineage(store, study_id))):
            _copy(store, own, each)
        return gzip.compress(own.serialized(), mtime=0)


def to_text(bundle: bytes) -> bytes:
    """Return a bundle as lines that survive a log."""
    return b"\n".join((_BEGIN, base64.encodebytes(bundle).rstrip(b"\n"), _END, b""))


def _of_text(text: bytes) -> bytes:
    """Return the last bundle among the lines of a log, whose lines may have words before them.

    Raises:
        EOFError: the log was cut.
        OSError: a line of it is damaged.

    """
    _, _, after = text.rpartition(_BEGIN)
    held, end, _ = after.partition(_END)
    if not end:
        raise EOFError("the log ends within the bundle")
    whole, _, _ = held.rpartition(b"\n")  # behind it stand the words before the last line
    lines = [line.split()[-1] for line in whole.splitlines() if line.strip()]
    try:
        return gzip.decompress(base64.b64decode(b"".join(lines), validate=True))
    except binascii.Error as error:
        raise OSError(f"a line of the log is damaged ({error})") from error


def open_bundle(path: Path) -> Store:
    """Open a bundle, a log with one in it, or the file of a whole store, to be read.

    Raises:
        StoreError: it cannot be read, or is neither.

    """
    try:
        with path.open("rb") as file:
            first = file.read(len(_SQLITE))
            if first == _SQLITE:
                return open_store(str(path), reading=True)
            text = b"" if first.startswith(_GZIP) else first + file.read(_BYTES_MAX)
        if _BEGIN in text:
            data = _of_text(text)
        else:
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
