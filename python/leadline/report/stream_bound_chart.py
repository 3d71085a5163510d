"""One run against the fastest it could have been: each phase and what bounds it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.balance import RESOURCE_WORDS, PhaseBound
from leadline.record.streaming import StreamStudy
from leadline.record.wording import say_percent, say_rate
from leadline.report.axes import NUMBER_EXPR, on_field
from leadline.report.layers import NARROW_PX, AnyChart, finish, values
from leadline.report.stream_groups import (
    across,
    across_end,
    group_name,
    group_x,
    groups_of,
    under_axis,
    zero_line,
)
from leadline.streaming.bounds import bound
from leadline.units import format_rate

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
    tips = [
        alt.Tooltip("group:N", title="Phase"),
        alt.Tooltip("achieved:N", title="Achieved"),
        alt.Tooltip("said:N", title="Could be (95 %)"),
        alt.Tooltip("limit:N", title="Bounded by"),
    ]
    layers: list[AnyChart] = [
        alt.Chart(values(rows)).mark_bar(style="gain").encode(x=x, y=y, tooltip=tips),
        alt.Chart(values(rows))
        .mark_text(style="bar-label", baseline="top", dy=6)
        .encode(x=x, y=y, text="share:N"),
        *_bounds([row for row in rows if row["bound"] is not None], x, y),
        zero_line(),
        *under_axis(groups, [1], _HEIGHT_PX),
    ]
    return finish(layers, _title(rows), _SUBTITLE, (NARROW_PX, _HEIGHT_PX))


_SUBTITLE = "Bars: achieved. Line: the fastest that the named resource allows."


def bound_rows(study: StreamStudy) -> list[dict[str, Any]]:
    """Return each phase of the last run of each kernel, with its bound where it has one."""
    last = {run.options.kernel: run for run in study.runs}
    rows = []
    for run in last.values():
        found = None
        if study.capacities is not None:
            found = bound(run.result, run.options, study.capacities, run.disks)
        bounds = {each.phase: each for each in found.phases} if found else {}
        rows += [
            _row(run.options.kernel, phase.name, phase.mb_s, bounds.get(phase.name))
            for phase in run.result.phases
            if phase.bytes_moved
        ]
    return rows


def _row(kernel: str, phase: str, mb_s: float, limit: PhaseBound | None) -> dict[str, Any]:
    most = limit.mb_s.value if limit else None
    return {
        "group": group_name(kernel, phase),
        "kernel": kernel,
        "phase": phase,
        "y": mb_s,
        "bound": most,
        "achieved": format_rate(mb_s),
        "share": say_percent(mb_s / most) if most else "",
        "said": say_rate(limit.mb_s) if limit else "no capacities were measured",
        "limit": RESOURCE_WORDS[limit.resource] if limit else "",
    }


def _bounds(rows: Sequence[dict[str, Any]], x: alt.X, y: alt.Y) -> list[AnyChart]:
    top = [row | {"over": max(row["y"], row["bound"])} for row in rows]
    return [
        alt.Chart(values(rows))
        .mark_rule(style="model")
        .encode(x=across(x), x2=across_end(), y=on_field(y, "bound")),
        alt.Chart(values(top))
        .mark_text(style="region-label", baseline="bottom", dy=-5, fontSize=12)
        .encode(x=x, y=on_field(y, "over"), text="limit:N"),
    ]


def _title(rows: Sequence[dict[str, Any]]) -> str:
    known = [row for row in rows if row["bound"]]
    if not known:
        return "What every phase achieved"
    worst = min(known, key=lambda row: float(row["y"]) / float(row["bound"]))
    share = worst["y"] / worst["bound"]
    return f"{say_percent(share)} or more of what is possible, in {worst['group']} the least"
