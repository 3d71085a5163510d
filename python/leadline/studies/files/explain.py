"""What the table says, in sentences: what limits it, which block size is wrong, what drives add.

Every "faster" rests on a ratio of the same program's rates whose interval excludes 1; the intervals
of one sentence answer together (Bonferroni over the pairs that were looked at). What they do not
decide is said to be undecided.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import msgspec

from leadline.record import Interval
from leadline.record.files import FilesRow, FilesStudy
from leadline.record.finding import Finding
from leadline.record.jobs.file_test import FILE_PROGRAMS, KBYTE, FileProgram
from leadline.record.wording import format_number, format_rate_ci, join_words
from leadline.studies.files.plan import rate_noise, ratio
from leadline.units import format_bytes, format_ci, format_span

CPU_BOUND_PERCENT = 90.0
"""KM83 §5 calls programs at 96 to 100% "CPU limited"; of one processor, for one program."""
RAW_BOUND_PERCENT = 80.0
_MEMORY = ("tmpfs", "ramfs")
_CONFIDENCE = 0.95
_WIDE_FRAC = 0.3


def explain_files(study: FilesStudy) -> FilesStudy:
    """Return the study with what its rows say; the rows stay as they are."""
    size = study.file_bytes
    rows = [row for row in study.rows if row.kept]
    if size is None or not rows:
        return msgspec.structs.replace(
            study, sentences=("Nothing was measured.",), findings=_findings(study)
        )
    told = [
        *_rates(rows),
        *_limits(rows, paper=study.start.paper),
        *_block_sizes(rows, size),
        *_file_systems(rows, size),
        *_request_sizes(rows, size),
        *_drives(rows, size),
    ]
    return msgspec.structs.replace(study, sentences=tuple(told), findings=_findings(study))


def format_system(row: FilesRow) -> str:
    """Write `ext4 with 4 KiB blocks`, and that it was there where it was."""
    block = f" with {format_bytes(row.block_bytes)} blocks" if row.block_bytes else ""
    return f"{row.fs}{block}" if row.made else f"the existing {row.fs}"


def mb_s(kbytes_s: Interval) -> Interval:
    """Return a rate in MB/s (powers of ten), as every other rate of Leadline."""
    scale = KBYTE / 1e6
    low, high = (None if end is None else end * scale for end in (kbytes_s.low, kbytes_s.high))
    return Interval(kbytes_s.value * scale, low, high, kbytes_s.n)


def _rates(rows: Sequence[FilesRow]) -> list[str]:
    first = next((row for row in rows if row.drives == 1), rows[0])
    own = [row for row in rows if _system(row) == _system(first) and row.drives == first.drives]
    said = [
        f"{row.test} runs at {format_rate_ci(mb_s(row.kbytes_s))}" for row in own if row.kbytes_s
    ]
    return [f"On {format_system(first)}, {_count(first.drives)}: {join_words(said)}."]


def _limits(rows: Sequence[FilesRow], *, paper: bool) -> list[str]:
    alone = [row for row in rows if row.drives == 1]
    processor = [row for row in alone if _at_least(row.cpu_percent, CPU_BOUND_PERCENT)]
    told = []
    if processor:
        told.append(
            f"The processor limits {_list(processor, alone)}: the program uses "
            f"{CPU_BOUND_PERCENT:.0f}% or more of it, and a faster drive would gain nothing."
        )
    if paper:  # without the drive in the clock there is nothing to hold against it
        return told
    rest = [row for row in alone if row not in processor and row.raw_percent is not None]
    drive = [row for row in rest if _at_least(row.raw_percent, RAW_BOUND_PERCENT)]
    waiting = [row for row in rest if row not in drive]
    if drive:
        told.append(
            f"The drive limits {_list(drive, alone)}: the file system moves "
            f"{RAW_BOUND_PERCENT:.0f}% or more of what the raw device does."
        )
    if waiting:
        shares = sorted(row.raw_percent.value for row in waiting if row.raw_percent)
        told.append(
            f"Neither the processor nor the drive is used up by {_list(waiting, alone)} "
            f"({_percents(shares[0], shares[-1])} of the raw device): there the file system "
            "decides, and the wait of one program for one request after the other."
        )
    return told


def _block_sizes(rows: Sequence[FilesRow], size: int) -> list[str]:
    told = []
    for fs in dict.fromkeys(row.fs for row in rows if row.made):
        own = [row for row in rows if row.made and row.fs == fs and row.drives == 1]
        if len({row.block_bytes for row in own}) < 2:
            continue
        found, open_tests = _contrasts(own, rows, size)
        said = [
            f"{test} is {_times(times)} as fast with {_blocks(fast)} as with {_blocks(slow)}"
            for test, fast, slow, times in found
        ]
        told += _said(f"Block size of {fs}", said, open_tests)
        slowest = {slow.block_bytes for _, _, slow, _ in found}
        fastest = {fast.block_bytes for _, fast, _, _ in found}
        wrong = sorted(block for block in slowest - fastest if block)
        if found and wrong:
            sizes = join_words([format_bytes(block) for block in wrong])
            told.append(f"Here {sizes} is a wrong block size for {fs}.")
    return told


def _file_systems(rows: Sequence[FilesRow], size: int) -> list[str]:
    made = [row for row in rows if row.made and row.drives == 1]
    largest = {
        fs: max(row.block_bytes or 0 for row in made if row.fs == fs)
        for fs in dict.fromkeys(row.fs for row in made)
    }
    own = [row for row in made if row.block_bytes == largest[row.fs]]
    if len(largest) < 2:
        return []
    found, open_tests = _contrasts(own, rows, size)
    said = [
        f"{test} is {_times(times)} as fast on {fast.fs} as on {slow.fs}"
        for test, fast, slow, times in found
    ]
    return _said("File systems on the same drive", said, open_tests)


def _request_sizes(rows: Sequence[FilesRow], size: int) -> list[str]:
    told = []
    pairs: tuple[tuple[FileProgram, FileProgram, str], ...] = (
        ("write_8192", "write_4096", "Requests of 8192 instead of 4096 bytes"),
        ("rewrite_8192", "write_8192", "Writing over blocks that are there, without allocating"),
    )
    for over, under, what in pairs:
        changes = [
            (row, other)
            for row in rows
            for other in rows
            if (row.test, other.test) == (over, under)
            and row.drives == other.drives == 1
            and _system(row) == _system(other)
        ]
        noise = rate_noise([row for pair in changes for row in pair], size) if changes else None
        said, open_systems = [], []
        for row, other in changes:
            assert noise is not None  # noqa: S101 - there is a pair
            times = ratio(row, other, noise, size, confidence=_joint(len(changes)))
            if _decided(times):
                said.append(f"{_times(times)} the rate on {format_system(row)}")
            else:
                open_systems.append(format_system(row))
        if len(open_systems) == len(changes) > 1:
            open_systems = ["any file system"]
        told += _said(what, said, open_systems)
    return told


def _drives(rows: Sequence[FilesRow], size: int) -> list[str]:
    several = [row for row in rows if row.drives > 1]
    pairs = [
        (row, other)
        for row in several
        for other in rows
        if other.drives == 1 and row.test == other.test and _system(row) == _system(other)
    ]
    said, open_pairs, slower = [], [], []
    for row, other in pairs:
        noise = rate_noise([one for one in rows if one.test == row.test], size)
        times = ratio(row, other, noise, size, confidence=_joint(len(pairs)))
        if not _decided(times):
            open_pairs.append(row)
            continue
        said.append(f"{row.test} {_times(times)} on {format_system(row)}")
        if times.value < 1:
            slower.append(row)
    if not pairs:
        return []
    head = _count(pairs[0][0].drives).capitalize()
    undecided = [_list(open_pairs, several)] if open_pairs else []
    told = _said(f"{head}, against one", said, undecided)
    if slower:
        told.append(
            f"Drives at once that are slower than one alone ({_list(slower, several)}) stand in "
            "each other's way; in KM83 §5 a wrong constant in the driver did that."
        )
    return told


def _contrasts(
    rows: Sequence[FilesRow], among: Sequence[FilesRow], size: int
) -> tuple[list[tuple[str, FilesRow, FilesRow, Interval]], list[str]]:
    """Return per program the fastest and slowest row where they differ beyond doubt, and the rest.

    Every pair of rows was looked at to find those two, so the intervals answer for all pairs. The
    noise is that of the program `among` all file systems.
    """
    found: list[tuple[str, FilesRow, FilesRow, Interval]] = []
    undecided: list[str] = []
    looked = sum(
        len(list(combinations([row for row in rows if row.test == test], 2)))
        for test in FILE_PROGRAMS
    )
    for test in FILE_PROGRAMS:
        own = [row for row in rows if row.test == test and row.kbytes_s is not None]
        if len(own) < 2:
            continue
        ranked = sorted(own, key=lambda row: row.kbytes_s.value if row.kbytes_s else 0.0)
        noise = rate_noise([row for row in among if row.test == test], size)
        times = ratio(ranked[-1], ranked[0], noise, size, confidence=_joint(looked))
        if _decided(times):
            found.append((test, ranked[-1], ranked[0], times))
        else:
            undecided.append(test)
    if not found and len(undecided) == len(FILE_PROGRAMS):
        undecided = ["any program"]
    return found, undecided


def _findings(study: FilesStudy) -> tuple[Finding, ...]:
    found = list(study.start.notes)
    rows = [row for row in study.rows if row.kept]
    if study.start.paper:
        shares = [
            run.cached_share
            for row in rows
            for run in row.kept
            if row.test == "read_8192" and run.cached_share is not None
        ]
        if shares and min(shares) > 0.5:
            found.append(Finding.of("paper_cached"))
    if any(run.raw is None for row in rows for run in row.kept):
        found.append(Finding.of("no_raw_rate"))
    if any(row.fs in _MEMORY and not row.made for row in rows):
        found.append(Finding.of("files_in_memory"))
    if len(study.start.directories) == 1 and any(row.made and row.drives > 1 for row in rows):
        found.append(Finding.of("drives_share_disk"))
    wide = sum(_half(row.kbytes_s) > _WIDE_FRAC for row in rows if row.kbytes_s)
    if wide:
        found.append(Finding.of("intervals_wide", wide=wide, rows=len(rows), most_frac=_WIDE_FRAC))
    starred = [row for row in rows if row.suspect]
    if starred:
        more = "; and more" if len(starred) > 3 else ""
        reasons = "; ".join(dict.fromkeys(_reason(row) for row in starred[:3])) + more
        values = {"starred": len(starred), "rows": len(rows)}
        found.append(Finding.of("numbers_starred", reasons=reasons, **values))
    return tuple(found)


def _reason(row: FilesRow) -> str:
    return f"{row.test} on {format_system(row)}, {_count(row.drives)}: {', '.join(row.suspect)}"


def _said(head: str, said: Sequence[str], undecided: Sequence[str]) -> list[str]:
    if not said and not undecided:
        return []
    rest = f"inconclusive for {join_words(list(dict.fromkeys(undecided)))}" if undecided else ""
    return [f"{head}: {'; '.join(part for part in (join_words(list(said)), rest) if part)}."]


def _list(rows: Sequence[FilesRow], among: Sequence[FilesRow]) -> str:
    """Write `read_8192 everywhere; write_4096 on xfs`: of the file systems that are `among`."""
    tests: dict[str, list[str]] = {}
    for test in FILE_PROGRAMS:
        own = [row for row in rows if row.test == test]
        every = {_system(row) for row in among if row.test == test}
        where = "on " + join_words([format_system(row) for row in own])
        if len(every) > 1 and {_system(row) for row in own} == every:
            where = "on every file system"
        if own:
            tests.setdefault(where, []).append(test)
    return "; ".join(f"{join_words(names)} {where}" for where, names in tests.items())


def _percents(low: float, high: float) -> str:
    one, other = f"{low:.0f}%", f"{high:.0f}%"
    return one if one == other else format_span(one, other)


def _system(row: FilesRow) -> tuple[str, int | None, bool]:
    return row.fs, row.block_bytes, row.made


def _blocks(row: FilesRow) -> str:
    return f"{format_bytes(row.block_bytes)} blocks" if row.block_bytes else "unknown blocks"


def _count(drives: int) -> str:
    return "one drive" if drives == 1 else f"{drives} drives at once"


def _times(times: Interval) -> str:
    value = f"{format_number(times.value)} times"
    if times.low is None or times.high is None:
        return value
    return format_ci(value, format_number(times.low), format_number(times.high))


def _decided(times: Interval) -> bool:
    return times.excludes(1.0)


def _at_least(share: Interval | None, percent: float) -> bool:
    return share is not None and share.value >= percent


def _half(rate: Interval) -> float:
    half = rate.half_width_frac
    return math.inf if half is None else half


def _joint(pairs: int) -> float:
    return 1 - (1 - _CONFIDENCE) / max(1, pairs)
