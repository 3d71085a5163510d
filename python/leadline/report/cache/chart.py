"""The file cache of one system: throughput of reads alone and of writes alone over bytes touched.

CP94 Fig. 8 (Sprite and Ultrix) has one curve of half reads and half writes; taken apart, the two
sizes of such a cache are two borders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record import CacheStudy, Curve, FileCache
from leadline.record.wording import say_bytes
from leadline.report.drawing.axes import bytes_x, on_field, throughput_y
from leadline.report.drawing.layers import (
    TALL_PX,
    WIDE_PX,
    AnyChart,
    border_marks,
    finish,
    point_row,
    throughput_range,
    tooltips,
    values,
)
from leadline.report.drawing.scale import wants_log
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.units import format_bytes

KINDS = ("reads", "writes")


def cache_chart(study: CacheStudy) -> alt.LayerChart | None:
    """Draw both curves with the sizes found; None when nothing was measured."""
    if not study.curves:
        return None
    least, most = throughput_range(study.curves)
    x = bytes_x(
        [point.x for curve in study.curves for point in curve.points],
        "Bytes touched (unique_bytes, log scale)",
    )
    y = throughput_y(least, most, headroom=1.2, log=wants_log(least, most))
    layers = [*_size_layers(study.cache, x), *_curves(study.curves, x, y)]
    size = format_bytes(study.start.plan.size_mean)
    subtitle = (
        f"{size} random requests, reads alone and writes alone. Bars: 95 % intervals; dashed: "
        "where each kind outgrows the cache, with its 95 % interval."
    )
    return finish(layers, _title(study), subtitle, (WIDE_PX, TALL_PX))


def _title(study: CacheStudy) -> str:
    found = study.cache
    sizes = [
        f"{format_bytes(size.bytes.value)} for {kind}"
        for kind, size in zip(KINDS, (found.reads, found.writes), strict=True)
        if size.bytes is not None
    ]
    held = f"holds {' and '.join(sizes)}" if sizes else "no border shown"
    return f"File cache of {study.start.system}: {held}, {found.policy.value}"


def _curves(curves: Sequence[Curve], x: alt.X, y: alt.Y) -> list[AnyChart]:
    rows: list[dict[str, Any]] = []
    for curve in curves:
        kind = KINDS[0] if curve.focal.read_frac == 1.0 else KINDS[1]
        rows += [point_row(point, "unique_bytes") | {"kind": kind} for point in curve.points]
    shapes = alt.Scale(domain=list(KINDS), range=list(SYSTEM_SHAPES[: len(KINDS)]))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(KINDS)))
    shape = alt.Shape("kind:N", title=None, scale=shapes)
    tips = tooltips(kind="Requests", where="At", rate="Throughput (95 %)", readings="From")
    chart = alt.Chart(values(rows))
    bars = alt.Chart(values(row for row in rows if row["low"] is not None))
    return [
        bars.mark_rule(strokeWidth=1.4, clip=True).encode(
            x=x, y=on_field(y, "low"), y2=alt.Y2("high:Q"), color=colour
        ),
        chart.mark_line(strokeWidth=2).encode(x=x, y=y, color=colour),
        chart.mark_point(filled=True, size=52, opacity=1).encode(
            x=x, y=y, color=colour, shape=shape, tooltip=tips
        ),
    ]


def _size_layers(found: FileCache, x: alt.X) -> list[AnyChart]:
    sizes = [
        (
            size.bytes,
            f"{kind}: {format_bytes(size.bytes.value)}",
            f"{kind} up to {say_bytes(size.bytes)}",
        )
        for kind, size in zip(KINDS, (found.reads, found.writes), strict=True)
        if size.bytes is not None
    ]
    return border_marks(sizes, x, "Held (95 %)", label_y=lambda index: 2 + 16 * index)
