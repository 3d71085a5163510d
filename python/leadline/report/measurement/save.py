"""Measurements as a page: how fast from moment to moment, and everything known of each."""

from __future__ import annotations

from pathlib import Path

import altair as alt

from leadline.record import Measurement
from leadline.record.measurement import Measured
from leadline.record.wording import say_rate, say_workload
from leadline.report.drawing.layers import TALL_PX, WIDE_PX, finish, values
from leadline.report.drawing.plain_page import PlainPage, PlainTable, render_plain
from leadline.report.drawing.saving import Forms
from leadline.report.measurement.terminal import measurement_rows

_FORMS = Forms(
    "a measurement",
    ".html, .svg, .png or .pdf",
    nothing="no slices of a window are stored, so there is nothing to draw",
)


def save_measurement(study: Measured, path: Path) -> None:
    """Write measurements; .html the page, .svg, .png or .pdf the throughput of each.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path, html=lambda: render_measurement_html(study), charts=lambda: window_charts(study)
    )


def window_charts(study: Measured) -> dict[str, alt.LayerChart]:
    """Return what happened within each window, by name."""
    charts = {f"window-{point.order}": window_chart(point) for point in study.points}
    return {name: chart for name, chart in charts.items() if chart is not None}


def render_measurement_html(study: Measured) -> str:
    """Render the page."""
    start, points = study.start, study.points
    return render_plain(
        PlainPage(
            brand="measurement",
            title=f"Measured on {start.system}",
            sub=f"{start.target} · {start.started_at[:10]} · study {start.study_id[:8]}",
            status=study.status,
            sentences=list(map(_sentence, study.names, points)),
            warnings=[text for point in points for text in point.result.reasons],
            charts=window_charts(study),
            tables=[
                PlainTable(_named(name, say_workload(point.workload)), (), measurement_rows(point))
                for name, point in zip(study.names, points, strict=True)
            ],
            document=list(points),
        )
    )


def _sentence(name: str | None, point: Measurement) -> str:
    result = point.result
    rate = say_rate(result.throughput_mb_s, level=True)
    said = _named(name, f"{rate}, {result.iops.value:,.0f} requests/s")
    return said if result.admissible else f"{said}; not admissible"


def _named(name: str | None, said: str) -> str:
    return said if name is None else f"{name}: {said}"


def window_chart(point: Measurement) -> alt.LayerChart | None:
    """Draw throughput over the measured window; None when its slices are not known."""
    slices = point.result.intervals
    if len(slices) < 2:
        return None
    rows = [
        {"x": each.start_s, "y": each.bytes / each.seconds / 1e6, "series": "window"}
        for each in slices
        if each.seconds > 0
    ]
    line = (
        alt.Chart(values(rows))
        .mark_line(style="curve", interpolate="step-after")
        .encode(
            x=alt.X("x:Q", title="Seconds into the measured window"),
            y=alt.Y("y:Q", title="Throughput (MB/s)"),
        )
    )
    title = f"Throughput from moment to moment: {say_rate(point.result.throughput_mb_s)}"
    return finish([line], title, say_workload(point.workload), (WIDE_PX, TALL_PX))
