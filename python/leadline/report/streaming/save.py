"""Streaming studies and balance as files: the page, the numbers, the charts."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from leadline.inert import to_csv
from leadline.record.balance import Balance, Saturation, StreamBalance
from leadline.record.streaming import StreamStudy
from leadline.record.workload import interval_columns
from leadline.report.balance.chart import balance_charts
from leadline.report.balance.page import render_balance_html
from leadline.report.drawing.paged import Sheet, paged_pdf
from leadline.report.drawing.saving import Forms
from leadline.report.streaming.catalogue import is_wide, stream_charts
from leadline.report.streaming.page import render_stream_html, stream_title
from leadline.studies.streaming.answer import balance_of, compared
from leadline.studies.streaming.phase_rows import phase_rows as rows_to_export

_FORMS = Forms(
    "a streaming study",
    ".html, .csv, .svg, .png or .pdf",
    nothing="nothing was measured that can be drawn; give a .csv or .html file",
)
require_stream_format = _FORMS.require


def save_stream(study: StreamStudy, path: Path, others: Sequence[StreamStudy] = ()) -> None:
    """Write the study; the suffix of `path` decides what.

    .html: the page, with the charts of `others` below its own. .csv: a line for each phase of each
    run, `others` too. .pdf: words and charts on A4. .svg or .png: the charts, disk scaling or a run
    against its bound.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_stream_html(study, others),
        pdf=lambda: _stream_pdf(study),
        csv=lambda: to_csv([row for each in (study, *others) for row in rows_to_export(each)]),
        charts=lambda: stream_charts(study, balance_of(study)),
    )


def save_balance(systems: Sequence[StreamBalance], path: Path) -> None:
    """Write the balance of one system, or of several side by side; the suffix decides what.

    .html: the page. .csv: a line for each resource of each phase. .pdf: words and charts on A4.
    .svg or .png: a panel of each phase.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_balance_html(systems),
        pdf=lambda: _balance_pdf(systems),
        csv=lambda: to_csv(_balance_rows(systems)),
        charts=lambda: balance_charts(systems),
    )


def _stream_pdf(study: StreamStudy) -> bytes:
    start, said = study.start, balance_of(study)
    sub = f"{', '.join(start.directories)} · {start.started_at[:10]} · study {start.study_id[:8]}"
    return paged_pdf(
        Sheet(
            stream_title(study),
            sub,
            study.sentences or said.sentences,
            (*study.findings, *said.findings),
            stream_charts(study, said),
            wide=is_wide,
        )
    )


def _balance_pdf(systems: Sequence[StreamBalance]) -> bytes:
    names = list(dict.fromkeys(each.system for each in systems))
    told = [*compared(systems), *(text for each in systems for text in each.sentences)]
    doubts = [found for each in systems for found in each.findings]
    title = f"Balance of {' and '.join(names)}"
    return paged_pdf(Sheet(title, ", ".join(names), told, doubts, balance_charts(systems)))


def _balance_rows(systems: Sequence[StreamBalance]) -> list[dict[str, Any]]:
    return [
        _saturation_row(system, balance, saturation)
        for system in systems
        for balance in system.balances
        for saturation in balance.saturations
    ]


def _saturation_row(
    system: StreamBalance, balance: Balance, saturation: Saturation
) -> dict[str, Any]:
    return {
        "study_id": system.study_id,
        "system": balance.system,
        "kernel": balance.kernel,
        "phase": balance.phase,
        "platform": balance.platform,
        "processors": balance.processors,
        "resource": saturation.resource,
        **interval_columns("mb_s_per_processor", saturation.mb_s_per_processor),
        "at_least": saturation.at_least,
        **interval_columns("use_at_most", saturation.use_at_most),
        "first": saturation.resource == balance.first,
        "why": saturation.why,
    }
