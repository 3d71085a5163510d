"""KM83's table: rates with the percentage of CPU time in parentheses, one drive and several.

Everything here prints as the paper does (KM83 §5): a title, a head for each block size, a column
for each storage subsystem and number of drives, `n.m.` for what was not measured, and a star where
a number is to be doubted.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from leadline.record.files import FilesRow, FilesStudy
from leadline.record.jobs.file_test import FILE_PROGRAMS

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
                    _counts(studies, key),
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


def _counts(studies: Sequence[FilesStudy], key: tuple[str, int | None, bool]) -> list[int]:
    return sorted({row.drives for one in studies for row in one.rows if _key(row) == key})


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
