"""What every disk brings (AD98 Fig. 3): incremental bandwidth against the ideal, and what stops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.balance import RESOURCE_WORDS, Scaling, ScalingStep
from leadline.record.wording import join_words, say_count, say_rate
from leadline.report.drawing.axes import NUMBER_EXPR, on_field
from leadline.report.drawing.layers import WIDE_PX, AnyChart, finish, tooltips, values
from leadline.report.streaming.groups import disk_offset, group_x, under_axis, zero_line
from leadline.report.streaming.order import group_name, groups_of
from leadline.report.streaming.words import NOT_FOUND
from leadline.studies.streaming.scaling import fell_short

_HEIGHT_PX = 320
_LETTER_PX, _LABEL_GAP_PX = 7.2, 7
_SUBTITLE = [
    "Each bar: what one more disk adds to the phase's disk bandwidth, with its 95 % interval.",
    "Line: what that disk gives by itself. A bar that falls short names what stopped it.",
]


def scaling_chart(scaling: Sequence[Scaling]) -> alt.LayerChart | None:
    """Return the chart; None where nothing ran on more than one number of disks."""
    if not any(len(each.steps) > 1 for each in scaling):
        return None
    rows = [_row(step) for each in scaling for step in each.steps]
    groups = groups_of((each.kernel, each.phase) for each in scaling)
    disks = sorted({int(row["disks"]) for row in rows})
    x, offset = group_x(groups), disk_offset(disks)
    least, most = _domain(rows)
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[least, most], nice=False),
        axis=alt.Axis(title="MB/s that each disk brings", labelExpr=NUMBER_EXPR, tickCount=6),
    )
    px = _HEIGHT_PX / (most - least)
    thick = 2.2 / px
    ideal = [row | {"line": row["ideal"] - thick, "line2": row["ideal"]} for row in rows]
    short = [row for row in rows if row["limit"]]
    known = [row for row in rows if row["low"] is not None]
    layers: list[AnyChart] = [
        _bars([row for row in rows if not row["limit"]], x, offset, y, "gain"),
        _bars(short, x, offset, y, "short-gain"),
        alt.Chart(values(known))
        .mark_rule(style="whisker", clip=True)
        .encode(x=x, xOffset=offset, y=on_field(y, "low"), y2=alt.Y2("high:Q")),
        alt.Chart(values(ideal))
        .mark_bar(style="model-bar")
        .encode(x=x, xOffset=offset, y=on_field(y, "line"), y2=alt.Y2("line2:Q")),
        *_limits(short, px, x, offset, y),
        zero_line(),
        *under_axis(groups, disks, _HEIGHT_PX),
    ]
    return finish(layers, _title(scaling), _SUBTITLE, (WIDE_PX, _HEIGHT_PX))


def _row(step: ScalingStep) -> dict[str, Any]:
    gained = step.gained_mb_s
    limit = RESOURCE_WORDS[step.limited_by] if step.limited_by else ""
    if not limit and fell_short(step):
        limit = NOT_FOUND
    high = gained.value if gained.high is None else gained.high
    return {
        "group": group_name(step.kernel, step.phase),
        "disks": step.disks,
        "y": gained.value,
        "low": gained.low,
        "high": gained.high,
        "top": max(0.0, gained.value, high),
        "ideal": step.ideal_gain_mb_s,
        "limit": limit,
        "at": say_count(step.disks, "disk"),
        "gained": _say_gain(step),
        "total": say_rate(step.achieved_mb_s),
        "of": say_rate(step.ideal_mb_s),
        "why": "; ".join(step.evidence) or (f"{limit} stops it" if limit else "the disk itself"),
    }


def _say_gain(step: ScalingStep) -> str:
    gained = step.gained_mb_s
    sign = "\N{MINUS SIGN}" if gained.value < 0 else "+"
    return f"{sign}{abs(gained.value):,.3g} MB/s of {step.ideal_gain_mb_s:,.3g}"


def _bars(
    rows: Sequence[dict[str, Any]], x: alt.X, offset: alt.XOffset, y: alt.Y, style: str
) -> AnyChart:
    tips = tooltips(
        group="Phase",
        at="On",
        gained="This disk brought",
        total="All together (95 %)",
        of="Ideal",
        why="Limit",
    )
    chart: AnyChart = (
        alt.Chart(values(rows)).mark_bar(style=style).encode(x=x, xOffset=offset, y=y, tooltip=tips)
    )
    return chart


def _limits(
    rows: Sequence[dict[str, Any]], px: float, x: alt.X, offset: alt.XOffset, y: alt.Y
) -> list[AnyChart]:
    """Name what stopped a disk, upright over its bar; inside where the ideal's line is too near."""
    inside: list[dict[str, Any]] = []
    above: list[dict[str, Any]] = []
    for row in rows:
        long_px = _LETTER_PX * len(row["limit"]) + 2 * _LABEL_GAP_PX
        free = px * (row["ideal"] - row["top"]) >= long_px or row["top"] > row["ideal"]
        fits = px * min(row["y"], row["y"] if row["low"] is None else row["low"]) >= long_px
        if fits and not free:
            inside.append(row | {"at_y": 0.0})
        else:
            above.append(row | {"at_y": row["top"] if free else max(row["top"], row["ideal"])})
    return [
        alt.Chart(values(found))
        .mark_text(style=style, angle=270, align="left", baseline="middle", dx=_LABEL_GAP_PX)
        .encode(x=x, xOffset=offset, y=on_field(y, "at_y"), text=alt.Text("limit:N"))
        for found, style in ((above, "short-label"), (inside, "bar-label"))
        if found
    ]


def _domain(rows: Sequence[dict[str, Any]]) -> tuple[float, float]:
    """From zero, or from the deepest loss, to above the ideal."""
    most = max(max(float(row["ideal"]), float(row["top"])) for row in rows)
    least = min(0.0, *(min(row["y"], row["low"] or 0.0) for row in rows))
    room = most - least
    return (least - 0.02 * room if least < 0 else 0.0), most + 0.05 * room


def _title(scaling: Sequence[Scaling]) -> str:
    """Say where adding disks stops paying, first of all."""
    stopped: dict[tuple[int, str], list[str]] = {}
    for each in scaling:
        if each.stops_at is not None:
            limit = RESOURCE_WORDS[each.limited_by] if each.limited_by else f"{NOT_FOUND} why"
            key = (each.stops_at, limit)
            stopped.setdefault(key, []).append(f"{each.kernel} {each.phase}")
    if not stopped:
        return "Every disk pays"
    if len(stopped) == 1:
        ((disks, limit),) = stopped
        names = next(iter(stopped.values()))
        what = "every phase" if len(names) == len(scaling) else _kernels(names, scaling)
        return f"Disk {disks} falls short in {what}: {limit}"
    return "Where more disks stop paying"


def _kernels(names: Sequence[str], scaling: Sequence[Scaling]) -> str:
    """Write `sort` where all its phases are meant, else `sort read`."""
    said: list[str] = []
    for kernel in dict.fromkeys(each.kernel for each in scaling):
        own = [f"{each.kernel} {each.phase}" for each in scaling if each.kernel == kernel]
        here = [name for name in own if name in names]
        said += [kernel] if here == own and len(own) > 1 else here
    return join_words(said) if len(said) < 4 else f"{len(names)} phases"
