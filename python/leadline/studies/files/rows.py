"""Rows of the table from the engine's runs: rates, shares and their intervals."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from leadline.record.files import FilesCell, FilesRow, FilesStudy
from leadline.record.jobs.file_test import FILE_PROGRAMS, FileProgram, FileRun, FileTestResult
from leadline.record.workload import Interval, interval_columns
from leadline.stats.intervals import Noise, pooled_noise, reading_interval, student_t
from leadline.units import say_percent

CACHED_FRAC_MAX = 0.05
"""Of a file in the cache before a read that was to come from the drive."""
REPEATABLE_FRAC = 0.25
"""KM83 §4 repeated runs "to insure that the experiment had stablized and was repeatable"."""
_LN_RATIO_MAX = 300.0
"""Half of an interval beyond this says nothing more, and its ends could not be written."""
Reading = Callable[[FileRun], float | None]


def rows_of(cell: FilesCell, result: FileTestResult | None, missing: str = "") -> list[FilesRow]:
    """Return a cell's rows in the paper's order, still without intervals."""
    runs: dict[FileProgram, tuple[FileRun, ...]] = (
        {test.test: test.runs for test in result.tests} if result else {}
    )
    return [
        FilesRow(
            test=test,
            fs=cell.system.fs,
            block_bytes=cell.system.block_bytes,
            made=cell.system.made,
            drives=cell.drives,
            kbytes_s=None,
            cpu_percent=None,
            raw_percent=None,
            missing=None if test in runs else missing or cell.missing,
            runs=runs.get(test, ()),
        )
        for test in FILE_PROGRAMS
    ]


def with_numbers(rows: Sequence[FilesRow], file_bytes: int, *, paper: bool) -> tuple[FilesRow, ...]:
    """Give every measured row its numbers; noise is pooled over all rows of the same program."""
    found = []
    for row in rows:
        if not row.kept:
            found.append(row)
            continue
        same = [other for other in rows if other.test == row.test]

        def interval(
            reading: Reading, row: FilesRow = row, same: list[FilesRow] = same
        ) -> Interval | None:
            return _interval(_readings(row, reading), [_readings(one, reading) for one in same])

        found.append(
            msgspec.structs.replace(
                row,
                kbytes_s=interval(lambda run: run.kbytes_s(file_bytes)),
                cpu_percent=interval(lambda run: run.cpu_percent),
                raw_percent=interval(lambda run: run.raw_percent(file_bytes)),
                suspect=_doubts(row, file_bytes, paper=paper),
            )
        )
    return tuple(found)


def rates(row: FilesRow, file_bytes: int) -> list[float]:
    """Return the kept runs' rates in Kbytes/s."""
    return [run.kbytes_s(file_bytes) for run in row.kept]


def rate_noise(rows: Sequence[FilesRow], file_bytes: int) -> Noise:
    """Return the run-to-run noise of these rows' rates."""
    return pooled_noise([group for row in rows if (group := rates(row, file_bytes))])


def ratio(
    over: FilesRow, under: FilesRow, noise: Noise, file_bytes: int, *, confidence: float
) -> Interval:
    """Return the ratio of two rows' rates, `over` by `under`.

    Without an interval while no program ran twice: how far another run would be off nobody knows.
    """
    logs = [[math.log(rate) for rate in rates(row, file_bytes)] for row in (over, under)]
    means = [sum(side) / len(side) for side in logs]
    counts = [len(side) for side in logs]
    value = means[0] - means[1]
    if noise.df < 1:
        return Interval(math.exp(value), None, None, min(counts))
    half = student_t(noise.df, confidence) * noise.sd_frac * math.sqrt(sum(1 / n for n in counts))
    half = min(half, _LN_RATIO_MAX)
    return Interval(math.exp(value), math.exp(value - half), math.exp(value + half), min(counts))


def _readings(row: FilesRow, reading: Reading) -> list[float]:
    found = [reading(run) for run in row.kept]
    return [value for value in found if value is not None and value > 0]


def _interval(readings: list[float], groups: list[list[float]]) -> Interval | None:
    if not readings:
        return None
    known = [group for group in groups if group]
    if max(len(group) for group in known) < 2:
        return Interval(sum(readings) / len(readings), None, None, len(readings))
    return reading_interval(readings, None, pooled_noise(known))


def _doubts(row: FilesRow, file_bytes: int, *, paper: bool) -> tuple[str, ...]:
    doubts = []
    cached = [run.cached_share for run in row.kept if run.cached_share is not None]
    cached_doubt = not paper and bool(cached) and max(cached) > CACHED_FRAC_MAX
    if cached_doubt:
        doubts.append(f"{say_percent(max(cached))} of the file lay in the file cache")
    read = [run.device_read_bytes for run in row.kept if run.device_read_bytes is not None]
    if not paper and row.test == "read_8192" and not cached_doubt and read:
        share = min(read) / (row.drives * file_bytes)
        if share < 1 - CACHED_FRAC_MAX:
            doubts.append(f"a block device gave {say_percent(share)} of what was read")
    found = rates(row, file_bytes)
    spread = max(found) / min(found) - 1
    if spread > REPEATABLE_FRAC:
        doubts.append(f"its runs differ by {say_percent(spread)}")
    return tuple(doubts)


def number_rows(study: FilesStudy) -> list[dict[str, Any]]:
    """Return a row for each program, file system and number of drives, with every interval."""
    return [_line(study, row) for row in study.rows]


def _line(study: FilesStudy, row: FilesRow) -> dict[str, Any]:
    return {
        "study_id": study.start.study_id,
        "system": study.start.system,
        "test": row.test,
        "fs": row.fs,
        "block_bytes": row.block_bytes,
        "made": row.made,
        "drives": row.drives,
        "file_bytes": study.file_bytes,
        **interval_columns("kbytes_s", row.kbytes_s),
        **interval_columns("cpu_percent", row.cpu_percent),
        **interval_columns("raw_percent", row.raw_percent),
        "missing": row.missing,
        "suspect": "; ".join(row.suspect),
    }
