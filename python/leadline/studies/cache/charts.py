"""The page cache of one system: throughput of reads alone and of writes alone over the working set.

CP94 Fig. 8 (Sprite and Ultrix) has one curve of half reads and half writes; taken apart, the two
sizes of such a cache are two boundaries.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from leadline.charts.axes import bytes_x, on_field, throughput_y
from leadline.charts.drawable import Drawn
from leadline.charts.layers import (
    TALL_PX,
    WIDE_PX,
    AnyChart,
    boundary_marks,
    finish,
    point_row,
    throughput_range,
    tooltips,
    values,
)
from leadline.charts.plain_page import PlainPage, PlainTable, save_plain
from leadline.charts.saving import Forms
from leadline.charts.scale import wants_log
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record import CacheStudy, Curve, FileCache
from leadline.record.wording import format_bytes_ci
from leadline.store import Store
from leadline.studies.cache.text import EVIDENCE_HEADS, evidence_rows, size_heads, size_rows
from leadline.studies.cache.write_costs import HEADS, discipline_rows
from leadline.units import format_bytes

KINDS = ("reads", "writes")


def cache_chart(study: CacheStudy) -> alt.LayerChart | None:
    """Draw both curves with the sizes found; None when nothing was measured."""
    if not study.curves:
        return None
    least, most = throughput_range(study.curves)
    x = bytes_x(
        [point.x for curve in study.curves for point in curve.points],
        "Working set (unique_bytes, log scale)",
    )
    y = throughput_y(least, most, headroom=1.2, log=wants_log(least, most))
    layers = [*_size_layers(study.cache, x), *_curves(study.curves, x, y)]
    size = format_bytes(study.start.plan.size_mean)
    subtitle = (
        f"{size} random requests, reads alone and writes alone. Bars: 95% intervals; dashed: "
        "where each kind outgrows the cache, with its 95% interval."
    )
    return finish(layers, _title(study), subtitle, (WIDE_PX, TALL_PX))


def _title(study: CacheStudy) -> str:
    found = study.cache
    sizes = [
        f"{format_bytes(size.bytes.value)} for {kind}"
        for kind, size in zip(KINDS, (found.reads, found.writes), strict=True)
        if size.bytes is not None
    ]
    held = f"holds {' and '.join(sizes)}" if sizes else "no boundary shown"
    return f"Page cache of {study.start.system}: {held}, {found.policy.value}"


def _curves(curves: Sequence[Curve], x: alt.X, y: alt.Y) -> list[AnyChart]:
    rows: list[dict[str, Any]] = []
    for curve in curves:
        kind = KINDS[0] if curve.focal.read_frac == 1.0 else KINDS[1]
        rows += [point_row(point, "unique_bytes") | {"kind": kind} for point in curve.points]
    shapes = alt.Scale(domain=list(KINDS), range=list(SYSTEM_SHAPES[: len(KINDS)]))
    colour = alt.Color("kind:N", title=None, scale=alt.Scale(domain=list(KINDS)))
    shape = alt.Shape("kind:N", title=None, scale=shapes)
    tips = tooltips(kind="Requests", where="At", rate="Throughput (95% CI)", readings="From")
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
            f"{kind} up to {format_bytes_ci(size.bytes)}",
        )
        for kind, size in zip(KINDS, (found.reads, found.writes), strict=True)
        if size.bytes is not None
    ]
    return boundary_marks(sizes, x, "Held (95% CI)", label_y=lambda index: 2 + 16 * index)


# A study of a page cache as a file: the page, or the chart.

_FORMS = Forms(
    "a study of a page cache",
    ".html, .svg, .png or .pdf",
    nothing="nothing was measured yet: go on with leadline cache … --resume",
)
require_format = _FORMS.require


def cache_charts(study: CacheStudy) -> dict[str, Drawn]:
    """Return the chart of the sizes, if anything was measured."""
    chart = cache_chart(study)
    return {} if chart is None else {"cache": chart}


def cache_page(study: CacheStudy) -> PlainPage:
    """Return what the page says, in its order."""
    start, found = study.start, study.cache
    disciplines = study.disciplines
    told = [*(disciplines.sentences if disciplines else ())]
    told += [study.flusher.sentence] if study.flusher else []
    return PlainPage(
        brand="page cache",
        title=f"Page cache of {start.system}",
        sub=f"{start.target} · {start.started_at[:10]} · study {start.study_id[:8]}",
        status=study.status,
        sentences=[*found.sentences, *told, *(f"n.m.: {why}." for why in study.left_out)],
        warnings=study.findings,
        charts=cache_charts(study),
        tables=[
            PlainTable("Sizes and rates", size_heads(found), size_rows(found)),
            PlainTable("What was seen of the write policy", EVIDENCE_HEADS, evidence_rows(found)),
            PlainTable("Write modes", HEADS, discipline_rows(disciplines) if disciplines else []),
        ],
        document=study,
    )


def save_study(_store: Store, study: CacheStudy, path: Path, _beside: Sequence[str]) -> None:
    """Draw a study to a file; nothing is drawn beside it."""
    save_plain(_FORMS, path, lambda: cache_page(study))


def charts_of(study: CacheStudy) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return cache_charts(study)
