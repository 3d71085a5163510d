"""A comparison as a file: the page, or its first chart as a picture."""

from __future__ import annotations

from pathlib import Path

from leadline.record.comparison import SystemsComparison
from leadline.report.comparison.charts import comparison_charts
from leadline.report.comparison.page import render_comparison_html
from leadline.report.drawing.images import ReportError, save_chart

PAGES = (".html", ".htm")
PICTURES = (".svg", ".png", ".pdf")


def require_format(path: Path) -> None:
    """Refuse what a comparison cannot be written as, before anything is measured.

    Raises:
        ReportError: another suffix.

    """
    suffix = path.suffix.lower()
    if suffix not in PAGES + PICTURES:
        raise ReportError(f"cannot write a comparison as {suffix!r}; use .html, .svg, .png or .pdf")


def save_comparison(document: SystemsComparison, path: Path) -> None:
    """Write the comparison; the suffix of `path` decides what.

    .html: the page with every chart. .svg, .png or .pdf: the ratios of the first two systems; the
    other charts go beside it as `<stem>-<chart><suffix>`.

    Raises:
        ReportError: another suffix, or the file cannot be written.

    """
    require_format(path)
    try:
        if path.suffix.lower() in PAGES:
            path.write_text(render_comparison_html(document), encoding="utf-8")
            return
        for number, (name, chart) in enumerate(comparison_charts(document).items()):
            save_chart(chart, path if number == 0 else path.with_stem(f"{path.stem}-{name}"))
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error
