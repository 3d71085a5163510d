"""Every store that is kept is opened, shown and gone on with; a damaged one is refused by name."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import keep_store
import pytest
from keep_store import ASKED, COMMANDS, CUT, scripted_files
from kept_stores import (
    RELEASED,
    KeptStore,
    differences,
    digests,
    kept_stores,
    tables_of,
    todays_forms,
    todays_records,
    todays_tables,
)

from fake_disks import FakeDisks
from golden_run import run
from leadline.record import Status
from leadline.record.application import APPLICATION
from leadline.record.files import FILES
from leadline.record.kinds import KINDS
from leadline.record.streaming import STREAM
from leadline.record.study import Summary
from leadline.store import Store, open_store
from leadline.store._tables import SCHEMA_VERSION
from leadline.studies.files.run import load_files, run_files
from leadline.studies.streaming.run import kept_before
from leadline.studies.streaming.study import run_scaling

STORES = kept_stores()
every_store = pytest.mark.parametrize("kept", STORES, ids=[store.name for store in STORES])


@pytest.fixture
def store(kept: KeptStore, tmp_path: Path) -> Path:
    return kept.unpack(tmp_path)


def listed(path: Path) -> tuple[Summary, ...]:
    with open_store(str(path), reading=True) as opened:
        return opened.list()


# ---- what is kept --------------------------------------------------------------------------------


def test_the_newest_store_has_todays_tables_and_records(tmp_path: Path) -> None:
    """So that no form of a store that was ever released is without a test that it can be read."""
    newest = STORES[-1]
    found = [*differences(tables_of(newest.unpack(tmp_path)), todays_tables(tmp_path))]
    if found and newest.name in RELEASED:
        assert newest.schema < SCHEMA_VERSION, "tables changed: raise SCHEMA_VERSION"
    found += differences(newest.described(), todays_records())
    assert not found, (
        f"{len(found)} forms of tables or records differ from {newest.name}. If this is meant: "
        f"make kept-store. {'; '.join(found[:10])}"
    )


def test_a_released_store_is_never_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    newest = KeptStore(SCHEMA_VERSION, 3)
    assert keep_store.after(newest) == newest
    monkeypatch.setattr(keep_store, "RELEASED", frozenset({newest.name}))
    assert keep_store.after(newest) == KeptStore(SCHEMA_VERSION, 4)
    monkeypatch.setattr(keep_store, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    assert keep_store.after(newest) == KeptStore(SCHEMA_VERSION + 1, 1)


def test_a_change_of_any_form_is_seen() -> None:
    forms = todays_forms()
    now = digests(forms)
    assert not [*differences(now, now)]
    other = json.loads(json.dumps(forms))
    fields = other["SurveyStart"]["properties"]
    fields["seeds"] = fields.pop("seed")
    other["Workload"]["properties"]["read_frac"]["default"] = 0.25
    del other["PhaseFound"]
    assert [*differences(now, digests(other))] == [
        "PhaseFound is gone",
        "SurveyStart has changed",
        "Workload has changed",
    ]
    assert next(differences(digests(other), now)) == "PhaseFound is new"
    assert "docs" not in json.dumps(forms), "words for people are no form"


@every_store
def test_every_kind_is_there_done_stopped_and_killed(store: Path) -> None:
    found = {(summary.kind, summary.status) for summary in listed(store)}
    known = {kind.kind for kind in KINDS} & {kind for kind, _ in found}
    kept_at_once = {(APPLICATION.kind, Status.STOPPED)}
    assert found == {(kind, status) for kind in known for status in Status} - kept_at_once
    if store.name.startswith(STORES[-1].name):
        assert known == {kind.kind for kind in KINDS}


# ---- what can be read ----------------------------------------------------------------------------


@every_store
@pytest.mark.parametrize("status", Status)
def test_a_study_of_every_kind_is_shown_exported_and_reported(
    store: Path, tmp_path: Path, status: Status
) -> None:
    before = store.read_bytes()
    seen = json.loads(run(("systems", "--json"), store).out)
    assert {each["study_id"] for each in seen} == {each.study_id for each in listed(store)}
    studies = {each.kind: each for each in listed(store) if each.status is status}
    if status is not Status.DONE:
        studies.pop(APPLICATION.kind, None)  # Without its answer there is nothing of it.
    for kind, study in studies.items():
        page = tmp_path / f"{kind}.html"
        shown = run(("show", study.study_id), store)
        assert shown.code == 0, (kind, shown.err)
        assert study.study_id[:8] in shown.out
        document = run(("show", study.study_id, "--json"), store)
        assert json.loads(document.out), kind
        rows = json.loads(run(("export", study.study_id), store).out)
        assert rows, kind
        drawn = run(("report", study.study_id, "-o", str(page)), store)
        assert drawn.code == 0, (kind, drawn.err)
        assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    assert store.read_bytes() == before, "looking changes nothing"


# ---- what goes on --------------------------------------------------------------------------------


def documents(path: Path) -> dict[str, list[str]]:
    """The items of every study, letter by letter."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT study, document FROM leadline_items ORDER BY sequence")
        found: dict[str, list[str]] = {}
        for study, document in rows:
            found.setdefault(study, []).append(document)
        return found


