"""A study of plain files: its size scaled, its columns measured, kept and loaded."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import UTC, datetime

import msgspec

from leadline.engine import (
    FileTests,
    PointFailed,
    Target,
    TargetRefused,
    host_facts,
    open_file_tests,
    preflight,
    room_findings,
    target_facts,
)
from leadline.engine.file_tests import DirectoryTests, ProgramsAsked
from leadline.engine.targets.preflight import watch
from leadline.errors import UsageRefused
from leadline.record import Status, derive_seed, point_id
from leadline.record.files import (
    FILES,
    CellMeasured,
    FilesCell,
    FilesRow,
    FilesStart,
    FilesStudy,
    SizeChosen,
    SizeStep,
)
from leadline.record.finding import Finding
from leadline.record.jobs.file_test import FileTestResult
from leadline.record.study import TextAnswer
from leadline.store import Keeper, Store, Stored
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.files.explain import explain_files
from leadline.studies.files.plan import (
    PAPER_BYTES,
    PLAN_SHARE,
    existing_system,
    next_size,
    rows_of,
    shared_devices,
    with_numbers,
)
from leadline.studies.resume import find_unfinished
from leadline.units import format_bytes

# A study of plain files as it is told, from what is stored of it.


def load_files(store: Store, ref: str) -> FilesStudy:
    """Return a stored study, finished or not.

    Raises:
        StoreError: no study of plain files, or several, go by this reference.

    """
    found = store.find(ref, FILES)
    return files_study(found, store.items(found.start.study_id))


def files_study(
    found: Stored[FilesStart, TextAnswer], items: tuple[SizeChosen | CellMeasured, ...]
) -> FilesStudy:
    """Return the study that start, items and answer make together."""
    size = next((item for item in items if isinstance(item, SizeChosen)), None)
    rows = tuple(row for item in items if isinstance(item, CellMeasured) for row in item.rows)
    answer = found.answer
    return FilesStudy(
        start=found.start,
        status=found.status,
        file_bytes=size.file_bytes if size else None,
        size_steps=size.size_steps if size else (),
        size_reason=size.size_reason if size else "",
        rows=with_numbers(rows, size.file_bytes, paper=found.start.paper) if size else (),
        sentences=answer.sentences if answer else (),
        findings=answer.findings if answer else (),
        wall_s=answer.wall_s if answer else items[-1].wall_s if items else 0.0,
    )


# The study: scale the file, then measure cell after cell; what is measured is stored at once.

RUNS = 3
"""KM83 §4: three runs, the first of which is discarded; more where the budget lasts."""
_RUNS_MOST = 30
"""Intervals of twice as many would be narrower by a quarter."""
_PILOT_RUNS = 2
_LEAST_S = 0.5
"""With less time left a cell is not begun."""


class FilesOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants to know."""

    system: str
    cells: tuple[FilesCell, ...]
    budget_s: float
    paper: bool = False
    runs: int = RUNS
    fill: bool = False
    """More runs where the budget lasts."""
    seed: int = 1


class CellDone(msgspec.Struct, frozen=True):
    """Told after every cell, measured or not."""

    cell: FilesCell
    rows: tuple[FilesRow, ...]
    done: int
    of: int


def begin_files(targets: Sequence[Target], asked: FilesOptions) -> FilesStart:
    """Return what decides the study."""
    facts = host_facts() | target_facts(str(targets[0].path))
    names = [target_facts(str(target.path)).get("device_name") for target in targets]
    kinds = [existing_system(target).fs for target in targets]
    storage = [str(name or kind) for name, kind in zip(names, kinds, strict=True)]
    return FilesStart(
        study_id=uuid.uuid4().hex,
        system=asked.system,
        directories=tuple(target.text for target in targets),
        storage=", ".join(dict.fromkeys(storage)),
        started_at=datetime.now(UTC).isoformat(timespec="seconds"),
        paper=asked.paper,
        runs=asked.runs,
        budget_s=asked.budget_s,
        seed=asked.seed,
        cells=asked.cells,
        facts=facts,
        notes=_notes(targets),
    )


