"""Makes the store of today's schema and records in `kept/`.

    make kept-store

It has a study of every kind that is done, one that was stopped by Ctrl-C and one that was killed:
real commands on simulated systems, killed and stopped as a person would; plain files and streams,
which no system simulates, through stand-ins for their engines. The newest store is replaced when
tables or records change, unless it is of a release (`RELEASED`): then the next is added beside it.
"""

from __future__ import annotations

import json
import lzma
import signal
import sqlite3
import sys
import tempfile
import uuid
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec
from kept_stores import (
    KEPT,
    RELEASED,
    KeptStore,
    kept_stores,
    tables_of,
    todays_records,
    todays_tables,
)

from application_fixture import add_application
from command import ended_after, killed_after, leadline
from fake_disks import FakeDisks
from files_fixture import EXISTING, ScriptedTests, made, start_of
from leadline.engine import PointFailed
from leadline.record import Measurement, Status
from leadline.record.files import FilesCell
from leadline.record.study import A_co, Answer, Item, Records, S_co, StudyStart
from leadline.store import Keeper, Store, StoreError, open_store
from leadline.store._tables import SCHEMA_VERSION
from leadline.studies.files.run import run_files
from leadline.studies.streaming.study import ScalingOptions, begin_scaling, run_scaling

HERE = Path(__file__).resolve().parent
GOLDEN = HERE.parent / "golden"
ASKED = ScalingOptions(
    system="scaled",
    data_bytes=512 << 20,
    memory_bytes=1 << 30,
    threads=2,
    repetitions=1,
    seed=7,
    kernels=("scan", "sort"),
)
"""Of the streams: `test_kept_stores.py` goes on with the same."""
CELLS = tuple(
    FilesCell(system=system, drives=drives)
    for system in (EXISTING, made("xfs", 4096))
    for drives in (1, 2)
)
_SERVER = str(GOLDEN / "server.toml")
_QUICK = ("--policy", "mlrsearch", "--no-compare")
COMMANDS: dict[str, tuple[str, ...]] = {
    "survey": ("survey", "sim:two-level", "--name", "atlas", "--budget", "60s", "--seed", "3"),
    "validation": ("validate", "atlas", "--count", "4", "--no-rivals"),
    "cache": ("cache", "sim:hp-730", "--name", "hp", "--sizes-only"),
    "measurement": ("measure", "sim:two-level", "--fio", str(GOLDEN / "two.fio"), "--runs", "3"),
    "experiment": ("surface", _SERVER, "--design", "full-grid", "--policy", "mlrsearch"),
    "peak": ("peak", _SERVER, *_QUICK),
}
"""What is asked; with `--resume` it goes on. A survey first: validations are of it."""
CUT = {"survey": tuple("cut" if word == "atlas" else word for word in COMMANDS["survey"])}
"""Those that are cut short, where the name means the whole one to others."""
_STOPPED_AFTER = {"measurement": 1}
_AFTER = 3
"""Items of a study that is stopped or killed."""
_SERIES_KEPT = 3


def make(path: Path) -> None:
    """Make the store; the file must not be there."""
    for kind, words in COMMANDS.items():
        done = leadline(*words, store=path)
        assert done.returncode == 0, (words, done.stderr)
        cut = CUT.get(kind, words)
        stopped = ended_after(_STOPPED_AFTER.get(kind, _AFTER), signal.SIGINT, *cut, store=path)
        assert stopped.returncode == 3, (cut, stopped.stderr)
        killed = killed_after(_AFTER, *cut, store=path)
        assert killed.returncode == -signal.SIGKILL, (cut, killed.stderr)
    with open_store(str(path)) as store:
        for keeper, whole in ((store, True), (store, False), (Killed(store), False)):
            _keep_files(keeper, whole=whole)
            _keep_streams(keeper, whole=whole)
        for keeper in (store, Killed(store)):  # It is kept at once: nobody stops that.
            with tempfile.TemporaryDirectory() as folder, suppress(StoreError):
                add_application(keeper, uuid.uuid4().hex, "program", Path(folder))
    _lighten(path)


