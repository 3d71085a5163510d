"""Bytes over a bus for every byte of disk (AD98 Figs. 4 and 6): measured bars, modelled lines."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.balance import Bus, Ratio
from leadline.record.wording import say_count, say_number
from leadline.report.drawing.axes import NUMBER_EXPR, on_field
from leadline.report.drawing.layers import WIDE_PX, AnyChart, finish, tooltips, values
from leadline.report.streaming.groups import (
    across,
    across_end,
    disk_offset,
    group_x,
    under_axis,
    zero_line,
)
from leadline.report.streaming.order import group_name, groups_of
from leadline.report.streaming.words import BUS_WORDS, NOT_HERE, say_ratio

_HEIGHT_PX = 260
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
        layers += under_axis(groups, disks, _HEIGHT_PX)
    else:
        layers += [_words(), *under_axis(groups, [1], _HEIGHT_PX)]
    layers += [*_lines(rows, "corrected", x, y), *_lines(rows, "modelled", x, y), zero_line()]
    return finish(layers, _title(found, bus), _subtitle(found), (WIDE_PX, _HEIGHT_PX))


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
        "at": say_count(ratio.disks, "disk"),
        "found": say_ratio(ratio),
        "model": say_number(ratio.modelled),
        "more": "no correction" if ratio.corrected is None else say_number(ratio.corrected),
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
    said = tooltips(group="Phase", at="On", found="Measured (95 %)", model="Model")
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


def _title(ratios: Sequence[Ratio], bus: Bus) -> str:
    name = BUS_WORDS[bus]
    errors = [(abs(ratio.error_frac), ratio) for ratio in ratios if ratio.error_frac is not None]
    if not errors:
        return f"What the {name} carries, by the model"
    worst, ratio = max(errors, key=lambda pair: pair[0])
    if worst < _MATCH_FRAC:
        percent = max(1, math.ceil(100 * worst))
        return f"The {name} carries what the model says, within {percent} %"
    times = f"{1 + (ratio.error_frac or 0.0):.2g}\N{MULTIPLICATION SIGN}"
    what = f"{times} what the model says in {ratio.kernel} {ratio.phase}"
    return f"The {name} carries {what}"


def _subtitle(ratios: Sequence[Ratio]) -> list[str]:
    """Say what bars and lines are, and for every source of numbers which it is."""
    measured = [ratio.measured for ratio in ratios if ratio.measured is not None]
    intervals = any(each.low is not None for each in measured)
    corrected = any(ratio.corrected is not None for ratio in ratios)
    bars = "Bars: measured, with 95 % intervals." if intervals else "Bars: measured once."
    said = [bars] if measured else []
    said.append("Solid line: the model (AD98 Fig. 2).")
    if corrected:
        said.append("Dashed line: with the corrections of \N{SECTION SIGN}5.3.")
    lines = [" ".join(said)]
    for tier in dict.fromkeys(ratio.tier for ratio in ratios):
        text = tier if tier.startswith(NOT_HERE) else f"counted by {tier}"
        lines += textwrap.wrap(f"{text[:1].upper()}{text[1:]}.", _SUBTITLE_CHARACTERS)
    return lines