def _notes(targets: Sequence[Target]) -> tuple[Finding, ...]:
    return tuple(Finding.of("one_drive", directory=text) for text in shared_devices(targets))


class _Study:
    """A study that grows; every change is a new document."""

    def __init__(
        self, start: FilesStart, store: Keeper, stored: FilesStudy | None, *, fill: bool
    ) -> None:
        before_s = 0.0 if stored is None else stored.wall_s
        self._began_s = time.monotonic() - before_s
        self._store, self._fill = store, fill
        self.document = (
            FilesStudy(start=start, status=Status.RUNNING)
            if stored is None
            else msgspec.structs.replace(stored, status=Status.RUNNING, sentences=(), findings=())
        )
        self.no_images: str | None = None
        """Why there is no room for file systems to be made."""
        self._run_s = 0.0
        """What one run of all programs on a drive took, the slowest so far."""

    @property
    def left_s(self) -> float:
        return self.document.start.budget_s - self.wall_s

    @property
    def wall_s(self) -> float:
        return time.monotonic() - self._began_s

    def choose_size(self, file_bytes: int, why: str, steps: Sequence[SizeStep] = ()) -> None:
        """Begin to keep the study: one that is refused before leaves nothing."""
        chosen = SizeChosen(
            wall_s=self.wall_s, file_bytes=file_bytes, size_steps=tuple(steps), size_reason=why
        )
        self._store.begin(FILES, self.document.start)
        self._store.add(self.document.start.study_id, chosen)
        self.document = msgspec.structs.replace(
            self.document, file_bytes=file_bytes, size_steps=chosen.size_steps, size_reason=why
        )

    def took(self, seconds: float, drive_runs: int) -> None:
        """Learn from a column, or from the last step of the scaling, how long a run takes."""
        self._run_s = max(self._run_s, seconds / drive_runs)

    def runs(self, number: int) -> int:
        """Return how many runs a column may take of the time that is left for it."""
        start = self.document.start
        if not self._fill or self._run_s == 0.0:
            return start.runs
        drives = [
            cell.drives
            for cell in start.cells[number - 1 :]
            if cell.missing is None and not (cell.system.made and self.no_images)
        ]
        affordable = PLAN_SHARE * self.left_s / (sum(drives) * self._run_s)
        return max(start.runs, min(_RUNS_MOST, int(affordable)))

    def add(self, number: int, rows: Sequence[FilesRow]) -> tuple[FilesRow, ...]:
        start, file_bytes = self.document.start, self.document.file_bytes or PAPER_BYTES
        own = point_id(start.study_id, number)
        cell = CellMeasured(order=number, item_id=own, wall_s=self.wall_s, rows=tuple(rows))
        self._store.add(start.study_id, cell)
        every = with_numbers([*self.document.rows, *rows], file_bytes, paper=start.paper)
        self.document = msgspec.structs.replace(self.document, rows=every)
        return every[-len(rows) :]

    def end(self, status: Status) -> None:
        if self.document.file_bytes is None:  # refused before the first cell: nothing to keep
            return
        self.document = explain_files(
            msgspec.structs.replace(self.document, status=status, wall_s=self.wall_s)
        )
        said = {name: getattr(self.document, name) for name in TextAnswer.__struct_fields__}
        self._store.end(self.document.start.study_id, TextAnswer(**said), status)


