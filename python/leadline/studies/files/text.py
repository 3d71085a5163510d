"""KM83's table: rates with the percentage of CPU time in parentheses, one drive and several.

Everything here prints as the paper does (KM83 §5): a title, a head for each block size, a column
for each storage subsystem and number of drives, `n.m.` for what was not measured, and a star where
a number is to be doubted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.text import Text

from leadline.charts.terminal import Terminal, on_terminal
from leadline.record import Interval
from leadline.record.files import FILES, FilesRow, FilesStudy
from leadline.record.jobs.file_test import FILE_PROGRAMS
from leadline.record.wording import format_count, format_interval, format_rate_ci, join_words
from leadline.studies.files.explain import format_system, mb_s
from leadline.studies.files.plan import number_rows
from leadline.studies.files.run import load_files
from leadline.studies.registry import Kind
from leadline.units import format_bytes, format_ci, format_ends, format_percent

NOT_MEASURED = "n.m."
SUSPECT = "* this number is to be doubted; the warnings say why."
_GAP = "   "
_DIGITS = 3


class TableCell(msgspec.Struct, frozen=True):
    """One entry: a rate and what the programs used of the CPU."""

    kbytes_s: float | None
    cpu_percent: float | None = None
    suspect: bool = False

    def text(self) -> str:
        """Write `490 (69%)`, `n.m.`, or `220 (58%)*`."""
        if self.kbytes_s is None:
            return NOT_MEASURED
        cpu = "" if self.cpu_percent is None else f" ({self.cpu_percent:.0f}%)"
        return f"{_rounded(self.kbytes_s)}{cpu}{'*' if self.suspect else ''}"


class TableColumn(msgspec.Struct, frozen=True):
    """One storage subsystem: for each number of drives a cell of every program, in order."""

    storage: str
    drives: tuple[tuple[int, tuple[TableCell, ...]], ...]


class TableSection(msgspec.Struct, frozen=True):
    """One kind of file system: `an 8K/1K 4.2BSD`."""

    system: str
    columns: tuple[TableColumn, ...]


class PaperTable(msgspec.Struct, frozen=True):
    """A whole table."""

    title: str
    sections: tuple[TableSection, ...]


def table_of(*studies: FilesStudy) -> PaperTable:
    """Return studies as the paper would have printed them, side by side where there are several.

    A study that lacks a file system of another has `n.m.` there.
    """
    systems = list(dict.fromkeys(_key(row) for study in studies for row in study.rows))
    sections = tuple(
        TableSection(
            _system(*key),
            tuple(
                _column(
                    _storage(study, made=key[2], alone=len(studies) == 1),
                    [row for row in study.rows if _key(row) == key],
                    sorted({row.drives for one in studies for row in one.rows if _key(row) == key}),
                )
                for study in studies
            ),
        )
        for key in systems
    )
    names = dict.fromkeys(study.start.system for study in studies)
    return PaperTable(f"File Systems Tests - {' and '.join(names)}", sections)


def _key(row: FilesRow) -> tuple[str, int | None, bool]:
    return row.fs, row.block_bytes, row.made


def _storage(study: FilesStudy, *, made: bool, alone: bool) -> str:
    storage = f"loop on {study.start.storage}" if made else study.start.storage
    return storage if alone else f"{study.start.system} {storage}"


def table_lines(table: PaperTable) -> list[str]:
    """Return the table as lines of plain text."""
    lines = [table.title]
    for section in table.sections:
        lines += ["", *_section_lines(section)]
    starred = any(
        cell.suspect
        for section in table.sections
        for column in section.columns
        for _, cells in column.drives
        for cell in cells
    )
    return [*lines, *(["", SUSPECT] if starred else [])]


def _system(fs: str, block_bytes: int | None, made: bool) -> str:
    block = f"{block_bytes // 1024}K " if block_bytes and block_bytes >= 1024 else ""
    if not made:
        return f"the existing {block}{fs}"
    return f"{'an' if block.startswith('8') else 'a'} {block}{fs}"


def _column(storage: str, rows: Sequence[FilesRow], counts: Sequence[int]) -> TableColumn:
    found = {(row.test, row.drives): row for row in rows}
    drives = (
        (count, tuple(_cell(found.get((test, count))) for test in FILE_PROGRAMS))
        for count in counts
    )
    return TableColumn(storage, tuple(drives))


def _cell(row: FilesRow | None) -> TableCell:
    if row is None or row.kbytes_s is None:
        return TableCell(None)
    cpu = row.cpu_percent.value if row.cpu_percent else None
    return TableCell(row.kbytes_s.value, cpu, bool(row.suspect))


def _section_lines(section: TableSection) -> list[str]:
    first = max(len(test) for test in FILE_PROGRAMS)
    blocks = [_block(column) for column in section.columns]
    names = ["Test", "", *FILE_PROGRAMS]
    body = [
        (names[number].ljust(first) + _GAP + _GAP.join(block[number] for block in blocks)).rstrip()
        for number in range(len(names))
    ]
    heads = ["Logically Sequential Transfers", f"from {section.system} File System (Kbytes/sec.)"]
    width = max(len(line) for line in [*body, *heads])
    rule = "-" * width
    centred = [line.center(width).rstrip() for line in heads]
    return [*centred, rule, *body[:2], rule, *body[2:], rule]


def _block(column: TableColumn) -> list[str]:
    """Return one subsystem's part of every line, all of one width."""
    heads = ["1 Drive" if count == 1 else f"{count} Drives" for count, _ in column.drives]
    texts = [[cell.text() for cell in cells] for _, cells in column.drives]
    widths = [
        max(len(head), *(len(text) for text in own)) for head, own in zip(heads, texts, strict=True)
    ]
    rows = [heads, *([own[number] for own in texts] for number in range(len(FILE_PROGRAMS)))]
    lines = [
        _GAP.join(text.ljust(width) for text, width in zip(row, widths, strict=True))
        for row in rows
    ]
    width = max(len(lines[0]), len(column.storage))
    return [column.storage.ljust(width), *(line.ljust(width) for line in lines)]


