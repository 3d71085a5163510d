"""The miss-ratio curves of an application, and its streams over its phases."""

from __future__ import annotations

import altair as alt

from leadline.record.application import Application
from leadline.report.drawing.axes import bytes_x, on_field
from leadline.report.drawing.layers import TALL_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.units import format_bytes, say_percent

LRU, TWO_LISTS = "LRU", "Linux's two lists"


def miss_ratio_chart(study: Application) -> alt.LayerChart:
    """Draw misses over the size of a file cache, under LRU and under the kernel's two lists."""
    points = study.found.reuse.points
    rows = [
        {
            "x": float(point.cache_bytes),
            "y": ratio,
            "low": max(0.0, ratio - 1.96 * (error or 0.0)),
            "high": min(1.0, ratio + 1.96 * (error or 0.0)),
            "policy": policy,
            "where": format_bytes(point.cache_bytes),
            "said": say_percent(ratio),
        }
        for policy in (LRU, TWO_LISTS)
        for point in points
        for ratio, error in [
            (point.lru, point.lru_error) if policy == LRU else (point.two_lists, None)
        ]
        if ratio is not None
    ]
    x = bytes_x([float(point.cache_bytes) for point in points], "Size of a file cache (log scale)")
    y = alt.Y(
        "y:Q",
        scale=alt.Scale(domain=[0, 1], nice=False),
        axis=alt.Axis(
            title="References that miss (%)", labelExpr="format(100 * datum.value, '~r')"
        ),
    )
    colour = alt.Color("policy:N", title=None, scale=alt.Scale(domain=[LRU, TWO_LISTS]))
    shape = alt.Shape(
        "policy:N",
        title=None,
        scale=alt.Scale(domain=[LRU, TWO_LISTS], range=list(SYSTEM_SHAPES[:2])),
    )
    chart = alt.Chart(values(rows))
    tips = tooltips(policy="Policy", where="Cache", said="Misses")
    layers: list[AnyChart] = [
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=40, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
        *_floor(study, y),
    ]
    if any(point.lru_error for point in points):
        layers.insert(
            0,
            chart.mark_rule(strokeWidth=1.4, clip=True).encode(
                x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=colour
            ),
        )
    return finish(layers, _title(study), _subtitle(study), (WIDE_PX, TALL_PX))


def _floor(study: Application, y: alt.Y) -> list[AnyChart]:
    """Mark the first touches, below which no cache comes."""
    share = study.found.reuse.first_touches
    row = {"y": share, "words": f"first touches: {say_percent(share)}"}
    tip = alt.Tooltip("words:N", title="No cache misses fewer")
    return [alt.Chart(values([row])).mark_rule(style="border").encode(y=y, tooltip=tip)]


def _title(study: Application) -> str:
    return f"What file caches miss of {study.start.system}"


def _subtitle(study: Application) -> str:
    reuse = study.found.reuse
    whole = (
        "every page was looked at"
        if reuse.rate == 1.0
        else (f"{say_percent(reuse.rate)} of its pages were looked at; bars: 95 % intervals")
    )
    return (
        f"{reuse.references:,} references to pages of {format_bytes(reuse.page_bytes)}; {whole}. "
        "Dashed: first touches, which no cache saves."
    )
