"""Charts as files: SVG, PNG, PDF through vl-convert."""

from __future__ import annotations

from pathlib import Path

import vl_convert

from leadline.charts.drawable import Drawn, drawable, to_svg
from leadline.errors import LeadlineError
from leadline.outputs import write_whole

CHART_FORMATS = ("svg", "png", "pdf")


class ReportError(LeadlineError):
    """A report that cannot be written; the message says what to ask for instead."""

    exit_code = 2


def save_chart(chart: Drawn, path: Path) -> None:
    """Write one chart; the format is the suffix of `path`: .svg, .png (twice the size) or .pdf."""
    spec = drawable(chart)
    match path.suffix.lower():
        case ".svg":
            write_whole(path, to_svg(spec))
        case ".png":
            write_whole(path, vl_convert.vegalite_to_png(spec, scale=2.0))
        case ".pdf":
            write_whole(path, vl_convert.vegalite_to_pdf(spec))
        case other:
            raise ReportError(f"cannot write a chart as {other!r}; use .svg, .png or .pdf")
