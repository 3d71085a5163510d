"""Charts of streaming studies: a run against its bound, ratios, disk scaling (AD98)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.charts.axes import NUMBER_EXPR, on_field
from leadline.charts.layers import NARROW_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.record.balance import RESOURCE_WORDS, Bus, Ratio, Scaling, ScalingStep
from leadline.record.streaming import StreamStudy
from leadline.record.wording import format_count, format_number, format_rate_ci, join_words
from leadline.studies.streaming.balance import is_sublinear
from leadline.studies.streaming.text import (
    BUS_WORDS,
    NOT_FOUND,
    NOT_HERE,
    Group,
    bound_rows,
    format_ratio,
    group_name,
    groups_of,
)
from leadline.units import format_percent

# One run against the fastest it could have been: each phase and what bounds it.

# What charts of kernels share: a group of marks for each phase, one mark for each number of disks.
#
# Under the axis stand the numbers of disks, the phases, and the kernels, so that no chart needs a
# legend for them. Everything is placed by bands, not by pixels: a page makes charts as wide as it
# is.

DISK_NUMBERS_MAX = 6
"""More numbers of disks than these would run into each other on a narrow page."""


_DISKS_ROW_PX, _PHASE_ROW_PX, _KERNEL_ROW_PX = 11, 20, 42


def group_x(groups: Sequence[Group]) -> alt.X:
    """Return the axis of groups; its labels are the phases."""
    axis = alt.Axis(
        title=None,
        labelExpr="slice(datum.label, lastindexof(datum.label, ' ') + 1)",
        labelPadding=_PHASE_ROW_PX,
        labelAlign="center",
        labelBaseline="top",
        labelAngle=0,
        labelOverlap=False,
        ticks=False,
        domain=False,
    )
    names = [group_name(*group) for group in groups]
    scale = alt.Scale(type="band", domain=names, paddingInner=0.22, paddingOuter=0.11)
    return alt.X("group:N", sort=names, scale=scale, axis=axis)


def disk_offset(disks: Sequence[int]) -> alt.XOffset:
    """Return the place of a number of disks within its group."""
    return alt.XOffset("disks:O", scale=alt.Scale(domain=list(disks), paddingInner=0.16))


def across(x: alt.X) -> alt.X:
    """Return the beginning of a line across a whole group; `across_end` is its end."""
    begin: alt.X = x.bandPosition(0)
    return begin


def across_end() -> alt.X2:
    """Return where a line across a whole group ends."""
    return alt.X2("group:N", bandPosition=1)


def under_axis(groups: Sequence[Group], disks: Sequence[int], height_px: int) -> list[AnyChart]:
    """Write the numbers of disks and the kernels in rows of their own below the axis."""
    layers = _kernel_row(groups, height_px)
    if len(disks) > 1:
        layers += _disks_row(groups, disks, height_px)
    return layers


def zero_line() -> AnyChart:
    """Draw the line that bars stand on; losses hang from it."""
    line: AnyChart = alt.Chart(values([{"y": 0}])).mark_rule(style="zero").encode(y=alt.Y("y:Q"))
    return line


def _kernel_row(groups: Sequence[Group], height_px: int) -> list[AnyChart]:
    rows: dict[float, list[dict[str, Any]]] = {0.5: [], 1.0: []}
    for kernel in dict.fromkeys(kernel for kernel, _ in groups):
        own = [group for group in groups if group[0] == kernel]
        middle = own[(len(own) - 1) // 2]
        place = 1.0 if len(own) % 2 == 0 else 0.5
        rows[place].append({"group": group_name(*middle), "kernel": kernel})
    return [
        alt.Chart(values(found))
        .mark_text(style="region-label", baseline="top")
        .encode(
            x=alt.X("group:N", bandPosition=place),
            y=alt.YValue(height_px + _KERNEL_ROW_PX),
            text=alt.Text("kernel:N"),
        )
        for place, found in rows.items()
        if found
    ]


def _disks_row(groups: Sequence[Group], disks: Sequence[int], height_px: int) -> list[AnyChart]:
    shown = list(disks) if len(disks) <= DISK_NUMBERS_MAX else [disks[0], disks[-1]]
    rows = [{"group": group_name(*group), "disks": count} for group in groups for count in shown]
    numbers = (
        alt.Chart(values(rows))
        .mark_text(style="small-label")
        .encode(
            x=alt.X("group:N"),
            xOffset=disk_offset(disks),
            y=alt.YValue(height_px + _DISKS_ROW_PX),
            text=alt.Text("disks:O"),
        )
    )
    caption = (
        alt.Chart(values([{"text": "disks"}]))
        .mark_text(style="small-label", align="right", dx=-6)
        .encode(x=alt.XValue(0), y=alt.YValue(height_px + _DISKS_ROW_PX), text=alt.Text("text:N"))
    )
    return [numbers, caption]


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
    tips = tooltips(
        group="Phase", achieved="Achieved", said="Could be (95% CI)", limit="Bounded by"
    )
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
    return f"{format_percent(share)} of what is possible or more; least in {worst['group']}"


# Bytes over a bus for every byte of disk (AD98 Figs. 4 and 6): measured bars, modelled lines.

_RATIO_HEIGHT_PX = 260
_SUBTITLE_CHARACTERS = 110
_MATCH_FRAC = 0.05
"""Models that are this near have explained the traffic."""


def ratio_chart(ratios: Sequence[Ratio], bus: Bus) -> alt.LayerChart | None:
    """Return the chart of one bus; None where nothing was modelled for it."""
    found = [ratio for ratio in ratios if ratio.bus == bus]
    if not found:
        return None
    groups = groups_of((ratio.kernel, ratio.phase) for ratio in found)
    disks = sorted({ratio.disks for ratio in found})
    x, offset = group_x(groups), disk_offset(disks)
    rows = [_row(ratio) for ratio in found]
    measured = [row for row in rows if row["y"] is not None]
    y = _axis(rows, bus)
    layers: list[AnyChart] = []
    if measured:
        layers += _measured(measured, x, offset, y)
        layers += under_axis(groups, disks, _RATIO_HEIGHT_PX)
    else:
        layers += [_words(), *under_axis(groups, [1], _RATIO_HEIGHT_PX)]
    layers += [*_lines(rows, "corrected", x, y), *_lines(rows, "modelled", x, y), zero_line()]
    return finish(layers, _ratio_title(found, bus), _subtitle(found), (WIDE_PX, _RATIO_HEIGHT_PX))


def _row(ratio: Ratio) -> dict[str, Any]:
    measured = ratio.measured
    return {
        "group": group_name(ratio.kernel, ratio.phase),
        "disks": ratio.disks,
        "y": None if measured is None else measured.value,
        "low": None if measured is None else measured.low,
        "high": None if measured is None else measured.high,
        "modelled": ratio.modelled,
        "corrected": ratio.corrected,
        "at": format_count(ratio.disks, "disk"),
        "found": format_ratio(ratio),
        "model": format_number(ratio.modelled),
        "more": "no correction" if ratio.corrected is None else format_number(ratio.corrected),
        "from": ratio.tier,
    }


def _measured(
    rows: Sequence[dict[str, Any]], x: alt.X, offset: alt.XOffset, y: alt.Y
) -> list[AnyChart]:
    known = [row for row in rows if row["low"] is not None and row["high"] is not None]
    return [
        alt.Chart(values(rows))
        .mark_bar(style="gain")
        .encode(x=x, xOffset=offset, y=y, tooltip=_tips()),
        alt.Chart(values(known))
        .mark_rule(style="whisker", clip=True)
        .encode(x=x, xOffset=offset, y=on_field(y, "low"), y2=alt.Y2("high:Q")),
    ]


def _tips() -> list[alt.Tooltip]:
    said = tooltips(group="Phase", at="On", found="Measured (95% CI)", model="Model")
    return said + tooltips(more="With corrections", **{"from": "Counted by"})


def _words() -> AnyChart:
    text: AnyChart = (
        alt.Chart(values([{"text": NOT_HERE}]))
        .mark_text(style="region-label", baseline="top")
        .encode(x=alt.XValue({"expr": "width / 2"}), y=alt.YValue(2), text=alt.Text("text:N"))
    )
    return text


def _lines(rows: Sequence[dict[str, Any]], field: str, x: alt.X, y: alt.Y) -> list[AnyChart]:
    """Draw a model across its group: once, because it does not depend on the number of disks."""
    levels = {(row["group"], round(row[field], 3)): row for row in rows if row[field] is not None}
    if not levels:
        return []
    style = {"modelled": "model", "corrected": "corrected"}[field]
    chart = alt.Chart(values(levels.values())).mark_rule(style=style)
    return [chart.encode(x=across(x), x2=across_end(), y=on_field(y, field), tooltip=_tips())]


def _axis(rows: Sequence[dict[str, Any]], bus: Bus) -> alt.Y:
    numbers = [
        number
        for row in rows
        for number in (row["y"], row["high"], row["modelled"], row["corrected"])
        if number is not None
    ]
    title = f"{BUS_WORDS[bus]} bytes per disk byte"
    return alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, max(1.0, *numbers) * 1.16], nice=False),
        axis=alt.Axis(title=title[:1].upper() + title[1:], labelExpr=NUMBER_EXPR, tickCount=5),
    )


def _ratio_title(ratios: Sequence[Ratio], bus: Bus) -> str:
    name = BUS_WORDS[bus]
    errors = [(abs(ratio.error_frac), ratio) for ratio in ratios if ratio.error_frac is not None]
    if not errors:
        return f"What the {name} carries, by the model"
    worst, ratio = max(errors, key=lambda pair: pair[0])
    if worst < _MATCH_FRAC:
        percent = max(1, math.ceil(100 * worst))
        return f"The {name} carries what the model says, within {percent}%"
    times = f"{1 + (ratio.error_frac or 0.0):.2g}\N{MULTIPLICATION SIGN}"
    what = f"{times} what the model says in {ratio.kernel} {ratio.phase}"
    return f"The {name} carries {what}"


def _subtitle(ratios: Sequence[Ratio]) -> list[str]:
    """Say what bars and lines are, and for every source of numbers which it is."""
    measured = [ratio.measured for ratio in ratios if ratio.measured is not None]
    intervals = any(each.low is not None for each in measured)
    corrected = any(ratio.corrected is not None for ratio in ratios)
    bars = "Bars: measured, with 95% intervals." if intervals else "Bars: measured once."
    said = [bars] if measured else []
    said.append("Solid line: the model (AD98 Fig. 2).")
    if corrected:
        said.append("Dashed line: with the corrections of \N{SECTION SIGN}5.3.")
    lines = [" ".join(said)]
    for tier in dict.fromkeys(ratio.tier for ratio in ratios):
        text = tier if tier.startswith(NOT_HERE) else f"counted by {tier}"
        lines += textwrap.wrap(f"{text[:1].upper()}{text[1:]}.", _SUBTITLE_CHARACTERS)
    return lines


# What every disk brings (AD98 Fig. 3): incremental bandwidth against the ideal, and what stops.

_SCALING_HEIGHT_PX = 320
_LETTER_PX, _LABEL_GAP_PX = 7.2, 7
_SCALING_SUBTITLE = [
    "Each bar: what one more disk adds to the phase's disk bandwidth, with its 95% interval.",
    "Line: what that disk gives by itself. A bar that falls short names what stopped it.",
]


def scaling_chart(scaling: Sequence[Scaling]) -> alt.LayerChart | None:
    """Return the chart; None where nothing ran on more than one number of disks."""
    if not any(len(each.steps) > 1 for each in scaling):
        return None
    rows = [_scaling_row(step) for each in scaling for step in each.steps]
    groups = groups_of((each.kernel, each.phase) for each in scaling)
    disks = sorted({int(row["disks"]) for row in rows})
    x, offset = group_x(groups), disk_offset(disks)
    least, most = _domain(rows)
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[least, most], nice=False),
        axis=alt.Axis(title="MB/s that each disk brings", labelExpr=NUMBER_EXPR, tickCount=6),
    )
    px = _SCALING_HEIGHT_PX / (most - least)
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
        *under_axis(groups, disks, _SCALING_HEIGHT_PX),
    ]
    return finish(layers, _scaling_title(scaling), _SCALING_SUBTITLE, (WIDE_PX, _SCALING_HEIGHT_PX))


def _scaling_row(step: ScalingStep) -> dict[str, Any]:
    gained = step.gained_mb_s
    limit = RESOURCE_WORDS[step.limited_by] if step.limited_by else ""
    if not limit and is_sublinear(step):
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
        "at": format_count(step.disks, "disk"),
        "gained": _format_gain(step),
        "total": format_rate_ci(step.achieved_mb_s),
        "of": format_rate_ci(step.ideal_mb_s),
        "why": "; ".join(step.evidence) or (f"{limit} stops it" if limit else "the disk itself"),
    }


def _format_gain(step: ScalingStep) -> str:
    gained = step.gained_mb_s
    sign = "\N{MINUS SIGN}" if gained.value < 0 else "+"
    return f"{sign}{abs(gained.value):,.3g} MB/s of {step.ideal_gain_mb_s:,.3g}"


def _bars(
    rows: Sequence[dict[str, Any]], x: alt.X, offset: alt.XOffset, y: alt.Y, style: str
) -> AnyChart:
    tips = tooltips(
        group="Phase",
        at="On",
        gained="Marginal gain",
        total="All together (95% CI)",
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


def _scaling_title(scaling: Sequence[Scaling]) -> str:
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