def unfinished(path: Path, kind: str) -> list[Summary]:
    return [each for each in listed(path) if each.kind == kind and each.status is not Status.DONE]


def assert_went_on(path: Path, before: dict[str, list[str]], study: Summary) -> None:
    after = documents(path)
    kept = before[study.study_id]
    assert after[study.study_id][: len(kept)] == kept, "what was measured is as it was"
    assert len(after[study.study_id]) > len(kept), "and something more was"
    assert after.keys() == before.keys(), "no other study was begun"


@every_store
@pytest.mark.parametrize("asked", COMMANDS)
def test_what_was_stopped_and_what_was_killed_go_on(store: Path, asked: str) -> None:
    words, kind = CUT.get(asked, COMMANDS[asked]), {"peak": "experiment"}.get(asked, asked)
    for _ in range(2):
        before, left = documents(store), unfinished(store, kind)
        done = run((*words, "--resume"), store)
        assert done.code == 0, done.err
        (ended,) = set(left) - set(unfinished(store, kind))
        assert_went_on(store, before, ended)
    refused = run((*words, "--resume"), store)
    assert refused.code == 2
    assert "leave out --resume" in refused.err


def go_on_files(opened: Store, study_id: str) -> None:
    stored = load_files(opened, study_id)
    tests = scripted_files(lambda _: None)
    assert run_files(tests, opened, stored.start, stored=stored).status is Status.DONE


def go_on_streams(opened: Store, study_id: str) -> None:
    before = kept_before(opened, study_id)
    disks = FakeDisks(count=2)
    study = run_scaling(disks, opened, before.study.start, ASKED, before=before)
    assert study.status is Status.DONE


@every_store
@pytest.mark.parametrize(
    ("kind", "go_on"),
    [(FILES.kind, go_on_files), (STREAM.kind, go_on_streams)],
    ids=[FILES.kind, STREAM.kind],
)
def test_what_no_system_simulates_goes_on_as_well(
    store: Path, kind: str, go_on: Callable[[Store, str], None]
) -> None:
    left = unfinished(store, kind)
    assert {each.status for each in left} == {Status.RUNNING, Status.STOPPED}
    for study in left:
        before = documents(store)
        with open_store(str(store)) as opened:
            go_on(opened, study.study_id)
        assert_went_on(store, before, study)
    assert not unfinished(store, kind)


# ---- what is refused -----------------------------------------------------------------------------

COMMANDS_THAT_OPEN: tuple[tuple[str, ...], ...] = (
    ("systems",),
    ("show", "atlas"),
    ("export", "atlas"),
    (*COMMANDS["survey"], "--resume"),
    ("survey", "sim:two-level", "--name", "new", "--budget", "60s"),
)


