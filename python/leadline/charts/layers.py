"""The layers every throughput curve is made of: raw readings, intervals, the mean and its line."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import altair as alt

from leadline.charts.axes import on_field
from leadline.charts.theme import config
from leadline.record import Curve, CurvePoint, Interval
from leadline.record.wording import format_count, format_rate_ci, format_value

WIDE_PX, NARROW_PX, TALL_PX, LOW_PX = 860, 420, 340, 230
AnyChart: TypeAlias = alt.Chart | alt.LayerChart


def values(rows: Iterable[dict[str, Any]]) -> alt.InlineData:
    """Wrap rows as inline data: a chart never fetches anything.

    As a tuple, which Altair hands on: a list it would copy, row by row, for every layer.
    """
    return alt.InlineData(values=tuple(rows))


def tooltips(**titles: str) -> list[alt.Tooltip]:
    """What a mark says when it is pointed at: of these fields of its row, under these titles."""
    return [alt.Tooltip(f"{field}:N", title=title) for field, title in titles.items()]


def point_row(point: CurvePoint, parameter: str) -> dict[str, Any]:
    """One mean with its interval and the words of its tooltip."""
    rate = point.throughput_mb_s
    return {
        "x": point.x,
        "y": rate.value,
        "low": rate.low,
        "high": rate.high,
        "where": format_value(parameter, point.x),
        "rate": format_rate_ci(rate),
        "readings": format_count(rate.n, "reading"),
    }


def curve_layers(curve: Curve, x: alt.X, y: alt.Y) -> list[AnyChart]:
    """Return faint raw readings, 95% error bars, the line and the means, back to front."""
    rows = [point_row(point, curve.parameter) for point in curve.points]
    raw = [
        {"x": point.x, "y": reading, "where": row["where"], "reading": f"{reading:,.4g} MB/s"}
        for point, row in zip(curve.points, rows, strict=True)
        for reading in point.readings_mb_s
    ]
    tips = tooltips(where="At", rate="Throughput (95% CI)", readings="From")
    raw_tips = tooltips(where="At", reading="One reading")
    means = alt.Chart(values(rows))
    bars = [row for row in rows if row["low"] is not None and row["high"] is not None]
    return [
        alt.Chart(values(raw)).mark_point(style="reading").encode(x=x, y=y, tooltip=raw_tips),
        *_error_bars(bars, x, y),
        means.mark_line(style="curve").encode(x=x, y=y),
        means.mark_point(style="mean").encode(x=x, y=y, tooltip=tips),
    ]


def _error_bars(bars: list[dict[str, Any]], x: alt.X, y: alt.Y) -> list[AnyChart]:
    if not bars:
        return []
    low, high = on_field(y, "low"), on_field(y, "high")
    chart = alt.Chart(values(bars))
    return [
        chart.mark_rule(style="interval", clip=True).encode(x=x, y=low, y2=alt.Y2("high:Q")),
        *(
            chart.mark_tick(
                style="interval", orient="horizontal", size=7, thickness=1.4, clip=True
            ).encode(x=x, y=end)
            for end in (low, high)
        ),
    ]


def good_band(curve: Curve, x: alt.X) -> list[AnyChart]:
    """Shade the workloads that reach 75% of the curve's best (CP94 Fig. 4)."""
    if curve.good_low is None or curve.good_high is None:
        return []
    row = {"low": curve.good_low, "high": curve.good_high}
    words = f"{format_value(curve.parameter, curve.good_low)} to " + format_value(
        curve.parameter, curve.good_high
    )
    tip = alt.Tooltip("words:N", title="75% of the best or more")
    chart = alt.Chart(values([row | {"words": words}]))
    return [
        chart.mark_rect(style="good").encode(
            x=on_field(x, "low"), x2=alt.X2("high:Q"), tooltip=tip
        ),
        *(chart.mark_rule(style="good-edge").encode(x=on_field(x, end)) for end in ("low", "high")),
    ]


def focal_mark(curve: Curve, x: alt.X, y: alt.Y) -> list[AnyChart]:
    """Mark the focal point: a diamond where it was measured, else a dashed rule."""
    at = float(getattr(curve.focal, curve.parameter))
    near = [point for point in curve.points if abs(point.x - at) <= 1e-6 * max(1.0, at)]
    if near:
        row = point_row(near[0], curve.parameter) | {"what": "focal point"}
        tips = tooltips(what="This is the", where="At", rate="Throughput (95% CI)")
        return [alt.Chart(values([row])).mark_point(style="focal").encode(x=x, y=y, tooltip=tips)]
    if not _inside(at, curve):
        return []
    row = {"x": at, "what": f"focal point: {format_value(curve.parameter, at)}"}
    tip = alt.Tooltip("what:N", title="This is the")
    return [
        alt.Chart(values([row])).mark_rule(style="focal-rule").encode(x=x, tooltip=tip),
        alt.Chart(values([row]))
        .mark_point(style="focal")
        .encode(x=x, y=alt.YValue({"expr": "height"}), tooltip=tip),
    ]


def _inside(at: float, curve: Curve) -> bool:
    xs = [point.x for point in curve.points]
    return min(xs) <= at <= max(xs)


def boundary_marks(
    boundaries: Sequence[tuple[Interval, str, str]],
    x: alt.X,
    title: str,
    *,
    label_y: Callable[[int], float | dict[str, str]],
    labelled: bool = True,
) -> list[AnyChart]:
    """Draw places on the x axis with their intervals.

    Args:
        boundaries: each with its label, and what it says when it is pointed at.
        x: the axis.
        title: of what it says.
        label_y: where each label stands.
        labelled: whether they are named there.

    """
    rows = [
        {
            "x": at.value,
            "low": at.low or at.value,
            "high": at.high or at.value,
            "label": label,
            "words": words,
        }
        for at, label, words in boundaries
    ]
    if not rows:
        return []
    tip = alt.Tooltip("words:N", title=title)
    chart = alt.Chart(values(rows))
    labels = [
        alt.Chart(values([row]))
        .mark_text(style="boundary-label", align="left", dx=6, baseline="top")
        .encode(x=x, y=alt.YValue(label_y(index)), text=alt.Text("label:N"))
        for index, row in enumerate(rows if labelled else ())
    ]
    return [
        chart.mark_rect(style="boundary-band").encode(
            x=on_field(x, "low"), x2=alt.X2("high:Q"), tooltip=tip
        ),
        chart.mark_rule(style="boundary").encode(x=x, tooltip=tip),
        *labels,
    ]


def finish(
    layers: Sequence[AnyChart], title: str, subtitle: str | list[str], size: tuple[int, int]
) -> alt.LayerChart:
    """Put layers, title, size in pixels and the light look together; a list has a line each."""
    said = subtitle if isinstance(subtitle, str) else " ".join(subtitle)
    return alt.LayerChart(
        layer=list(layers),
        width=size[0],
        height=size[1],
        description=f"{title}. {said}",
        title=alt.Title(title, subtitle=subtitle),
        config=config(background="#ffffff"),
    )


def throughput_range(curves: Sequence[Curve]) -> tuple[float, float]:
    """Least and most throughput over all readings and interval ends, in MB/s."""
    numbers = [
        number
        for curve in curves
        for point in curve.points
        for number in (
            *point.readings_mb_s,
            point.throughput_mb_s.value,
            point.throughput_mb_s.high or 0.0,
        )
    ]
    positive = [number for number in numbers if number > 0]
    return (min(positive), max(positive)) if positive else (0.0, 1.0)
