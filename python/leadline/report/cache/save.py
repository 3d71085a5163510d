"""A study of a file cache as a file: the page, or the chart."""

from __future__ import annotations

from pathlib import Path

from leadline.record import CacheStudy
from leadline.report.cache.chart import cache_chart
from leadline.report.cache.terminal import EVIDENCE_HEADS, SIZE_HEADS, evidence_rows, size_rows
from leadline.report.drawing.drawable import Drawn
from leadline.report.drawing.plain_page import PlainPage, PlainTable, plain_pdf, render_plain
from leadline.report.drawing.saving import Forms
from leadline.studies.cache.disciplines import HEADS, discipline_rows

_FORMS = Forms(
    "a study of a file cache",
    ".html, .svg, .png or .pdf",
    nothing="nothing was measured yet: go on with leadline cache … --resume",
)


def save_cache(study: CacheStudy, path: Path) -> None:
    """Write the study; the suffix of `path` says how: .html the page, .svg, .png or .pdf the chart.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_cache_html(study),
        pdf=lambda: plain_pdf(cache_page(study)),
        charts=lambda: cache_charts(study),
    )


def cache_charts(study: CacheStudy) -> dict[str, Drawn]:
    """Return the chart of the sizes, if anything was measured."""
    chart = cache_chart(study)
    return {} if chart is None else {"cache": chart}


def render_cache_html(study: CacheStudy) -> str:
    """Render the page: sentences, the chart, sizes, what was seen of the policy, disciplines."""
    return render_plain(cache_page(study))


def cache_page(study: CacheStudy) -> PlainPage:
    """Return what the page says, in its order."""
    start, found = study.start, study.cache
    disciplines = study.disciplines
    told = [*(disciplines.sentences if disciplines else ())]
    told += [study.flusher.sentence] if study.flusher else []
    return PlainPage(
        brand="file cache",
        title=f"File cache of {start.system}",
        sub=f"{start.target} · {start.started_at[:10]} · study {start.study_id[:8]}",
        status=study.status,
        sentences=[*found.sentences, *told, *(f"n.m.: {why}." for why in study.left_out)],
        warnings=study.findings,
        charts=cache_charts(study),
        tables=[
            PlainTable("Sizes and rates", SIZE_HEADS, size_rows(found)),
            PlainTable("What was seen of the write policy", EVIDENCE_HEADS, evidence_rows(found)),
            PlainTable(
                "Disciplines of writing", HEADS, discipline_rows(disciplines) if disciplines else []
            ),
        ],
        document=study,
    )
