"""A validation as a page: how far predictions were off, then every contestant and workload."""

from __future__ import annotations

from pathlib import Path

from leadline.record import Validation
from leadline.report.drawing.plain_page import PlainPage, PlainTable, plain_pdf, render_plain
from leadline.report.drawing.saving import Forms
from leadline.report.validation.charts import forecast_rows, validation_charts, validation_rows

HEADS = (
    "Model or rival",
    "Points",
    "Median error (95 %)",
    "75 %",
    "90 %",
    "Enhanced",
    "A",
    "In 50 / 90 / 95 %",
)
_WORKLOADS = ("Workload", "Measured", "Predicted (95 %)", "Error")


_FORMS = Forms(
    "a validation",
    ".html, .svg, .png or .pdf",
    nothing="too little was measured yet: go on with leadline validate … --resume",
)


def save_validation(validation: Validation, path: Path) -> None:
    """Write the validation; .html the page, .svg, .png or .pdf the charts.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_validation_html(validation),
        pdf=lambda: plain_pdf(validation_page(validation)),
        charts=lambda: validation_charts(validation),
    )


def render_validation_html(validation: Validation) -> str:
    """Render the page; the survey's own page has the same in a section of its own."""
    return render_plain(validation_page(validation))


def validation_page(validation: Validation) -> PlainPage:
    """Return what the page says, in its order."""
    start = validation.start
    of = f"survey {start.parent[:8]}"
    return PlainPage(
        brand="validation",
        title=f"How well {start.system} is predicted",
        sub=f"{of} · {start.started_at[:10]} · validation {start.study_id[:8]}",
        status=validation.status,
        sentences=validation.sentences,
        warnings=validation.findings,
        charts=validation_charts(validation),
        tables=[
            PlainTable("Models and rivals", HEADS, validation_rows(validation)),
            PlainTable("Every workload", _WORKLOADS, _workloads(validation), folded=True),
        ],
        document=validation,
    )


def _workloads(validation: Validation) -> list[tuple[str, ...]]:
    """Return a row for each workload that the validation's own model predicted."""
    return [
        tuple(str(row[name]) for name in ("workload", "measured", "predicted", "error"))
        for row in forecast_rows(validation, validation.model)
    ]
