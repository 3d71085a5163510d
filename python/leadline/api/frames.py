"""What the Python interface says in tables, and what it takes as words."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

from leadline.errors import LeadlineError
from leadline.record import Interval
from leadline.units import parse_bytes, parse_seconds


class FramesMissing(LeadlineError):
    """pandas is not installed."""


def seconds_of(value: str | float) -> float:
    """Return seconds, given as a number or as `"5min"`."""
    return parse_seconds(value) if isinstance(value, str) else float(value)


def bytes_of(value: str | int) -> int:
    """Return bytes, given as a number or as `"1GiB"`."""
    return parse_bytes(value) if isinstance(value, str) else value


def columns(name: str, interval: Interval) -> dict[str, float | None]:
    """Return an interval as three columns of a frame."""
    return {name: interval.value, f"{name}_low": interval.low, f"{name}_high": interval.high}


def frame(rows: list[dict[str, Any]]) -> Any:
    """Return rows as a pandas frame.

    Raises:
        FramesMissing: pandas is not installed.

    """
    try:
        import pandas as pd  # noqa: PLC0415 - optional
    except ImportError:
        raise FramesMissing(
            "a frame needs pandas, which is not installed: pip install pandas"
        ) from None
    return pd.DataFrame(rows)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an HTML table; all is text."""
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
