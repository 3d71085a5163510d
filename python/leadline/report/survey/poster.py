"""All sentences and charts on one sheet, for the PDF: charts as nested SVG below the words."""

from __future__ import annotations

import re
import textwrap
from html import escape

import altair as alt
import vl_convert

from leadline.record import Survey
from leadline.report.drawing.drawable import drawable
from leadline.report.drawing.theme import FONT
from leadline.report.survey.catalogue import charts, not_measured

_WIDTH, _MARGIN, _GUTTER = 1000, 48, 32
_HALF = (_WIDTH - 2 * _MARGIN - _GUTTER) / 2
_WIDE = ("unique_bytes",)
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([0-9.]+)"[^>]*?\bheight="([0-9.]+)"')


def poster_svg(survey: Survey) -> str:
    """Return one SVG: the system's name, the sentences, every chart, what was not measured."""
    parts: list[str] = []
    y = _words(parts, [survey.start.system], _MARGIN + 24, size=28, weight=650, wrap=50)
    under = f"{survey.start.target} · {survey.start.started_at[:10]} · {survey.status.value}"
    y = _words(parts, [under], y + 4, size=13, weight=400, wrap=120)
    y = _words(parts, list(survey.sentences), y + 18, size=14, weight=400, wrap=112)
    warnings = [f"Warning: {warning}" for warning in survey.warnings]
    y = _words(parts, warnings, y + 6, size=13, weight=600, wrap=116) + 16
    drawn = charts(survey)
    for row in _rows(list(drawn)):
        share = (_WIDTH - 2 * _MARGIN - _GUTTER * (len(row) - 1)) / len(row)
        width = _WIDTH - 2 * _MARGIN if row[0] in _WIDE else min(share, _HALF)
        heights = []
        for column, name in enumerate(row):
            svg, height = _chart(name, drawn[name], width)
            parts.append(svg.format(x=_MARGIN + column * (width + _GUTTER), y=y))
            heights.append(height)
        y += max(heights) + 28
    y = _words(parts, list(not_measured(survey).values()), y, size=13, weight=400, wrap=116)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{y + _MARGIN:.0f}">'
        f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(parts)}</svg>'
    )


def _rows(names: list[str]) -> list[list[str]]:
    """Lay the charts out: the wide one alone, slope beside drift, each family in two rows."""
    families: dict[str, list[str]] = {}
    for name in names:
        if name.startswith("region-"):
            families.setdefault(name.rsplit("-", 1)[0], []).append(name)
    first: list[str] = [name for name in ("slope", "sentinels") if name in names]
    rows: list[list[str]] = [[name] for name in _WIDE if name in names] + ([first] if first else [])
    return rows + [
        family[at : at + 2] for family in families.values() for at in range(0, len(family), 2)
    ]


def poster_pdf(survey: Survey) -> bytes:
    """Return the sheet as a PDF of one tall page."""
    pdf: bytes = vl_convert.svg_to_pdf(poster_svg(survey))
    return pdf


def _words(
    parts: list[str], texts: list[str], y: float, *, size: int, weight: int, wrap: int
) -> float:
    """Append wrapped lines of text from `y` down; return where they end."""
    for text in texts:
        shown = "".join(sign if sign.isprintable() else "?" for sign in text)
        for line in textwrap.wrap(shown, wrap):
            parts.append(
                f'<text x="{_MARGIN}" y="{y:.1f}" font-family="{escape(FONT)}" fill="#16232e" '
                f'font-size="{size}" font-weight="{weight}">{escape(line)}</text>'
            )
            y += size * 1.45
        y += size * 0.4
    return y


def _chart(name: str, chart: alt.LayerChart, width: float) -> tuple[str, float]:
    """Return one chart `width` wide with holes for x and y, and its height."""
    svg: str = vl_convert.vegalite_to_svg(drawable(chart))
    found = _SIZE.search(svg)
    if found is None:
        raise ValueError(f"the chart {name} was drawn without a size")
    height = float(found[2]) * width / float(found[1])
    view = f"0 0 {found[1]} {found[2]}"
    body = svg[svg.index(">", found.start()) + 1 : svg.rindex("</svg>")]
    # Ids must stay apart when many drawings share one document.
    body = re.sub(r'\bid="', f'id="{name}-', body)
    body = body.replace("url(#", f"url(#{name}-").replace("{", "{{").replace("}", "}}")
    opening = '<svg x="{x:.1f}" y="{y:.1f}" ' + f'width="{width:.1f}" height="{height:.1f}" '
    return f'{opening}viewBox="{view}">{body}</svg>', height
