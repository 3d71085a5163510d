"""Measurements as a page: how fast from moment to moment, and everything known of each."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from leadline.record import Measurement
from leadline.record.finding import Finding
from leadline.record.measurement import Measured
from leadline.record.wording import say_rate, say_workload
from leadline.report.drawing.plain_page import PlainPage, PlainTable, plain_pdf, render_plain
from leadline.report.drawing.saving import Forms
from leadline.report.measurement.charts import measurement_charts
from leadline.report.measurement.terminal import measurement_rows
from leadline.units import format_rate, format_seconds, say_span

_FORMS = Forms(
    "a measurement",
    ".html, .svg, .png or .pdf",
    nothing="no response times and no slices of a window are stored, so there is nothing to draw",
)


def save_measurement(study: Measured, path: Path) -> None:
    """Write measurements; .html the page, .svg, .png or .pdf the charts.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_measurement_html(study),
        pdf=lambda: plain_pdf(measurement_page(study)),
        charts=lambda: measurement_charts(study),
    )


def render_measurement_html(study: Measured) -> str:
    """Render the page."""
    return render_plain(measurement_page(study))


def measurement_page(study: Measured) -> PlainPage:
    """Return what the page says, in its order."""
    start, points = study.start, study.points
    return PlainPage(
        brand="measurement",
        title=f"Measured on {start.system}",
        sub=f"{start.target} · {start.started_at[:10]} · study {start.study_id[:8]}",
        status=study.status,
        sentences=sentences_of(study),
        warnings=list(_findings(points)),
        charts=measurement_charts(study),
        tables=[
            PlainTable(_named(name, say_workload(point.workload)), (), measurement_rows(point))
            for name, point in zip(study.names, points, strict=True)
        ],
        document=list(points),
    )


def _findings(points: Sequence[Measurement]) -> Iterator[Finding]:
    for point in points:
        yield from point.findings
        yield from point.result.findings


def sentences_of(study: Measured) -> list[str]:
    """Say the answer first: of several measurements how far they reach."""
    told = list(map(_sentence, study.names, study.points))
    if len(told) < 2:
        return told
    rates = sorted(point.result.throughput_mb_s.value for point in study.points)
    span = say_span(format_rate(rates[0]), format_rate(rates[-1]))
    return [f"{len(told)} workloads, {span}.", *told]


def _sentence(name: str | None, point: Measurement) -> str:
    result = point.result
    rate = say_rate(result.throughput_mb_s, level=True)
    times = [
        f"{what} p99 {format_seconds(one.latency_us.p99 / 1e6)}"
        for what, one in (("reads", result.read), ("writes", result.write))
        if one.latency_us is not None
    ]
    said = _named(name, "; ".join((f"{rate}, {result.iops.value:,.0f} requests/s", *times)))
    return said if result.admissible else f"{said}; not admissible"


def _named(name: str | None, said: str) -> str:
    return said if name is None else f"{name}: {said}"
