"""A comparison as a file: the page, or its charts as pictures."""

from __future__ import annotations

from pathlib import Path

from leadline.record.comparison import SystemsComparison
from leadline.report.comparison import words
from leadline.report.comparison.charts import comparison_charts, missing_charts
from leadline.report.comparison.page import render_comparison_html
from leadline.report.drawing.paged import Sheet, paged_pdf
from leadline.report.drawing.saving import Forms

_FORMS = Forms("a comparison", ".html, .svg, .png or .pdf")
require_format = _FORMS.require


def save_comparison(document: SystemsComparison, path: Path) -> None:
    """Write the comparison; the suffix of `path` decides what.

    .html: the page with every chart. .pdf: words and charts on A4. .svg or .png: the charts, first
    the ratios of the first two systems.

    Raises:
        ReportError: another suffix, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_comparison_html(document),
        pdf=lambda: _pdf(document),
        charts=lambda: comparison_charts(document),
    )


def _pdf(document: SystemsComparison) -> bytes:
    names = [each.name for each in document.contenders]
    surveys = [f"{each.name}: {each.survey_id[:8]}" for each in document.contenders]
    scores = [f"{words.say_score(a, b, rows)}." for a, b, rows in words.pair_groups(document)]
    gate = words.gate_lines(document.gate) if document.gate else []
    return paged_pdf(
        Sheet(
            " against ".join(names),
            " · ".join(surveys),
            [*scores, *gate, words.say_chance(document), *document.notes],
            words.survey_doubts(document),
            comparison_charts(document),
            list(missing_charts(document).values()),
            wide=lambda name: name.startswith(("ratios", "bytes_touched")),
        )
    )
