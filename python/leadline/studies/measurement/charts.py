"""Charts of measurements: response times, throughput over the window, several side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import altair as alt

from leadline.charts.bars import bar, bars
from leadline.charts.drawable import Drawn
from leadline.charts.layers import TALL_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.charts.plain_page import PlainPage, PlainTable, save_plain
from leadline.charts.saving import Forms
from leadline.charts.scale import wants_log
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record import Measurement
from leadline.record.finding import Finding
from leadline.record.measurement import Measured
from leadline.record.wording import format_rate_ci, format_workload
from leadline.store import Store
from leadline.studies.measurement.text import measurement_rows, sentences_of, under_name
from leadline.units import format_rate, format_seconds

SLICES_MIN = 4
"""Fewer slices of a window draw no course."""
_PERCENTILES = ("p50", "p90", "p99", "p99.9", "max")
_TIME_EXPR = (
    "datum.value >= 1e6 ? format(datum.value / 1e6, '~r') + ' s' : "
    "datum.value >= 1e3 ? format(datum.value / 1e3, '~r') + ' ms' : "
    "datum.value === 0 ? '0' : format(datum.value, '~r') + ' µs'"
)
"""Labels of microseconds in the unit that fits each."""
_LOG_FROM = 25.0


def measurement_charts(study: Measured) -> dict[str, Drawn]:
    """Return what there is to see: several beside each other, then of each what is known.

    `rates`; `response-<order>` and `window-<order>` for each measured workload.
    """
    charts: dict[str, Drawn] = {}
    if len(study.points) > 1:
        charts["rates"] = rates_chart(study)
    for point in study.points:
        response = response_chart(point)
        if response is not None:
            charts[f"response-{point.order}"] = response
    for point in study.points:
        window = window_chart(point)
        if window is not None:
            charts[f"window-{point.order}"] = window
    return charts


def rates_chart(study: Measured) -> alt.LayerChart:
    """Draw the throughput of each workload with its interval."""
    rows = [
        bar(
            name or f"{number}: {format_workload(point.workload)}",
            point.result.throughput_mb_s,
            format_rate_ci(point.result.throughput_mb_s),
        )
        for number, (name, point) in enumerate(zip(study.names, study.points, strict=True), 1)
    ]
    rates = [float(row["x"]) for row in rows]
    title = f"{len(rows)} workloads: {format_rate(min(rates))} to {format_rate(max(rates))}"
    log = wants_log(min(rates), max(rates))
    axis = alt.Axis(title=f"Throughput (MB/s{', log scale' if log else ''})", tickCount=5)
    return bars(rows, axis, title, "Lines: 95% intervals.", log=log)


def response_chart(point: Measurement) -> alt.LayerChart | None:
    """Draw the percentiles of reads' and writes' response times; None where none was timed."""
    found = [
        (name, summary.latency_us)
        for name, summary in (("reads", point.result.read), ("writes", point.result.write))
        if summary.latency_us is not None
    ]
    if not found:
        return None
    times = {name: (at.p50, at.p90, at.p99, at.p99_9, at.max) for name, at in found}
    most = max(max(each) for each in times.values())
    least = min(min(each) for each in times.values())
    rows = [
        {"of": name, "at": at, "y": us, "said": format_seconds(us / 1e6)}
        for name, each in times.items()
        for at, us in zip(_PERCENTILES, each, strict=True)
    ]
    log = least > 0 and most > _LOG_FROM * least
    said = "; ".join(
        f"{name} p50 {format_seconds(at.p50 / 1e6)}, p99 {format_seconds(at.p99 / 1e6)}"
        for name, at in found
    )
    layers = _response_layers(rows, list(times), log=log)
    return finish(layers, f"Response times: {said}", format_workload(point.workload), _SIZE)


_SIZE = (WIDE_PX, TALL_PX)


def _response_layers(
    rows: list[dict[str, Any]], names: Sequence[str], *, log: bool
) -> list[AnyChart]:
    x = alt.X("at:N", sort=list(_PERCENTILES), axis=alt.Axis(title=None, labelAngle=0))
    scale = alt.Scale(type="log", nice=False, padding=8) if log else alt.Scale(zero=True)
    axis = alt.Axis(
        title=f"Response time{' (log scale)' if log else ''}",
        tickCount=5,
        values=[10.0**power for power in range(-3, 9)] if log else alt.Undefined,
        labelExpr=_TIME_EXPR,
    )
    y = alt.Y("y:Q", scale=scale, axis=axis)
    legend = alt.Legend(title=None)
    colour = alt.Color("of:N", scale=alt.Scale(domain=list(names)), legend=legend)
    shapes = alt.Scale(domain=list(names), range=list(SYSTEM_SHAPES[: len(names)]))
    shape = alt.Shape("of:N", scale=shapes, legend=legend)
    tips = tooltips(of="Of", at="Percentile", said="Response time")
    chart = alt.Chart(values(rows))
    return [
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]


def window_chart(point: Measurement) -> alt.LayerChart | None:
    """Draw throughput over the measured window; None when its slices are not known, or few."""
    slices = [each for each in point.result.intervals if each.seconds > 0]
    if len(slices) < SLICES_MIN:
        return None
    short = slices[-1].start_s < 0.1
    rows = [
        {
            "x": each.start_s * (1e3 if short else 1.0),
            "y": each.bytes / each.seconds / 1e6,
            "series": "window",
        }
        for each in slices
    ]
    unit = "Milliseconds" if short else "Seconds"
    line = (
        alt.Chart(values(rows))
        .mark_line(style="curve", interpolate="step-after")
        .encode(
            x=alt.X("x:Q", axis=alt.Axis(title=f"{unit} into the measured window", tickCount=8)),
            y=alt.Y("y:Q", axis=alt.Axis(title="Throughput (MB/s)", tickCount=5)),
        )
    )
    title = f"Throughput from moment to moment: {format_rate_ci(point.result.throughput_mb_s)}"
    return finish([line], title, format_workload(point.workload), _SIZE)


# Measurements as a page: how fast from moment to moment, and everything known of each.

_FORMS = Forms(
    "a measurement",
    ".html, .svg, .png or .pdf",
    nothing="no response times and no slices of a window are stored, so there is nothing to draw",
)
require_format = _FORMS.require


def measurement_page(study: Measured) -> PlainPage:
    """Return what the page says, in its order."""
    start, points = study.start, study.points
    return PlainPage(
        brand="measurement",
        title=f"Measured on {start.system}",
        sub=f"{start.target} · {start.started_at[:10]} · study {start.study_id[:8]}",
        status=study.status,
        sentences=sentences_of(study),
        warnings=list(_findings(points)),
        charts=measurement_charts(study),
        tables=[
            PlainTable(
                under_name(name, format_workload(point.workload)), (), measurement_rows(point)
            )
            for name, point in zip(study.names, points, strict=True)
        ],
        document=list(points),
    )


def _findings(points: Sequence[Measurement]) -> Iterator[Finding]:
    for point in points:
        yield from point.findings
        yield from point.result.findings


def save_study(_store: Store, study: Measured, path: Path, _beside: Sequence[str]) -> None:
    """Draw a study to a file; nothing is drawn beside it."""
    save_plain(_FORMS, path, lambda: measurement_page(study))


def charts_of(study: Measured) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return measurement_charts(study)
