"""The small files of /proc and /sys, read without ever raising: None when they do not tell."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")  # the `def f[T]` spelling needs Python 3.12

SYS = Path("/sys")
PROC = Path("/proc")


def text(path: Path) -> str | None:
    """Return the file's text without the white space around it; None when it is empty."""
    return attempt(lambda: path.read_text(encoding="utf-8", errors="replace").strip() or None)


def number(path: Path) -> int | None:
    """Return a whole number of 0 or more; anything else is not known."""
    found = text(path)
    return int(found) if found and found.isdigit() else None


def flag(path: Path) -> bool | None:
    """Return whether the number in the file is not 0."""
    found = number(path)
    return None if found is None else found != 0


def chosen(path: Path) -> str | None:
    """Return the chosen word of `none [mq-deadline] kyber`."""
    found = text(path)
    match = re.search(r"\[([^\]]+)\]", found or "")
    return match[1] if match else found


def fields(path: Path) -> dict[str, str]:
    """Read `name : value` lines; the first of a name counts."""
    found: dict[str, str] = {}
    for line in (text(path) or "").splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found


def entries(path: Path) -> int | None:
    """Return how many entries a directory has."""
    return attempt(lambda: sum(1 for _ in path.iterdir()))


def attempt(read: Callable[[], T]) -> T | None:
    """Return what `read` returns, None when it met an error of the system or a bad value."""
    try:
        return read()
    except (OSError, ValueError):
        return None
