"""A comparison as a file: the page, or its charts as pictures."""

from __future__ import annotations

from pathlib import Path

from leadline.record.comparison import SystemsComparison
from leadline.report.comparison.charts import comparison_charts
from leadline.report.comparison.page import render_comparison_html
from leadline.report.drawing.saving import Forms

_FORMS = Forms("a comparison", ".html, .svg, .png or .pdf")
require_format = _FORMS.require


def save_comparison(document: SystemsComparison, path: Path) -> None:
    """Write the comparison; the suffix of `path` decides what.

    .html: the page with every chart. .svg, .png or .pdf: the charts, first the ratios of the first
    two systems.

    Raises:
        ReportError: another suffix, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_comparison_html(document),
        charts=lambda: comparison_charts(document),
    )