def _rounded(kbytes_s: float) -> str:
    """Write a rate with three digits that mean something, in whole Kbytes per second."""
    if kbytes_s < 1:
        return f"{kbytes_s:.2g}"
    return f"{float(f'{kbytes_s:.{_DIGITS}g}'):.0f}"


# A study of plain files in one sentence: which file system reads and writes fastest, and how.

_ASKED = (("read_8192", "Reads"), ("write_8192", "Writes"))
"""The paper's programs that ask for 8 KiB at a time, as they are said."""


def headline(study: FilesStudy) -> str:
    """Return the answer over all file systems; each that nothing beats, where that can be told."""
    rows = [row for row in study.rows if row.kbytes_s is not None]
    if not rows:
        return "Nothing was measured."
    drives = min(row.drives for row in rows)
    said = [
        _fastest(noun, [row for row in rows if row.test == test and row.drives == drives])
        for test, noun in _ASKED
    ]
    told = ". ".join(each for each in said if each)
    if not told:
        return f"{_start(format_system(rows[0]))}: {rows[0].test} at {_rate(rows[0])}."
    several = any(row.drives != drives for row in rows)
    return f"{told} ({format_count(drives, 'drive')})." if several else f"{told}."


def _fastest(noun: str, rows: Sequence[FilesRow]) -> str:
    """Say which system is fastest and how fast; no system where it cannot be told from others."""
    if not rows:
        return ""
    best, *others = sorted(rows, key=lambda row: -_known(row).value)
    low = _known(best).low
    near = [row for row in others if low is None or (_known(row).high or low) >= low]
    if near:
        names = join_words([format_system(row) for row in (best, *near)])
        return f"{noun}: no significant difference between {names}; highest {_rate(best)}"
    beats = f", fastest of {len(rows)}" if others else ""
    return f"{noun}: {format_system(best)} {_rate(best)}{beats}"


