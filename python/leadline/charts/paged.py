"""An answer on pages of paper (A4): its words, what speaks against it, then every chart.

All of it is drawn on one long sheet, on which nothing lies across the end of a page; the converter
makes a PDF of one page of that. `split_pages` then says in an update of that file that it is
several, each a window on the same drawing.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import vl_convert

from leadline.charts.caveats import by_severity
from leadline.charts.drawable import Drawn, drawable, to_svg
from leadline.charts.theme import FONT
from leadline.record.finding import Finding

_WIDTH, _MARGIN, _GUTTER = 1000.0, 56.0, 32.0
_PAGE = 1414.0
"""Height of a page where it is 1000 wide: that of A4."""
_A4_PT = 595.28
_INSIDE = _WIDTH - 2 * _MARGIN
_HALF = (_INSIDE - _GUTTER) / 2
_TALLEST = _PAGE - 2 * _MARGIN - 40
_SIZE = re.compile(r'<svg\b[^>]*?\bwidth="([0-9.]+)"[^>]*?\bheight="([0-9.]+)"')


class Sheet(NamedTuple):
    """What is put on paper."""

    title: str
    sub: str
    sentences: Sequence[str]
    warnings: Sequence[Finding]
    charts: Mapping[str, Drawn]
    notes: Sequence[str] = ()
    """What is said below the charts, as what was not measured."""
    wide: Callable[[str], bool] = lambda _: False
    """Whether a chart, beside the first, wants the whole width."""


def paged_pdf(sheet: Sheet) -> bytes:
    """Return the sheet as a PDF of A4 pages."""
    drawing = _Drawing()
    drawing.words([sheet.title], size=28, weight=650)
    drawing.words([sheet.sub], size=13)
    drawing.gap(10)
    drawing.words(sheet.sentences[:1], size=18, weight=560)
    drawing.words(sheet.sentences[1:], size=14)
    for group in by_severity(sheet.warnings):
        drawing.words([group.head], size=14, weight=650)
        drawing.words([f"\N{BULLET} {text}" for text in group.texts], size=13)
    drawing.gap(12)
    for row in _rows(sheet):
        drawing.row([(name, sheet.charts[name]) for name in row])
    drawing.words(sheet.notes, size=13)
    return split_pages(vl_convert.svg_to_pdf(drawing.svg()), drawing.pages)


def _rows(sheet: Sheet) -> Iterable[list[str]]:
    """Lay the charts out: the first and the wide ones alone, the others in pairs."""
    waiting: list[str] = []
    for number, name in enumerate(sheet.charts):
        if number == 0 or sheet.wide(name):
            yield [name]
            continue
        waiting.append(name)
        if len(waiting) == 2:
            yield waiting
            waiting = []
    if waiting:
        yield waiting


class _Drawing:
    """Parts of one long sheet, from its top to its bottom."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._y = _MARGIN

    @property
    def pages(self) -> int:
        """How many there are."""
        return int((self._y - 1) // _PAGE) + 1

    def gap(self, height: float) -> None:
        self._y += height

    def words(self, texts: Iterable[str], *, size: int, weight: int = 400) -> None:
        """Append lines of text, as wide as the page lets them be."""
        for text in texts:
            shown = "".join(sign if sign.isprintable() else "?" for sign in text)
            for line in textwrap.wrap(shown, int(_INSIDE / (size * 0.56))):
                self._room(size * 1.45)
                self._y += size * 1.45
                self._parts.append(
                    f'<text x="{_MARGIN}" y="{self._y - size * 0.35:.1f}" '
                    f'font-family="{escape(FONT)}" fill="#16232e" font-size="{size}" '
                    f'font-weight="{weight}">{escape(line)}</text>'
                )
            self._y += size * 0.4

    def row(self, charts: Sequence[tuple[str, Drawn]]) -> None:
        """Append charts side by side."""
        alone = len(charts) == 1
        drawn = [_placed(name, chart, _INSIDE if alone else _HALF) for name, chart in charts]
        tallest = max(each.height for each in drawn)
        self._room(tallest)
        for column, each in enumerate(drawn):
            self._parts.append(each.at(_MARGIN + column * (_HALF + _GUTTER), self._y))
        self._y += tallest + 24

    def _room(self, height: float) -> None:
        """Go on to the next page if what comes would not end on this one."""
        page = int(self._y // _PAGE)
        if self._y + height > (page + 1) * _PAGE - _MARGIN:
            self._y = (page + 1) * _PAGE + _MARGIN

    def svg(self) -> str:
        height = self.pages * _PAGE
        scale = _A4_PT / _WIDTH
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_A4_PT:.2f}" '
            f'height="{height * scale:.2f}" viewBox="0 0 {_WIDTH:g} {height:g}">'
            f'<rect width="100%" height="100%" fill="#ffffff"/>{"".join(self._parts)}</svg>'
        )