class Killed:
    """A store to whose writer it happens that it cannot say the end."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def begin(self, records: Records[S_co, A_co], start: StudyStart) -> None:
        self._store.begin(records, start)

    def add(self, study_id: str, item: Item, group: str = "") -> None:
        self._store.add(study_id, item, group)

    def end(self, study_id: str, answer: Answer, status: Status) -> None:
        del answer, status
        raise StoreError(f"{study_id} was killed before")


def _keep_files(keeper: Keeper, *, whole: bool) -> None:
    start = msgspec.structs.replace(start_of(CELLS), study_id=uuid.uuid4().hex)
    stop = _after(2)
    tests = scripted_files(lambda _: None if whole else stop())
    with suppress(KeyboardInterrupt, StoreError):
        run_files(tests, keeper, start, file_bytes=8 << 20)


def scripted_files(fail: Callable[[FilesCell], Exception | None]) -> ScriptedTests:
    """Return plain files of known truth."""
    return ScriptedTests(
        lambda cell, program, _: (2e5 if program == "read_8192" else 1e5) * cell.drives**0.8,
        noise_frac=0.02,
        fail=fail,
    )


def _after(calls: int) -> Callable[[], Exception | None]:
    left = iter(range(calls))

    def stop() -> Exception | None:
        if next(left, None) is None:
            raise KeyboardInterrupt
        return None

    return stop


def _keep_streams(keeper: Keeper, *, whole: bool) -> None:
    class Failing(FakeDisks):
        def run(self, *options: Any, **more: Any) -> Any:
            if not whole and sum(what in ASKED.kernels for what, _ in self.calls) == 2:
                raise PointFailed("the disk is full")
            return super().run(*options, **more)

    with suppress(PointFailed, StoreError):
        run_scaling(Failing(count=2), keeper, begin_scaling([str(HERE)], ASKED), ASKED)


def _lighten(path: Path) -> None:
    """Cut the series inside measurements short: whole ones are 30 KB each."""
    with closing(sqlite3.connect(path)) as connection:
        rows = connection.execute("SELECT sequence, document FROM leadline_items").fetchall()
        for sequence, document in rows:
            with suppress(msgspec.ValidationError):
                point = msgspec.json.decode(document, type=Measurement)
                text = msgspec.json.encode(_light(point)).decode()
                connection.execute(
                    "UPDATE leadline_items SET document = ? WHERE sequence = ?", (text, sequence)
                )
        connection.commit()
        connection.execute("PRAGMA journal_mode = DELETE")
        connection.execute("PRAGMA page_size = 1024")
        connection.execute("VACUUM")
        connection.execute("PRAGMA journal_mode = WAL")


def _light(point: Measurement) -> Measurement:
    result, replace = point.result, msgspec.structs.replace
    light = replace(
        result,
        read=replace(result.read, histogram=result.read.histogram[:_SERIES_KEPT]),
        write=replace(result.write, histogram=result.write.histogram[:_SERIES_KEPT]),
        warm_up=replace(result.warm_up, intervals=result.warm_up.intervals[:_SERIES_KEPT]),
        intervals=result.intervals[:_SERIES_KEPT],
    )
    return replace(point, result=light)


def main() -> int:
    """Make the newest store anew, or the next if a release wrote that one."""
    stores = kept_stores()
    newest = stores[-1] if stores else KeptStore(SCHEMA_VERSION, 1)
    if newest.records.exists() and is_todays(newest):
        print(f"{newest.packed.name} has today's tables and records; nothing to do")
        return 0
    store = after(newest)
    KEPT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.sqlite"
        make(path)
        store.packed.write_bytes(lzma.compress(path.read_bytes(), preset=9))
        print(f"{store.packed}: {path.stat().st_size} bytes, {store.packed.stat().st_size} packed")
    text = json.dumps(todays_records(), indent=1, sort_keys=True)
    store.records.write_text(f"{text}\n", encoding="utf-8")
    return 0


def is_todays(store: KeptStore) -> bool:
    """Whether a store has the tables and records of today's code."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        same_tables = tables_of(store.unpack(folder)) == todays_tables(folder)
    return same_tables and store.described() == todays_records()


def after(newest: KeptStore) -> KeptStore:
    """Return the store to write: in the newest's place, or beside it if a release wrote it."""
    if newest.name not in RELEASED:
        return newest
    if newest.schema == SCHEMA_VERSION:
        return KeptStore(SCHEMA_VERSION, newest.number + 1)
    return KeptStore(SCHEMA_VERSION, 1)


if __name__ == "__main__":
    sys.exit(main())
