"""Charts of use and balance: how busy resources are as disks are added (AD98 Figs. 5, 7)."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from leadline.charts.axes import NUMBER_EXPR, on_field
from leadline.charts.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record import Interval
from leadline.record.balance import (
    RESOURCE_WORDS,
    RESOURCES,
    Balance,
    PhaseCost,
    Saturation,
    Scaling,
    StreamBalance,
)
from leadline.record.streaming import StreamStudy
from leadline.record.wording import (
    format_count,
    format_interval,
    format_number,
    format_rate_ci,
    format_share,
)
from leadline.studies.streaming.charts import bound_chart, ratio_chart, scaling_chart, zero_line
from leadline.studies.streaming.text import groups_of, system_name

# How busy every resource is as disks are added (AD98 Figs. 5 and 7), a chart for each phase.
#
# Cycles per instruction have an axis of their own on the right, where anything counts them.

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
            "at": format_count(disks, "disk"),
            "said": format_share(used),
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
    """Draw the line of 100% as far as there are disks: beyond it stand names."""
    row = {"disks": disks[0], "last": disks[-1], "y": 100}
    line: AnyChart = (
        alt.Chart(values([row]))
        .mark_rule(style="average")
        .encode(x=x, x2=alt.X2("last:Q"), y=on_field(y, "y"))
    )
    return line


def _lines(rows: Sequence[Row], x: alt.X, y: alt.Y) -> list[AnyChart]:
    colour, shape = _colour(), _shape()
    tips = tooltips(resource="Resource", at="On", said="Used (95% CI)")
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
            "at": format_count(cost.disks, "disk"),
            "said": format_interval(cpi, format_number),
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
    tips = tooltips(at="On", said="CPI (95% CI)")
    chart = alt.Chart(values(rows))
    line = chart.mark_line(style="cpi").encode(x=x, y=y)
    points = chart.mark_point(style="cpi-point").encode(x=x, y=y, tooltip=tips)
    return alt.LayerChart(layer=[line, points])


def _busiest(scaling: Scaling) -> str:
    step = scaling.steps[-1]
    name = max(step.utilisation, key=lambda each: step.utilisation[each].value)
    return f"{RESOURCE_WORDS[name]} {100 * step.utilisation[name].value:.0f}% used"


def _subtitle(cpi: bool) -> str:
    said = "With 95% intervals; grey dashes: all of it."
    return f"{said} Dotted: cycles per instruction, on the right." if cpi else said


# Which resource is the bottleneck (AD98 Fig. 9): a panel for each phase, systems side by side.
#
# Bars of one height are a balanced system, higher bars a better one. Where they lie more than a
# factor of ten apart, only a logarithmic axis shows them all; it has no zero to begin a bar at, so
# there are points instead.

_BALANCE_HEIGHT_PX = 250
_LOG_SPREAD = 10.0
_NUMBER_PX = 19
"""What a number above a mark takes, the gap to it included."""
_TITLE_CHARACTERS = 62


class Scale(NamedTuple):
    """One axis for all panels: they are there to be compared."""

    least: float
    most: float
    log: bool

    def px(self, value: float) -> float:
        """Return how high a value stands, in pixels from the axis."""
        if self.log:
            return (
                _BALANCE_HEIGHT_PX * math.log(value / self.least) / math.log(self.most / self.least)
            )
        return _BALANCE_HEIGHT_PX * (value - self.least) / (self.most - self.least)


class Frame(NamedTuple):
    """Where marks stand in a panel."""

    x: alt.X
    offset: alt.XOffset
    y: alt.Y
    names: Sequence[str]
    scale: Scale

    @property
    def log(self) -> bool:
        """Whether its axis is logarithmic."""
        return self.scale.log

    @property
    def alone(self) -> bool:
        """One system, which needs no colours to tell it from others."""
        return len(self.names) == 1


def balance_charts(systems: Sequence[StreamBalance]) -> dict[str, alt.LayerChart]:
    """Return a chart for each phase that any system measured, under `balance-sort-read`."""
    balances = [each for system in systems for each in system.balances]
    scale = _scale(balances)
    if scale is None:
        return {}
    names = list(dict.fromkeys(system_name(each) for each in balances))
    found: dict[str, alt.LayerChart] = {}
    for kernel, phase in groups_of((each.kernel, each.phase) for each in balances):
        own = [each for each in balances if (each.kernel, each.phase) == (kernel, phase)]
        if any(each.order for each in own):
            found[f"balance-{kernel}-{phase}"] = _panel(own, names, scale)
    return found


def _scale(balances: Sequence[Balance]) -> Scale | None:
    found = [
        number
        for each in balances
        for saturation in each.saturations
        if (number := saturation.mb_s_per_processor) is not None and number.value > 0
    ]
    if not found:
        return None
    ends = [_ends(number) for number in found]
    least = min(low if low > 0 else value for value, low, _ in ends)
    most = max(high for _, _, high in ends)
    log = max(number.value for number in found) > _LOG_SPREAD * min(
        number.value for number in found
    )
    return Scale(least / 1.5, most * 1.6, log=True) if log else Scale(0.0, 1.16 * most, log=False)


def _ends(number: Interval) -> tuple[float, float, float]:
    low = number.value if number.low is None else number.low
    return number.value, low, number.value if number.high is None else number.high


def _panel(balances: Sequence[Balance], names: Sequence[str], scale: Scale) -> alt.LayerChart:
    rows = [_row(balance, each, scale) for balance in balances for each in balance.saturations]
    known = [row for row in rows if row["y"] is not None]
    frame = _frame(rows, names, scale)
    now = balances[0].disks_mb_s_per_processor
    layers = [*_marks(known, frame), *_words(rows, now, frame), *_disks_now(now, frame)]
    if not scale.log:
        layers.append(zero_line())
    first = balances[0]
    title = f"{first.kernel} {first.phase}: {_first(balances)}"
    return finish(layers, title, _balance_subtitle(balances), (NARROW_PX, _BALANCE_HEIGHT_PX))


def _row(balance: Balance, saturation: Saturation, scale: Scale) -> Row:
    number = saturation.mb_s_per_processor
    value, low, high = (None, None, None) if number is None else _ends(number)
    more = "at least " if saturation.at_least else ""
    used = saturation.use_at_most
    return {
        "system": system_name(balance),
        "resource": RESOURCE_WORDS[saturation.resource],
        "y": value,
        "low": None if low is None else max(low, scale.least),
        "high": high,
        "at_least": saturation.at_least,
        "first": saturation.resource == balance.first,
        "number": "" if value is None else f"{'≥' if more else ''}{_digits(value)}",
        "said": "no number" if number is None else f"{more}{format_rate_ci(number)} per processor",
        "used": "not measured" if used is None else format_share(used),
        "why": saturation.why,
    }


def _digits(value: float) -> str:
    """Write a number under an axis that has its unit."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def _frame(rows: Sequence[Row], names: Sequence[str], scale: Scale) -> Frame:
    shown = {row["resource"] for row in rows}
    resources = [RESOURCE_WORDS[name] for name in RESOURCES if RESOURCE_WORDS[name] in shown]
    axis = alt.Axis(
        title=None,
        labelAngle=0,
        labelOverlap=False,
        labelFontSize=11,
        ticks=False,
        domain=scale.log,
    )
    band = alt.Scale(domain=resources, paddingInner=0.3, paddingOuter=0.15)
    kind: Literal["log", "linear"] = "log" if scale.log else "linear"
    words = "MB/s per processor, log scale" if scale.log else "MB/s per processor"
    return Frame(
        x=alt.X("resource:N", sort=resources, scale=band, axis=axis),
        offset=alt.XOffset("system:N", scale=alt.Scale(domain=list(names), paddingInner=0.12)),
        y=alt.Y(
            "y:Q",
            scale=alt.Scale(type=kind, domain=[scale.least, scale.most], nice=False),
            axis=alt.Axis(title=words, labelExpr=NUMBER_EXPR, **_ticks(scale)),
        ),
        names=names,
        scale=scale,
    )


