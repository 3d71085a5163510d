"""One run against the fastest it could have been: each phase and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.streaming import StreamStudy
from leadline.report.drawing.axes import NUMBER_EXPR, on_field
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.streaming.bound_rows import bound_rows
from leadline.report.streaming.groups import across, across_end, group_x, under_axis, zero_line
from leadline.report.streaming.order import groups_of
from leadline.units import say_percent

_HEIGHT_PX = 240


def bound_chart(study: StreamStudy) -> alt.LayerChart | None:
    """Return the chart of the last run of each kernel; None without runs."""
    rows = bound_rows(study)
    if not rows:
        return None
    groups = groups_of((row["kernel"], row["phase"]) for row in rows)
    most = max(max(row["y"], row["bound"] or 0.0) for row in rows)
    x = group_x(groups)
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, 1.14 * most], nice=False),
        axis=alt.Axis(title="MB/s, read and written", labelExpr=NUMBER_EXPR, tickCount=5),
    )
    tips = tooltips(group="Phase", achieved="Achieved", said="Could be (95 %)", limit="Bounded by")
    layers: list[AnyChart] = [
        alt.Chart(values(rows)).mark_bar(style="gain", opacity=0.85).encode(x=x, y=y, tooltip=tips),
        alt.Chart(values(rows))
        .mark_text(style="bar-label", baseline="top", dy=6)
        .encode(x=x, y=y, text=alt.Text("share:N")),
        *_bounds([row for row in rows if row["bound"] is not None], x, y),
        zero_line(),
        *under_axis(groups, [1], _HEIGHT_PX),
    ]
    return finish(layers, _title(rows), _SUBTITLE, (NARROW_PX, _HEIGHT_PX))


_SUBTITLE = "Bars: achieved. Line: the fastest that the named resource allows."


def _bounds(rows: Sequence[dict[str, Any]], x: alt.X, y: alt.Y) -> list[AnyChart]:
    top = [row | {"over": max(row["y"], row["bound"])} for row in rows]
    return [
        alt.Chart(values(rows))
        .mark_rule(style="model")
        .encode(x=across(x), x2=across_end(), y=on_field(y, "bound")),
        alt.Chart(values(top))
        .mark_text(style="region-label", baseline="bottom", dy=-5, fontSize=12)
        .encode(x=x, y=on_field(y, "over"), text=alt.Text("limit:N")),
    ]


def _title(rows: Sequence[dict[str, Any]]) -> str:
    known = [row for row in rows if row["bound"]]
    if not known:
        return "What every phase achieved"
    worst = min(known, key=lambda row: float(row["y"]) / float(row["bound"]))
    share = worst["y"] / worst["bound"]
    if worst["passed"]:
        return "Faster than what the parts gave when they were measured"
    return f"{say_percent(share)} of what is possible or more; least in {worst['group']}"
