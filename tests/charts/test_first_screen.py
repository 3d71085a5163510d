"""Every kind's page in a real browser: the first screen holds the verdict and the chart.

At 1280 × 800, a small laptop, and at 400 × 800, a phone. The pages are those of the golden store,
of which there is one of each kind, and of what is asked for: comparison, balance, predictions.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from golden_cases import HERE, KINDS

import experiment_fixture as experiments
import stream_fixture as streams
from command import leadline
from leadline.store import open_store
from leadline.studies.registry import KINDS as TOLD
from leadline.studies.registry import find_study
from leadline.studies.streaming.answer import balance_of
from leadline.studies.streaming.page import render_balance_html
from leadline.studies.workbench.page import render_experiment_html
from opened_page import HEIGHT_PX, OVERFLOW, OpenedPage
from shared_results import once
from survey_pages import html_of

_WORKLOAD = "unique_bytes=2GiB,size_mean=64KiB,read_frac=0.6,seq_frac=0.6,process_num=8"
_STORED = (
    "measurement-simulated",
    "measurement-fio-job",
    "measurement-directory",
    "validation",
    "cache-study",
    "files-study",
    "stream-run",
    "stream-scaling",
    "peak",
    "surface",
    "application",
)
_MADE: dict[str, Callable[[], str]] = {
    "survey": lambda: html_of("two-region"),
    "survey-stopped": lambda: html_of("stopped"),
    "surface-of-two-factors": lambda: render_experiment_html(
        experiments.partly(experiments.full_surface())
    ),
    "balance": lambda: render_balance_html(
        [balance_of(streams.scaling_study()), balance_of(streams.scaling_study(streams.BOREAS))]
    ),
}
_ASKED = {
    "comparison": ("compare", "atlas", "boreas"),
    "prediction": ("predict", "atlas", "--workload", _WORKLOAD),
    "predictions": ("predict", "atlas", "--named", "--extrapolate"),
    "predicted-application": ("predict", "atlas", "--application", "program", "--extrapolate"),
}
PAGES = (*_MADE, *_STORED, *_ASKED)
_QUICK = ("survey", "surface-of-two-factors", "comparison")
"""A page of each layout; the others, and phones, are for `make test-long`."""
_SHOWN = [
    pytest.param(name, width_px, marks=[pytest.mark.long] * (not quick))
    for name in PAGES
    for width_px in (1280, 400)
    for quick in [name in _QUICK and width_px == 1280]
]


def _page(name: str, folder: Path) -> str:
    path, kept = folder / f"{name}.html", folder / "store.sqlite"
    if not kept.exists():  # a store that is opened is changed
        shutil.copyfile(HERE / "store-today.sqlite", kept)
    if name in _MADE:
        return _MADE[name]()
    if name in _ASKED:
        done = leadline(*_ASKED[name], "-o", str(path), store=kept)
        assert done.returncode == 0, done.stderr
    else:
        with open_store(str(kept), reading=True) as store:
            found = find_study(store, KINDS[name])
            kind = TOLD[found.kind]
            kind.drawn.save_study(store, kind.load(store, found.start.study_id), path, ())
    return path.read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def opened(browser: Any, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., OpenedPage]:
    folder = tmp_path_factory.mktemp("first")

    def open_page(name: str, width_px: int) -> OpenedPage:
        path = folder / f"{name}.page.html"
        if not path.exists():
            path.write_text(once(f"first-{name}", lambda: _page(name, folder)), encoding="utf-8")
        return OpenedPage.opened(browser, path, width_px)

    return open_page


_PLACES = """
const place = (of) => {
  const at = document.querySelector(of)?.getBoundingClientRect();
  return at && {top: at.top + scrollY, bottom: at.bottom + scrollY, width: at.width};
};
return {verdict: place('.lead'), chart: place('[data-chart] svg'),
        drawn: document.querySelectorAll('[data-chart] svg [class*=mark-] path').length};
"""
_TOO_WIDE = """
return [...document.querySelectorAll('main *')].filter(each =>
  !each.closest('.scroll') && !each.closest('svg') &&
  each.getBoundingClientRect().right > innerWidth + 1).map(each => each.outerHTML.slice(0, 90));
"""
_CUT_WITHOUT_A_WORD = """
return [...document.querySelectorAll('.scroll')].filter(each =>
  (each.scrollWidth > each.clientWidth + 1 || each.scrollHeight > each.clientHeight + 1) &&
  !each.nextElementSibling?.matches('.more:not([hidden])')
).map(each => each.outerHTML.slice(0, 90));
"""
_HALF_EMPTY = """
return [...document.querySelectorAll('figure')].filter(each => each.querySelector('svg') && (() => {
  const card = each.getBoundingClientRect();
  const parts = [...each.querySelectorAll('h3, p, svg')].map(one => one.getBoundingClientRect());
  return card.height > 1.5 * parts.reduce((sum, one) => sum + one.height, 0) + 60;
})()).map(each => each.id);
"""


@pytest.mark.parametrize(("name", "width_px"), _SHOWN)
def test_the_first_screen_holds_the_verdict_and_the_chart(
    opened: Callable[..., OpenedPage], name: str, width_px: int
) -> None:
    page = opened(name, width_px)
    found = page.ask(_PLACES)
    assert 0 < found["verdict"]["top"] < found["verdict"]["bottom"] < found["chart"]["top"]
    assert found["chart"]["bottom"] <= HEIGHT_PX, found
    assert found["chart"]["width"] > width_px / 2
    assert found["chart"]["bottom"] - found["chart"]["top"] > 100
    assert found["drawn"] > 1
    assert page.ask(OVERFLOW) <= 0
    assert page.ask(_TOO_WIDE) == []
    assert page.ask(_CUT_WITHOUT_A_WORD) == []
    assert page.ask(_HALF_EMPTY) == []
    assert page.console() == []


def test_every_link_of_the_contents_leads_somewhere(opened: Callable[..., OpenedPage]) -> None:
    page = opened("survey", 1280)
    links = page.ask(
        "return [...document.querySelectorAll('.contents a')].map(a => [a.hash, a.textContent])"
    )
    assert ["#levels", "Levels"] in links
    assert len(links) == len({anchor for anchor, _ in links}) >= 8
    for anchor, title in links:
        assert page.ask("return document.querySelector(arguments[0])?.textContent", anchor) == title