def run_files(
    tests: FileTests,
    store: Keeper,
    start: FilesStart,
    *,
    stored: FilesStudy | None = None,
    file_bytes: int | None = None,
    fill: bool = False,
    on_size: Callable[[FilesStudy], None] | None = None,
    on_cell: Callable[[CellDone], None] | None = None,
) -> FilesStudy:
    """Run the study and keep it; one that is stopped keeps the cells that were done.

    Args:
        tests: the opened directories.
        store: where the study is kept, from when its size is decided, and after every cell.
        start: what decides it.
        stored: what earlier sittings measured of it.
        file_bytes: the file's size; None scales it.
        fill: take more runs where the budget lasts.
        on_size: told when the size is decided.
        on_cell: told after every cell.

    Raises:
        TargetRefused: there is no room for the smallest file, or nothing to go on with.
        PointFailed: not even the scaling could be done.

    """
    if stored is not None and stored.file_bytes is None:
        raise UsageRefused(
            f"study {start.study_id[:8]} ended before the size of its files was decided; start a "
            "new one without --resume"
        )
    study = _Study(start, store, stored, fill=fill)
    done = 0 if stored is None else stored.cells_done
    try:
        if stored is None:
            _size(study, tests, file_bytes)
        else:
            _room(study, tests, stored.file_bytes or PAPER_BYTES)
        if on_size is not None:
            on_size(study.document)
        for number, cell in enumerate(start.cells[done:], done + 1):
            rows = study.add(number, _measured(study, tests, cell, number))
            if on_cell is not None:
                on_cell(CellDone(cell, rows, number, len(start.cells)))
    except BaseException:
        study.end(Status.STOPPED)
        raise
    study.end(Status.DONE)
    return study.document


def _measured(study: _Study, tests: FileTests, cell: FilesCell, number: int) -> list[FilesRow]:
    if cell.missing is not None:
        return rows_of(cell, None)
    if cell.system.made and study.no_images is not None:
        return rows_of(cell, None, study.no_images)
    if study.left_s < _LEAST_S:
        return rows_of(cell, None, "the budget was spent before (give a larger --budget)")
    start, runs = study.document.start, study.runs(number)
    began_s = time.monotonic()
    try:
        asked = ProgramsAsked(
            file_bytes=study.document.file_bytes or PAPER_BYTES,
            runs=runs,
            paper=start.paper,
            seed=derive_seed(start.seed, number),
            total_s_max=study.left_s,
        )
        result = tests.run(cell, asked)
    except (TargetRefused, PointFailed) as reason:
        return rows_of(cell, None, str(reason))
    study.took(time.monotonic() - began_s, cell.drives * runs)
    return rows_of(cell, result)


def _size(study: _Study, tests: FileTests, asked_bytes: int | None) -> None:
    start = study.document.start
    wanted = PAPER_BYTES if start.paper else asked_bytes
    cells, room_bytes = _room(study, tests, wanted or PAPER_BYTES)
    if wanted is not None:
        why = "the paper's own" if start.paper else "as asked"
        study.choose_size(wanted, why)
        return
    steps: list[SizeStep] = []
    while True:
        size, why = next_size(
            steps, cells, runs=start.runs, bytes_max=room_bytes, left_s=study.left_s
        )
        if size is None:
            study.choose_size(steps[-1].file_bytes, why, steps)
            study.took(steps[-1].seconds, 1)
            return
        steps.append(_pilot(tests, study, size))


def _room(study: _Study, tests: FileTests, least_bytes: int) -> tuple[list[FilesCell], int]:
    """Return the cells for which there is room, and the longest file that they allow.

    Raises:
        TargetRefused: there is none.

    """
    start = study.document.start
    able = [cell for cell in start.cells if cell.missing is None]
    room_bytes = 0
    for cells in (able, [cell for cell in able if not cell.system.made]):
        if not cells:
            continue
        room_bytes = tests.file_bytes_max(cells) // PAPER_BYTES * PAPER_BYTES
        if room_bytes >= least_bytes:
            if len(cells) < len(able):
                study.no_images = "no room for the images of file systems; free some space"
            return cells, room_bytes
    if not able:
        raise TargetRefused(
            "nothing can be measured here: "
            + "; ".join(dict.fromkeys(cell.missing for cell in start.cells if cell.missing))
        )
    raise TargetRefused(
        f"{start.directories[0]}: there is room for files of {format_bytes(room_bytes)} at most, "
        f"and {format_bytes(least_bytes)} are needed (raw device and images included; 5% of the "
        "disk, at least 1 GiB, a quarter below 4 GiB, stay free): free some space, ask for a "
        "smaller --file-size or fewer --filesystems, or raise --max-bytes where that is the limit"
    )


