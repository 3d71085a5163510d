"""The page of a comparison: what differs, ratios and verdicts, then the charts across systems."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leadline.charts.embedding import page_parts, render_page
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
from leadline.record.comparison import ComparedWorkload, SystemsComparison
from leadline.record.wording import format_rate_ci, format_workload
from leadline.studies.comparison import text as words
from leadline.studies.comparison.charts import comparison_charts, missing_charts


def render_comparison_html(document: SystemsComparison) -> str:
    """Render the page; like the survey's, it holds its own data and asks nothing of the network."""
    drawn = comparison_charts(document)
    missing = missing_charts(document)
    return render_page(
        "comparison.html.j2",
        contenders=_contenders(document),
        heads=[each.name for each in document.contenders],
        facts=[
            (each.group, each.title, words.fact_cells(each)) for each in document.differing_facts
        ],
        caches=words.cache_rows(document),
        pairs=_pairs(document),
        currency=words.currency(document),
        price_unit=words.PRICE_UNIT,
        chance=words.format_chance(document),
        notes=document.notes,
        gate=words.gate_lines(document.gate) if document.gate else [],
        gate_failed=document.gate is not None and document.gate.failed,
        left_out={name: why for name, why in missing.items() if name in drawn},
        **page_parts(drawn, document, warnings=words.survey_doubts(document))
        | {"missing": {name: why for name, why in missing.items() if name not in drawn}},
    )


def _contenders(document: SystemsComparison) -> list[dict[str, str]]:
    return [
        {
            "name": each.name,
            "survey": each.survey_id[:8],
            "target": each.target,
            "started": each.started_at[:10],
            "model": each.model,
            "price": words.format_price(document, index),
        }
        for index, each in enumerate(document.contenders)
    ]


def _pairs(document: SystemsComparison) -> list[dict[str, Any]]:
    names = [each.name for each in document.contenders]
    return [
        {
            "a": a,
            "b": b,
            "score": words.format_score(a, b, rows),
            "chart": f"ratios-{names.index(a) + 1}-{names.index(b) + 1}",
            "priced": any(row.per_price_ratio is not None for row in rows),
            "rows": [_row(row) for row in rows],
        }
        for a, b, rows in words.pair_groups(document)
    ]


def _row(row: ComparedWorkload) -> dict[str, Any]:
    return {
        "title": words.format_title(row.title, row.workload),
        "workload": format_workload(row.workload),
        "a": format_rate_ci(row.a_mb_s) if row.a_mb_s else "not known",
        "b": format_rate_ci(row.b_mb_s) if row.b_mb_s else "not known",
        "ratio": words.format_ratio(row.ratio),
        "verdict": words.format_verdict(row),
        "a_price": words.format_per_price(row.a_mb_s_per_price),
        "b_price": words.format_per_price(row.b_mb_s_per_price),
        "price_ratio": words.format_ratio(row.per_price_ratio),
        "doubts": list(map(str, row.findings)),
    }


# A comparison as a file: the page, or its charts as pictures.

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
    scores = [f"{words.format_score(a, b, rows)}." for a, b, rows in words.pair_groups(document)]
    gate = words.gate_lines(document.gate) if document.gate else []
    return paged_pdf(
        Sheet(
            " against ".join(names),
            " · ".join(surveys),
            [*scores, *gate, words.format_chance(document), *document.notes],
            words.survey_doubts(document),
            comparison_charts(document),
            list(missing_charts(document).values()),
            wide=lambda name: name.startswith(("ratios", "bytes_touched")),
        )
    )
