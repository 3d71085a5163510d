"""The charts and the page of a comparison: what CP93 and CP94 draw, readable, quiet, offline."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

import survey_fixture as made
from compare_fixture import atlas, question, quicker, systems
from leadline.compare import Terms, compare_systems
from leadline.record.comparison import Price, SystemsComparison
from leadline.report import (
    ReportError,
    comparison_charts,
    render_comparison,
    render_comparison_html,
    save_comparison,
)
from leadline.report.comparison_words import say_verdict
from leadline.report.systems_charts import missing_charts
from opened_page import OpenedPage, start_browser

PRICES = {"atlas": Price(1000.0, "EUR"), "rapid": Price(3000.0, "EUR")}
QUESTIONS = [
    question("workstation"), question("large_utility", read_frac=0.25),
    question("beyond", unique_bytes=40 * 2**30), question(size_mean=4096),
]  # fmt: skip
ALL_CHARTS = {
    "ratios-1-2", "bytes_touched_own", "bytes_touched", "read_share", "disk_reads",
    "cache_reads", "cache_bytes", "cache_share",
}  # fmt: skip


def compared(**changes: Any) -> SystemsComparison:
    asked = Terms(QUESTIONS, PRICES, slower_frac=0.05)
    pair = systems(atlas(), quicker(4.0))
    return msgspec.structs.replace(compare_systems(pair, asked), **changes)


def layers(chart: Any) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    sets = spec.get("datasets", {})
    return [
        {"rows": sets.get(layer["data"].get("name"), layer["data"].get("values", [])), **layer}
        for layer in spec["layer"]
    ]


def rows(chart: Any, mark: str) -> list[dict[str, Any]]:
    return [
        row for layer in layers(chart) if layer["mark"]["type"] == mark for row in layer["rows"]
    ]


def test_every_figure_of_the_papers_has_its_chart() -> None:
    assert set(comparison_charts(compared())) == ALL_CHARTS
    assert missing_charts(compared()) == {}


def test_ratios_are_drawn_on_a_log_axis_with_their_intervals_and_verdicts() -> None:
    document = compared()
    chart = comparison_charts(document)["ratios-1-2"]
    drawn = rows(chart, "point")
    known = [pair for pair in document.pairs if pair.ratio is not None]
    assert [row["x"] for row in drawn] == [pair.ratio.value for pair in known if pair.ratio]
    assert [row["low"] for row in drawn] == [pair.ratio.low for pair in known if pair.ratio]
    assert {row["verdict"] for row in drawn} == {"rapid is faster"}
    scales = [
        layer["encoding"]["x"]["scale"]
        for layer in layers(chart)
        if "scale" in layer["encoding"]["x"]
    ]
    assert {scale["type"] for scale in scales} == {"log"}
    low, high = scales[0]["domain"]
    assert low < min(row["low"] for row in drawn)
    assert high > 1.0


def test_an_extrapolated_ratio_is_marked_in_the_chart() -> None:
    guessed = compare_systems(systems(atlas(), quicker(4.0), extrapolate=True), Terms(QUESTIONS))
    chart = comparison_charts(guessed)["ratios-1-2"]
    titles = [row["title"] for row in rows(chart, "point")]
    assert titles[:3] == ["workstation", "large utility", "beyond*"]
    assert "*: extrapolated" in chart.to_dict()["title"]["subtitle"]
    plain = comparison_charts(compared())["ratios-1-2"]
    assert "extrapolated" not in plain.to_dict()["title"]["subtitle"]


def test_bars_start_at_zero_the_fastest_first_with_the_number_beside_them() -> None:
    chart = comparison_charts(compared())["disk_reads"]
    bars = rows(chart, "bar")
    assert [row["name"] for row in bars] == ["rapid", "atlas"]
    assert layers(chart)[0]["encoding"]["x"]["scale"]["domain"][0] == 0
    texts = [row["said"] for row in rows(chart, "text") if "end" in row]
    assert all(re.fullmatch(r".+ MB/s \(.+\)", text) for text in texts)


def test_systems_differ_by_dash_and_shape_too_not_by_colour_alone() -> None:
    for name in ("bytes_touched", "read_share", "bytes_touched_own"):
        encodings = [layer["encoding"] for layer in layers(comparison_charts(compared())[name])]
        assert any("strokeDash" in encoding for encoding in encodings)
        assert any("shape" in encoding for encoding in encodings)


def test_what_a_system_lacks_is_left_out_and_said() -> None:
    document = compare_systems(
        systems(atlas(), made.one_region()), Terms([question(unique_bytes=600 * 2**20)])
    )
    assert [row["name"] for row in rows(comparison_charts(document)["cache_bytes"], "bar")] == [
        "atlas"
    ]
    missing = missing_charts(document)
    assert missing["cache_reads"] == "bare: the survey found no file cache apart"
    assert "bare" in missing["cache_bytes"]
    assert "no file cache apart" in render_comparison_html(document)


def test_names_of_strangers_stay_text_on_the_page_and_on_the_terminal() -> None:
    named = f"[bold]{made.HOSTILE}[/bold]\x1b[31m"
    surveys = (atlas(), quicker(system=named))
    document = compare_systems(systems(*surveys), Terms(QUESTIONS))
    html = render_comparison_html(document)
    assert "<img src=x" not in html
    assert "&lt;img" in html
    console = Console(width=2000, force_terminal=True, color_system=None)
    with console.capture() as captured:
        console.print(render_comparison(document))
    heads = [line for line in captured.get().splitlines() if "Workload" in line]
    assert f"[bold]{made.HOSTILE}[/bold]?[31m" in heads[0]
    assert "\x1b[31m" not in captured.get()


def test_a_workload_that_cannot_be_compared_is_not_said_to_be_undecided() -> None:
    said = [say_verdict(pair) for pair in compared().pairs]
    assert said == ["rapid is faster", "rapid is faster", "not known", "rapid is faster"]


def test_the_terminal_shows_price_gate_and_reasons() -> None:
    console = Console(width=160)
    with console.capture() as captured:
        console.print(render_comparison(compared()))
    text = " ".join(captured.get().split())
    assert "rapid on 3" in text
    assert "not known on 1" in text
    assert "for 1000 EUR" in text
    assert "gate passed (slower by more than 5.0 % fails)" in text
    assert "beyond: atlas: unique_bytes=40 GiB lies outside" in text


def test_an_unknown_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ReportError, match=r"\.html, \.svg"):
        save_comparison(compared(), tmp_path / "page.doc")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    yield from start_browser(tmp_path_factory.mktemp("chromium"))


_WIDTHS = """
return Object.fromEntries([...document.querySelectorAll('[data-chart]')].map(box => [
  box.dataset.chart,
  [box.querySelector('svg').getBoundingClientRect().width, box.getBoundingClientRect().width]]))
"""


@pytest.mark.parametrize(("width_px", "scheme"), [(1280, "light"), (400, "dark")])
def test_the_page_is_drawn_quiet_offline_and_never_too_wide(
    browser: Any, tmp_path: Path, width_px: int, scheme: str
) -> None:
    path = tmp_path / "comparison.html"
    save_comparison(compared(), path)
    page = OpenedPage(browser, path, width_px, scheme)
    drawn = page.ask(_WIDTHS)
    assert set(drawn) == ALL_CHARTS
    for name, (width, room) in drawn.items():
        assert 0.85 * room < width <= room + 1, name
    overflow = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.ask(overflow) <= 0
    assert page.requests() == []
    assert page.console() == []
    saved = page.ask("return document.getElementById('save-json').href")
    assert saved.startswith("data:application/json")
