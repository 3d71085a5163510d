"""Fails the n-th call that SQLite makes, for every n, and looks at what the store then holds.

    LD_PRELOAD=failing_calls.so store_sweep.py FOLDER KIND once|lasting STRIDE

Each n has a process and a copy of the store of its own. It opens the store, begins a study, adds
items and ends it; what is refused it tries once more. Printed as JSON: how many calls were failed,
and what was wrong.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import sqlite3
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path

from leadline.record import Measurement, Status
from leadline.record.survey import SURVEY
from leadline.store import Store, StoreError, UpdateFinishedError
from proving.samples import sample_point, sample_start, sample_survey
from store_steps import NAME, opened

KINDS = ("none", "read", "write", "full", "sync", "open", "memory")
"""In the order of failing_calls.c."""
NEW = sample_start("survey-new")
POINTS = tuple(sample_point(f"new-{order}", order) for order in range(3))
OLD = sample_point("old-0")
Act = tuple[str, Callable[[Store], None]]


def acts() -> Iterator[Act]:
    yield "begin", lambda store: store.begin(SURVEY, NEW)
    for point in POINTS:
        yield point.point_id, partial(_add, point)
    yield "end", lambda store: store.end(NEW.study_id, sample_survey(NEW), Status.DONE)


def _add(point: Measurement, store: Store) -> None:
    store.add(NEW.study_id, point)


def prepare(path: Path) -> None:
    with opened(path) as store:
        store.begin(SURVEY, sample_start("survey-old"))
        store.add("survey-old", OLD)


def do_all(path: Path) -> tuple[list[str], list[str]]:
    """Return what the store promised to keep, and what went otherwise than its contract says."""
    promised: list[str] = []
    wrong: list[str] = []

    def kept(name: str, act: Callable[[], object]) -> bool:
        for _ in range(2):
            try:
                act()
            except UpdateFinishedError:
                return True  # it was refused before, and yet it is there
            except StoreError as error:
                if not str(error).startswith(str(path)):
                    wrong.append(f"{name}: {error}")
                continue
            except BaseException:
                wrong.append(f"{name}: {traceback.format_exc()}")
                continue
            promised.append(name)
            return True
        return False

    stores: list[Store] = []
    if kept("open", lambda: stores.append(opened(path))):
        all(kept(name, partial(act, stores[0])) for name, act in acts())
    return promised, wrong


def failing(
    library: ctypes.CDLL, path: Path, kind: str, nth: int, *, lasting: bool
) -> dict[str, object]:
    """Do it all in a process of its own, in which the n-th call fails."""
    told = path.parent / "told"
    child = os.fork()
    if not child:
        try:
            assert library.fail_call(KINDS.index(kind), nth, lasting), "SQLite is no library here"
            promised, wrong = do_all(path)
            calls = library.calls_made()
            told.write_text(json.dumps({"calls": calls, "promised": promised, "wrong": wrong}))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    return json.loads(told.read_text()) if told.exists() else {"died": True}


def look(path: Path, promised: list[str]) -> Iterator[str]:
    """Yield what is not as promised, as the next process finds it."""
    with closing(sqlite3.connect(path)) as connection:
        (checked,) = connection.execute("PRAGMA integrity_check").fetchone()
    if checked != "ok":
        yield f"integrity check: {checked}"
    with opened(path) as store:
        found = {each.study_id: each for each in store.list()}
        if store.items("survey-old") != (OLD,):
            yield "what was there before is lost"
        if NEW.study_id not in found:
            if set(promised) - {"open"}:
                yield f"lost: all of {promised}"
            return
        items = store.items(NEW.study_id)
        if items != POINTS[: len(items)]:
            yield "items that were never given"
        kept = {"begin", *(item.point_id for item in items)}
        if found[NEW.study_id].status is Status.DONE:
            kept.add("end")
            if store.find(NEW.study_id, SURVEY).answer != sample_survey(NEW):
                yield "an answer that was never given"
        if lost := set(promised) - kept - {"open"}:
            yield f"lost: {sorted(lost)}"


def sweep(folder: Path, kind: str, *, lasting: bool, stride: int) -> dict[str, object]:
    library = ctypes.CDLL(None)
    library.calls_made.restype = ctypes.c_long
    library.fail_call.argtypes = (ctypes.c_int, ctypes.c_long, ctypes.c_int)
    prepared = folder / "prepared"
    prepared.mkdir()
    prepare(prepared / NAME)
    nth, tried, whole, wrong = 1, 0, False, list[str]()
    while not whole:
        place = folder / str(nth)
        shutil.copytree(prepared, place)
        told = failing(library, place / NAME, kind, nth, lasting=lasting)
        if told.get("died"):
            wrong.append(f"{nth}: the process died")
            break
        promised: list[str] = told["promised"]  # type: ignore[assignment]
        seen = [*told["wrong"], *look(place / NAME, promised)]  # type: ignore[misc]
        wrong += [f"{nth}: {each}" for each in seen]
        whole = told["calls"] < nth  # type: ignore[operator]
        if whole and promised != ["open", *(name for name, _ in acts())]:
            wrong.append(f"nothing failed, and yet only {promised} was kept")
        tried += not whole
        shutil.rmtree(place)
        nth += stride
    return {"tried": tried, "wrong": wrong}


if __name__ == "__main__":
    folder, kind, how, stride = sys.argv[1:]
    found = sweep(Path(folder).resolve(), kind, lasting=how == "lasting", stride=int(stride))
    print(json.dumps(found))