def assert_refused(path: Path, words: tuple[str, ...], said: str) -> None:
    before = path.read_bytes()
    done = run(words, path)
    assert done.code == 2, (words, done.out, done.err)
    text = " ".join(done.err.split())
    assert path.name in text, "which file it is"
    assert said in text
    assert "name another with --store" in text or "name another file with --store" in text
    assert "Traceback" not in text
    assert done.out == ""
    assert path.read_bytes() == before, "what cannot be read is left as it is"


def change(statement: str) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute(statement)

    return changed


def rewrite(rewritten: Callable[[bytes], bytes]) -> Callable[[Path], None]:
    def changed(path: Path) -> None:
        path.write_bytes(rewritten(path.read_bytes()))

    return changed


PAGE = 1024
HARM: dict[str, tuple[Callable[[Path], None], str]] = {
    "bad header": (rewrite(lambda data: b"\0" * 16 + data[16:]), "is not a Leadline store"),
    "another file": (rewrite(lambda data: b"%PDF-1.7\n" + data[9:]), "is not a Leadline store"),
    "page size": (rewrite(lambda data: data[:16] + b"\0\x03" + data[18:]), "Leadline store"),
    "half": (rewrite(lambda data: data[: len(data) // 2]), "is damaged"),
    "one page": (rewrite(lambda data: data[:PAGE]), "is damaged"),
    "half a page": (rewrite(lambda data: data[: PAGE // 2]), "is damaged"),
    "newer": (change("UPDATE leadline_schema SET version = 99"), "was made by a newer Leadline"),
    "version 0": (change("UPDATE leadline_schema SET version = 0"), "is damaged"),
    "version in words": (change("UPDATE leadline_schema SET version = 'four'"), "is damaged"),
    "no version": (change("DELETE FROM leadline_schema"), "is damaged"),
    "no items": (change("DROP TABLE leadline_items"), "is damaged"),
    "no column": (change("ALTER TABLE leadline_studies RENAME kind TO sort"), "column"),
}
"""Harm that every command meets, and what is said of it."""


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_store_is_refused_by_name(harm: str, tmp_path: Path) -> None:
    path = STORES[-1].unpack(tmp_path)
    do, said = HARM[harm]
    do(path)
    for words in COMMANDS_THAT_OPEN:
        assert_refused(path, words, said)


NOT_JSON = ("", "not JSON", "1e999", "{}", "[" * 5000)


@pytest.mark.parametrize("text", NOT_JSON, ids=lambda text: repr(text[:9]))
@pytest.mark.parametrize("column", ["start", "answer", "document"])
def test_a_row_that_cannot_be_read_is_refused_by_name(
    text: str, column: str, tmp_path: Path
) -> None:
    path = STORES[-1].unpack(tmp_path)
    table = "leadline_items" if column == "document" else "leadline_studies"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(f"UPDATE {table} SET {column} = ?", (text,))  # noqa: S608 - own words
    if column == "answer" and not text:
        return  # an answer that is no text is none: the study is told as one without
    for words in (("show", "atlas"), ("show", "atlas", "--json"), ("report", "atlas")):
        assert_refused(path, words, "is damaged")


@pytest.mark.parametrize("seed", range(6))
def test_any_byte_may_be_another(seed: int, tmp_path: Path) -> None:
    """It is refused by name, or what it says is told; never a traceback, nor another exit code."""
    chance = random.Random(seed)
    path = STORES[-1].unpack(tmp_path)
    whole = path.read_bytes()
    for place in places(chance, len(whole)):
        path.write_bytes(whole[:place] + bytes([chance.randrange(256)]) + whole[place + 1 :])
        done = run(chance.choice(COMMANDS_THAT_OPEN[:3]), path)
        assert done.code in (0, 2), (place, done.err)
        assert "Traceback" not in done.err
        assert "defect" not in done.err
        assert done.code == 0 or path.name in done.err, (place, done.err)


def places(chance: random.Random, length: int) -> Iterator[int]:
    """Some in the head of the file, some in the first pages, some anywhere."""
    for most in (100, 100, 8 * PAGE, 8 * PAGE, length, length, length, length):
        yield chance.randrange(most)
