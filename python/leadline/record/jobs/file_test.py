"""What the engine answers to a file test: every run of every program, each drive by itself."""

from __future__ import annotations

from typing import Literal

import msgspec

FileProgram = Literal["read_8192", "write_4096", "write_8192", "rewrite_8192"]
"""The programs of KM83 §4 and appendix A; the number is the request's size in bytes."""
FILE_PROGRAMS: tuple[FileProgram, ...] = ("read_8192", "write_4096", "write_8192", "rewrite_8192")
"""In the order of the paper's tables."""
KBYTE = 1024
"""The paper's Kbyte: its eight Megabytes are 1024 requests of 8192 bytes."""


class DriveRun(msgspec.Struct, frozen=True, kw_only=True):
    """One drive's part of a run."""

    seconds: float
    """From its open to its close."""
    sync_s: float
    """Of these, waiting for the drive to have the data; 0 when nobody waited."""
    cpu_s: float
    """Processor seconds of the program, the kernel's on its behalf included."""
    cached_share: float | None
    """Share of the file in the page cache when a read began; None for writes or when unknown."""


class RawRun(msgspec.Struct, frozen=True):
    """The raw devices of all drives at once, directly after the run."""

    bytes: int
    seconds: float


class FileRun(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a program, on all drives at once."""

    seconds: float
    """From the common start until the last drive was done."""
    device_read_bytes: int | None
    """Bytes that the block layer read for it; None when the kernel does not count them."""
    drives: tuple[DriveRun, ...]
    raw: RawRun | None
    """None when a drive has no raw device that could be used."""

    def kbytes_s(self, file_bytes: int) -> float:
        """Rate of all drives together, in Kbytes (1024 bytes) per second."""
        return len(self.drives) * file_bytes / KBYTE / self.seconds

    @property
    def cpu_percent(self) -> float:
        """Processor time in percent of the time, summed over the programs as KM83 §5 does."""
        return 100 * sum(one.cpu_s / one.seconds for one in self.drives)

    def raw_percent(self, file_bytes: int) -> float | None:
        """Rate in percent of the raw devices' in the same moment; None without them."""
        if self.raw is None or self.raw.seconds <= 0:
            return None
        raw_kbytes_s = self.raw.bytes / KBYTE / self.raw.seconds
        return 100 * self.kbytes_s(file_bytes) / raw_kbytes_s

    @property
    def cached_share(self) -> float | None:
        """The largest share that any drive's file had in the page cache when a read began."""
        known = [one.cached_share for one in self.drives if one.cached_share is not None]
        return max(known, default=None)


class FileTestRuns(msgspec.Struct, frozen=True):
    """All runs of one program, in their order."""

    test: FileProgram
    runs: tuple[FileRun, ...]


class FileTestResult(msgspec.Struct, frozen=True, kw_only=True):
    """The answer to one file test (crates/wire/src/event/file_test.rs)."""

    version: int
    kind: Literal["file_test"]
    job_id: str
    file_bytes: int
    block_bytes: tuple[int, ...]
    """Block of each drive's file system as statvfs(3) has it; 0 when the kernel does not say."""
    tests: tuple[FileTestRuns, ...]
