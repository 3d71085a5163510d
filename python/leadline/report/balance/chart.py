"""Which resource gives out first (AD98 Fig. 9): a panel for each phase, systems side by side.

Bars of one height are a balanced system, higher bars a better one. Where they lie more than a
factor of ten apart, only a logarithmic axis shows them all; it has no zero to begin a bar at, so
there are points instead.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import altair as alt

from leadline.record import Interval
from leadline.record.balance import RESOURCE_WORDS, RESOURCES, Balance, Saturation, StreamBalance
from leadline.record.wording import say_rate, say_share
from leadline.report.drawing.axes import NUMBER_EXPR, on_field
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.report.streaming.groups import zero_line
from leadline.report.streaming.order import groups_of
from leadline.report.streaming.words import system_name

_HEIGHT_PX = 250
_LOG_SPREAD = 10.0
_NUMBER_PX = 19
"""What a number above a mark takes, the gap to it included."""
_TITLE_CHARACTERS = 62
Row = dict[str, Any]


class Scale(NamedTuple):
    """One axis for all panels: they are there to be compared."""

    least: float
    most: float
    log: bool

    def px(self, value: float) -> float:
        """Return how high a value stands, in pixels from the axis."""
        if self.log:
            return _HEIGHT_PX * math.log(value / self.least) / math.log(self.most / self.least)
        return _HEIGHT_PX * (value - self.least) / (self.most - self.least)


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
    return finish(layers, title, _subtitle(balances), (NARROW_PX, _HEIGHT_PX))


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
        "said": "no number" if number is None else f"{more}{say_rate(number)} per processor",
        "used": "not measured" if used is None else say_share(used),
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

    The first resource to give out stands out on one system; several systems differ by colour.
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
        said="Used up at (95 %)",
        used="Most seen of it",
        why="From",
    )


def _profile(rows: Sequence[Row], frame: Frame) -> AnyChart:
    """Join the points of a system: a level line is a balanced one."""
    line: AnyChart = (
        alt.Chart(values(rows))
        .mark_line(style="profile")
        .encode(x=frame.x, xOffset=frame.offset, y=frame.y, color=_colour(frame))
    )
    return line


def _mark(chart: alt.Chart, style: str, frame: Frame) -> Any:
    if frame.log:
        return chart.mark_point(style=style, filled=True, size=90, opacity=1)
    return chart.mark_bar(style=style) if frame.alone else chart.mark_bar(opacity=0.8)


def _colour(frame: Frame) -> alt.Color:
    scale = alt.Scale(domain=list(frame.names))
    return alt.Color("system:N", scale=scale, legend=alt.Legend(title=None, columns=1))


def _paint(frame: Frame) -> dict[str, Any]:
    if frame.alone:
        return {}
    if not frame.log:
        return {"color": _colour(frame)}
    names = list(frame.names)
    shapes = alt.Scale(domain=names, range=list(SYSTEM_SHAPES[: len(names)]))
    legend = alt.Legend(title=None, columns=1)
    return {"color": _colour(frame), "shape": alt.Shape("system:N", scale=shapes, legend=legend)}


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
            .encode(x=frame.x, y=alt.YValue(_HEIGHT_PX - 6), tooltip=tips)
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
    row = {"y": now.value, "said": f"{say_rate(now)} per processor"}
    tip = alt.Tooltip("said:N", title="The disks that are there give")
    line = alt.Chart(values([row])).mark_rule(style="average")
    return [line.encode(y=on_field(frame.y, "y"), tooltip=tip)]


def _first(balances: Sequence[Balance]) -> str:
    """Say what gives out first, for all systems at once where it is the same."""
    firsts = {each.system: each.first for each in balances if each.first is not None}
    words = {system: RESOURCE_WORDS[first] for system, first in firsts.items()}
    if len(set(words.values())) == 1:
        return f"{next(iter(words.values()))} first"
    return ", ".join(f"{word} first on {system}" for system, word in words.items())


def _subtitle(balances: Sequence[Balance]) -> list[str]:
    said = ["Disk bandwidth that uses a resource up, with 95 % intervals."]
    if any(each.at_least for one in balances for each in one.saturations):
        said.append("≥: never seen to give out.")
    if len({system_name(each) for each in balances}) == 1:
        said.append("Dashes: what the disks give now.")
    return textwrap.wrap(" ".join(said), _TITLE_CHARACTERS)
