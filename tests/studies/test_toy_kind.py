"""A toy kind of study, added as CONTRIBUTING says: three shared files, and every command has it.

Each line that a shared file would get stands here once, patched into that file's module; nothing
else of Leadline is told about the kind.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Group
from typer.testing import CliRunner

import leadline
from leadline import app
from leadline.record import kinds as record_kinds
from leadline.record.study import ElapsedAnswer, Records, Status, StudyStart
from leadline.store import Store, _sql, open_store
from leadline.store import Stored as StoredStudy
from leadline.studies import registry


class TideStart(StudyStart, frozen=True, kw_only=True):
    """What decides a study of tides."""

    @property
    def target(self) -> str:
        return "the harbour"


class TideRead(msgspec.Struct, frozen=True, kw_only=True):
    """One reading."""

    order: int
    item_id: str
    metres: float


TIDE = Records(
    "tide", TideStart, TideRead, ElapsedAnswer, said="study of tides", made_by="leadline tide"
)


class Tides(msgspec.Struct, frozen=True):
    """A study as it is told."""

    start: TideStart
    status: Status
    readings: tuple[TideRead, ...]


def load(store: Store, ref: str) -> Tides:
    found: StoredStudy[TideStart, ElapsedAnswer] = store.find(ref, TIDE)
    return Tides(found.start, found.status, store.items(found.start.study_id))


def rows(store: Store, study_id: str) -> list[dict[str, Any]]:
    return [msgspec.structs.asdict(item) for item in store.items(study_id)]


def save_study(_store: Store, study: Tides, path: Path, _beside: Sequence[str]) -> None:
    path.write_text(f"<p>{len(study.readings)} readings</p>", encoding="utf-8")


def require_format(path: Path) -> None:
    assert path.suffix == ".html"


KIND = registry.Kind(
    TIDE,
    load=load,
    document=lambda study: {"readings": study.readings},
    render=lambda study: Group(*(f"{reading.metres} m" for reading in study.readings)),
    rows=rows,
    page=__name__,
    ending=".html",
)


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A store with one study of tides, once the three lines are there."""
    lines = (*record_kinds.KINDS, TIDE)  # record/kinds.py
    for module in [
        m for m in sys.modules.values() if getattr(m, "KINDS", None) is record_kinds.KINDS
    ]:
        monkeypatch.setattr(module, "KINDS", lines)
    monkeypatch.setitem(_sql._BY_NAME, "tide", TIDE)  # made of the lines above
    monkeypatch.setitem(registry.HOMES, "tide", __name__)  # studies/registry.py
    monkeypatch.setitem(app.COMMANDS, "tide", "Measure a tide.")  # app.py
    path = tmp_path / "store.sqlite"
    start = TideStart(study_id="a" * 32, system="harbour", started_at="2026-01-01T00:00:00+00:00")
    with open_store(str(path)) as kept:
        kept.begin(TIDE, start)
        for order, metres in enumerate((1.5, 3.25)):
            kept.add(start.study_id, TideRead(order=order, item_id=f"{order:032x}", metres=metres))
        kept.end(start.study_id, ElapsedAnswer(wall_s=2.0), Status.DONE)
    return path


def said(store: Path, *arguments: str) -> str:
    done = CliRunner(env={"COLUMNS": "100"}).invoke(app.app, ["--store", str(store), *arguments])
    assert done.exit_code == 0, done.exception
    return done.stdout


def test_every_command_has_a_kind_that_three_files_know(store: Path, tmp_path: Path) -> None:
    (listed,) = json.loads(said(store, "systems", "--json"))
    assert (listed["kind"], listed["target"], listed["items"]) == ("tide", "the harbour", 2)
    shown = said(store, "show", "harbour")
    assert shown.startswith("study of tides aaaaaaaa of harbour (the harbour), 2026-01-01 00:00")
    assert "3.25 m" in shown
    assert json.loads(said(store, "show", "harbour", "--json"))["readings"][0]["metres"] == 1.5
    assert len(said(store, "export", "harbour", "--format", "csv").splitlines()) == 3
    page = tmp_path / "page.html"
    said(store, "report", "harbour", "-o", str(page))
    assert page.read_text(encoding="utf-8") == "<p>2 readings</p>"
    assert " tide " in said(store, "--help")


def test_python_opens_it(store: Path) -> None:
    found = leadline.open("harbour", store=str(store))
    assert repr(found) == "study of tides aaaaaaaa of harbour"
    assert len(found.document()["readings"]) == 2
