"""The columns of KM83's tables: file systems, drives, the file's size, the rows."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from leadline.engine import Target, target_facts, usual_blocks, why_not_made
from leadline.engine.file_tests import image_bytes
from leadline.errors import LeadlineError
from leadline.machine.file_systems import MAKERS
from leadline.record.files import FilesCell, FilesRow, FilesStudy, FileSystemUnderTest, SizeStep
from leadline.record.jobs.file_test import FILE_PROGRAMS, FileProgram, FileRun, FileTestResult
from leadline.record.workload import Interval, interval_columns
from leadline.stats.intervals import Noise, pooled_noise, reading_interval, student_t
from leadline.units import format_bytes, format_percent

# Which file systems, on how many drives: the columns of KM83's tables, and why some stay empty.

EXISTING = "existing"
"""The word for the file system that is there."""
CHOICES = (EXISTING, *MAKERS)


class FilesRefused(LeadlineError):
    """A study that makes no sense; nothing was touched."""

    exit_code = 2


def plan_cells(
    targets: Sequence[Target],
    file_systems: Sequence[str] = CHOICES,
    block_sizes: Sequence[int] = (),
) -> tuple[FilesCell, ...]:
    """Return every file system on one drive and on several, in the order in which they run.

    Several drives are all the directories at once; with one directory, two loop devices in it,
    and nothing for the file system that is there.

    Raises:
        FilesRefused: an unknown file system, or a directory given twice.

    """
    _require_sense(targets, file_systems)
    several = max(2, len(targets))
    cells = []
    for name in dict.fromkeys(file_systems):
        if name == EXISTING:
            found = existing_system(targets[0])
            alone = None if len(targets) > 1 else "a second drive needs a second directory"
            cells += [
                FilesCell(system=found, drives=1),
                FilesCell(system=found, drives=several, missing=alone),
            ]
            continue
        for block in block_sizes or usual_blocks(name):
            made = FileSystemUnderTest(fs=name, block_bytes=block, made=True)
            why = why_not_made(name, block)
            cells += [FilesCell(system=made, drives=drives, missing=why) for drives in (1, several)]
    return tuple(cells)


def existing_system(target: Target) -> FileSystemUnderTest:
    """Return the file system of a directory as it is."""
    facts = target_facts(str(target.path))
    block = facts.get("filesystem_block_bytes")
    return FileSystemUnderTest(
        fs=str(facts.get("filesystem_type") or "unknown"),
        block_bytes=block if isinstance(block, int) else None,
        made=False,
    )


def shared_devices(targets: Sequence[Target]) -> tuple[str, ...]:
    """Return the directories that lie on the device of an earlier one: no drives of their own."""
    seen: set[int] = set()
    found = []
    for target in targets:
        device = Path(str(target.path)).stat().st_dev
        if device in seen:
            found.append(target.text)
        seen.add(device)
    return tuple(found)


def _require_sense(targets: Sequence[Target], file_systems: Sequence[str]) -> None:
    for target in targets:
        if not target.has_files:
            raise FilesRefused(
                f"{target.text}: plain files need a directory, one for each drive; simulated "
                "systems and servers are surveyed: leadline survey"
            )
    paths = [target.path for target in targets]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise FilesRefused(f"{twice} is given twice: every drive needs a directory of its own")
    unknown = [name for name in file_systems if name not in CHOICES]
    if unknown or not file_systems:
        named = f"{unknown[0]!r} is not known" if unknown else "none was given"
        raise FilesRefused(f"--filesystems: {named}; it takes {', '.join(CHOICES)}")
    if EXISTING in file_systems:
        kinds = {target.text: existing_system(target).fs for target in targets}
        if len(set(kinds.values())) > 1:
            said = ", ".join(f"{text} is {fs}" for text, fs in kinds.items())
            raise FilesRefused(
                f"{said}: the drives of one column need one file system; study each directory by "
                "itself and put them side by side (leadline report A --with B), or leave "
                f"'{EXISTING}' out of --filesystems"
            )


# The file's size: so long that neither a cache nor what every file costs decides the result.
#
# KM83 §4 took eight Megabytes "to insure that the cache did not overly influence the results",
# twice the machine's memory. Here the clock runs until the drive has the data and reads begin
# uncached, so what is left to outgrow are the fixed costs: the size is doubled until a doubling
# changes neither rate by more than SETTLED_FRAC, or until space or time forbid more.

PAPER_BYTES = 8 * 2**20
"""KM83 §4: 1024 requests of 8192 bytes."""
SETTLED_FRAC = 0.10
PLAN_SHARE = 0.6
"""Share of the time left that the whole plan may take at the next size, by what this one took."""
_LAYOUT_BYTES_S = 300e6
"""Images are written once; slower drives show in the steps' own seconds."""
_CELL_S = 1.5
"""Making, mounting and unmounting a file system."""