def _ticks(scale: Scale) -> dict[str, Any]:
    if not scale.log:
        return {"tickCount": 5}
    steps = (1, 2, 5) if scale.most < 300 * scale.least else (1,)
    found = [step * 10.0**power for power in range(-3, 9) for step in steps]
    return {"values": [tick for tick in found if scale.least <= tick <= scale.most]}


def _marks(rows: Sequence[Row], frame: Frame) -> list[AnyChart]:
    """Draw bars, or points on a log axis, with their intervals.

    The bottleneck stands out on one system; several systems differ by colour.
    """
    place: dict[str, Any] = {"x": frame.x, "xOffset": frame.offset}
    whiskers = (
        alt.Chart(values(row for row in rows if row["low"] != row["high"]))
        .mark_rule(style="whisker", clip=True)
        .encode(**place, y=on_field(frame.y, "low"), y2=alt.Y2("high:Q"))
    )
    parts = [(list(rows), "gain")]
    if frame.alone:
        parts = [
            ([row for row in rows if not row["first"]], "gain"),
            ([row for row in rows if row["first"]], "short-gain"),
        ]
    marks: list[AnyChart] = [
        _mark(alt.Chart(values(found)), style, frame).encode(
            **place, y=frame.y, tooltip=_tips(), **_paint(frame)
        )
        for found, style in parts
    ]
    if not frame.log:
        return [*marks, whiskers]
    # Alone, its points carry numbers, and a line would run through them.
    return [whiskers, *marks] if frame.alone else [_profile(rows, frame), whiskers, *marks]


