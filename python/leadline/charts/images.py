"""Charts as files: SVG, PNG, PDF through vl-convert."""

from __future__ import annotations

from pathlib import Path

import vl_convert

from leadline.charts.drawable import Drawn, drawable, is_vega, to_svg
from leadline.errors import LeadlineError
from leadline.outputs import write_whole

CHART_FORMATS = ("svg", "png", "pdf")


class ReportError(LeadlineError):
    """A report that cannot be written; the message says what to ask for instead."""

    exit_code = 2


def save_chart(chart: Drawn, path: Path) -> None:
    """Write one chart; the format is the suffix of `path`: .svg, .png (twice the size) or .pdf."""
    spec = drawable(chart)
    vega = is_vega(spec)
    match path.suffix.lower():
        case ".svg":
            write_whole(path, to_svg(spec))
        case ".png":
            draw = vl_convert.vega_to_png if vega else vl_convert.vegalite_to_png
            write_whole(path, draw(spec, scale=2.0))
        case ".pdf":
            to_pdf = vl_convert.vega_to_pdf if vega else vl_convert.vegalite_to_pdf
            write_whole(path, to_pdf(spec))
        case other:
            raise ReportError(f"cannot write a chart as {other!r}; use .svg, .png or .pdf")
