"""Charts of p50 and p99 along the curves of a survey."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import altair as alt

from leadline.record import Curve, Measurement, Survey
from leadline.record.wording import say_place, say_value
from leadline.report.drawing.axes import parameter_x
from leadline.report.drawing.layers import LOW_PX, NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.series import series
from leadline.report.survey.latency import (
    PointLatency,
    every_curve,
    latencies,
    latency_at,
    say_curve,
)
from leadline.units import format_seconds

_QUANTILES = ("p50", "p99")
_TAKEN_TOGETHER = "mean over the readings"


def latency_charts(survey: Survey, points: Sequence[Measurement]) -> dict[str, alt.LayerChart]:
    """Return a chart of p50 and p99 along each curve, under its throughput chart's name.

    `unique_bytes-latency`, `region-<index>-<parameter>-latency`; along the number of processes it
    is against requests per second, which is the load that they make.
    """
    known = latencies(points)
    charts: dict[str, alt.LayerChart] = {}
    for curve in every_curve(survey):
        rows = _rows(curve, known)
        if len({row["x"] for row in rows}) < 2:
            continue
        own = "unique_bytes" if curve.region is None else f"region-{curve.region}-{curve.parameter}"
        loads = curve.region is not None and curve.parameter == "process_num"
        charts[f"{own}-latency"] = (_against_iops if loads else _along)(survey, curve, rows)
    return charts


Row = dict[str, float | str]


def _rows(curve: Curve, known: Mapping[str, PointLatency]) -> list[Row]:
    rows: list[Row] = []
    for point in curve.points:
        own = latency_at(point, known)
        if own is None:
            continue
        for name, us in zip(_QUANTILES, (own.p50_us, own.p99_us), strict=True):
            rows.append(
                {
                    "x": point.x,
                    "iops": own.iops,
                    "y": us,
                    "which": name,
                    "where": say_value(curve.parameter, point.x),
                    "rate": f"{own.iops:,.0f} requests/s",
                    "said": format_seconds(us / 1e6),
                }
            )
    return [row for row in rows if float(row["y"]) > 0]


def _along(survey: Survey, curve: Curve, rows: list[Row]) -> alt.LayerChart:
    x = parameter_x(curve.parameter, [point.x for point in curve.points])
    title = f"Response time: {say_curve(survey, curve)}"
    subtitle = f"p50 and p99 of the closed loop, {_TAKEN_TOGETHER}; log axis."
    return finish(_layers(rows, x), title, subtitle, (NARROW_PX, LOW_PX))


def _against_iops(survey: Survey, curve: Curve, rows: list[Row]) -> alt.LayerChart:
    most = max(float(row["iops"]) for row in rows)
    x = alt.X(
        "iops:Q",
        scale=alt.Scale(domain=[0, most * 1.06], nice=False),
        axis=alt.Axis(title="Requests per second", format="~s", tickCount=5),
    )
    region = next(each for each in survey.regions if each.index == curve.region)
    title = f"Response time against load, {say_place(region)}"
    subtitle = f"Each mark has more processes than the one before; {_TAKEN_TOGETHER}; log axis."
    return finish(_layers(rows, x, order=True), title, subtitle, (NARROW_PX, LOW_PX))


def _layers(rows: list[Row], x: alt.X, *, order: bool = False) -> list[AnyChart]:
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", nice=False, padding=12),
        axis=alt.Axis(title="Response time (µs)", format="~s", labelOverlap="greedy", tickCount=5),
    )
    colour, shape, dash = series(_QUANTILES)
    tips = tooltips(which="This is", where="At", rate="At a rate of", said="Response")
    chart = alt.Chart(values(rows))
    line = chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash)
    return [
        line.encode(order=alt.Order("x:Q")) if order else line,
        chart.mark_point(filled=True, size=46, opacity=0.95).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
