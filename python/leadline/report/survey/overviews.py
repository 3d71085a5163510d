"""Charts across systems and across time: the summary (CP94 Fig. 10) and the sentinels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record import Curve, CurvePoint, Survey
from leadline.record.findings import told_drift
from leadline.record.wording import say_change, say_rate, say_step
from leadline.report.drawing.axes import bytes_x, on_field, throughput_y
from leadline.report.drawing.layers import (
    LOW_PX,
    NARROW_PX,
    TALL_PX,
    WIDE_PX,
    AnyChart,
    finish,
    throughput_range,
    tooltips,
    values,
)
from leadline.report.drawing.scale import wants_log
from leadline.report.drawing.theme import SYSTEM_DASHES, SYSTEM_SHAPES
from leadline.units import format_bytes, format_rate

_SIGNED_EXPR = "datum.value === 0 ? '0' : format(datum.value, '+~r')"


def summary_chart(surveys: Sequence[Survey]) -> alt.LayerChart:
    """Draw the unique_bytes curves of one or several surveys on one chart (CP94 Fig. 10)."""
    drawn = [survey for survey in surveys if survey.unique_bytes_curve.points]
    if not drawn:
        raise ValueError("no survey with a curve over the bytes touched: nothing to draw")
    return curves_chart(_names(drawn), [survey.unique_bytes_curve for survey in drawn])


def curves_chart(names: Sequence[str], curves: Sequence[Curve]) -> alt.LayerChart:
    """Draw curves over the bytes touched on one chart, each under its system's name."""
    least, most = throughput_range(curves)
    rows = [
        system_row(name, point, format_bytes(point.x))
        for name, curve in zip(names, curves, strict=True)
        for point in curve.points
    ]
    x = bytes_x([float(str(row["x"])) for row in rows], "Bytes touched (unique_bytes, log scale)")
    y = throughput_y(least, most, log=wants_log(least, most))
    return finish(
        system_layers(rows, names, x, y),
        _summary_title(names, least, most),
        "Each at its own focal workload; bands: 95 % intervals.",
        (WIDE_PX, TALL_PX),
    )


def _summary_title(names: Sequence[str], least_mb_s: float, most_mb_s: float) -> str:
    span = f"{format_rate(most_mb_s)} at most, {format_rate(least_mb_s)} at least"
    return f"{names[0] if len(names) == 1 else f'{len(names)} systems'}: {span}"


def _names(surveys: Sequence[Survey]) -> list[str]:
    """Tell surveys of one system apart by the start of their ids."""
    systems = [survey.start.system for survey in surveys]
    return [
        name if systems.count(name) == 1 else f"{name} ({survey.start.study_id[:8]})"
        for name, survey in zip(systems, surveys, strict=True)
    ]


def system_row(name: str, point: CurvePoint, where: str) -> dict[str, Any]:
    """Return a system's point as `system_layers` draws it."""
    rate = point.throughput_mb_s
    return {
        "x": point.x,
        "y": rate.value,
        "low": rate.low,
        "high": rate.high,
        "system": name,
        "where": where,
        "rate": say_rate(rate),
    }


def system_layers(
    rows: list[dict[str, Any]],
    names: Sequence[str],
    x: alt.X,
    y: alt.Y,
    *,
    between: list[dict[str, Any]] | None = None,
) -> list[AnyChart]:
    """Draw one line per system, told apart by colour, dash and shape, with bands for intervals.

    `rows` are of `system_row`; `between` has the line's own places where
    straight lines from point to point would mislead.
    """
    lined = rows if between is None else between
    series = len(names)
    # Each round of colours begins one dash and two shapes later, so that no two systems look alike.
    rounds = [at // len(SYSTEM_DASHES) for at in range(series)]
    dashes = [SYSTEM_DASHES[(at + rounds[at]) % len(SYSTEM_DASHES)] for at in range(series)]
    shapes = [SYSTEM_SHAPES[(at + 2 * rounds[at]) % len(SYSTEM_SHAPES)] for at in range(series)]
    colour = alt.Color(
        "system:N", scale=alt.Scale(domain=list(names)), legend=alt.Legend(title="System")
    )
    dash = alt.StrokeDash(
        "system:N",
        scale=alt.Scale(domain=list(names), range=dashes),
        legend=alt.Legend(title="System"),
    )
    shape = alt.Shape(
        "system:N",
        scale=alt.Scale(domain=list(names), range=shapes),
        legend=alt.Legend(title="System"),
    )
    tips = tooltips(system="System", where="At", rate="Throughput (95 %)")
    banded = [row for row in lined if row["low"] is not None and row["high"] is not None]
    chart = alt.Chart(values(rows))
    band = alt.Chart(values(banded)).mark_area(opacity=0.16, clip=True)
    return [
        band.encode(x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=colour),
        alt.Chart(values(lined))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, color=colour, strokeDash=dash),
        chart.mark_point(filled=True, size=60, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]


def sentinels_chart(survey: Survey) -> alt.LayerChart:
    """Draw the focal points measured again over time, each level against its own mean."""
    names = {region.index: region.name for region in survey.regions}
    rows = []
    for index in sorted({sentinel.region for sentinel in survey.sentinels}):
        own = [sentinel for sentinel in survey.sentinels if sentinel.region == index]
        mean = sum(sentinel.throughput_mb_s for sentinel in own) / len(own)
        rows += [
            {
                "x": sentinel.clock_s / 60,
                "y": 100 * (sentinel.throughput_mb_s / mean - 1),
                "region": names.get(index, f"region {index}"),
                "rate": f"{sentinel.throughput_mb_s:,.4g} MB/s",
            }
            for sentinel in own
            if mean > 0
        ]
    labels = list(dict.fromkeys(str(row["region"]) for row in rows))
    reach = max([abs(float(str(row["y"]))) for row in rows] + [5.0]) * 1.1
    x = alt.X("x:Q", axis=alt.Axis(title="Time since the survey began (min)", tickCount=6))
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[-reach, reach], nice=False),
        axis=alt.Axis(title="Against its own mean (%)", tickCount=5, labelExpr=_SIGNED_EXPR),
    )
    shapes = list(SYSTEM_SHAPES[: len(labels)])
    colour = alt.Color("region:N", scale=alt.Scale(domain=labels), legend=alt.Legend(title="Level"))
    shape = alt.Shape(
        "region:N", scale=alt.Scale(domain=labels, range=shapes), legend=alt.Legend(title="Level")
    )
    tips = tooltips(region="Level", rate="One reading")
    chart = alt.Chart(values(rows))
    layers: list[AnyChart] = [
        alt.Chart(values([{"y": 0}])).mark_rule(style="average").encode(y=y),
        chart.mark_line(strokeWidth=1, opacity=0.6).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=70, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]
    return finish(
        layers, drift_title(survey), "The focal points, measured again.", (NARROW_PX, LOW_PX)
    )


def drift_title(survey: Survey) -> str:
    """Say whether the system moved during the survey."""
    if survey.drift_step is not None:
        return f"The system {say_step(survey.drift_step)}"
    drift = told_drift(survey.drift_frac)
    if drift is None:
        return "Drift cannot be told"
    said = "No drift shown" if drift.covers(0.0) else "The system drifted"
    return f"{said}: {say_change(drift)}"
