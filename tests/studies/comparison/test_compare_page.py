"""The charts and the page of a comparison: what CP93 and CP94 draw, readable, quiet, offline."""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import survey_fixture as made
from compare_fixture import INSIDE, atlas, layers, question, quicker, renamed, rows, systems
from leadline.charts.images import ReportError
from leadline.record import Interval, Status, Workload
from leadline.record.comparison import CommonCurve, CommonPoint, Price, Rule, SystemsComparison
from leadline.record.finding import Finding
from leadline.studies.comparison.charts import comparison_charts, missing_charts
from leadline.studies.comparison.contenders import common_rates
from leadline.studies.comparison.document import Terms, compare_systems
from leadline.studies.comparison.page import render_comparison_html, save_comparison
from leadline.studies.comparison.text import format_verdict, render_comparison
from opened_page import OVERFLOW, OpenedPage

PRICES = {"atlas": Price(1000.0, "EUR"), "rapid": Price(3000.0, "EUR")}
QUESTIONS = [
    question("workstation"),
    question("large_utility", read_frac=0.25),
    question("beyond", unique_bytes=40 * 2**30),
    question(size_mean=4096),
]
ALL_CHARTS = {
    "ratios-1-2",
    "bytes_touched_own",
    "bytes_touched",
    "read_share_own",
    "read_share",
    "disk_reads",
    "cache_reads",
    "cache_bytes",
    "cache_share",
}


DRIFTED = Finding.of("drift", slower_frac=0.2, low_frac=-0.3, high_frac=-0.1)


@functools.cache
def _compared() -> SystemsComparison:
    asked = Terms(QUESTIONS, PRICES, rules=(Rule("slower", 0.05),))
    return compare_systems(systems(atlas(), quicker(4.0), model="product"), asked)


def compared(**changes: Any) -> SystemsComparison:
    return msgspec.structs.replace(_compared(), **changes)


@functools.cache
def drawn() -> dict[str, Any]:
    """Return the charts of what most tests compare."""
    return comparison_charts(compared())


def test_every_figure_of_the_papers_has_its_chart() -> None:
    assert set(drawn()) == ALL_CHARTS
    assert missing_charts(compared()) == {}


def test_ratios_are_drawn_on_a_log_axis_with_their_intervals_and_verdicts() -> None:
    document = compared()
    chart = drawn()["ratios-1-2"]
    points = rows(chart, "point")
    known = [pair for pair in document.pairs if pair.ratio is not None]
    assert [row["x"] for row in points] == [pair.ratio.value for pair in known if pair.ratio]
    assert [row["low"] for row in points] == [pair.ratio.low for pair in known if pair.ratio]
    assert {row["verdict"] for row in points} == {"rapid is faster"}
    scales = [
        layer["encoding"]["x"]["scale"]
        for layer in layers(chart)
        if "scale" in layer["encoding"]["x"]
    ]
    assert {scale["type"] for scale in scales} == {"log"}
    low, high = scales[0]["domain"]
    assert low < min(row["low"] for row in points)
    assert high > 1.0


def test_an_extrapolated_ratio_is_marked_in_the_chart() -> None:
    guessed = compare_systems(
        systems(atlas(), quicker(4.0), extrapolate=True, model="product"), Terms(QUESTIONS)
    )
    chart = comparison_charts(guessed)["ratios-1-2"]
    titles = [row["title"] for row in rows(chart, "point")]
    assert titles[:3] == ["workstation", "large utility", "beyond*"]
    assert "*: extrapolated" in chart.to_dict(validate=False)["title"]["subtitle"]
    plain = drawn()["ratios-1-2"]
    assert "extrapolated" not in plain.to_dict(validate=False)["title"]["subtitle"]


def test_bars_start_at_zero_the_fastest_first_with_the_number_beside_them() -> None:
    chart = drawn()["disk_reads"]
    bars = rows(chart, "bar")
    assert [row["name"] for row in bars] == ["rapid", "atlas"]
    assert layers(chart)[0]["encoding"]["x"]["scale"]["domain"][0] == 0
    texts = [row["said"] for row in rows(chart, "text") if "end" in row]
    assert all(re.fullmatch(r".+ MB/s \[.+\]", text) for text in texts)


