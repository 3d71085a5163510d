"""Every kind of study can everything: a store of the goldens has each of them."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

import leadline
from leadline.api.studies import StoredStudy
from leadline.record.kinds import KINDS as RECORDS
from leadline.store import NotStored, StoreError, open_store
from leadline.studies.registry import KINDS, find_study
from places import TESTS

KEPT = TESTS / "golden" / "store-today.sqlite"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(shutil.copy(KEPT, tmp_path / "store.sqlite"))


def first_of(store: str, kind: str) -> str:
    (records,) = [each for each in RECORDS if each.kind == kind]
    with open_store(store) as kept:
        return kept.list(records)[0].study_id


def test_the_registry_has_a_line_for_every_kind_that_is_stored() -> None:
    assert [kind.records for kind in KINDS.values()] == list(RECORDS)


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_is_found_told_exported_and_drawn(store: str, tmp_path: Path, kind: str) -> None:
    study_id = first_of(store, kind)
    able, page = KINDS[kind], tmp_path / "page.html"
    with open_store(store) as kept:
        assert find_study(kept, study_id[:8]).kind == kind
        study = able.load(kept, study_id)
        assert json.loads(msgspec.json.encode(able.document(study)))
        rows = able.rows(kept, study_id)
        able.drawn.save_study(kept, study, page, ())
    console = Console(width=100)
    with console.capture() as said:
        console.print(able.render(study))
    assert said.get().strip()
    assert rows
    assert all(row.keys() == rows[0].keys() for row in rows)
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


@pytest.mark.parametrize("kind", KINDS)
def test_a_study_that_cannot_be_read_is_called_damaged_and_not_unknown(
    store: str, kind: str
) -> None:
    study_id = first_of(store, kind)
    with closing(sqlite3.connect(store)) as torn, torn:
        torn.execute("UPDATE leadline_studies SET start = '{}' WHERE id = ?", (study_id,))
    with open_store(store) as kept, pytest.raises(StoreError, match=r"is damaged: a .* cannot be"):
        find_study(kept, study_id[:8])


def test_what_is_not_stored_is_said_of_surveys_which_are_asked_for_most(store: str) -> None:
    with open_store(store) as kept, pytest.raises(NotStored, match="nobody"):
        find_study(kept, "nobody")


@pytest.mark.parametrize("kind", ["validation", "cache", "files", "measurement"])
def test_python_opens_what_has_no_class_of_its_own(store: str, tmp_path: Path, kind: str) -> None:
    found = leadline.open(first_of(store, kind), store=store)
    assert isinstance(found, StoredStudy)
    assert found.kind == kind
    assert found.study.start.system in repr(found)
    assert found.document()
    found.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_a_stream_and_an_experiment_open_as_what_python_made_of_them(store: str) -> None:
    stream = leadline.open(first_of(store, "stream"), store=store)
    experiment = leadline.open(first_of(store, "experiment"), store=store)
    assert isinstance(stream, leadline.StreamedData)
    assert isinstance(experiment, leadline.MeasuredServer)
