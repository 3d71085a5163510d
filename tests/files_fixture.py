"""Studies of plain files with a known truth: a stand-in for the engine that keeps its protocol."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from kept_documents import KeptDocuments
from leadline.engine.file_tests import ProgramsAsked
from leadline.record.files import FilesCell, FilesStart, FilesStudy, FileSystemUnderTest
from leadline.record.jobs.file_test import (
    KBYTE,
    DriveRun,
    FileProgram,
    FileRun,
    FileTestResult,
    FileTestRuns,
    RawRun,
)
from leadline.studies.files.run import FilesOptions, load_files, run_files

EXISTING = FileSystemUnderTest(fs="ext4", block_bytes=4096, made=False)
Rate = Callable[[FilesCell, FileProgram, int], float]
"""Kbytes/s of all drives together, of a cell, a program and a file size."""


def made(fs: str, block_bytes: int) -> FileSystemUnderTest:
    return FileSystemUnderTest(fs=fs, block_bytes=block_bytes, made=True)


@dataclass
class ScriptedTests:
    """Answers as the engine would; `rate` is the truth, `noise_frac` its run-to-run spread."""

    rate: Rate
    cpu_percent: float = 40.0
    raw_kbytes_s: float = 2e6
    cached_share: float = 0.0
    device_share: float = 1.0
    image_room_bytes: int | None = None
    noise_frac: float = 0.0
    room_bytes: int = 2**40
    fail: Callable[[FilesCell], Exception | None] = lambda _cell: None
    asked: list[tuple[FilesCell, int, tuple[FileProgram, ...]]] = field(default_factory=list)
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def file_bytes_max(self, cells: Sequence[FilesCell]) -> int:
        if self.image_room_bytes is not None and any(cell.system.made for cell in cells):
            return self.image_room_bytes
        return self.room_bytes

    def run(self, cell: FilesCell, asked: ProgramsAsked) -> FileTestResult:
        file_bytes, paper = asked.file_bytes, asked.paper
        self.asked.append((cell, file_bytes, asked.tests))
        reason = self.fail(cell)
        if reason is not None:
            raise reason
        return FileTestResult(
            version=1,
            kind="file_test",
            job_id="x",
            file_bytes=file_bytes,
            block_bytes=(4096,) * cell.drives,
            tests=tuple(
                FileTestRuns(
                    test,
                    tuple(self._run(cell, test, file_bytes, n, paper) for n in range(asked.runs)),
                )
                for test in asked.tests
            ),
        )

    def _run(
        self, cell: FilesCell, test: FileProgram, file_bytes: int, number: int, paper: bool
    ) -> FileRun:
        rate = self.rate(cell, test, file_bytes) * self.chance.lognormvariate(0, self.noise_frac)
        if number == 0:
            rate /= 3  # the first run is slow: it must not count
        total_bytes = cell.drives * file_bytes
        seconds = total_bytes / KBYTE / rate
        drive = DriveRun(
            seconds=seconds,
            sync_s=0.0,
            cpu_s=self.cpu_percent / 100 * seconds / cell.drives,
            cached_share=(1.0 if paper else self.cached_share) if test == "read_8192" else None,
        )
        from_device = round(total_bytes * self.device_share) if test == "read_8192" else 0
        raw = RawRun(total_bytes, total_bytes / KBYTE / self.raw_kbytes_s)
        return FileRun(
            seconds=seconds, device_read_bytes=from_device, drives=(drive,) * cell.drives, raw=raw
        )


class Kept(KeptDocuments[FilesStudy]):
    """A store that remembers every document it held."""

    def __init__(self) -> None:
        super().__init__(load_files)


def start_of(
    cells: Sequence[FilesCell], *, runs: int = 3, paper: bool = False, budget_s: float = 600.0
) -> FilesStart:
    asked = FilesOptions(
        system="thing", cells=tuple(cells), budget_s=budget_s, paper=paper, runs=runs, seed=1
    )
    return FilesStart(
        study_id="f" * 32,
        system=asked.system,
        directories=("/data",),
        storage="vda",
        started_at="2026-11-21T00:00:00+00:00",
        paper=asked.paper,
        runs=asked.runs,
        budget_s=asked.budget_s,
        seed=asked.seed,
        cells=asked.cells,
        facts={},
    )


def study_of(tests: ScriptedTests, cells: Sequence[FilesCell], **how: object) -> FilesStudy:
    """A whole study of 8 MiB files with this truth."""
    return run_files(tests, Kept(), start_of(cells, **how), file_bytes=8 << 20)  # type: ignore[arg-type]