def next_size(
    steps: Sequence[SizeStep],
    cells: Sequence[FilesCell],
    *,
    runs: int,
    bytes_max: int,
    left_s: float,
) -> tuple[int | None, str]:
    """Return the next size to try, or None and why the last one stays."""
    if not steps:
        return min(PAPER_BYTES, bytes_max), ""
    last = steps[-1]
    if len(steps) > 1 and _settled(steps[-2], last):
        return None, (
            f"doubling it to {format_bytes(last.file_bytes)} changed neither the write's nor the "
            f"read's rate by more than {100 * SETTLED_FRAC:.0f}%"
        )
    doubled = 2 * last.file_bytes
    if doubled > bytes_max:
        return None, f"there is room for files of {format_bytes(bytes_max)} at most"
    if plan_s(cells, doubled, runs=runs, step=last) > PLAN_SHARE * left_s:
        return None, (
            "a larger one would not fit the budget; the last doubling still changed a rate by more "
            f"than {100 * SETTLED_FRAC:.0f}% (a larger --budget lets it grow)"
        )
    return doubled, ""


def plan_s(cells: Sequence[FilesCell], file_bytes: int, *, runs: int, step: SizeStep) -> float:
    """Return the seconds that all cells will take, as one step foretells.

    A step ran two programs twice each, raw passes included; a cell runs four, `runs` times.
    """
    open_cells = [cell for cell in cells if cell.missing is None]
    unit_s = step.seconds * file_bytes / step.file_bytes
    images = max((cell.drives for cell in open_cells if cell.system.made), default=0)
    laid_s = images * image_bytes(file_bytes) / _LAYOUT_BYTES_S
    drives = sum(cell.drives for cell in open_cells)
    return laid_s + _CELL_S * len(open_cells) + drives * runs * unit_s


def _settled(before: SizeStep, after: SizeStep) -> bool:
    pairs = (
        (before.write_kbytes_s, after.write_kbytes_s),
        (before.read_kbytes_s, after.read_kbytes_s),
    )
    return all(abs(now / then - 1) <= SETTLED_FRAC for then, now in pairs)


# Rows of the table from the engine's runs: rates, shares and their intervals.

CACHED_FRAC_MAX = 0.05
"""Of a file in the cache before a read that was to come from the drive."""
REPEATABLE_CV = math.log(1.25) / math.sqrt(2)
"""Of two runs that differ by 25%: KM83 §4 repeated them "to insure that the experiment had
stablized and was repeatable"."""
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
        doubts.append(f"{format_percent(max(cached))} of the file lay in the page cache")
    read = [run.device_read_bytes for run in row.kept if run.device_read_bytes is not None]
    if not paper and row.test == "read_8192" and not cached_doubt and read:
        share = min(read) / (row.drives * file_bytes)
        if share < 1 - CACHED_FRAC_MAX:
            doubts.append(f"a block device gave {format_percent(share)} of what was read")
    logs = [math.log(rate) for rate in rates(row, file_bytes)]
    cv = statistics.stdev(logs) if len(logs) > 1 else 0.0
    if cv > REPEATABLE_CV:
        doubts.append(f"run-to-run CV {format_percent(cv)}")
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
