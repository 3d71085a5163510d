"""How busy every resource is as disks are added (AD98 Figs. 5 and 7), a chart for each phase.

Cycles per instruction have an axis of their own on the right, where anything counts them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.balance import RESOURCE_WORDS, RESOURCES, PhaseCost, Scaling
from leadline.record.wording import say_count, say_interval, say_number, say_share
from leadline.report.drawing.axes import on_field
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.theme import SYSTEM_SHAPES

_HEIGHT_PX = 230
_LABEL_PX = 15
"""Names of two lines are at least this far apart."""
_LABEL_ROOM = 0.33
"""Part of the width that is kept for the names at the ends of the lines."""
_REACH = 1.3
"""How far beyond the values the axis goes for their intervals."""
Row = dict[str, Any]


def use_chart(scaling: Scaling, costs: Sequence[PhaseCost]) -> alt.LayerChart | None:
    """Return the chart of one phase; None where it ran on one number of disks alone.

    `costs` of other phases are passed over.
    """
    rows = [row for step in scaling.steps for row in _rows(step.disks, step.utilisation)]
    if len(scaling.steps) < 2 or not rows:
        return None
    disks = [step.disks for step in scaling.steps]
    most = _most(rows)
    rows = [row | {"high": row["high"] and min(row["high"], most)} for row in rows]
    x = _disk_axis(disks)
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, most], nice=False),
        axis=alt.Axis(title="Used, % of capacity", values=[0, 25, 50, 75, 100], format="d"),
    )
    names = _names(rows, _HEIGHT_PX / most, disks[-1], x, y)
    use = alt.LayerChart(layer=[_full(disks, x, y), *_lines(rows, x, y), names])
    cpi = _cpi_rows(scaling, costs)
    layers: list[AnyChart] = [use]
    if cpi:
        layers.append(_cpi(cpi, x))
    title = f"{scaling.kernel} {scaling.phase}: {_busiest(scaling)}"
    size = (NARROW_PX, _HEIGHT_PX)
    chart = finish(layers, title, _subtitle(bool(cpi)), size)
    return chart.resolve_scale(y="independent") if cpi else chart


def _rows(disks: int, utilisation: dict[str, Any]) -> list[Row]:
    return [
        {
            "disks": disks,
            "resource": RESOURCE_WORDS[name],
            "y": 100 * used.value,
            "low": None if used.low is None else 100 * max(0.0, used.low),
            "high": None if used.high is None else 100 * used.high,
            "at": say_count(disks, "disk"),
            "said": say_share(used),
        }
        for name in RESOURCES
        if (used := utilisation.get(name)) is not None
    ]


def _most(rows: Sequence[Row]) -> float:
    """Return where the axis ends: intervals of few runs may reach far, and are cut there."""
    values_most = max(100.0, *(float(row["y"]) for row in rows))
    highest = max(float(row["high"] or row["y"]) for row in rows)
    return max(1.06 * values_most, min(highest, _REACH * values_most))


def _disk_axis(disks: Sequence[int]) -> alt.X:
    span = max(1, disks[-1] - disks[0])
    right = disks[-1] + span * _LABEL_ROOM / (1 - _LABEL_ROOM)
    step = max(1, round(len(disks) / 8))
    axis = alt.Axis(title="Disks", values=list(disks[::step]), format="d")
    domain = [disks[0] - 0.06 * span, right]
    return alt.X("disks:Q", scale=alt.Scale(domain=domain, nice=False), axis=axis)


def _full(disks: Sequence[int], x: alt.X, y: alt.Y) -> AnyChart:
    """Draw the line of 100 % as far as there are disks: beyond it stand names."""
    row = {"disks": disks[0], "last": disks[-1], "y": 100}
    line: AnyChart = (
        alt.Chart(values([row]))
        .mark_rule(style="average")
        .encode(x=x, x2=alt.X2("last:Q"), y=on_field(y, "y"))
    )
    return line


def _lines(rows: Sequence[Row], x: alt.X, y: alt.Y) -> list[AnyChart]:
    colour, shape = _colour(), _shape()
    tips = tooltips(resource="Resource", at="On", said="Used (95 %)")
    known = [row for row in rows if row["low"] is not None and row["high"] is not None]
    chart = alt.Chart(values(rows))
    return [
        alt.Chart(values(known))
        .mark_rule(strokeWidth=1.4, clip=True)
        .encode(x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=colour),
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=52, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]


def _colour() -> alt.Color:
    names = [RESOURCE_WORDS[name] for name in RESOURCES]
    return alt.Color("resource:N", scale=alt.Scale(domain=names), legend=None)


def _shape() -> alt.Shape:
    names = [RESOURCE_WORDS[name] for name in RESOURCES]
    shapes = list(SYSTEM_SHAPES[: len(names)])
    return alt.Shape("resource:N", scale=alt.Scale(domain=names, range=shapes), legend=None)


def _names(rows: Sequence[Row], px: float, last: int, x: alt.X, y: alt.Y) -> AnyChart:
    """Write each resource beside the end of its line, moved apart where lines end together."""
    ends = sorted((row for row in rows if row["disks"] == last), key=lambda row: float(row["y"]))
    places = spread([float(row["y"]) for row in ends], _LABEL_PX / px)
    named = [row | {"place": place} for row, place in zip(ends, places, strict=True)]
    text: AnyChart = (
        alt.Chart(values(named))
        .mark_text(align="left", dx=10, fontSize=12, fontWeight=600)
        .encode(x=x, y=on_field(y, "place"), text=alt.Text("resource:N"), color=_colour())
    )
    return text


def spread(wanted: Sequence[float], apart: float) -> list[float]:
    """Return places as near as they can be to ascending `wanted`, each `apart` from the next.

    Neighbours that collide become one block around the mean of what they wanted.
    """
    blocks: list[tuple[float, int]] = []
    for want in wanted:
        middle, count = want, 1
        while blocks and middle - apart * (count - 1) / 2 < (
            blocks[-1][0] + apart * (blocks[-1][1] - 1) / 2 + apart
        ):
            other, others = blocks.pop()
            middle = (middle * count + other * others) / (count + others)
            count += others
        blocks.append((max(middle, apart * (count - 1) / 2), count))
    return [
        middle + apart * (number - (count - 1) / 2)
        for middle, count in blocks
        for number in range(count)
    ]


def _cpi_rows(scaling: Scaling, costs: Sequence[PhaseCost]) -> list[Row]:
    key = scaling.kernel, scaling.phase, scaling.platform
    return [
        {
            "disks": cost.disks,
            "cpi": cpi.value,
            "at": say_count(cost.disks, "disk"),
            "said": say_interval(cpi, say_number),
        }
        for cost in costs
        if (cost.kernel, cost.phase, cost.platform) == key
        and (cpi := cost.cycles_per_instruction) is not None
    ]


def _cpi(rows: Sequence[Row], x: alt.X) -> AnyChart:
    y = alt.Y(
        "cpi:Q",
        scale=alt.Scale(domain=[0, 1.25 * max(float(row["cpi"]) for row in rows)], nice=False),
        axis=alt.Axis(title="Cycles per instruction", orient="right", grid=False, tickCount=4),
    )
    tips = tooltips(at="On", said="CPI (95 %)")
    chart = alt.Chart(values(rows))
    line = chart.mark_line(style="cpi").encode(x=x, y=y)
    points = chart.mark_point(style="cpi-point").encode(x=x, y=y, tooltip=tips)
    return alt.LayerChart(layer=[line, points])


def _busiest(scaling: Scaling) -> str:
    step = scaling.steps[-1]
    name = max(step.utilisation, key=lambda each: step.utilisation[each].value)
    return f"{RESOURCE_WORDS[name]} {100 * step.utilisation[name].value:.0f} % used"


def _subtitle(cpi: bool) -> str:
    said = "With 95 % intervals; grey dashes: all of it."
    return f"{said} Dotted: cycles per instruction, on the right." if cpi else said