def test_an_extrapolated_bar_is_marked_and_keeps_its_warnings() -> None:
    small = quicker(4.0)
    document = compared()
    rates = tuple(
        msgspec.structs.replace(rate, extrapolated=rate.name == "rapid") for rate in document.rates
    )
    chart = comparison_charts(msgspec.structs.replace(document, rates=rates))["disk_reads"]
    assert [row["name"] for row in rows(chart, "bar")] == ["rapid*", "atlas"]
    assert "*: extrapolated" in chart.to_dict(validate=False)["title"]["subtitle"]
    plain = drawn()["disk_reads"].to_dict(validate=False)
    assert "*" not in plain["title"]["subtitle"]
    beyond = Workload(unique_bytes=2**41, size_mean=32768, read_frac=1.0, seq_frac=0.5)
    region = msgspec.structs.replace(small.regions[1], focal=beyond)
    guess = msgspec.structs.replace(small, regions=(small.regions[0], region))
    found = common_rates(systems(atlas(), guess, extrapolate=True, model="product"), 32768)
    assert [rate.extrapolated for rate in found] == [False, True, False, False]
    assert any(each.code == "extrapolated" for each in found[1].findings)


def title(charts: dict[str, Any], name: str) -> str:
    return str(charts[name].to_dict(validate=False)["title"]["text"])


@functools.cache
def equals() -> dict[str, Any]:
    """Return the charts of two systems of which neither is the faster."""
    twins = systems(atlas(), quicker(1.01), model="product")
    return comparison_charts(compare_systems(twins, Terms(QUESTIONS)))


@pytest.mark.parametrize(
    ("name", "best", "neutral"),
    [
        ("disk_reads", "rapid is the fastest", "Reads from the disk: the best cannot be told"),
        ("cache_reads", "rapid is the fastest", "page cache: the best cannot be told"),
        ("cache_bytes", None, "Bytes of page cache: the best cannot be told"),
    ],
)
def test_a_heading_names_the_best_only_where_it_is_shown(
    name: str, best: str | None, neutral: str
) -> None:
    assert neutral in title(equals(), name)
    assert (best or neutral) in title(drawn(), name)


def curve(name: str, ends: tuple[float, float], spread: float, last_x: float = 1.0) -> CommonCurve:
    points = tuple(
        CommonPoint(x, Interval(y, y / spread, y * spread, 5))
        for x, y in zip((0.0, last_x), ends, strict=True)
    )
    return CommonCurve(name=name, parameter="read_frac", at=INSIDE, points=points)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        (curve("b", (4.0, 1.0), 1.01), "read fraction: a is the flattest"),
        (curve("b", (1.0, 4.0), 1.01), "read fraction: a is the flattest"),
        (curve("b", (1.1, 1.0), 1.3), "read fraction: the flattest cannot be told"),
        (curve("b", (1.0, 1.1), 1.01, last_x=0.5), "read fraction"),
    ],
)
def test_the_flattest_curve_is_named_by_its_real_ends_and_only_where_shown(
    second: CommonCurve, said: str
) -> None:
    curves = (curve("a", (1.0, 1.02), 1.01), second)
    assert title(comparison_charts(compared(curves=curves)), "read_share").endswith(said)


def test_what_a_survey_warns_of_is_told_beside_what_differs() -> None:
    doubtful = renamed(made.drifting(), "cccc0003", system="shaky")
    cut = msgspec.structs.replace(doubtful, status=Status.STOPPED, findings=(DRIFTED,))
    document = compare_systems(systems(atlas(), cut, model="product"), Terms(QUESTIONS))
    first, second = document.contenders
    assert first.findings == atlas().findings
    assert second.findings[0].code == "survey_unfinished"
    assert second.findings[1] == DRIFTED
    console = Console(width=500)
    with console.capture() as captured:
        console.print(render_comparison(document))
    told = captured.get()
    assert told.index("warning: shaky: The system became ") < told.index(" workloads, shaky on ")
    page = render_comparison_html(document)
    assert "<li>shaky: The system became" in page


def test_systems_differ_by_dash_and_shape_too_not_by_colour_alone() -> None:
    for name in ("bytes_touched", "read_share", "bytes_touched_own"):
        encodings = [layer["encoding"] for layer in layers(drawn()[name])]
        assert any("strokeDash" in encoding for encoding in encodings)
        assert any("shape" in encoding for encoding in encodings)


