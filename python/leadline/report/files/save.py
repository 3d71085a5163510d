"""A study of plain files as a file: the page, the paper's table as text, the numbers, a chart."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path

from leadline.record.files import FilesStudy
from leadline.report.drawing.images import ReportError, save_chart
from leadline.report.files.charts import files_charts
from leadline.report.files.page import render_files_html
from leadline.report.files.table import table_lines, table_of
from leadline.studies.files.rows import number_rows

PICTURES = (".svg", ".png", ".pdf")
FORMATS = (".html", ".htm", ".csv", ".txt", *PICTURES)


def require_files_format(path: Path) -> None:
    """Refuse what a study cannot be written as, before anything is measured.

    Raises:
        ReportError: another suffix.

    """
    if path.suffix.lower() not in FORMATS:
        raise ReportError(
            f"cannot write a table of files as {path.suffix!r}; use .html, .csv, .txt (the "
            "paper's table), .svg, .png or .pdf"
        )


def save_files(study: FilesStudy, path: Path, others: Sequence[FilesStudy] = ()) -> None:
    """Write the study; the suffix of `path` decides what.

    .html: the page. .csv: a line for each number. .txt: the paper's table, `others` beside it as
    the paper has its storage systems side by side; so on the page. .svg, .png or .pdf: the
    chart of the first program; the others go beside it as `<stem>-<program><suffix>`.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    require_files_format(path)
    suffix = path.suffix.lower()
    try:
        if suffix == ".csv":
            path.write_text(files_csv(study), encoding="utf-8", newline="")
        elif suffix == ".txt":
            lines = [line.rstrip() for line in table_lines(table_of(study, *others))]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        elif suffix in PICTURES:
            _save_charts(study, path)
        else:
            path.write_text(render_files_html(study, others), encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error


def files_csv(study: FilesStudy) -> str:
    """Return a line for each program, file system and number of drives, with every interval."""
    text = io.StringIO(newline="")
    rows = number_rows(study)
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return text.getvalue()


def _save_charts(study: FilesStudy, path: Path) -> None:
    drawn = files_charts(study)
    if not drawn:
        raise ReportError("nothing was measured, so there is nothing to draw")
    for number, (name, chart) in enumerate(drawn.items()):
        save_chart(chart, path if number == 0 else path.with_stem(f"{path.stem}-{name}"))
