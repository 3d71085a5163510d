"""A page of the report, opened in headless Chromium through chromedriver (selenium)."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def start_browser(profile: Path) -> Iterator[Any]:
    """Yield a driver of one browser, or skip with the reason; for a fixture to yield from."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium and chromedriver are not both installed: the page was not opened")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*_FLAGS, f"--user-data-dir={profile}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()


HEIGHT_PX = 800
"""Of the window: a small laptop's, and a little less than a phone's."""

_WAIT = """
const [scheme, done] = arguments, drawn = document.documentElement.dataset;
const look = () => drawn.charts === scheme ? done() : setTimeout(look, 40);
look();
"""
_WATCH = """
window.resized = new Promise(done => addEventListener('resize',
  () => requestAnimationFrame(() => setTimeout(done)), {once: true}));
"""
"""Vega's own listeners, which were there before, draw before the next frame."""


def _by_the_page(event: dict[str, Any]) -> bool:
    return not str(event.get("documentURL", "")).startswith("chrome:")


OVERFLOW = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
"""Pixels by which a page is too wide."""


def made_once(place: Path, kinds: Mapping[str, Callable[[], str]]) -> Callable[[str], Path]:
    """Return what gives a page's file by its name, written when it is first asked for."""

    def page(name: str) -> Path:
        path = place / f"{name}.html"
        if not path.exists():
            path.write_text(kinds[name](), encoding="utf-8")
        return path

    return page


_POINT_AT = """
const at = mark.getBoundingClientRect();
const where = {clientX: at.x + at.width / 2, clientY: at.y + at.height / 2, bubbles: true};
for (const kind of ['pointerover', 'pointermove', 'mouseover', 'mousemove'])
  mark.dispatchEvent(new PointerEvent(kind, where));
"""
_MARKS = """
return Object.fromEntries([...document.querySelectorAll('[data-chart]')].map(box => [
  box.dataset.chart, box.querySelectorAll(arguments[0]).length]))
"""


_ALL_DRAWN = """new Promise(done => {
  const look = () => [...document.querySelectorAll('[data-chart]')].every(box => box.dataset.drawn)
    ? done() : setTimeout(look, 40);
  look();
})"""


class OpenedPage:
    """A page in the browser after all its charts were drawn."""

    _unchanged: ClassVar[OpenedPage | None] = None
    """The one that stands open, if `opened` gave it."""

    def __init__(self, browser: Any, page: Path, width_px: int, scheme: str = "light") -> None:
        OpenedPage._unchanged = None
        self.browser, self.page = browser, page
        self._empty_logs()
        self._emulate(width_px, scheme)
        browser.get(page.as_uri())
        browser.set_script_timeout(60)
        browser.execute_async_script(_WAIT, scheme)

    @classmethod
    def opened(cls, browser: Any, page: Path, width_px: int, scheme: str = "light") -> OpenedPage:
        """Open a page for a test that changes nothing on it, or takes back what it changes.

        If such a test had the page open last it is not loaded anew, which takes most of a
        second of processor time: its window gets the new width, and it the new scheme.
        """
        shown = cls._unchanged
        if shown is None or (shown.browser, shown.page) != (browser, page):
            shown = cls(browser, page, width_px, scheme)
        else:
            shown._empty_logs()
            shown.show(width_px, scheme)
        cls._unchanged = shown
        return shown

    def show(self, width_px: int, scheme: str) -> None:
        """Resize the window and choose the scheme, as a reader may, and wait for the drawings."""
        if width_px != self._width_px:
            self.ask(_WATCH)
            self._emulate(width_px, self._scheme)
            self.wait("window.resized")
        if scheme != self._scheme:
            self._emulate(width_px, scheme)
            self.browser.execute_async_script(_WAIT, scheme)

    def _emulate(self, width_px: int, scheme: str) -> None:
        self._width_px, self._scheme = width_px, scheme
        size = {"width": width_px, "height": HEIGHT_PX, "deviceScaleFactor": 1, "mobile": False}
        self.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        media = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", media)

    def _empty_logs(self) -> None:
        for kind in ("browser", "performance"):
            self.browser.get_log(kind)

    def ask(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def marks(self, *kinds: str) -> dict[str, int]:
        """Count the marks of these kinds in every chart, as `rect path`."""
        wanted = ", ".join(f"svg .mark-{kind}" for kind in kinds)
        counted: dict[str, int] = self.ask(_MARKS, wanted)
        return counted

    def tip_of(self, mark: str) -> str:
        """Point at the mark that a JavaScript expression finds, and read what it says."""
        self.ask(f"const mark = {mark};{_POINT_AT}")
        said: str = self.ask(
            "return document.getElementById('vg-tooltip-element')?.textContent ?? ''"
        )
        return said

    def unfold(self) -> None:
        """Open all that is folded away, and wait for the charts in it."""
        self.ask("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        self.wait(_ALL_DRAWN)

    def wait(self, promise: str) -> None:
        """Wait until a JavaScript promise is kept."""
        self.browser.execute_async_script(f"({promise}).then(arguments[0])")

    def console(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def requests(self) -> list[str]:
        """Every URL that anything on the page asked for, but files and data inside it.

        What the browser's own first page asks for, which may still load, is not the page's.
        """
        sent = self.network("Network.requestWillBeSent")
        urls = [event["request"]["url"] for event in sent if _by_the_page(event)]
        return [url for url in urls if not url.startswith(("data:", "file:"))]

    def network(self, method: str) -> list[dict[str, Any]]:
        """Return what Chromium's network log holds of one kind of event, and empty the log."""
        entries = self.browser.get_log("performance")
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [message["params"] for message in messages if message["method"] == method]