def _pilot(tests: FileTests, study: _Study, file_bytes: int) -> SizeStep:
    start = study.document.start
    existing = next((cell.system for cell in start.cells if not cell.system.made), None)
    system = existing or start.cells[0].system
    made = msgspec.structs.replace(system, made=False)
    began_s = time.monotonic()
    asked = ProgramsAsked(
        file_bytes=file_bytes,
        runs=_PILOT_RUNS,
        paper=False,
        seed=start.seed,
        total_s_max=max(study.left_s, _LEAST_S),
        tests=("write_8192", "read_8192"),
    )
    result = tests.run(FilesCell(system=made, drives=1), asked)
    return SizeStep(
        file_bytes=file_bytes,
        write_kbytes_s=_rate(result, 0),
        read_kbytes_s=_rate(result, 1),
        seconds=time.monotonic() - began_s,
    )


def _rate(result: FileTestResult, test: int) -> float:
    return result.tests[test].runs[-1].kbytes_s(result.file_bytes)


class PlainFiles(Study[DirectoryTests, FilesStart, FilesStudy | None]):
    """File tests as requested, begun or gone on with."""

    records = FILES

    def __init__(
        self,
        targets: Sequence[Target],
        asked: FilesOptions,
        *,
        file_bytes: int | None = None,
        max_bytes: int | None = None,
    ) -> None:
        """Take what was asked for.

        Args:
            targets: a directory for each drive.
            asked: the options.
            file_bytes: the file's size; None scales it.
            max_bytes: most data that may lie there.

        """
        self._targets, self.asked = targets, asked
        self._file_bytes, self._max_bytes = file_bytes, max_bytes

    def unfinished(self, store: Store) -> FilesStudy:
        """Return the newest unfinished one of these directories."""
        said = ", ".join(target.text for target in self._targets)
        found = find_unfinished(store, FILES, self.asked.system, said)
        return load_files(store, found.start.study_id)

    def open(
        self, store: Store, earlier: Begun[FilesStart] | None, watcher: Watcher
    ) -> AbstractContextManager[DirectoryTests]:
        """Claim the directories."""
        return open_file_tests(self._targets, max_bytes=self._max_bytes)

    def findings(self, opened: DirectoryTests) -> tuple[Finding, ...]:
        """Look at the machine, every directory and the room there is."""
        moment = watch()
        found = [
            each
            for target in self._targets
            for each in preflight(target, target_facts(str(target.path)), busyness=lambda: moment)
        ]
        return (*dict.fromkeys(found), *room_findings(opened, self._max_bytes))

    def begin(self, opened: DirectoryTests, findings: tuple[Finding, ...]) -> FilesStart:
        """Plan it."""
        return begin_files(self._targets, self.asked)

    def kept(
        self, store: Store, start: FilesStart, earlier: Begun[FilesStart] | None
    ) -> FilesStudy | None:
        """Return what is stored; a new study is kept when the size of its files is decided."""
        return None if earlier is None else load_files(store, start.study_id)

    def run(
        self,
        opened: DirectoryTests,
        store: Store,
        start: FilesStart,
        kept: FilesStudy | None,
        watcher: Watcher,
    ) -> FilesStudy:
        """Time the programs on every column that is missing."""
        return run_files(
            opened,
            store,
            start,
            stored=kept,
            file_bytes=self._file_bytes,
            fill=self.asked.fill,
            on_size=watcher.ended,
            on_cell=watcher.ended,
        )
