"""A study of plain files as a file: the page, the paper's table as text, the numbers, a chart."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from leadline.inert import to_csv
from leadline.record.files import FilesStudy
from leadline.report.drawing.paged import Sheet, paged_pdf
from leadline.report.drawing.saving import Forms
from leadline.report.files.charts import files_charts
from leadline.report.files.headline import headline
from leadline.report.files.page import render_files_html
from leadline.report.files.table import table_lines, table_of
from leadline.studies.files.rows import number_rows

_FORMS = Forms(
    "a table of files",
    ".html, .csv, .txt (the paper's table), .svg, .png or .pdf",
    nothing="nothing was measured, so there is nothing to draw",
)
require_files_format = _FORMS.require


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
