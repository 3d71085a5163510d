"""The SQL store: the conformance suite, and what is particular to a file."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from sqlalchemy import event

from leadline.machine.stop import Stopped, stop_on_signals
from leadline.record.survey import SURVEY
from leadline.store import Store, StoreError, default_path, open_store
from proving.samples import sample_point, sample_start
from proving.store_conformance import StoreConformance


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
        connection.execute("ALTER TABLE leadline_items RENAME TO leadline_readings")


def make_incomplete(path: Path) -> None:
    open_store(str(path)).close()
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("DROP TABLE leadline_items")


def make_torn(path: Path) -> None:
    with open_store(str(path)) as store:
        store.begin(SURVEY, sample_start())
        for order in range(30):
            store.add("survey-a", sample_point(f"point-{order}", order))
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
        store.items("survey-a")
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


def test_a_changed_document_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    with open_store(str(path)) as store:
        store.begin(SURVEY, sample_start())
        store.add("survey-a", sample_point("point-1"))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE leadline_items SET document = substr(document, 1, 100)")
    with (
        open_store(str(path)) as store,
        pytest.raises(StoreError, match="damaged: a Measurement in it cannot be read"),
    ):
        store.items("survey-a")


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
from leadline.record.survey import SURVEY
from proving.samples import sample_point, sample_start
store = open_store(sys.argv[1])
store.begin(SURVEY, sample_start())
for order in range(10**6):
    store.add("survey-a", sample_point(f"point-{order}", order))
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
        stored = [point.order for point in store.items("survey-a")]
        # The point in flight may have arrived; none before it is missing.
        assert stored in (list(range(last + 1)), list(range(last + 2)))
        store.add("survey-a", sample_point("after", len(stored)))


def test_two_processes_make_one_store(tmp_path: Path) -> None:
    path = tmp_path / "store.sqlite"
    code = (
        "import sys; from leadline.store import open_store;"
        "from leadline.record.survey import SURVEY;"
        "from proving.samples import sample_start;"
        "open_store(sys.argv[1]).begin(SURVEY, sample_start(sys.argv[2]))"
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
        assert len(store.list()) == 3


@pytest.mark.parametrize("moment", ["begin", "before_cursor_execute", "commit"])
def test_a_stop_in_the_middle_of_a_transaction_comes_after_it(tmp_path: Path, moment: str) -> None:
    """An SQLAlchemy that is interrupted may go on holding the lock, which keeps everybody out."""
    point, study = sample_point("point-0", order=0), sample_start().study_id
    hit: list[str] = []

    def interrupt(*_: object) -> None:
        if not hit:
            hit.append(moment)
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with open_store(str(tmp_path / "store.sqlite")) as store:
            store.begin(SURVEY, sample_start())
            event.listen(vars(store)["_engine"], moment, interrupt)
            with pytest.raises(Stopped), stop_on_signals():
                store.add(study, point)
            assert hit
            assert store.items(study) == (point,)
    finally:
        signal.signal(signal.SIGINT, before)
