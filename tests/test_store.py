"""The SQL store: the conformance suite, and what is particular to a file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from leadline.store import Store, StoreError, default_path, open_store
from leadline.store._tables import metadata
from leadline.testing.samples import (
    sample_cache_start,
    sample_experiment_start,
    sample_point,
    sample_start,
    sample_validation_start,
)
from leadline.testing.store_conformance import StoreConformance


class TestSqlite(StoreConformance):
    def open(self, place: Path) -> Store:
        return open_store(str(place / "leadline.sqlite"))


class TestSqliteByUrl(StoreConformance):
    def open(self, place: Path) -> Store:
        return open_store(f"sqlite:///{place}/with space.sqlite")


def test_the_default_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LEADLINE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    open_store().close()
    assert (tmp_path / "data/leadline/leadline.sqlite").is_file()
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert default_path() == tmp_path / "home/.local/share/leadline/leadline.sqlite"


def test_the_variable_and_the_argument(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LEADLINE_STORE", str(tmp_path / "variable.sqlite"))
    open_store().close()
    open_store(str(tmp_path / "argument.sqlite")).close()
    assert {path.name for path in tmp_path.iterdir()} == {"variable.sqlite", "argument.sqlite"}


def make_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE bookmarks (url TEXT)")


def make_newer(path: Path) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE leadline_schema SET version = 99")


def make_newer_with_other_tables(path: Path) -> None:
    make_newer(path)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("ALTER TABLE leadline_points RENAME TO leadline_readings")


def make_incomplete(path: Path) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE leadline_points")


def make_torn(path: Path) -> None:
    with open_store(str(path)) as store:
        store.start_survey(sample_start())
        for order in range(30):
            store.add_point(sample_point(f"point-{order}", order=order))
    content = path.read_bytes()
    assert len(content) > 3 * 4096
    path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: path.write_bytes(b"not a database, " * 100), "is not a Leadline store"),
        (make_other_database, "not a Leadline store .*'bookmarks'"),
        (make_newer, "newer Leadline .schema 99.*upgrade"),
        (make_newer_with_other_tables, "newer Leadline .schema 99"),
        (make_incomplete, "damaged: its tables are not complete"),
        (make_torn, "damaged: database disk image is malformed"),
        (lambda path: path.mkdir(), "is a directory; name a file"),
    ],
    ids=["garbage", "other", "newer", "newer-other", "incomplete", "torn", "directory"],
)
def test_a_file_that_is_no_store(tmp_path: Path, make: object, message: str) -> None:
    path = tmp_path / "store.sqlite"
    assert callable(make)
    make(path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(StoreError, match=message) as refused, open_store(str(path)) as store:
        store.points("survey-a")
    assert refused.value.exit_code == 2
    assert "store" in str(refused.value).lower()
    if path.is_file():
        assert path.read_bytes() == before, "what is not ours was changed"


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("/nowhere/at/all.sqlite", "mkdir -p /nowhere/at"),
        ("", "empty"),
        ("nosuchdb://host/name", "driver"),
        ("postgresql+nosuchdriver://host/name", "driver"),
        ("http://[broken", "not a database URL|driver"),
        ("/proc/self/status/x", "does not exist"),
    ],
)
def test_a_name_that_is_no_store(url: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        open_store(url)


def test_a_store_that_another_process_has_just_brought_up_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PostgreSQL: the tables were listed before the lock, which the other held while migrating."""

    class Before:
        def get_table_names(self) -> list[str]:
            monkeypatch.undo()
            return [name for name in metadata.tables if name != "leadline_validations"]

    path = str(tmp_path / "store.sqlite")
    open_store(path).close()
    monkeypatch.setattr("leadline.store._database.inspect", lambda _: Before())
    with open_store(path) as store:
        assert store.surveys() == ()


