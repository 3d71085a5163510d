"""The miss-ratio curves of an application, and its streams over its phases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from leadline.charts.axes import bytes_x, on_field
from leadline.charts.drawable import Drawn
from leadline.charts.layers import TALL_PX, WIDE_PX, AnyChart, finish, tooltips, values
from leadline.charts.plain_page import PlainPage, PlainTable, save_plain
from leadline.charts.saving import Forms
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record.application import Application
from leadline.store import Store
from leadline.studies.application import text as tables
from leadline.studies.application.text import application_document
from leadline.units import format_bytes, format_percent

LRU, TWO_LISTS = "LRU", "active/inactive LRU"


def miss_ratio_chart(study: Application) -> alt.LayerChart:
    """Draw misses over the size of a page cache, under LRU and under active/inactive LRU."""
    points = study.found.reuse.points
    rows = [
        {
            "x": float(point.cache_bytes),
            "y": ratio,
            "low": max(0.0, ratio - 1.96 * (error or 0.0)),
            "high": min(1.0, ratio + 1.96 * (error or 0.0)),
            "policy": policy,
            "where": format_bytes(point.cache_bytes),
            "said": format_percent(ratio),
        }
        for policy in (LRU, TWO_LISTS)
        for point in points
        for ratio, error in [
            (point.lru, point.lru_error) if policy == LRU else (point.two_lists, None)
        ]
        if ratio is not None
    ]
    x = bytes_x([float(point.cache_bytes) for point in points], "Size of a page cache (log scale)")
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
    return finish(
        layers,
        f"What page caches miss of {study.start.system}",
        _subtitle(study),
        (WIDE_PX, TALL_PX),
    )


def _floor(study: Application, y: alt.Y) -> list[AnyChart]:
    """Mark the compulsory misses, below which no cache comes."""
    share = study.found.reuse.first_touches
    row = {"y": share, "words": f"compulsory misses: {format_percent(share)}"}
    tip = alt.Tooltip("words:N", title="No cache misses fewer")
    return [alt.Chart(values([row])).mark_rule(style="boundary").encode(y=y, tooltip=tip)]


def _subtitle(study: Application) -> str:
    reuse = study.found.reuse
    whole = (
        "every page was looked at"
        if reuse.rate == 1.0
        else (f"{format_percent(reuse.rate)} of its pages were looked at; bars: 95% intervals")
    )
    return (
        f"{reuse.references:,} references to pages of {format_bytes(reuse.page_bytes)}; {whole}. "
        "Dashed: compulsory misses, which no cache saves."
    )


# An application as a file: the page, or the miss-ratio curve.

_FORMS = Forms("an application", ".html, .svg, .png or .pdf")
require_format = _FORMS.require


def application_charts(study: Application) -> dict[str, Drawn]:
    """Return the miss-ratio curve."""
    return {"miss-ratios": miss_ratio_chart(study)}


def application_page(study: Application) -> PlainPage:
    """Return what the page says, in its order."""
    start, found = study.start, study.found
    return PlainPage(
        brand="application",
        title=f"What {start.system} asks of storage",
        sub=f"{start.trace} · {start.started_at[:10]} · study {start.study_id[:8]}",
        status=study.status,
        sentences=found.sentences,
        warnings=found.findings,
        charts=application_charts(study),
        tables=[
            PlainTable("CP94's five numbers", tables.FIVE_HEADS, tables.five_rows(study)),
            PlainTable("Streams", tables.STREAM_HEADS, tables.stream_rows(study.phases)),
            PlainTable("Phases", tables.PHASE_HEADS, tables.phase_rows(study.phases)),
            PlainTable("Caches", tables.CACHE_HEADS, tables.cache_rows(study)),
            PlainTable("Syncs and metadata", tables.CALL_HEADS, tables.call_rows(study.phases)),
            *_files(study),
        ],
        document=application_document(study),
    )


def _files(study: Application) -> list[PlainTable]:
    rows = tables.file_rows(study)
    return [PlainTable("Files", tables.FILE_HEADS, rows)] if rows else []


def save_study(_store: Store, study: Application, path: Path, _beside: Sequence[str]) -> None:
    """Draw a study to a file; nothing is drawn beside it."""
    save_plain(_FORMS, path, lambda: application_page(study))


def charts_of(study: Application) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return application_charts(study)
