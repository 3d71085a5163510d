"""Where a store is: its address without secrets, and whether it can be written there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sqlalchemy import URL

from leadline.store.errors import StoreError

_HIDDEN = "***"
_IN_AUTHORITY = re.compile(r"(://?[^:@/\s]*:)\S*(?=@)")
"""`//user:secret@`, also a secret with signs that should have been escaped."""
_IN_QUERY = re.compile(
    r"((?:pass\w*|pwd|\w*password\w*|\w*secret\w*|\w*token\w*)\s*(?:=|%3[dD]))[^&\s;,'\"]+",
    re.IGNORECASE,
)
"""`password=secret` and its like, wherever it stands."""


def masked(text: str) -> str:
    """Return an address, or words about one, without the passwords in it."""
    return _IN_QUERY.sub(rf"\1{_HIDDEN}", _IN_AUTHORITY.sub(rf"\1{_HIDDEN}", text))


def is_read_only(file: str) -> bool:
    """Whether a store's file is there and can be read but not written."""
    path = Path(file)
    return path.exists() and not (
        os.access(path, os.W_OK, effective_ids=True)
        and os.access(path.parent, os.W_OK, effective_ids=True)
    )


def as_it_is(url: URL) -> URL:
    """Return the address of a file of SQLite that is read and left as it is.

    On a read-only file system nobody writes, so that no lock is needed; elsewhere somebody else
    may.

    Raises:
        StoreError: what was written last is still beside it, and could not be read from there.

    """
    path = Path(str(url.database))
    options = {"uri": "true", "mode": "ro"}
    if os.statvfs(path).f_flag & os.ST_RDONLY:
        ahead = path.with_name(f"{path.name}-wal")
        if ahead.exists() and ahead.stat().st_size:
            raise StoreError(
                f"{path} was not closed, and its last lines are in {ahead.name}, which cannot be "
                "read on a read-only file system; copy both to a writable one, and name the copy "
                "with --store"
            )
        options["immutable"] = "1"
    return url.set(database=f"file:{_escaped(str(path))}", query=options)


def _escaped(path: str) -> str:
    """Escape what has a meaning in SQLite's file URIs."""
    return path.replace("%", "%25").replace("?", "%3f").replace("#", "%23")
