"""A survey as files: the page, the poster, its charts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from leadline.record import Measurement, Survey
from leadline.report.drawing.drawable import Drawn
from leadline.report.drawing.images import CHART_FORMATS, ReportError, save_chart
from leadline.report.drawing.layers import AnyChart
from leadline.report.drawing.paged import Sheet, paged_pdf
from leadline.report.drawing.saving import Forms
from leadline.report.survey.catalogue import charts, not_measured
from leadline.report.survey.page import Checked, render_html

_FORMS = Forms("a report", ".html, .pdf, .svg or .png")


def save_all_charts(
    survey: Survey,
    directory: Path,
    image_format: str,
    checked: Checked | None = None,
    check: Callable[[Path], object] = Path,
) -> tuple[Path, ...]:
    """Write every chart as `<name>.<format>` in `directory`, made when missing.

    Args:
        survey: what is drawn.
        directory: where.
        image_format: svg, png or pdf.
        checked: by a validation, drawn beside it.
        check: is asked of every file before the first is written; what it raises stops all.

    Raises:
        ReportError: another format, or something cannot be written.

    """
    if image_format not in CHART_FORMATS:
        raise ReportError(f"cannot write charts as {image_format!r}; use svg, png or pdf")
    drawn = charts(survey) | (checked.charts if checked else {})
    paths = tuple(directory / f"{name}.{image_format}" for name in drawn)
    for path in paths:
        check(path)
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for path, chart in zip(paths, drawn.values(), strict=True):
            save_chart(chart, path)
    except OSError as error:
        raise ReportError(
            f"charts cannot be written to {directory}: {error.strerror}; give another directory"
        ) from error
    return paths


def save_report(
    survey: Survey,
    points: Sequence[Measurement],
    path: Path,
    others: Sequence[Survey] = (),
    checked: Checked | None = None,
) -> None:
    """Write the report; the suffix of `path` decides what.

    .html: the whole page. .pdf: sentences and all charts on A4. .svg or .png: the chart of
    throughput against bytes touched. `others` join the page's summary of several systems (CP94
    Fig. 10), `checked` has a section of its own there.
    """
    _FORMS.save(
        path,
        html=lambda: render_html(survey, points, others, checked),
        pdf=lambda: _pdf(survey, checked),
        charts=lambda: _levels(survey),
    )


_FIRST = ("unique_bytes", "slope", "sentinels")


def _pdf(survey: Survey, checked: Checked | None) -> bytes:
    """Put the sentences and every chart on paper."""
    start = survey.start
    drawn: dict[str, Drawn] = dict(charts(survey))
    drawn.pop("summary", None)  # of one survey it is the first chart again
    first = {name: drawn.pop(name) for name in _FIRST if name in drawn}
    return paged_pdf(
        Sheet(
            title=start.system,
            sub=f"{start.target} · {start.started_at[:10]} · {survey.status.value}",
            sentences=survey.sentences,
            warnings=survey.findings,
            charts={**first, **drawn, **(checked.charts if checked else {})},
            notes=list(not_measured(survey).values()),
        )
    )


def _levels(survey: Survey) -> dict[str, AnyChart]:
    chart = charts(survey).get("unique_bytes")
    if chart is None:
        raise ReportError(not_measured(survey)["unique_bytes"])
    return {"unique_bytes": chart}
