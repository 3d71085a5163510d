"""The response surface as lines: what one factor brings at each level of the other."""

from __future__ import annotations

from typing import Any

import altair as alt

from leadline.record.workbench import Surface
from leadline.report.drawing.axes import on_field
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.report.workbench.surface.planes import Plane, rate_range
from leadline.report.workbench.words import say_peak
from leadline.studies.workbench.answer import say_sample

_HEIGHT_PX = 280


def lines_chart(plane: Plane, surface: Surface) -> alt.LayerChart:
    """Draw one plane: rates along x, a line for each level of y, intervals as bars."""
    rows: list[dict[str, Any]] = [
        {
            "x": plane.x_names[at],
            "place": at,
            "rate": cell.rate_per_s.value,
            "low": cell.rate_per_s.low,
            "high": cell.rate_per_s.high,
            "series": "" if plane.y is None else f"{plane.y.name} {plane.y_names[row]}",
            "how": "measured" if cell.measured else "predicted",
            "sample": say_sample(cell.sample),
            "said": say_peak(cell.rate_per_s),
        }
        for (at, row), cell in sorted(plane.cells.items())
        if cell.rate_per_s is not None
    ]
    x = alt.X(
        "x:O",
        sort=plane.x_names,
        scale=alt.Scale(type="point", padding=0.4),
        axis=alt.Axis(title=plane.x.name, labelAngle=0, labelOverlap="parity"),
    )
    most = max([rate_range(surface)[1], *(row["high"] or 0.0 for row in rows)])
    y = alt.Y(
        "rate:Q",
        scale=alt.Scale(domain=[0, most * 1.06], nice=False),
        axis=alt.Axis(title="Peak rate (requests/s)", format=",~r", tickCount=5),
    )
    bars = [row for row in rows if row["low"] is not None and row["high"] is not None]
    layers: list[AnyChart] = [
        alt.Chart(values(bars))
        .mark_rule(strokeWidth=1.4, opacity=0.7, clip=True)
        .encode(x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=_colour(plane)),
        alt.Chart(values(rows))
        .mark_line(strokeWidth=1.8)
        .encode(x=x, y=y, color=_colour(plane), order=alt.Order("place:Q")),
        *(
            _points([row for row in rows if row["how"] == how], plane, x, y)
            for how in ("predicted", "measured")
        ),
    ]
    title = f"Peak rate against {plane.x.name}"
    if plane.fixed:
        title += f", {plane.where}"
    said = "With intervals."
    if any(row["how"] == "predicted" for row in rows):
        said += " Filled marks were measured, the others are predicted."
    return finish(layers, title, said, (NARROW_PX, _HEIGHT_PX))


def _series(plane: Plane) -> list[str]:
    return [""] if plane.y is None else [f"{plane.y.name} {name}" for name in plane.y_names]


def _colour(plane: Plane) -> alt.Color:
    return alt.Color("series:N", scale=alt.Scale(domain=_series(plane)), legend=_legend(plane))


def _legend(plane: Plane) -> alt.Legend | None:
    """One for all marks: Vega-Lite merges those that are the same."""
    return None if plane.y is None else alt.Legend(title=None, columns=4)


def _points(rows: list[dict[str, Any]], plane: Plane, x: alt.X, y: alt.Y) -> AnyChart:
    names = _series(plane)
    shapes = [SYSTEM_SHAPES[number % len(SYSTEM_SHAPES)] for number in range(len(names))]
    measured = bool(rows) and rows[0]["how"] == "measured"
    tips = tooltips(sample="Configuration", said="Peak rate", how="This was")
    marks: AnyChart = (
        alt.Chart(values(rows))
        .mark_point(filled=measured, size=50, opacity=1)
        .encode(
            x=x,
            y=y,
            color=_colour(plane),
            tooltip=tips,
            shape=alt.Shape(
                "series:N", scale=alt.Scale(domain=names, range=shapes), legend=_legend(plane)
            ),
        )
    )
    return marks
