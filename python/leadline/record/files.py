"""A study by the direct method (KM83): plain files on one drive and several, as one document."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.finding import Finding
from leadline.record.jobs.file_test import FILE_PROGRAMS, FileProgram, FileRun
from leadline.record.study import Records, Status, StudyStart, TextAnswer
from leadline.record.workload import Interval


class FileSystemUnderTest(msgspec.Struct, frozen=True, kw_only=True):
    """The file system of one part of the table."""

    fs: str
    """The kernel's name of its type: `ext4`."""
    block_bytes: int | None
    """None when the kernel does not say."""
    made: bool
    """Whether it was made for the test, on a loop device; otherwise it was there."""


class FilesCell(msgspec.Struct, frozen=True, kw_only=True):
    """One file system on a number of drives: what one job of the engine measures."""

    system: FileSystemUnderTest
    drives: int
    missing: str | None = None
    """Why it cannot be measured; known before anything runs."""


class FilesRow(msgspec.Struct, frozen=True, kw_only=True):
    """One program on one file system and a number of drives at once."""

    test: FileProgram
    fs: str
    block_bytes: int | None
    made: bool
    drives: int
    kbytes_s: Interval | None
    """All drives together, in Kbytes of 1024 bytes per second; None when not measured."""
    cpu_percent: Interval | None
    """Of one processor, summed over the programs that run at once (KM83 §5)."""
    raw_percent: Interval | None
    """Of what the raw devices moved in the same moments."""
    missing: str | None = None
    """Why there is no number."""
    suspect: tuple[str, ...] = ()
    """Why the number is to be doubted; the table marks it with a star."""
    runs: tuple[FileRun, ...] = ()
    """All of them; the first was discarded."""

    @property
    def kept(self) -> tuple[FileRun, ...]:
        """The runs that count: all but the first (KM83 §4)."""
        return self.runs[1:]


class SizeStep(msgspec.Struct, frozen=True, kw_only=True):
    """One size tried while the file was scaled."""

    file_bytes: int
    write_kbytes_s: float
    read_kbytes_s: float
    seconds: float
    """What a write and a read of that size took together with all that belongs to them."""


class FilesStart(StudyStart, frozen=True, kw_only=True):
    """What decides a study, before its first file."""

    directories: tuple[str, ...]
    storage: str
    """What the drives are, for the head of a column: `vda`."""
    paper: bool
    """The paper's own protocol: 8 Megabytes, timed to the program's end, the cache left alone."""
    runs: int
    """Of every program, the first of which is discarded."""
    budget_s: float
    seed: int
    cells: tuple[FilesCell, ...]
    facts: dict[str, Any]
    notes: tuple[Finding, ...] = ()
    """What must be known of it before anything is measured."""

    @property
    def target(self) -> str:
        """The directories."""
        return ", ".join(self.directories)


class SizeChosen(msgspec.Struct, frozen=True, kw_only=True, tag="size"):
    """The first item: how large the files are."""

    order: int = 0
    item_id: None = None
    wall_s: float
    """Of the study so far, here and below."""
    file_bytes: int
    size_steps: tuple[SizeStep, ...]
    size_reason: str


class CellMeasured(msgspec.Struct, frozen=True, kw_only=True, tag="cell"):
    """Every other item: a cell's runs. What they say together is derived from all cells."""

    order: int
    item_id: str
    wall_s: float
    rows: tuple[FilesRow, ...]


class FilesStudy(msgspec.Struct, frozen=True, kw_only=True):
    """A study as it is told: start, items and answer together."""

    version: int = 1
    start: FilesStart
    status: Status
    file_bytes: int | None = None
    """None while the size is not decided."""
    size_steps: tuple[SizeStep, ...] = ()
    size_reason: str = ""
    """Why the file has this size."""
    rows: tuple[FilesRow, ...] = ()
    sentences: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    wall_s: float = 0.0

    @property
    def cells_done(self) -> int:
        """Cells of the start that are behind it: each has a row for every program."""
        return len(self.rows) // len(FILE_PROGRAMS)


FILES = Records(
    "files",
    FilesStart,
    SizeChosen | CellMeasured,
    TextAnswer,
    said="study of plain files",
    made_by="leadline files DIR",
)
