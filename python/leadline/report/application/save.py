"""An application as a file: the page, or the miss-ratio curve."""

from __future__ import annotations

from pathlib import Path

from leadline.record.application import Application
from leadline.report.application import tables
from leadline.report.application.chart import miss_ratio_chart
from leadline.report.documents.application import application_document
from leadline.report.drawing.drawable import Drawn
from leadline.report.drawing.plain_page import PlainPage, PlainTable, plain_pdf, render_plain
from leadline.report.drawing.saving import Forms

_FORMS = Forms("an application", ".html, .svg, .png or .pdf")


def require_application_format(path: Path) -> None:
    """Refuse what it cannot be drawn as, before a trace is read."""
    _FORMS.require(path)


def save_application(study: Application, path: Path) -> None:
    """Write the application; .html the page, .svg, .png or .pdf the miss-ratio curve.

    Raises:
        ReportError: another suffix, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_application_html(study),
        pdf=lambda: plain_pdf(application_page(study)),
        charts=lambda: application_charts(study),
    )


def application_charts(study: Application) -> dict[str, Drawn]:
    """Return the miss-ratio curve."""
    return {"miss-ratios": miss_ratio_chart(study)}


def render_application_html(study: Application) -> str:
    """Render the page: the answer, the five numbers, the curve, streams, phases and calls."""
    return render_plain(application_page(study))


def application_page(study: Application) -> PlainPage:
    """Return what the page says, in its order."""
    start, found = study.start, study.found
    return PlainPage(
        brand="application",
        title=f"What {start.system} asks of storage",
        sub=f"{start.trace} · {start.started_at[:10]} · study {start.study_id[:8]}",
        status=study.status,
        sentences=found.sentences,
        warnings=found.findings,
        charts=application_charts(study),
        tables=[
            PlainTable("CP94's five numbers", tables.FIVE_HEADS, tables.five_rows(study)),
            PlainTable("Streams", tables.STREAM_HEADS, tables.stream_rows(study.phases)),
            PlainTable("Phases", tables.PHASE_HEADS, tables.phase_rows(study.phases)),
            PlainTable("Caches", tables.CACHE_HEADS, tables.cache_rows(study)),
            PlainTable("Syncs and metadata", tables.CALL_HEADS, tables.call_rows(study.phases)),
            *_files(study),
        ],
        document=application_document(study),
    )


def _files(study: Application) -> list[PlainTable]:
    rows = tables.file_rows(study)
    return [PlainTable("Files", tables.FILE_HEADS, rows)] if rows else []
