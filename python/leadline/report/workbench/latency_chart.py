"""The load-latency curve: median and tail of the response times against the rate."""

from __future__ import annotations

import math

import altair as alt

from leadline.record.workbench import Experiment, PeakRate, Threshold
from leadline.report.drawing.axes import on_field
from leadline.report.drawing.layers import WIDE_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.series import series
from leadline.report.workbench.rows import Row
from leadline.report.workbench.words import say_load, say_ms
from leadline.studies.workbench.answer import say_quantile
from leadline.studies.workbench.latency_curve import CurvePoint, latency_curve

_HEIGHT_PX = 320
_SHOWN = {"p50": "p50", "p99": "p99", "p99_9": "p99.9"}
_POINTS_MIN = 2


def latency_chart(experiment: Experiment) -> alt.LayerChart | None:
    """Draw p50, p99 and p99.9 against the rate; None with fewer than two rates kept."""
    own = experiment.peaks[0]
    points = latency_curve(own)
    if len(points) < _POINTS_MIN:
        return None
    threshold = experiment.start.goal.threshold
    rows = [row for point in points for row in _rows(point)]
    limits = [within.limit_ms for within in threshold.shares]
    limits += [threshold.mean_ms] if threshold.mean_ms is not None else []
    x, y = _axes(rows, limits, own.peak)
    colour, shape, dash = series(tuple(_SHOWN.values()))
    chart = alt.Chart(values(rows))
    tips = tooltips(which="This is", load="Offered", said="Response")
    layers: list[AnyChart] = [
        *_peak(own.peak, x),
        *_limits(threshold, x, y),
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour, strokeDash=dash),
        chart.mark_point(filled=True, size=50, opacity=0.95).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    said = "at even parts of the peak" if own.curve else "trials of the search"
    subtitle = (
        f"Response times from when requests were due, {said} that kept their rate; log axis. "
        "Dashed: the targets."
    )
    return finish(layers, "Response time against load", subtitle, (WIDE_PX, _HEIGHT_PX))


def _rows(point: CurvePoint) -> list[Row]:
    load = f"{say_load(point.rate_per_s)} requests/s"
    found = [(name, getattr(point.response_ms, field)) for field, name in _SHOWN.items()]
    return [
        {"x": point.rate_per_s, "y": ms, "which": name, "load": load, "said": say_ms(ms)}
        for name, ms in found
        if ms > 0
    ]


def _axes(rows: list[Row], limits: list[float], peak: PeakRate | None) -> tuple[alt.X, alt.Y]:
    most = max(row["x"] for row in rows)
    if peak is not None and peak.rate_per_s is not None:
        most = max(most, peak.rate_per_s.high or peak.rate_per_s.value)
    times = [*(row["y"] for row in rows), *limits]
    low, high = min(times) / 1.5, max(times) * 1.8
    ticks = [
        step * 10.0**power
        for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
        for step in (1, 2, 5)
    ]
    x = alt.X(
        "x:Q",
        scale=alt.Scale(domain=[0, most * 1.05], nice=False),
        axis=alt.Axis(title="Offered load (requests/s)", format=",~r", tickCount=6),
    )
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(
            title="Response time (ms)",
            format=",~r",
            labelOverlap="greedy",
            values=[tick for tick in ticks if low <= tick <= high],
        ),
    )
    return x, y


def _peak(peak: PeakRate | None, x: alt.X) -> list[AnyChart]:
    rate = None if peak is None else peak.rate_per_s
    if rate is None:
        return []
    layers: list[AnyChart] = []
    if rate.low is not None and rate.high is not None:
        band = alt.Chart(values([{"low": rate.low, "high": rate.high}])).mark_rect(style="good")
        layers.append(band.encode(x=on_field(x, "low"), x2=alt.X2("high:Q")))
    line = alt.Chart(values([{"x": rate.value}])).mark_rule(style="good-edge", strokeWidth=2)
    text = alt.Chart(values([{"x": rate.value, "said": f"peak {say_load(rate.value)}/s"}]))
    label = text.mark_text(style="region-label", baseline="top", align="right", dx=-8)
    return [*layers, line.encode(x=x), label.encode(x=x, y=alt.YValue(2), text="said:N")]


def _limits(threshold: Threshold, x: alt.X, y: alt.Y) -> list[AnyChart]:
    rows = [
        {"x": 0.0, "y": within.limit_ms, "said": f"{say_quantile(within.percentile)} within "}
        for within in threshold.shares
    ]
    if threshold.mean_ms is not None:
        rows.append({"x": 0.0, "y": threshold.mean_ms, "said": "mean "})
    rows = [row | {"said": f"{row['said']}{say_ms(float(str(row['y'])))}"} for row in rows]
    chart = alt.Chart(values(rows))
    label = chart.mark_text(style="border-label", align="left", baseline="bottom", dx=6, dy=-4)
    return [
        chart.mark_rule(style="border").encode(y=y),
        label.encode(x=x, y=y, text=alt.Text("said:N")),
    ]
