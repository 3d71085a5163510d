"""`leadline report --all`: a folder of pages, and a start page from which each is reached."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from golden_cases import HERE

from command import leadline
from leadline.studies.site import Entry, render_start
from opened_page import OVERFLOW

_KEPT = ("1182ba46", "53c3b570", "282bcc82")
"""Studies that are drawn quickly: files, a measurement, a survey that was stopped."""


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("store") / "store.sqlite"
    shutil.copyfile(HERE / "store-today.sqlite", path)
    listed = leadline("systems", "--json", store=path).stdout
    gone = [each for each in re.findall(r'"study_id": "(\w{8})', listed) if each not in _KEPT]
    for study in gone:
        leadline("rm", study, "--yes", store=path)
    return path


def test_every_study_has_a_page_and_the_start_page_leads_to_it(store: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    done = leadline("report", "--all", "-o", str(site), store=store)
    assert done.returncode == 0, done.stderr
    start = (site / "index.html").read_text(encoding="utf-8")
    links = re.findall(r'href="(\w+\.html)">([^<]+)<', start)
    assert {page[:8] for page, _ in links} == set(_KEPT)
    assert {path.name for path in site.iterdir()} == {"index.html", *(page for page, _ in links)}
    said = " ".join(text.replace("\N{NO-BREAK SPACE}", " ") for _, text in links)
    for headline in (
        "Reads: no significant difference between",
        "requests/s; reads p99",
        "Levels:",
    ):
        assert headline in said
    for page, text in links:
        assert text.split("(")[0] in (site / page).read_text(encoding="utf-8")
    again = leadline("report", "--all", "-o", str(site), store=store)
    assert again.returncode == 2
    assert "--force" in again.stderr


def test_a_study_and_all_studies_are_not_asked_for_together(store: Path, tmp_path: Path) -> None:
    both = leadline("report", "thing", "--all", store=store)
    assert both.returncode == 2
    assert "leave out S" in both.stderr
    neither = leadline("report", store=store)
    assert neither.returncode == 2
    assert "--all" in neither.stderr
    empty = leadline("report", "--all", "-o", str(tmp_path / "e"), store=tmp_path / "none.sqlite")
    assert empty.returncode == 0
    assert "Nothing is stored yet" in (tmp_path / "e" / "index.html").read_text(encoding="utf-8")


def test_the_start_page_is_narrow_enough_and_a_name_stays_text(
    browser: Any, tmp_path: Path
) -> None:
    hostile = "</h2><script>document.title='owned'</script>" + "x" * 200
    entry = Entry("1a2b3c4d", "survey", hostile, hostile, "2026", "running", hostile, "a.html", "")
    path = tmp_path / "index.html"
    path.write_text(render_start([entry, entry._replace(page="", why=hostile)]), encoding="utf-8")
    for width_px in (400, 1280):
        size = {"width": width_px, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        browser.get(path.as_uri())
        assert browser.execute_script(OVERFLOW) <= 0
        assert browser.title == "What was measured · Leadline"
        assert browser.execute_script("return document.querySelector('h2').textContent") == hostile


def test_a_page_is_written_nowhere_but_in_the_folder(store: Path, tmp_path: Path) -> None:
    """Whatever a study's id is in a store that others have changed, and whatever lies there."""
    changed, site, victim = tmp_path / "s.sqlite", tmp_path / "site", tmp_path / "victim"
    shutil.copyfile(store, changed)
    with closing(sqlite3.connect(changed)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = OFF")
        connection.execute("UPDATE leadline_studies SET id = '../victim' WHERE id LIKE '282bcc82%'")
    victim.write_text("precious", encoding="ascii")
    site.mkdir()
    (site / "53c3b57073fd.html").symlink_to(victim)
    done = leadline("report", "--all", "-o", str(site), "--force", store=changed)
    assert done.returncode == 0, done.stderr
    assert victim.read_text(encoding="ascii") == "precious"
    assert not (site / "53c3b57073fd.html").is_symlink()
    assert "its id is none that Leadline gives" in (site / "index.html").read_text("utf-8")
    assert sorted(path.name for path in site.iterdir())[-1] == "index.html"
    assert not [*tmp_path.rglob("*victim*.html")]
