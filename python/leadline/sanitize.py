"""Text from outside made inert: names, messages and paths that others chose."""

from __future__ import annotations

import csv
import io
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What a cell begins with that a spreadsheet reads as a formula (OWASP, CSV Injection)."""


def printable(text: str) -> str:
    """Replace what would steer a terminal: control characters, turned writing, lone bytes."""
    if text.isprintable():
        return text
    return "".join(sign if _shown(sign) else "?" for sign in text)


def _shown(sign: str) -> bool:
    return sign.isprintable() or sign == "\n" or unicodedata.category(sign) == "Zs"


def cell(value: Any) -> Any:
    """Keep a spreadsheet from reading text as a formula."""
    if isinstance(value, str) and value.startswith(_FORMULA):
        return f"'{value}"
    return value


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows, in the columns of the first, as CSV that no spreadsheet reads a formula in.

    Lines end as RFC 4180 says, with a carriage return and a line feed.
    """
    text = io.StringIO(newline="")
    if rows:
        writer = csv.writer(text)
        writer.writerow(map(cell, rows[0]))
        writer.writerows(_cells(row, rows[0]) for row in rows)
    return text.getvalue()


def _cells(row: Mapping[str, Any], heads: Iterable[str]) -> list[Any]:
    return [cell(row.get(head)) for head in heads]