def _rate(row: FilesRow) -> str:
    return format_rate_ci(mb_s(_known(row)), level=True)


def _known(row: FilesRow) -> Interval:
    assert row.kbytes_s is not None  # noqa: S101 - only measured rows are asked
    return row.kbytes_s


def _start(text: str) -> str:
    return text[:1].upper() + text[1:]


# A study of plain files on a terminal: the paper's table, the intervals beside it, sentences.


@on_terminal
def render_files(terminal: Terminal, study: FilesStudy) -> Iterator[RenderableType]:
    """Tell a row for each file system; all of it: the paper's table, intervals and findings."""
    if not terminal.verbose:
        yield from terminal.sentences(study.sentences[:1])
        yield terminal.table(*_brief_table(study))
        yield from terminal.warnings(study.findings)
        return
    yield from map(terminal.fixed, table_lines(table_of(study)))
    yield Text("")
    yield terminal.text(format_how(study))
    measured = [row for row in study.rows if row.kbytes_s is not None]
    if measured:
        yield Text("")
        yield from map(terminal.fixed, _number_lines(measured))
        yield Text("")
    yield from map(terminal.text, (*study.sentences, *format_missing(study.rows)))
    yield from terminal.warnings(study.findings)


def _brief_table(study: FilesStudy) -> tuple[list[str], list[list[str]]]:
    """Return heads and rows: Kbytes/s of each program with half of its interval."""
    rows: dict[tuple[str, str], dict[str, str]] = {}
    for row in study.rows:
        system = (format_fs(row), str(row.drives))
        rows.setdefault(system, {})[row.test] = _brief(row)
    tests = list(dict.fromkeys(row.test for row in study.rows))
    cells = [
        [*system, *(own.get(test, NOT_MEASURED) for test in tests)] for system, own in rows.items()
    ]
    return ["Kbytes/s, 95% CI", "Drives", *tests], cells


def _brief(row: FilesRow) -> str:
    if row.kbytes_s is None:
        return NOT_MEASURED
    half = row.kbytes_s.half_width_frac
    sure = "" if half is None else f" ±{format_percent(half)}"
    return f"{_rounded(row.kbytes_s.value)}{sure}{'*' if row.suspect else ''}"


def format_how(study: FilesStudy) -> str:
    """Write in which way the numbers came about."""
    start = study.start
    size = format_bytes(study.file_bytes) if study.file_bytes else "no"
    clock = (
        "timed from open to close with the cache as it is, as in the paper"
        if start.paper
        else "writes timed until the drive has the data, reads begun with nothing of the file in "
        "the cache"
    )
    counts = {len(row.kept) for row in study.rows if row.kept} or {start.runs - 1}
    least = f"{min(counts)} to " if len(counts) > 1 else ""
    kept = f"{least}{format_count(max(counts), 'run')}"
    why = f" ({study.size_reason})" if study.size_reason else ""
    return (
        f"Files of {size}{why}; {clock}; means of {kept}, after one that was discarded. In "
        "parentheses: processor time of the programs, summed over those that run at once. Kbytes "
        f"are of 1024 bytes. {NOT_MEASURED}: not measured."
    )


