"""Charts of a response surface: lines over one factor, maps over two."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.charts.axes import on_field
from leadline.charts.layers import NARROW_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record.workbench import Surface, SurfaceCell
from leadline.studies.workbench.answer import format_sample
from leadline.studies.workbench.surface.text import Plane, rate_range
from leadline.studies.workbench.text import format_cost, format_half_brief, format_load, format_peak

# The response surface as lines: what one factor brings at each level of the other.

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
            "sample": format_sample(cell.sample),
            "said": format_peak(cell.rate_per_s),
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


# The response surface as a heat map (SH08 Fig. 2 from above): numbers, doubts, the ideal.

_CELL_PX = 54
_NUMBERS_COLUMNS_MAX = 12
"""With more columns a number has no room in its cell; it is in the tooltip."""
_DARK_FROM = 0.5
"""From this share of the colours on, a number on them has to be of the other brightness."""


def map_chart(
    plane: Plane, surface: Surface, costs: dict[str, float], *, wide: bool
) -> alt.LayerChart:
    """Draw one plane.

    Args:
        plane: what to draw.
        surface: of which it is a part; its rates are the colours' ends.
        costs: bench seconds of the measured samples, by `format_sample`.
        wide: whether it has the whole width of a page.

    """
    low, high = rate_range(surface)
    rows = [
        _row(plane, place, cell, (low, high), costs) for place, cell in sorted(plane.cells.items())
    ]
    x, y = _axes(plane)
    known = [row for row in rows if row["rate"] is not None]
    tips = tooltips(sample="Configuration", said="Peak rate", how="From")
    colour = alt.Color(
        "rate:Q",
        scale=alt.Scale(domain=[low, max(high, low * 1.001)], range="heatmap"),
        legend=alt.Legend(
            title="Peak rate (requests/s)",
            direction="horizontal",
            format=",~r",
            gradientLength=180,
            tickCount=4,
        ),
    )
    layers: list[AnyChart] = [
        alt.Chart(values(known))
        .mark_rect(style="cell")
        .encode(x=x, y=y, color=colour, tooltip=tips),
        *_unknown([row for row in rows if row["rate"] is None], x, y, tips),
        *(_numbers(known, x, y) if len(plane.x.levels) <= _NUMBERS_COLUMNS_MAX else []),
        *_outlines([row for row in known if row["measured"]], "measured-cell", x, y),
        *_outlines([row for row in rows if row["ideal"]], "ideal-cell", x, y),
    ]
    size = (WIDE_PX if wide else NARROW_PX, max(_CELL_PX * plane.rows, 2 * _CELL_PX))
    title = f"Peak rate by {plane.x.name}"
    if plane.y is not None:
        title += f" and {plane.y.name}"
    if plane.fixed:
        title += f", {plane.where}"
    return finish(layers, title, _subtitle(rows), size)


def _row(
    plane: Plane,
    place: tuple[int, int],
    cell: SurfaceCell,
    ends: tuple[float, float],
    costs: dict[str, float],
) -> dict[str, Any]:
    rate = cell.rate_per_s
    name = format_sample(cell.sample)
    low, high = ends
    share = 0.0 if rate is None or high <= low else (rate.value - low) / (high - low)
    how = f"measured in {format_cost(costs[name])}" if name in costs else "measured"
    return {
        "x": plane.x_names[place[0]],
        "y": plane.y_names[place[1]],
        "rate": None if rate is None else rate.value,
        "number": "" if rate is None else format_load(rate.value),
        "half": format_half_brief(rate),
        "deep": share >= _DARK_FROM,
        "measured": cell.measured,
        "ideal": place == plane.ideal,
        "sample": name,
        "said": format_peak(rate) if rate is not None else "no number",
        "how": how if cell.measured else "predicted",
    }


def _axes(plane: Plane) -> tuple[alt.X, alt.Y]:
    x = alt.X(
        "x:O",
        sort=plane.x_names,
        axis=alt.Axis(
            title=plane.x.name, labelAngle=0, labelOverlap="parity", ticks=False, domain=False
        ),
    )
    levels = [] if plane.y is None else plane.y_names[::-1]
    title = None if plane.y is None else plane.y.name
    y = alt.Y("y:O", sort=levels, axis=alt.Axis(title=title, ticks=False, domain=False))
    return x, y


def _unknown(
    rows: Sequence[dict[str, Any]], x: alt.X, y: alt.Y, tips: list[alt.Tooltip]
) -> list[AnyChart]:
    if not rows:
        return []
    chart = alt.Chart(values(rows))
    return [
        chart.mark_rect(style="empty-cell").encode(x=x, y=y, tooltip=tips),
        chart.mark_text(style="small-label", text="none").encode(x=x, y=y),
    ]


def _numbers(rows: Sequence[dict[str, Any]], x: alt.X, y: alt.Y) -> list[AnyChart]:
    """Write rate and doubt into the cells: what is predicted, in lighter letters."""
    layers: list[AnyChart] = []
    for deep in (False, True):
        tone = "deep" if deep else "pale"
        for measured in (False, True):
            part = [row for row in rows if row["deep"] is deep and row["measured"] is measured]
            if not part:
                continue
            chart = alt.Chart(values(part))
            number = chart.mark_text(
                style=f"{tone}-cell-text", dy=-6, fontWeight="bold" if measured else "normal"
            )
            doubt = chart.mark_text(style=f"{tone}-cell-text", dy=9, fontSize=10)
            layers += [
                number.encode(x=x, y=y, text=alt.Text("number:N")),
                doubt.encode(x=x, y=y, text=alt.Text("half:N")),
            ]
    return layers


def _outlines(rows: Sequence[dict[str, Any]], style: str, x: alt.X, y: alt.Y) -> list[AnyChart]:
    if not rows:
        return []
    return [alt.Chart(values(rows)).mark_rect(style=style).encode(x=x, y=y)]


def _subtitle(rows: Sequence[dict[str, Any]]) -> str:
    measured = sum(row["measured"] for row in rows)
    said = "Below each rate half its interval."
    if measured < len(rows):
        said += f" Bold in a frame: measured ({measured} of {len(rows)}); the others are predicted."
    if any(row["ideal"] for row in rows):
        said += " Thick frame: the least that gives the best rate."
    return said
