"""Pages of experiments in a real browser: a peak rate, a surface; dark, hostile, narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import experiment_fixture as made
from drawn_text import unreadable
from leadline.record import Status
from leadline.record.finding import Finding
from leadline.record.workbench import Experiment
from leadline.studies.workbench.page import render_experiment_html
from opened_page import OVERFLOW, OpenedPage, made_once


@pytest.fixture(scope="module")
def peak() -> Experiment:
    return made.peak_experiment(made.BOTH)


@pytest.fixture(scope="module")
def surface() -> Experiment:
    return made.partly(made.full_surface())


@pytest.fixture(scope="module")
def pages(
    tmp_path_factory: pytest.TempPathFactory, peak: Experiment, surface: Experiment
) -> Callable[[str], Path]:
    """Every kind of page, made when it is first asked for."""
    place = tmp_path_factory.mktemp("pages")
    kinds: dict[str, Callable[[], str]] = {
        "peak": lambda: render_experiment_html(peak),
        "compared": lambda: render_experiment_html(
            made.peak_experiment(),
            [made.peak_experiment(policy="binary-seeded", start_per_s=700, seed=3)],
        ),
        "surface": lambda: render_experiment_html(surface),
        "line": lambda: render_experiment_html(made.one_factor()),
        "cube": lambda: render_experiment_html(made.three_factors()),
    }
    return made_once(place, kinds)


_MARKS = ("rect path", "symbol path", "path path", "rule line")
_CHARTS = {
    "peak": {
        "response",
        "response-near",
        "response-percentile",
        "response-near-percentile",
        "fares",
        "time",
    },
    "compared": {"response", "response-near", "fares", "time", "times", "cost-policies"},
    "line": {"lines"},
    "cube": {"map", "map-2", "lines"},
    "surface": {"map", "lines"},
}


_SCHEMES = ((400, "light"), (400, "dark"), (1280, "light"))
_LOOKS = [
    pytest.param(name, width_px, scheme, marks=[pytest.mark.long] * (not quick))
    for name in _CHARTS
    for quick in [name in {"peak", "surface"}]
    for width_px, scheme in _SCHEMES
    if quick or scheme == "light"
]


@pytest.mark.parametrize(("name", "width_px", "scheme"), _LOOKS)
def test_a_page_is_drawn_quiet_offline_readable_and_never_too_wide(
    browser: Any, pages: Callable[[str], Path], name: str, width_px: int, scheme: str
) -> None:
    page = OpenedPage.opened(browser, pages(name), width_px, scheme)
    assert page.ask("return document.documentElement.dataset.charts") == scheme
    page.unfold()
    drawn = page.marks(*_MARKS)
    assert set(drawn) == _CHARTS[name]
    assert all(marks > 3 for marks in drawn.values()), drawn
    assert unreadable(page) == []
    assert page.ask(OVERFLOW) <= 0
    assert page.console() == []
    # The browser itself may look into its own resources when it starts.
    assert [url for url in page.requests() if not url.startswith("chrome:")] == []


def test_a_tooltip_says_what_was_found_where(browser: Any, pages: Callable[[str], Path]) -> None:
    page = OpenedPage.opened(browser, pages("surface"), 1280)
    tip = page.tip_of("document.querySelector('[data-chart=map] .mark-rect path')")
    assert "Configurationdisks=" in tip
    assert "Peak rate1" in tip


def test_hostile_names_stay_text(
    browser: Any, tmp_path: Path, peak: Experiment, surface: Experiment
) -> None:
    for name, experiment in (("peak", peak), ("surface", surface)):
        path = tmp_path / f"{name}.html"
        path.write_text(render_experiment_html(made.hostile(experiment)), encoding="utf-8")
        page = OpenedPage(browser, path, 400)
        assert "</script><img src=x" in page.ask("return document.querySelector('h1').textContent")
        assert page.ask("return document.querySelectorAll('img').length") == 0
        assert page.ask(OVERFLOW) <= 0
        assert page.console() == []


def test_the_data_can_be_taken_out_of_the_page(
    browser: Any, pages: Callable[[str], Path], peak: Experiment
) -> None:
    page = OpenedPage(browser, pages("peak"), 1280)
    data = page.ask("return JSON.parse(document.getElementById('leadline-data').textContent)")
    taken = msgspec.convert(data, Experiment, strict=False)
    assert taken.start == peak.start
    assert taken.peaks[0].peak == peak.peaks[0].peak
    assert [trial.request for trial in taken.peaks[0].trials] == [
        trial.request for trial in peak.peaks[0].trials
    ]


def _plain(html: str) -> str:
    body = html.partition("<main>")[2].partition("</main>")[0]
    return body.replace("\N{NO-BREAK SPACE}", " ")


def test_the_page_of_a_peak_says_first_what_was_found(peak: Experiment) -> None:
    text = _plain(render_experiment_html(peak))
    found = peak.peaks[0].peak
    assert found is not None
    assert text.index(peak.sentences[0]) < text.index("The search") < text.index("The loads")
    undecided = sum(load.saturated is None for load in found.loads)
    assert text.count("<td>inconclusive</td>") == undecided
    for load in found.loads:
        assert f'<th scope="row">{load.rate_per_s:,.0f}' in text
    for words in ("95% within", "± 20% of the rate at 95%", "mlrsearch", "(used)"):
        assert words in text, words


def test_the_page_of_a_surface_has_every_configuration(surface: Experiment) -> None:
    text = _plain(render_experiment_html(surface))
    assert surface.surface is not None
    assert text.count("<td>predicted</td>") == 24
    assert text.count("<td>measured</td>") == 8
    assert text.count('<span class="badge">ideal</span>') == 1
    assert "8 of 32" in text
    assert "a law of bottlenecks" in text
    for sentence in surface.surface.flat:
        assert sentence[:40] in text


@pytest.mark.parametrize("name", list(made.ENDINGS))
def test_every_ending_has_a_page_that_can_be_read(browser: Any, tmp_path: Path, name: str) -> None:
    experiment = made.ending(name)
    found = experiment.peaks[0].peak
    assert found is not None
    assert found.verdict.value == name
    path = tmp_path / "page.html"
    path.write_text(render_experiment_html(experiment), encoding="utf-8")
    page = OpenedPage(browser, path, 400)
    assert {"response", "time"} <= set(page.marks(*_MARKS))
    assert unreadable(page) == []
    assert page.ask(OVERFLOW) <= 0
    assert page.console() == []


def test_an_experiment_that_was_stopped_before_anything_says_so(peak: Experiment) -> None:
    for design, factors in ((None, ()), ("full-grid", made.FACTORS)):
        empty = msgspec.structs.replace(
            peak,
            peaks=(),
            surface=None,
            sentences=(),
            fares=(),
            findings=(Finding.of("trials_failed", trials=1, why="it was dark"),),
            status=Status.STOPPED,
            start=msgspec.structs.replace(peak.start, design=design, factors=factors),
        )
        text = _plain(render_experiment_html(empty))
        assert "stopped early: --resume goes on" in text
        assert "last: it was dark</li>" in text
        assert "Nothing was measured." in text
        assert "data-chart=" not in text