def _tips() -> list[alt.Tooltip]:
    return tooltips(
        system="System",
        resource="Resource",
        said="Used up at (95% CI)",
        used="Most seen of it",
        why="From",
    )


def _profile(rows: Sequence[Row], frame: Frame) -> AnyChart:
    """Join the points of a system: a level line is a balanced one."""
    line: AnyChart = (
        alt.Chart(values(rows))
        .mark_line(style="profile")
        .encode(x=frame.x, xOffset=frame.offset, y=frame.y, color=_balance_colour(frame))
    )
    return line


def _mark(chart: alt.Chart, style: str, frame: Frame) -> Any:
    if frame.log:
        return chart.mark_point(style=style, filled=True, size=90, opacity=1)
    return chart.mark_bar(style=style) if frame.alone else chart.mark_bar(opacity=0.8)


def _balance_colour(frame: Frame) -> alt.Color:
    scale = alt.Scale(domain=list(frame.names))
    return alt.Color("system:N", scale=scale, legend=alt.Legend(title=None, columns=1))


def _paint(frame: Frame) -> dict[str, Any]:
    if frame.alone:
        return {}
    if not frame.log:
        return {"color": _balance_colour(frame)}
    names = list(frame.names)
    shapes = alt.Scale(domain=names, range=list(SYSTEM_SHAPES[: len(names)]))
    legend = alt.Legend(title=None, columns=1)
    return {
        "color": _balance_colour(frame),
        "shape": alt.Shape("system:N", scale=shapes, legend=legend),
    }


def _words(rows: Sequence[Row], now: Interval | None, frame: Frame) -> list[AnyChart]:
    """Write the numbers beside the marks, and words where no system has one."""
    layers: list[AnyChart] = []
    known = [row for row in rows if row["y"] is not None]
    if frame.alone:
        layers += _numbers(known, now, frame)
    there = {row["resource"] for row in known}
    missing = {row["resource"]: row for row in rows if row["resource"] not in there}
    if missing:
        tips = tooltips(resource="Resource", why="Why")
        layers.append(
            alt.Chart(values(missing.values()))
            .mark_text(style="small-label", baseline="bottom", text="no number")
            .encode(x=frame.x, y=alt.YValue(_BALANCE_HEIGHT_PX - 6), tooltip=tips)
        )
    return layers


