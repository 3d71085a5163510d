"""Charts of one row a system: bars with their intervals and numbers, named above their marks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import altair as alt

from leadline.charts.axes import on_field
from leadline.charts.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.record import Interval

Row = dict[str, Any]
ROW_PX = 44
"""Height of one system or workload in a chart of rows, its name above its mark: beside it, long
names would leave a narrow page no room for the marks."""
_LABEL_ROOM = 1.75
"""How far the axis of a bar chart reaches beyond the longest bar, for the number beside it."""


def bar(name: str, number: Interval, said: str) -> Row:
    """Return the row of one system: its name, its number, and the number in words."""
    return {"name": name, "x": number.value, "low": number.low, "high": number.high, "said": said}


def headline(rows: Sequence[Row], format_best: Callable[[Row], str], subject: str) -> str:
    """Name the best system only when its interval lies above those of all the others."""
    best, *others = sorted(rows, key=lambda row: -float(row["x"]))
    if not others:
        return f"{subject}: {best['name']}"
    highs = [row["high"] for row in others]
    if best["low"] is None or not all(high is not None and high < best["low"] for high in highs):
        return f"{subject}: the best cannot be told"
    return format_best(best)


def bars(
    rows: Sequence[Row], axis: alt.Axis, title: str, subtitle: str, *, log: bool = False
) -> alt.LayerChart:
    """Horizontal bars from zero, the longest first, each with its interval and its number.

    Args:
        rows: as `bar` makes them; names must differ.
        axis: of the numbers.
        title: the chart's.
        subtitle: the chart's.
        log: a logarithmic scale, which has no zero to begin a bar at: points instead.

    """
    ordered = sorted(rows, key=lambda row: -float(row["x"]))
    reach = [max(float(row["x"]), float(row["high"] or 0.0)) for row in ordered]
    x = alt.X("x:Q", scale=_log_scale(ordered, reach) if log else _scale(reach), axis=axis)
    y = alt.Y("name:N", sort=[row["name"] for row in ordered], axis=None)
    tips = tooltips(name="System", said="95% CI")
    placed = [row | {"end": end} for row, end in zip(ordered, reach, strict=True)]
    chart = alt.Chart(values(placed))
    banded = [row for row in placed if row["low"] is not None and row["high"] is not None]
    mark = (
        chart.mark_point(style="mean", size=70)
        if log
        else chart.mark_bar(style="curve", opacity=0.45, height=12)
    )
    layers: list[AnyChart] = [
        mark.encode(x=x, y=y, tooltip=tips),
        row_names(placed, "name", y),
        alt.Chart(values(banded))
        .mark_rule(style="interval", clip=True)
        .encode(x=on_field(x, "low"), x2=alt.X2("high:Q"), y=y),
        chart.mark_text(style="region-label", align="left", dx=8, fontSize=12).encode(
            x=on_field(x, "end"), y=y, text=alt.Text("said:N")
        ),
    ]
    return finish(layers, title, subtitle, (NARROW_PX, ROW_PX * max(2, len(rows))))


def _scale(reach: Sequence[float]) -> alt.Scale:
    return alt.Scale(domain=[0, max(reach) * _LABEL_ROOM], nice=False)


def _log_scale(rows: Sequence[Row], reach: Sequence[float]) -> alt.Scale:
    """Leave the same room for numbers as beside bars, which is a power on a log scale."""
    least = min(float(row["low"] or row["x"]) for row in rows) / 1.3
    return alt.Scale(
        type="log", domain=[least, least * (max(reach) / least) ** _LABEL_ROOM], nice=False
    )


def row_names(rows: Sequence[Row], field: str, y: alt.Y) -> AnyChart:
    """Write each row's name above its mark, at the left edge."""
    text = alt.Chart(values(rows)).mark_text(
        style="region-label", align="left", baseline="bottom", dy=-9, fontSize=12, fontWeight=400
    )
    named: AnyChart = text.encode(x=alt.XValue(0), y=y, text=alt.Text(f"{field}:N"))
    return named