def test_what_a_system_lacks_is_left_out_and_said() -> None:
    document = compare_systems(
        systems(atlas(), made.one_region(), model="product"),
        Terms([question(unique_bytes=600 * 2**20)]),
    )
    assert [row["name"] for row in rows(comparison_charts(document)["cache_bytes"], "bar")] == [
        "atlas"
    ]
    missing = missing_charts(document)
    assert missing["cache_reads"] == "bare: the survey found no page cache apart"
    assert "bare" in missing["cache_bytes"]
    assert missing["read_share"] == "bare: the survey found no page cache apart"
    alone = [each for each in document.curves if each.name != "bare"]
    few = missing_charts(msgspec.structs.replace(document, curves=tuple(alone)))
    assert few["bytes_touched"] == "bare: surveyed at fewer than two places with 32 KiB requests"
    none = missing_charts(msgspec.structs.replace(document, curves=(), common_size_bytes=None))
    assert "none in common" in none["bytes_touched"]
    assert "no page cache apart" in render_comparison_html(document)


def test_names_of_strangers_stay_text_on_the_page_and_on_the_terminal() -> None:
    named = f"[bold]{made.HOSTILE}[/bold]\x1b[31m"
    surveys = (atlas(), quicker(system=named))
    document = compare_systems(systems(*surveys, model="product"), Terms(QUESTIONS))
    html = render_comparison_html(document)
    assert "<img src=x" not in html
    assert "&lt;img" in html
    console = Console(width=2000, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(render_comparison(document))
    shown, lines = f"[bold]{made.HOSTILE}[/bold]?[31m", captured.get().splitlines()
    assert shown in lines[0]
    at = next(number for number, line in enumerate(lines) if "Workload" in line)
    assert all(word in " ".join(lines[at - 2 : at + 1]) for word in shown.split()), (
        "the folded head"
    )
    assert "\x1b[31m" not in captured.get()


def test_a_workload_that_cannot_be_compared_is_not_said_to_be_undecided() -> None:
    said = [format_verdict(pair) for pair in compared().pairs]
    assert said == ["rapid", "rapid", "not known", "rapid"]


def test_the_terminal_shows_price_gate_and_reasons() -> None:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(render_comparison(compared()))
    assert "beyond: not_comparable (leadline explain not_comparable)" in captured.get()
    console.verbose = True  # type: ignore[attr-defined]
    with console.capture() as captured:
        console.print(render_comparison(compared()))
    text = " ".join(captured.get().split())
    assert "rapid on 3; 1 not comparable" in text
    assert "not comparable 1" in text
    assert "for 1000 EUR" in text
    assert "gate passed (slower by more than 5.0% fails)" in text
    assert "beyond: atlas: unique_bytes=40 GiB lies outside" in text


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"\.html, \.svg"):
        save_comparison(compared(), tmp_path / "page.doc")


def test_a_file_that_cannot_be_written_is_refused_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "taken.html").mkdir()
    with pytest.raises(ReportError, match=r"taken\.html cannot be written: Is a directory"):
        save_comparison(compared(), tmp_path / "taken.html")


_WIDTHS = """
return Object.fromEntries([...document.querySelectorAll('[data-chart]')].map(box => [
  box.dataset.chart,
  [box.querySelector('svg').getBoundingClientRect().width, box.getBoundingClientRect().width]]))
"""


@pytest.fixture(scope="module")
def compared_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "comparison.html"
    save_comparison(compared(), path)
    return path


@pytest.mark.parametrize(("width_px", "scheme"), [(400, "dark"), (1280, "light")])
def test_the_page_is_drawn_quiet_offline_and_never_too_wide(
    browser: Any, compared_page: Path, width_px: int, scheme: str
) -> None:
    page = OpenedPage.opened(browser, compared_page, width_px, scheme)
    widths = page.ask(_WIDTHS)
    assert set(widths) == ALL_CHARTS
    for name, (width, room) in widths.items():
        assert 0.85 * room < width <= room + 1, name
    assert page.ask(OVERFLOW) <= 0
    assert page.requests() == []
    assert page.console() == []
    saved = page.ask("return document.getElementById('save-json').href")
    assert saved.startswith("data:application/json")