def _numbers(rows: Sequence[Row], now: Interval | None, frame: Frame) -> list[AnyChart]:
    """Write the numbers above their marks, or below where the line of the disks runs."""
    below: list[Row] = []
    above: list[Row] = []
    for row in rows:
        clear_px = frame.scale.px(now.value) - frame.scale.px(row["high"]) if now else -1.0
        (below if 0 < clear_px < _NUMBER_PX else above).append(row)
    layers: list[AnyChart] = []
    if above:
        text = alt.Chart(values(above)).mark_text(style="small-label", baseline="bottom", dy=-5)
        place = {"y": on_field(frame.y, "high"), "text": "number:N"}
        layers.append(text.encode(x=frame.x, xOffset=frame.offset, **place))
    if below:
        style = "small-label" if frame.log else "bar-label"
        text = alt.Chart(values(below)).mark_text(style=style, baseline="top", dy=6)
        place = {"y": on_field(frame.y, "low"), "text": "number:N"}
        layers.append(text.encode(x=frame.x, xOffset=frame.offset, **place))
    return layers


def _disks_now(now: Interval | None, frame: Frame) -> list[AnyChart]:
    """Draw what the disks that are there give; only one system has room for the line."""
    if not frame.alone or now is None:
        return []
    row = {"y": now.value, "said": f"{format_rate_ci(now)} per processor"}
    tip = alt.Tooltip("said:N", title="The disks that are there give")
    line = alt.Chart(values([row])).mark_rule(style="average")
    return [line.encode(y=on_field(frame.y, "y"), tooltip=tip)]


def _first(balances: Sequence[Balance]) -> str:
    """Say the bottleneck, for all systems at once where it is the same."""
    firsts = {each.system: each.first for each in balances if each.first is not None}
    words = {system: RESOURCE_WORDS[first] for system, first in firsts.items()}
    if len(set(words.values())) == 1:
        return f"{next(iter(words.values()))} first"
    return ", ".join(f"{word} first on {system}" for system, word in words.items())


def _balance_subtitle(balances: Sequence[Balance]) -> list[str]:
    said = ["Disk bandwidth that uses a resource up, with 95% intervals."]
    if any(each.at_least for one in balances for each in one.saturations):
        said.append("≥: never seen saturated.")
    if len({system_name(each) for each in balances}) == 1:
        said.append("Dashes: what the disks give now.")
    return textwrap.wrap(" ".join(said), _TITLE_CHARACTERS)


# All charts of a streaming study, by name, in the order in which a page shows them.


def stream_charts(study: StreamStudy, said: StreamBalance) -> dict[str, alt.LayerChart]:
    """Return the charts that the study has numbers for.

    `scaling` (AD98 Fig. 3), or `bound` for runs on one number of disks; `io-bus` and `memory-bus`
    (Figs. 4 and 6); `use-<kernel>-<phase>` (Figs. 5 and 7). Several platforms in one study have a
    set each, named `scaling-<platform>` and so on.
    """
    platforms = list(dict.fromkeys(run.options.platform for run in study.runs))
    found: dict[str, alt.LayerChart] = {}
    for platform in platforms:
        end = f"-{platform}" if len(platforms) > 1 else ""
        scaling = [each for each in said.scaling if each.platform == platform]
        ratios = [each for each in said.ratios if each.platform == platform]
        charts = {
            "scaling": scaling_chart(scaling),
            "io-bus": ratio_chart(ratios, "io"),
            "memory-bus": ratio_chart(ratios, "memory"),
        }
        charts |= {
            f"use-{each.kernel}-{each.phase}": use_chart(each, said.costs) for each in scaling
        }
        found |= {f"{name}{end}": chart for name, chart in charts.items() if chart is not None}
    if not any(name.startswith("scaling") for name in found):
        bounded = bound_chart(study)
        found = ({"bound": bounded} if bounded is not None else {}) | found
    return found


def is_wide(name: str) -> bool:
    """Whether a chart is of all phases and takes a page's whole width."""
    return name.startswith(("scaling", "io-bus", "memory-bus"))
