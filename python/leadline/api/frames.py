"""What the Python interface says in tables, and what it takes as words."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any, TypeVar

from leadline.errors import LeadlineError
from leadline.fio.words import read_alone
from leadline.machine.build import format_missing
from leadline.record import Interval, Workload
from leadline.units import parse_bytes, parse_seconds

Read = TypeVar("Read")


class FramesMissing(LeadlineError):
    """pandas is not installed."""


def seconds_of(value: str | float) -> float:
    """Return seconds, given as a number or as `"5min"`."""
    return parse_seconds(value) if isinstance(value, str) else float(value)


def bytes_of(value: str | int) -> int:
    """Return bytes, given as a number or as `"1GiB"`."""
    return parse_bytes(value) if isinstance(value, str) else value


def maybe(read: Callable[[Any], Read], value: Any) -> Read | None:
    """Return what is read of a value; None of None."""
    return None if value is None else read(value)


def workload_of(value: Workload | str) -> Workload:
    """Return a workload, given as such or as `size_mean=4KiB,…`, fio's words too.

    Raises:
        WorkloadError: it cannot be read, or says how storage is reached: `direct=1` is an argument.

    """
    return read_alone(value).workload if isinstance(value, str) else value


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
            "a frame needs pandas, which is not installed: pip install 'leadline[frames]'"
        ) from None
    return pd.DataFrame(rows)


class ChartsMissing(LeadlineError):
    """Altair is not installed."""


class NoChart(LeadlineError):
    """There is no such chart of this."""

    exit_code = 2


def chosen(draw: Callable[[], dict[str, Any]], name: str | None) -> Any:
    """Return one of the charts that `draw` makes: the first, or the one of this name.

    Raises:
        ChartsMissing: Altair is not installed.
        NoChart: none of this name, or nothing to draw.

    """
    try:
        charts = draw()
    except ModuleNotFoundError as error:
        raise ChartsMissing(format_missing(error.name) or str(error)) from error
    if not charts:
        raise NoChart("nothing was measured that can be drawn")
    if name is None:
        return next(iter(charts.values()))
    if name not in charts:
        raise NoChart(f"there is no chart {name!r}; there are {', '.join(charts)}")
    return charts[name]


def table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return rows as an HTML table; all is text."""
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{top}</tr></thead><tbody>{body}</tbody></table>"