class _Placed(NamedTuple):
    body: str
    view: str
    width: float
    height: float

    def at(self, x: float, y: float) -> str:
        place = f'x="{x:.1f}" y="{y:.1f}" width="{self.width:.1f}" height="{self.height:.1f}"'
        return f'<svg {place} viewBox="{self.view}">{self.body}</svg>'


def _placed(name: str, chart: Drawn, width: float) -> _Placed:
    """Draw a chart, `width` wide, or less where it would be higher than a page."""
    svg = to_svg(drawable(chart), name)
    found = _SIZE.search(svg)
    if found is None:
        raise ValueError(f"the chart {name} was drawn without a size")
    own_width, own_height = float(found[1]), float(found[2])
    scale = min(width / own_width, _TALLEST / own_height, 1.2)
    body = svg[svg.index(">", found.start()) + 1 : svg.rindex("</svg>")]
    view = f"0 0 {own_width:g} {own_height:g}"
    return _Placed(body, view, own_width * scale, own_height * scale)


_OBJECT = re.compile(rb"(?<!\d)(\d+) 0 obj\b(.*?)\bendobj", re.DOTALL)
_BOX = re.compile(rb"/MediaBox \[[^\]]*\]")


def split_pages(pdf: bytes, pages: int) -> bytes:
    """Make one long page several of the same height, by an update at the end of the file.

    Args:
        pdf: of one page, as vl-convert writes it: no object streams, pages in a tree of one node.
        pages: how many there are to be.

    Raises:
        ValueError: it is laid out otherwise.

    """
    before = _number(rb"startxref\s+(\d+)\s+%%EOF\s*$", pdf)
    trailer = pdf[pdf.rindex(b"trailer") :]
    size = _number(rb"/Size (\d+)", trailer)
    node, page = _page_and_node(pdf)
    box = _BOX.search(page)
    if box is None:
        raise ValueError("the page of the PDF has no size of its own")
    width, height = (float(end) for end in box[0].split(b"[")[1].rstrip(b"]").split()[2:])
    high = height / pages
    numbers = range(size, size + pages)
    made = {}
    for at, number in enumerate(numbers):
        low, top = height - (at + 1) * high, height - at * high
        made[number] = _BOX.sub(b"/MediaBox [0 %.3f %.3f %.3f]" % (low, width, top), page)
    kids = " ".join(f"{number} 0 R" for number in numbers)
    made[node] = f"\n<< /Type /Pages /Count {pages} /Kids [{kids}] >>\n".encode()
    out, places = bytearray(pdf.rstrip() + b"\n"), {}
    for number, body in made.items():
        places[number] = len(out)
        out += b"%d 0 obj%sendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 1\n0000000000 65535 f\r\n"
    for number, place in places.items():
        out += b"%d 1\n%010d 00000 n\r\n" % (number, place)
    kept = b" ".join(re.findall(rb"/(?:Root|Info) \d+ 0 R", trailer))
    out += b"trailer\n<< /Size %d %s /Prev %d >>\n" % (size + pages, kept, before)
    out += b"startxref\n%d\n%%%%EOF\n" % start
    return bytes(out)


def _page_and_node(pdf: bytes) -> tuple[int, bytes]:
    """Return the number of the tree's node, and the text of its only page."""
    bodies = {int(found[1]): found[2] for found in _OBJECT.finditer(pdf)}
    nodes = [number for number, body in bodies.items() if b"/Type /Pages" in body]
    pages = [body for body in bodies.values() if re.search(rb"/Type /Page\s", body)]
    if len(nodes) != 1 or len(pages) != 1 or b"stream" in pages[0]:
        raise ValueError("the PDF is not laid out as one page in one node")
    return nodes[0], pages[0]


def _number(pattern: bytes, text: bytes) -> int:
    found = re.search(pattern, text)
    if found is None:
        raise ValueError(f"the PDF has no {pattern!r}")
    return int(found[1])
