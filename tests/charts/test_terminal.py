"""The terminal's picture fits its width, its encoding and hostile names."""

from __future__ import annotations

import io

import msgspec
import pytest
from rich.cells import cell_len
from rich.console import Console

import survey_fixture as made
from leadline.record import Survey
from leadline.record.finding import Finding
from leadline.studies.survey.sentences import sentences
from leadline.studies.survey.text import chart_lines, render_terminal


def _shown(survey: Survey, width: int, encoding: str = "utf-8", *, verbose: bool = False) -> str:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding=encoding)
    console = Console(file=stream, width=width, force_terminal=False)
    console.verbose = verbose  # type: ignore[attr-defined]
    console.print(render_terminal(survey))
    stream.flush()
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize("width", [40, 80, 140])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    survey = made.three_region()
    survey = msgspec.structs.replace(survey, sentences=sentences(survey))
    assert all(cell_len(line) <= width for line in _shown(survey, width).splitlines())
    assert all(cell_len(line) <= width for line in chart_lines(survey, width))


def test_the_curve_falls_from_the_top_left_to_the_bottom_right() -> None:
    lines = chart_lines(made.two_region(), 80, plain=True)
    rows = [line.split("|", 1)[1] for line in lines if "|" in line]
    assert rows[0].lstrip().startswith("*")
    assert rows[-1].rstrip().endswith("*")
    assert "7.11 GB/s" in lines[1]
    assert "485 MiB" in lines[-1]
    column = rows[-1].index(":")
    assert abs(column - lines[-1].index("485 MiB") + len(lines[1].split("|")[0]) + 1 - 3) <= 1


def test_braille_and_ascii_draw_the_same_fall() -> None:
    survey = made.three_region()
    fancy = chart_lines(survey, 80)
    assert any(0x2800 < ord(sign) <= 0x28FF for line in fancy for sign in line)
    assert len(fancy) == len(chart_lines(survey, 80, plain=True))


def test_an_ascii_terminal_gets_ascii_only() -> None:
    survey = made.two_region()
    survey = msgspec.structs.replace(survey, sentences=sentences(survey))
    text = _shown(survey, 90, "ascii")
    assert text.isascii()
    assert "x9.5 [9.2, 9.8]" in text
    assert "?" not in text


def test_a_narrow_terminal_gets_no_chart_rather_than_a_broken_one() -> None:
    assert chart_lines(made.two_region(), 30) == []
    assert chart_lines(made.empty(), 100) == []


def test_names_bring_neither_markup_nor_control_characters() -> None:
    survey = made.two_region()
    name = "[red]disk[/red]\x1b[2J"
    region = msgspec.structs.replace(survey.regions[1], name=name)
    survey = msgspec.structs.replace(
        survey,
        regions=(survey.regions[0], region),
        findings=(Finding.of("model_left_out", model="it", why="\x1b]0;owned\x07"),),
    )
    text = _shown(survey, 100)
    assert "[red]disk[/red]?[2J" in text
    assert "\x1b" not in text
    assert "\x07" not in text


def test_five_lines_of_warnings_at_most_the_gravest_first() -> None:
    notes = [Finding.of("model_left_out", model=f"m{n}", why="no") for n in range(6)]
    survey = msgspec.structs.replace(
        made.two_region(), findings=(*notes, Finding.of("stopped", points=1, planned=2))
    )
    shown = [line for line in _shown(survey, 140).splitlines() if "warning" in line]
    assert len(shown) == 5
    assert "Stopped after 1 of 2" in shown[0]
    assert shown[-1] == "3 more warnings: leadline --verbose …"
    assert _shown(survey, 140, verbose=True).count("warning: ") == 7
