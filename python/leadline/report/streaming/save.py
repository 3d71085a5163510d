"""Streaming studies and balance as files: the page, the numbers, the charts."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.record import Interval
from leadline.record.balance import Balance, Saturation, StreamBalance
from leadline.record.streaming import StreamStudy
from leadline.report.balance.chart import balance_charts
from leadline.report.balance.page import render_balance_html
from leadline.report.drawing.drawable import Drawn
from leadline.report.drawing.images import ReportError, save_chart
from leadline.report.streaming.catalogue import stream_charts
from leadline.report.streaming.page import render_stream_html
from leadline.report.survey.tables import inert
from leadline.studies.streaming.answer import balance_of
from leadline.studies.streaming.phase_rows import phase_rows

PICTURES = (".svg", ".png", ".pdf")
FORMATS = (".html", ".htm", ".csv", *PICTURES)


def require_stream_format(path: Path) -> None:
    """Refuse what a streaming study or balance cannot be written as, before anything is measured.

    Raises:
        ReportError: another suffix.

    """
    if path.suffix.lower() not in FORMATS:
        raise ReportError(
            f"cannot write a streaming study as {path.suffix!r}; use .html, .csv, .svg, .png or "
            ".pdf"
        )


def save_stream(study: StreamStudy, path: Path, others: Sequence[StreamStudy] = ()) -> None:
    """Write the study; the suffix of `path` decides what.

    .html: the page, with the charts of `others` below its own. .csv: a line for each phase of each
    run, `others` too. .svg, .png or .pdf: the first chart (disk scaling, or a run against its
    bound); the others go beside it as `<stem>-<chart><suffix>`.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    require_stream_format(path)
    save_as(
        path,
        page=lambda: render_stream_html(study, others),
        table=lambda: stream_csv([study, *others]),
        charts=lambda: stream_charts(study, balance_of(study)),
    )


def save_balance(systems: Sequence[StreamBalance], path: Path) -> None:
    """Write the balance of one system, or of several side by side; the suffix decides what.

    .html: the page. .csv: a line for each resource of each phase. .svg, .png or .pdf: the panel of
    the first phase; the others go beside it as `<stem>-<panel><suffix>`.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    require_stream_format(path)
    save_as(
        path,
        page=lambda: render_balance_html(systems),
        table=lambda: balance_csv(systems),
        charts=lambda: balance_charts(systems),
    )


def save_as(
    path: Path,
    *,
    page: Callable[[], str],
    table: Callable[[], str],
    charts: Callable[[], Mapping[str, Drawn]],
) -> None:
    """Write what the suffix of `path` asks for: the page, the table, or every chart.

    Raises:
        ReportError: nothing to draw, or the file cannot be written.

    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".csv":
            path.write_text(table(), encoding="utf-8", newline="")
        elif suffix in PICTURES:
            _save_charts(charts(), path)
        else:
            path.write_text(page(), encoding="utf-8")
    except OSError as error:
        raise ReportError(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error


def _save_charts(charts: Mapping[str, Drawn], path: Path) -> None:
    if not charts:
        raise ReportError("nothing was measured that can be drawn; give a .csv or .html file")
    for number, (name, chart) in enumerate(charts.items()):
        save_chart(chart, path if number == 0 else path.with_stem(f"{path.stem}-{name}"))


def stream_csv(studies: Sequence[StreamStudy]) -> str:
    """Return a line for each phase of each run, as the engine measured it."""
    return to_csv([row for study in studies for row in phase_rows(study)])


def balance_csv(systems: Sequence[StreamBalance]) -> str:
    """Return a line for each resource of each phase of each system, with its interval."""
    return to_csv(
        [
            _saturation_line(system, balance, saturation)
            for system in systems
            for balance in system.balances
            for saturation in balance.saturations
        ]
    )


def _saturation_line(
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
        **_interval("mb_s_per_processor", saturation.mb_s_per_processor),
        "at_least": saturation.at_least,
        **_interval("use_at_most", saturation.use_at_most),
        "first": saturation.resource == balance.first,
        "why": saturation.why,
    }


def _interval(name: str, number: Interval | None) -> dict[str, float | None]:
    return {
        name: None if number is None else number.value,
        f"{name}_low": None if number is None else number.low,
        f"{name}_high": None if number is None else number.high,
        f"{name}_n": 0 if number is None else number.n,
    }


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV that no spreadsheet reads a formula in."""
    text = io.StringIO(newline="")
    if rows:
        writer = csv.DictWriter(text, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows({key: inert(value) for key, value in row.items()} for row in rows)
    return text.getvalue()
