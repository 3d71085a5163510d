"""Answers on paper: pages of one size, nothing across the end of one, and every word and chart."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import vl_convert

import survey_fixture as made
from leadline.charts.drawable import Drawn
from leadline.charts.paged import Sheet, _Drawing, paged_pdf, split_pages
from leadline.record.finding import Finding
from leadline.studies.survey.charts import charts
from leadline.studies.survey.page import save_report
from survey_pages import answered

_BOX = re.compile(rb"/MediaBox \[0 ([0-9.]+) ([0-9.]+) ([0-9.]+)\]")


def _sheet(words: int = 3, drawn: Mapping[str, Drawn] | None = None) -> Sheet:
    said = [f"Sentence {number} says what was found." for number in range(words)]
    return Sheet(
        "atlas",
        "sim:two-level",
        said,
        [Finding.of("no_interval"), Finding.of("no_capacities")],
        drawn or {},
    )


def _boxes(pdf: bytes) -> list[tuple[float, float, float]]:
    """Of the pages that the end of the file tells of: low end, width, top."""
    told = pdf[pdf.index(b"%%EOF") :]
    return [tuple(map(float, box)) for box in _BOX.findall(told)]  # type: ignore[misc]


def test_a_survey_goes_on_several_a4_pages_that_lie_side_by_side(tmp_path: Path) -> None:
    survey = answered(made.two_region())
    save_report(survey, made.points(survey), tmp_path / "survey.pdf")
    boxes = _boxes((tmp_path / "survey.pdf").read_bytes())
    assert len(boxes) >= 2
    for low, width, top in boxes:
        assert width == pytest.approx(595.28, abs=0.1)
        assert top - low == pytest.approx(841.7, abs=0.5)
    assert [low for low, _, _ in boxes[:-1]] == pytest.approx([top for _, _, top in boxes[1:]])
    assert boxes[-1][0] == pytest.approx(0.0)


def test_few_words_are_one_page_and_many_are_several() -> None:
    assert len(_boxes(paged_pdf(_sheet()))) == 1
    assert len(_boxes(paged_pdf(_sheet(200)))) > 2


@pytest.mark.long
def test_nothing_lies_across_the_end_of_a_page() -> None:
    drawing = _Drawing()
    for number in range(12):
        drawing.words(["word " * 40 * number], size=14)
        drawing.row(list(charts(made.two_region()).items())[number % 3 : number % 3 + 2])
    svg = drawing.svg()
    placed = re.findall(r'<svg x="[\d.]+" y="([\d.]+)" width="[\d.]+" height="([\d.]+)"', svg)
    lines = [(float(y) - 14, 14.0) for y in re.findall(r'<text x="56.0" y="([\d.]+)"', svg)]
    ends = [(float(y), float(height)) for y, height in placed] + lines
    assert len(placed) == 24
    assert drawing.pages > 3
    for y, height in ends:
        assert y // 1414 == (y + height) // 1414, (y, height)


def test_the_update_says_where_its_objects_are() -> None:
    pdf = paged_pdf(_sheet(200))
    start = int(pdf.rsplit(b"startxref\n", 1)[1].split(b"\n")[0])
    assert pdf[start:].startswith(b"xref\n0 1\n")
    places = re.findall(rb"(\d+) 1\n(\d{10}) 00000 n\r\n", pdf[start:])
    assert len(places) == len(_boxes(pdf)) + 1
    for number, place in places:
        assert pdf[int(place) :].startswith(number + b" 0 obj")
    before = re.search(rb"/Prev (\d+)", pdf[start:])
    assert before is not None
    assert pdf[int(before[1]) :].startswith(b"xref")


def test_a_pdf_of_another_make_is_refused() -> None:
    pdf = vl_convert.svg_to_pdf('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>')
    assert split_pages(pdf, 3).count(b"/MediaBox [0") > pdf.count(b"/MediaBox [0")
    with pytest.raises(ValueError, match="not laid out"):
        split_pages(pdf.replace(b"/Type /Pages", b"/Type /Other"), 3)
