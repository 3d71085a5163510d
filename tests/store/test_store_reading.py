"""A store that is only looked into: none is made, none is changed, and no password is told."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from command import leadline
from leadline.store import NotStored, StoreError, open_store
from leadline.store._place import masked
from places import TESTS

LOOKING = (["systems"], ["show", "nobody"], ["report", "nobody"], ["export", "nobody"])
KEPT = TESTS / "golden" / "store-today.sqlite"


@pytest.mark.parametrize("command", LOOKING, ids=lambda words: words[0])
def test_looking_makes_no_store(command: list[str], tmp_path: Path) -> None:
    done = leadline(*command, store=tmp_path / "store.sqlite")
    assert done.returncode == (0 if command == ["systems"] else 2), done.stderr
    assert "no survey" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_where_there_is_none_nothing_is_found_and_the_place_is_named(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "none.sqlite"), reading=True) as store:
        assert store.list() == ()
        with pytest.raises(NotStored, match=str(tmp_path / "none.sqlite")):
            store.find("thing")
    with pytest.raises(StoreError, match="does not exist; make it first"):
        open_store(str(tmp_path / "no" / "folder" / "s.sqlite"), reading=True)


def test_the_usual_folder_is_not_made_by_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("LEADLINE_STORE", raising=False)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    with open_store(reading=True) as store:
        assert store.list() == ()
    assert list(tmp_path.iterdir()) == []


def test_an_empty_database_stays_empty(tmp_path: Path) -> None:
    file = tmp_path / "empty.sqlite"
    file.touch()
    with pytest.raises(StoreError, match="empty database"):
        open_store(str(file), reading=True)
    assert file.stat().st_size == 0


@pytest.fixture
def read_only(tmp_path: Path) -> Iterator[Path]:
    """A folder with a store, on a read-only file system."""
    place = tmp_path / "medium"
    place.mkdir()
    shutil.copy(KEPT, place / "store.sqlite")
    bound = ["mount", "--bind", str(place), str(place)]
    if os.geteuid() or subprocess.run(bound, check=False, capture_output=True).returncode:
        pytest.skip("this machine mounts nothing for this user")
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", str(place)], check=True)
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_a_store_on_a_read_only_file_system_is_read(read_only: Path, tmp_path: Path) -> None:
    there, here = read_only / "store.sqlite", tmp_path / "copy.sqlite"
    shutil.copy(KEPT, here)
    for command in (["systems", "--json"], ["show", "thing"]):
        seen, same = leadline(*command, store=there), leadline(*command, store=here)
        assert seen.returncode == same.returncode == 0, seen.stderr
        assert seen.stdout == same.stdout
    assert [path.name for path in read_only.iterdir()] == ["store.sqlite"]
    refused = leadline("survey", "sim:two-level", store=there)
    assert refused.returncode == 2
    assert "read" in refused.stderr
    assert "defect" not in refused.stderr


def test_one_that_was_not_closed_is_refused_by_name(read_only: Path) -> None:
    subprocess.run(["mount", "-o", "remount,rw,bind", str(read_only)], check=True)
    (read_only / "store.sqlite-wal").write_bytes(b"left")
    subprocess.run(["mount", "-o", "remount,ro,bind", str(read_only)], check=True)
    with pytest.raises(StoreError, match=r"store\.sqlite-wal.*copy both"):
        open_store(str(read_only / "store.sqlite"), reading=True)


def test_looking_does_not_wait_for_a_writer(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    shutil.copy(KEPT, file)
    with open_store(str(file)) as before:
        known = before.list()
    writer = sqlite3.connect(file, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    with open_store(str(file), reading=True) as store:
        assert store.list() == known
    writer.execute("ROLLBACK")
    writer.close()


SPELLINGS = [
    "postgresql+psycopg://alice:hunter2@127.0.0.1:1/db",
    "postgresql+psycopg://alice:hun/ter2@127.0.0.1:1/db",
    "postgresql+psycopg://alice:hunt@er2@127.0.0.1:1/db",
    "postgresql+psycopg://127.0.0.1:1/db?user=alice&password=hunter2",
    "postgresql+psycopg://127.0.0.1:1/db?PASSWORD=hunter2",
    "postgresql+psycopg://127.0.0.1:1/db?sslpassword=hunter2&user=alice",
    "postgresql+psycopg://127.0.0.1:port/db?password=hunter2",
    "nosuch+driver://alice:hunter2@127.0.0.1/db",
    "postgresql:/alice:hunter2@127.0.0.1/db",
    "://alice:hunter2@127.0.0.1/db",
    "mysql://alice:hunter2@127.0.0.1/db",
    "postgresql+psycopg:///db?host=127.0.0.1&port=1&passwd=hunter2",
]


@pytest.mark.parametrize("url", SPELLINGS)
def test_no_spelling_of_a_url_tells_its_password(url: str) -> None:
    for reading in (True, False):
        with pytest.raises(StoreError) as refused:
            open_store(url, reading=reading)
        said = str(refused.value)
        assert not {"hunter2", "ter2", "er2", "hun/", "hunt"} & set(said.replace("@", " ").split())
        assert "hunter2" not in said
        assert "er2" not in said.replace("server", "")
        assert said.count("\n") == 0


def test_what_is_no_password_is_told() -> None:
    assert masked("postgresql://alice@host:5432/db?sslmode=require") == (
        "postgresql://alice@host:5432/db?sslmode=require"
    )
    assert masked("/home/me@work/a:b.sqlite") == "/home/me@work/a:b.sqlite"
    assert masked('password authentication failed for user "alice"') == (
        'password authentication failed for user "alice"'
    )
