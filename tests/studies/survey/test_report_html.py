"""The report's page, opened in a real browser without a network: drawn, quiet, never too wide.

Two drivers: Chromium through chromedriver (selenium), skipped with a reason where either is
missing, and plain text tests of the page that need no browser.
"""

from __future__ import annotations

import base64
import csv
import io
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

import survey_fixture as made
from leadline.record import IntervalRecord, Measurement, Survey
from leadline.studies.measurement.text import slice_outliers
from leadline.studies.survey.charts import charts
from leadline.studies.survey.page import render_html
from opened_page import OVERFLOW, OpenedPage
from survey_pages import answered, html_of, page_of, rendered


@pytest.fixture(scope="module")
def two_region_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return page_of("two-region", tmp_path_factory.mktemp("page"))


_MARKS = """
return Object.fromEntries([...document.querySelectorAll('[data-chart]')].map(box => [
  box.dataset.chart,
  {means: box.querySelectorAll('svg .mark-symbol path').length,
   lines: box.querySelectorAll('svg .mark-line path').length,
   width: box.querySelector('svg').getBoundingClientRect().width,
   room: box.getBoundingClientRect().width}]))
"""


@pytest.mark.parametrize(("width_px", "scheme"), [(400, "dark"), (400, "light"), (1280, "light")])
def test_the_page_is_drawn_quiet_offline_and_never_too_wide(
    browser: Any, two_region_page: Path, width_px: int, scheme: str
) -> None:
    page = OpenedPage.opened(browser, two_region_page, width_px, scheme)
    survey = made.two_region()
    drawn = page.ask(_MARKS)
    latency = {name for name in drawn if name.endswith("-latency")}
    assert set(drawn) - latency == set(charts(survey))
    assert len(drawn) - len(latency) == 12
    # Beside unique_bytes, what each curve of both regions says of response times.
    assert {name.removesuffix("-latency") for name in latency} <= set(charts(survey))
    assert len(latency) >= 7
    curves = {"unique_bytes": survey.unique_bytes_curve}
    for family in survey.families:
        curves |= {f"region-{family.region}-{each.parameter}": each for each in family.curves}
    for name, curve in curves.items():
        readings = sum(len(point.readings_mb_s) for point in curve.points)
        assert drawn[name]["means"] >= readings + len(curve.points), name
    for name, chart in drawn.items():
        assert chart["lines"] >= 1, name
        assert 0 < chart["width"] <= chart["room"] + 1, name
        assert chart["width"] > 0.85 * chart["room"], name
    assert page.ask(OVERFLOW) <= 0
    assert page.ask("return parseFloat(getComputedStyle(document.body).fontSize)") >= 14
    assert page.ask("return document.documentElement.dataset.charts") == scheme
    assert page.requests() == []
    assert page.console() == []


def test_the_data_can_be_taken_out_of_the_page(browser: Any, two_region_page: Path) -> None:
    page = OpenedPage.opened(browser, two_region_page, 1280)
    href = page.ask("return document.getElementById('save-json').href")
    assert href.startswith("data:application/json")
    data = page.ask("return JSON.parse(document.getElementById('leadline-data').textContent)")
    survey = answered(made.two_region())
    assert msgspec.convert(data["survey"], Survey, strict=False) == survey
    assert len(data["points"]) == len(made.points(survey))
    link = page.ask("return document.querySelector('a[download$=\".csv\"]').href")
    rows = list(csv.DictReader(io.StringIO(base64.b64decode(link.split(",", 1)[1]).decode())))
    assert len(rows) == len(made.points(survey))
    assert float(rows[0]["throughput_mb_s"]) == made.points(survey)[0].result.throughput_mb_s.value


def test_a_tooltip_says_place_and_interval(browser: Any, two_region_page: Path) -> None:
    page = OpenedPage.opened(browser, two_region_page, 1280)
    symbols = """document.querySelectorAll('[data-chart="region-1-size_mean"] .mark-symbol')"""
    tip = page.tip_of(f"{symbols}[1].querySelectorAll('path')[3]")
    assert "64 KiB" in tip
    assert re.search(r"MB/s \[\d", tip)


