"""Rates of plain files, one chart for each of KM83's programs: file systems against each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import altair as alt

from leadline.record.files import FilesRow, FilesStudy
from leadline.record.jobs.file_test import FILE_PROGRAMS, KBYTE
from leadline.record.wording import say_count
from leadline.report.drawing.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.report.drawing.theme import SYSTEM_SHAPES
from leadline.report.files.terminal import say_fs, say_kbytes, say_percent_interval
from leadline.units import format_rate

_ROW_PX = 34
_HEAD_PX = 40


def files_charts(study: FilesStudy) -> dict[str, alt.LayerChart]:
    """Return a chart for each program that was measured, under the program's name."""
    found: dict[str, alt.LayerChart] = {}
    for test in FILE_PROGRAMS:
        rows = [row for row in study.rows if row.test == test and row.kbytes_s is not None]
        if rows:
            found[test] = _chart(test, rows)
    return found


def _chart(test: str, rows: Sequence[FilesRow]) -> alt.LayerChart:
    data = [_point(row) for row in rows]
    systems = list(dict.fromkeys(str(point["system"]) for point in data))
    counts = list(dict.fromkeys(str(point["drives"]) for point in data))
    y = alt.Y("system:N", sort=systems, axis=alt.Axis(title=None, labelLimit=220))
    x = alt.X("rate:Q", scale=alt.Scale(zero=True), axis=alt.Axis(title="MB/s", tickCount=5))
    offset = alt.YOffset("drives:N", sort=counts)
    colour = alt.Color("drives:N", scale=alt.Scale(domain=counts), legend=alt.Legend(title=None))
    shapes = alt.Scale(domain=counts, range=list(SYSTEM_SHAPES[: len(counts)]))
    shape = alt.Shape("drives:N", legend=alt.Legend(title=None), scale=shapes)
    tips = tooltips(
        system="File system",
        drives="At once",
        said="Kbytes/s (95 %)",
        cpu="CPU",
        raw="Of the raw device",
    )
    known = [point for point in data if point["low"] is not None]
    layers: list[AnyChart] = [
        alt.Chart(values(known))
        .mark_rule(strokeWidth=1.6, clip=True)
        .encode(y=y, yOffset=offset, x=alt.X("low:Q"), x2=alt.X2("high:Q"), color=colour),
        alt.Chart(values(data))
        .mark_point(filled=True, size=70, opacity=1)
        .encode(y=y, yOffset=offset, x=x, color=colour, shape=shape, tooltip=tips),
    ]
    best = max(rows, key=lambda row: row.kbytes_s.value if row.kbytes_s else 0.0)
    rate = best.kbytes_s.value * KBYTE / 1e6 if best.kbytes_s else 0.0
    title = f"{test}: {format_rate(rate)} at most, on {say_fs(best)}"
    height = _HEAD_PX + _ROW_PX * len(systems)
    return finish(layers, title, "All drives together; lines: 95 % intervals.", (NARROW_PX, height))


def _point(row: FilesRow) -> dict[str, Any]:
    rate = row.kbytes_s
    assert rate is not None  # noqa: S101 - only measured rows are drawn
    scale = KBYTE / 1e6
    return {
        "system": say_fs(row),
        "drives": say_count(row.drives, "drive"),
        "rate": rate.value * scale,
        "low": None if rate.low is None else rate.low * scale,
        "high": None if rate.high is None else rate.high * scale,
        "said": say_kbytes(rate),
        "cpu": say_percent_interval(row.cpu_percent),
        "raw": say_percent_interval(row.raw_percent),
    }
