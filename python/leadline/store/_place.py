"""Where a store is: its address without secrets, and whether it can be written there."""

from __future__ import annotations

import os
import re
from pathlib import Path

from sqlalchemy import URL

from leadline.store.errors import StoreError

_HIDDEN = "***"
_USER = re.compile(r":/{1,2}[^:@/\s]*:")
"""`//user:`, before the secret of an address."""
_VALUE = re.compile(r"(?<!\w)(\w++)(\s*+(?:=|%3[dD]))[^&\s;,'\"]+")
"""A name and its value, wherever they stand. What was looked at is never looked at again: a long
text costs no more than its length."""
_SECRETS = ("pass", "pwd", "secret", "token")


def masked(text: str) -> str:
    """Return an address, or words about one, without the passwords in it."""
    return _VALUE.sub(_without_value, re.sub(r"\S+", _without_password, text))


def _without_password(word: re.Match[str]) -> str:
    """Hide `secret` of `//user:secret@`, signs that should have been escaped included."""
    text = word[0]
    until = text.rfind("@")
    user = _USER.search(text, 0, until) if until > 0 else None
    return text if user is None else f"{text[: user.end()]}{_HIDDEN}{text[until:]}"


def _without_value(found: re.Match[str]) -> str:
    name = found[1].lower()
    return f"{found[1]}{found[2]}{_HIDDEN}" if any(map(name.__contains__, _SECRETS)) else found[0]


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