def test_the_browser_would_have_seen_a_request_and_an_error(
    browser: Any, two_region_page: Path, tmp_path: Path
) -> None:
    """The two checks above can fail: a page that asks and complains is caught."""
    html = two_region_page.read_text(encoding="utf-8")
    html = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", html)
    loud = "<script>console.error('loud')</script><img src='http://127.0.0.1:9/x.png'>"
    path = tmp_path / "loud.html"
    path.write_text(html.replace("</main>", f"{loud}</main>"), encoding="utf-8")
    page = OpenedPage(browser, path, 1280)
    assert page.requests() == ["http://127.0.0.1:9/x.png"]
    assert any("loud" in message for message in page.console())


def test_the_policy_stops_a_script_and_a_request_of_a_stranger(
    browser: Any, two_region_page: Path, tmp_path: Path
) -> None:
    html = two_region_page.read_text(encoding="utf-8")
    stranger = "<script>document.title='owned'</script><img src='http://127.0.0.1:9/x.png'>"
    path = tmp_path / "stranger.html"
    path.write_text(html.replace("</main>", f"{stranger}</main>"), encoding="utf-8")
    page = OpenedPage(browser, path, 1280)
    assert page.ask("return document.title") == "atlas · Leadline survey"
    reasons = [event.get("blockedReason") for event in page.network("Network.loadingFailed")]
    assert reasons == ["csp"]


def test_hostile_names_stay_text(browser: Any, tmp_path: Path) -> None:
    survey = made.hostile()
    path = tmp_path / "hostile.html"
    path.write_text(rendered(survey), encoding="utf-8")
    page = OpenedPage(browser, path, 400)
    assert page.ask("return document.querySelector('h1').textContent") == made.HOSTILE
    region = page.ask("return document.getElementById('what-if-region').textContent")
    assert region == f"{made.HOSTILE}0"
    assert page.ask("return document.querySelectorAll('img').length") == 0
    assert page.ask("return document.title").startswith("</script>")
    assert page.ask(OVERFLOW) <= 0
    assert page.requests() == []
    assert page.console() == []


def test_the_page_opens_with_the_answer_and_names_every_doubt() -> None:
    html = html_of("two-region")
    text = re.sub(r"\s+", " ", html.replace("\N{NO-BREAK SPACE}", " "))
    answer, levels = text.index('class="lead">Page cache: '), text.index(">Levels<")
    assert answer < levels
    for words in (
        "1 of 240: Little&#39;s law: broken by 8.0%",
        "inner fences",
        "No significant drift",
        "The cache was capped at 512 MiB.",
        "±2.1%",
        "AMD EPYC 7B13",
    ):
        assert words in text, words
    assert len(html) < 3_000_000
    assert not re.search(r"<(?:link|script|img)[^>]+(?:href|src)=[\"']https?:", html)


def test_outliers_are_classified_by_tukeys_fences_and_short_runs_are_not() -> None:
    steady = [100.0, 101, 102, 103, 104, 105, 106, 107, 108, 109]
    found = slice_outliers([_run([*steady, 118, 300]), _run([1.0, 2, 3])])
    assert (found.slices, found.mild, found.severe, found.unclassified_points) == (12, 1, 1, 1)


def _run(rates: list[float]) -> Measurement:
    point = made.points(made.one_region())[0]
    slices = tuple(IntervalRecord(float(at), 1.0, 10, round(r)) for at, r in enumerate(rates))
    result = msgspec.structs.replace(point.result, intervals=slices)
    return msgspec.structs.replace(point, result=result)


def test_a_stopped_survey_says_so_and_draws_no_empty_chart() -> None:
    html = html_of("stopped")
    assert "Stopped early" in html
    assert "Not measured: mean request size on the disk." in html
    assert 'data-chart="region-1-size_mean"' not in html
    empty = render_html(answered(made.empty()), ())
    assert "Not measured: no point over the working set." in empty
    assert "data-chart=" not in re.sub(r"<(script|style).*?</\1>", "", empty, flags=re.DOTALL)


def test_a_page_is_the_same_every_time() -> None:
    again = rendered(answered(made.two_region()), [made.three_region()])
    assert again == html_of("two-region")
