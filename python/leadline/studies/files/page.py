"""A study of plain files drawn: charts of KM83's programs, the page, image files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import altair as alt

from leadline.charts.embedding import page_parts, render_page
from leadline.charts.layers import NARROW_PX, AnyChart, finish, tooltips, values
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
from leadline.charts.theme import SYSTEM_SHAPES
from leadline.record.files import FilesRow, FilesStudy
from leadline.record.jobs.file_test import FILE_PROGRAMS, KBYTE
from leadline.record.wording import format_count
from leadline.sanitize import to_csv
from leadline.store import Store
from leadline.studies.files.plan import number_rows
from leadline.studies.files.run import load_files
from leadline.studies.files.text import (
    NOT_MEASURED,
    SUSPECT,
    TableSection,
    format_fs,
    format_how,
    format_kbytes,
    format_missing,
    format_percent_interval,
    headline,
    table_lines,
    table_of,
)
from leadline.units import format_bytes, format_rate

# Rates of plain files, one chart for each of KM83's programs: file systems against each other.

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
        said="Kbytes/s (95% CI)",
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
    drives = format_count(best.drives, "drive")
    title = f"{test}: highest {format_rate(rate)}, {format_fs(best)}, {drives}"
    height = _HEAD_PX + _ROW_PX * len(systems)
    return finish(layers, title, "All drives together; lines: 95% intervals.", (NARROW_PX, height))


def _point(row: FilesRow) -> dict[str, Any]:
    rate = row.kbytes_s
    assert rate is not None  # noqa: S101 - only measured rows are drawn
    scale = KBYTE / 1e6
    return {
        "system": format_fs(row),
        "drives": format_count(row.drives, "drive"),
        "rate": rate.value * scale,
        "low": None if rate.low is None else rate.low * scale,
        "high": None if rate.high is None else rate.high * scale,
        "said": format_kbytes(rate),
        "cpu": format_percent_interval(row.cpu_percent),
        "raw": format_percent_interval(row.raw_percent),
    }


# A study of plain files as a page: the paper's table, what it says, a chart, and every number.


def render_files_html(study: FilesStudy, others: Sequence[FilesStudy] = ()) -> str:
    """Render the page; like the survey's, it holds its own data and asks nothing of the network.

    `others` stand beside the study in the paper's table alone.
    """
    drawn = files_charts(study)
    table = table_of(study, *others)
    rows = [_row(row) for row in study.rows]
    return render_page(
        "files.html.j2",
        study=study,
        title=table.title,
        headline=headline(study),
        sentences=study.sentences,
        doubted=any(row["doubt"] for row in rows),
        sections=[_section(section) for section in table.sections],
        starred=SUSPECT if any(row.suspect for row in study.rows) else "",
        how=format_how(study),
        missing_lines=format_missing(study.rows),
        rows=rows,
        steps=[
            {
                "size": format_bytes(step.file_bytes),
                "write": f"{step.write_kbytes_s:.0f}",
                "read": f"{step.read_kbytes_s:.0f}",
            }
            for step in study.size_steps
        ],
        **page_parts(drawn, study, warnings=study.findings),
    )


def _section(section: TableSection) -> dict[str, Any]:
    columns = [
        {"storage": column.storage, "span": len(column.drives)} for column in section.columns
    ]
    heads = [
        "1 Drive" if count == 1 else f"{count} Drives"
        for column in section.columns
        for count, _ in column.drives
    ]
    lines = [
        {
            "test": test,
            "cells": [
                cells[number].text() for column in section.columns for _, cells in column.drives
            ],
        }
        for number, test in enumerate(FILE_PROGRAMS)
    ]
    return {"system": section.system, "columns": columns, "heads": heads, "lines": lines}


def _row(row: FilesRow) -> dict[str, str]:
    return {
        "fs": format_fs(row),
        "drives": str(row.drives),
        "test": row.test,
        "rate": format_kbytes(row.kbytes_s),
        "n": str(row.kbytes_s.n) if row.kbytes_s else "0",
        "cpu": format_percent_interval(row.cpu_percent),
        "raw": format_percent_interval(row.raw_percent),
        "doubt": row.missing or "; ".join(row.suspect) or ("" if row.kbytes_s else NOT_MEASURED),
    }


# A study of plain files as a file: the page, the paper's table as text, the numbers, a chart.

_FORMS = Forms(
    "a table of files",
    ".html, .csv, .txt (the paper's table), .svg, .png or .pdf",
    nothing="nothing was measured, so there is nothing to draw",
)
require_format = _FORMS.require


def save_files(study: FilesStudy, path: Path, others: Sequence[FilesStudy] = ()) -> None:
    """Write the study; the suffix of `path` decides what.

    .html: the page. .csv: a line for each program, file system and number of drives. .txt: the
    paper's table, `others` beside it as the paper has its storage systems side by side; so on the
    page. .pdf: words and charts on A4. .svg or .png: a chart of each program.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_files_html(study, others),
        pdf=lambda: _pdf(study),
        csv=lambda: to_csv(number_rows(study)),
        txt=lambda: "".join(f"{line.rstrip()}\n" for line in table_lines(table_of(study, *others))),
        charts=lambda: files_charts(study),
    )


def _pdf(study: FilesStudy) -> bytes:
    start = study.start
    sub = f"{', '.join(start.directories)} · {start.started_at[:10]} · study {start.study_id[:8]}"
    told = [headline(study), *study.sentences]
    sheet = Sheet(table_of(study).title, sub, told, study.findings, files_charts(study))
    return paged_pdf(sheet)


def save_study(store: Store, study: FilesStudy, path: Path, beside: Sequence[str]) -> None:
    """Draw a study to a file, with others below it."""
    save_files(study, path, [load_files(store, ref) for ref in beside])


def charts_of(study: FilesStudy) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return files_charts(study)