def format_missing(rows: Sequence[FilesRow]) -> list[str]:
    """Write once for every reason what was not measured for it."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.missing is not None:
            name = f"{format_fs(row)}, {format_count(row.drives, 'drive')}"
            names = reasons.setdefault(row.missing, [])
            if name not in names:
                names.append(name)
    return [f"{NOT_MEASURED} {'; '.join(names)}: {why}" for why, names in reasons.items()]


def format_fs(row: FilesRow) -> str:
    """Write `existing ext4 4 KiB`."""
    block = f" {format_bytes(row.block_bytes)}" if row.block_bytes else ""
    return f"{'' if row.made else 'existing '}{row.fs}{block}"


def format_percent_interval(share: Interval | None) -> str:
    """Write `45% (41 to 49%)`, or `n.m.`."""
    if share is None:
        return NOT_MEASURED
    return format_interval(share, lambda percent: f"{max(0.0, percent):.3g}%")


def format_kbytes(rate: Interval | None) -> str:
    """Write `490000 [455000, 528000]` Kbytes/s, with three digits each, or `n.m.`."""
    if rate is None:
        return NOT_MEASURED
    value = _three(rate.value)
    if rate.low is None or rate.high is None:
        return f"{value} (no interval)"
    return format_ci(value, _three(rate.low), _three(rate.high))


def _three(value: float) -> str:
    return f"{float(f'{value:.3g}'):.0f}" if value >= 1 else f"{value:.2g}"


def _number_lines(rows: Sequence[FilesRow]) -> list[str]:
    """Return the numbers in fixed columns, 80 wide: rich would fold the intervals."""
    heads = ("Test", "Kbytes/s", "95% CI", "n", "CPU", "of raw", "95% CI")
    lines = [_columns(heads)]
    before = None
    for row in rows:
        if (now := (format_fs(row), row.drives)) != before:
            lines.append(f"{now[0]}, {format_count(row.drives, 'drive')}")
            before = now
        rate, raw = row.kbytes_s, row.raw_percent
        cells = (
            f" {row.test}{'*' if row.suspect else ''}",
            _three(rate.value) if rate else NOT_MEASURED,
            _span(rate, _three),
            str(rate.n) if rate else "0",
            f"{row.cpu_percent.value:.0f}%" if row.cpu_percent else NOT_MEASURED,
            _percent(raw.value) if raw else NOT_MEASURED,
            _span(raw, _percent),
        )
        lines.append(_columns(cells))
    return lines


_WIDTHS = (-14, 9, -19, 3, 6, 7, -17)
"""Of the columns; left-aligned ones are negative."""


def _columns(cells: Sequence[str]) -> str:
    pairs = zip(cells, _WIDTHS, strict=True)
    return " ".join(
        cell.rjust(width) if width > 0 else cell.ljust(-width) for cell, width in pairs
    ).rstrip()


def _percent(percent: float) -> str:
    return f"{percent:.0f}%" if percent >= 99.5 else f"{percent:.2g}%"


def _span(number: Interval | None, write: Callable[[float], str]) -> str:
    if number is None or number.low is None or number.high is None:
        return "no interval"
    return format_ends(write(max(0.0, number.low)), write(number.high))


# A study of plain files as JSON.


def files_document(study: FilesStudy) -> dict[str, Any]:
    """The keys DESIGN.md promises for `files --json`, and more beside them."""
    start = study.start
    return {
        "system": start.system,
        "study": start.study_id,
        "status": study.status,
        "directories": start.directories,
        "storage": start.storage,
        "paper": start.paper,
        "runs": start.runs,
        "seed": start.seed,
        "file_bytes": study.file_bytes,
        "size_steps": study.size_steps,
        "size_reason": study.size_reason,
        "wall_s": study.wall_s,
        "rows": [_row(row) for row in study.rows],
        "facts": start.facts,
        "sentences": study.sentences,
        "findings": [each.document() for each in study.findings],
    }


def _row(row: FilesRow) -> dict[str, Any]:
    whole = msgspec.structs.asdict(row)
    return whole | {
        "cpu_percent": row.cpu_percent and row.cpu_percent.value,
        "cpu_percent_interval": row.cpu_percent,
        "raw_percent": row.raw_percent and row.raw_percent.value,
        "raw_percent_interval": row.raw_percent,
    }


KIND = Kind(
    FILES,
    load=load_files,
    document=files_document,
    render=render_files,
    rows=lambda store, study_id: number_rows(load_files(store, study_id)),
    page="leadline.studies.files.page",
    ending="-files.html",
    headline=headline,
)
