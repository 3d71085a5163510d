"""A study of plain files as a page: the paper's table, what it says, a chart, and every number."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.record.files import FilesRow, FilesStudy
from leadline.record.jobs.file_test import FILE_PROGRAMS
from leadline.report.drawing.embedding import page_parts, render_page
from leadline.report.files.charts import files_charts
from leadline.report.files.headline import headline
from leadline.report.files.table import NOT_MEASURED, SUSPECT, TableSection, table_of
from leadline.report.files.terminal import (
    say_fs,
    say_how,
    say_kbytes,
    say_missing,
    say_percent_interval,
)
from leadline.units import format_bytes


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
        how=say_how(study),
        missing_lines=say_missing(study.rows),
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
        "fs": say_fs(row),
        "drives": str(row.drives),
        "test": row.test,
        "rate": say_kbytes(row.kbytes_s),
        "n": str(row.kbytes_s.n) if row.kbytes_s else "0",
        "cpu": say_percent_interval(row.cpu_percent),
        "raw": say_percent_interval(row.raw_percent),
        "doubt": row.missing or "; ".join(row.suspect) or ("" if row.kbytes_s else NOT_MEASURED),
    }