def test_a_changed_document_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with open_store(str(path)) as store:
        store.start_survey(sample_start())
        store.add_point(sample_point("point-1"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE leadline_points SET document = substr(document, 1, 100)")
    with (
        open_store(str(path)) as store,
        pytest.raises(StoreError, match="damaged: a Measurement in it cannot be read"),
    ):
        store.points("survey-a")


def test_full_and_ahead_of_the_commit(tmp_path: Path) -> None:
    """Durable in SQLite's words: WAL with synchronous FULL (2), on the store's own connection."""
    store = open_store(str(tmp_path / "store.sqlite"))
    engine = store._engine  # type: ignore[attr-defined]
    with engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


WRITER = """
import sys
from leadline.store import open_store
from leadline.testing.samples import (
    sample_cache_start,
    sample_experiment_start,
    sample_point,
    sample_start,
    sample_validation_start,
)
store = open_store(sys.argv[1])
store.start_survey(sample_start())
for order in range(10**6):
    store.add_point(sample_point(f"point-{order}", order=order))
    print(order, flush=True)
"""


def test_kill_loses_no_finished_point(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout is not None
        for _ in range(7):
            last = int(writer.stdout.readline())
        os.kill(writer.pid, signal.SIGKILL)
        rest = writer.stdout.read().split()
    last = int(rest[-1]) if rest else last
    with open_store(str(path)) as store:
        stored = [point.order for point in store.points("survey-a")]
        # The point in flight may have arrived; none before it is missing.
        assert stored in (list(range(last + 1)), list(range(last + 2)))
        store.add_point(sample_point("after", order=len(stored)))


def test_two_processes_make_one_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    code = (
        "import sys; from leadline.store import open_store;"
        "from leadline.testing.samples import sample_start;"
        "open_store(sys.argv[1]).start_survey(sample_start(sys.argv[2]))"
    )
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", code, str(path), f"survey-{number}"], stderr=subprocess.PIPE
        )
        for number in range(3)
    ]
    for writer in writers:
        _, said = writer.communicate(timeout=60)
        assert writer.returncode == 0, said.decode()
    with open_store(str(path)) as store:
        assert len(store.surveys()) == 3


FIRST_SCHEMA = """
CREATE TABLE leadline_schema (version INTEGER NOT NULL);
INSERT INTO leadline_schema VALUES (1);
CREATE TABLE leadline_surveys (
  sequence INTEGER NOT NULL PRIMARY KEY, survey_id TEXT NOT NULL UNIQUE, system TEXT NOT NULL,
  target TEXT NOT NULL, started_at TEXT NOT NULL, status TEXT NOT NULL, wall_s FLOAT,
  start_document TEXT NOT NULL, survey_document TEXT,
  CONSTRAINT status_known CHECK (status IN ('running', 'stopped', 'done')));
CREATE TABLE leadline_points (
  sequence INTEGER NOT NULL PRIMARY KEY, point_id TEXT NOT NULL UNIQUE,
  survey_id TEXT REFERENCES leadline_surveys (survey_id), position INTEGER NOT NULL,
  document TEXT NOT NULL, CONSTRAINT one_point_per_position UNIQUE (survey_id, position));
"""


def test_a_store_of_the_first_version_is_brought_up_and_keeps_its_points(tmp_path: Path) -> None:
    path, now = tmp_path / "old.sqlite", tmp_path / "now.sqlite"
    start, point = sample_start(), sample_point("point-1")
    with open_store(str(now)) as store:
        store.start_survey(start)
        store.add_point(point)
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(FIRST_SCHEMA)
        old.execute("ATTACH DATABASE ? AS fresh", (str(now),))
        for table in ("surveys", "points"):
            names = [row[1] for row in old.execute(f"PRAGMA main.table_info(leadline_{table})")]
            columns = ", ".join(names)
            old.execute(
                f"INSERT INTO main.leadline_{table} ({columns}) "  # noqa: S608 - our own names
                f"SELECT {columns} FROM fresh.leadline_{table}"
            )
    with open_store(str(path)) as store:
        assert store.points("survey-a") == (point,)
        store.start_validation(sample_validation_start())
        own = msgspec.structs.replace(
            sample_point("point-2", survey_id=None), validation_id="validation-a"
        )
        store.add_point(own)
        with pytest.raises(StoreError, match="taken"):
            store.add_point(msgspec.structs.replace(own, point_id="point-3"))
    with open_store(str(path)) as again:
        assert again.validation_points("validation-a") == (own,)


SECOND_SCHEMA = (
    FIRST_SCHEMA.replace("VALUES (1)", "VALUES (2)")
    + """
CREATE TABLE leadline_validations (
  sequence INTEGER NOT NULL PRIMARY KEY, validation_id TEXT NOT NULL UNIQUE,
  survey_id TEXT NOT NULL REFERENCES leadline_surveys (survey_id), started_at TEXT NOT NULL,
  status TEXT NOT NULL, start_document TEXT NOT NULL, validation_document TEXT);
ALTER TABLE leadline_points ADD COLUMN validation_id TEXT
  REFERENCES leadline_validations (validation_id);
CREATE UNIQUE INDEX one_point_per_validation_position ON leadline_points (validation_id, position);
"""
)


@pytest.mark.parametrize("schema", [FIRST_SCHEMA, SECOND_SCHEMA])
def test_an_older_store_takes_studies_once_it_was_opened(tmp_path: Path, schema: str) -> None:
    path = tmp_path / "old.sqlite"
    with closing(sqlite3.connect(path)) as old, old:
        old.executescript(schema)
    own = msgspec.structs.replace(sample_point("point-1", survey_id=None), study_id="study-a")
    with open_store(str(path)) as store:
        store.start_cache_study(sample_cache_start())
        store.add_point(own)
        with pytest.raises(StoreError, match="taken"):
            store.add_point(msgspec.structs.replace(own, point_id="point-2"))
    with open_store(str(path)) as again:
        assert again.study_points("study-a") == (own,)


def test_an_older_store_gets_the_tables_of_experiments(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        for table in ("trials", "samples", "experiments"):
            connection.execute(f"DROP TABLE leadline_{table}")
    with open_store(str(path)) as store:
        store.start_experiment(sample_experiment_start())
        assert len(store.experiments()) == 1
