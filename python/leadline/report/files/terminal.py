"""A study of plain files on a terminal: the paper's table, the intervals beside it, sentences."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from rich.text import Text

from leadline.record import Interval
from leadline.record.files import FilesRow, FilesStudy
from leadline.record.wording import say_count, say_interval
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.report.files.table import NOT_MEASURED, table_lines, table_of
from leadline.units import format_bytes, say_span


@on_terminal
def render_files(terminal: Terminal, study: FilesStudy) -> Iterator[Text]:
    """Tell the paper's table, the intervals, what was not measured, and what it says."""
    yield from map(terminal.fixed, table_lines(table_of(study)))
    yield Text("")
    yield terminal.text(say_how(study))
    measured = [row for row in study.rows if row.kbytes_s is not None]
    if measured:
        yield Text("")
        yield from map(terminal.fixed, _number_lines(measured))
        yield Text("")
    yield from map(terminal.text, (*study.sentences, *say_missing(study.rows)))
    yield from terminal.warnings(study.findings)


def say_how(study: FilesStudy) -> str:
    """Write in which way the numbers came about."""
    start = study.start
    size = format_bytes(study.file_bytes) if study.file_bytes else "no"
    clock = (
        "timed from open to close with the cache as it is, as in the paper"
        if start.paper
        else "writes timed until the drive has the data, reads begun with nothing of the file in "
        "the cache"
    )
    kept = say_count(start.runs - 1, "run")
    why = f" ({study.size_reason})" if study.size_reason else ""
    return (
        f"Files of {size}{why}; {clock}; means of {kept}, after one that was discarded. In "
        "parentheses: processor time of the programs, summed over those that run at once. Kbytes "
        f"are of 1024 bytes. {NOT_MEASURED}: not measured."
    )


def say_missing(rows: Sequence[FilesRow]) -> list[str]:
    """Write once for every reason what was not measured for it."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        if row.missing is not None:
            name = f"{say_fs(row)}, {say_count(row.drives, 'drive')}"
            names = reasons.setdefault(row.missing, [])
            if name not in names:
                names.append(name)
    return [f"{NOT_MEASURED} {'; '.join(names)}: {why}" for why, names in reasons.items()]


def say_fs(row: FilesRow) -> str:
    """Write `existing ext4 4 KiB`."""
    block = f" {format_bytes(row.block_bytes)}" if row.block_bytes else ""
    return f"{'' if row.made else 'existing '}{row.fs}{block}"


def say_percent_interval(share: Interval | None) -> str:
    """Write `45 % (41 to 49 %)`, or `n.m.`."""
    if share is None:
        return NOT_MEASURED
    return say_interval(share, lambda percent: f"{max(0.0, percent):.3g} %")


def say_kbytes(rate: Interval | None) -> str:
    """Write `490000 (455000 to 528000)` Kbytes/s, with three digits each, or `n.m.`."""
    if rate is None:
        return NOT_MEASURED
    value = _three(rate.value)
    if rate.low is None or rate.high is None:
        return f"{value} (no interval)"
    return f"{value} ({_three(rate.low)} to {_three(rate.high)})"


def _three(value: float) -> str:
    return f"{float(f'{value:.3g}'):.0f}" if value >= 1 else f"{value:.2g}"


def _number_lines(rows: Sequence[FilesRow]) -> list[str]:
    """Return the numbers in fixed columns, 80 wide: rich would fold the intervals."""
    heads = ("Test", "Kbytes/s", "95 %", "n", "CPU", "of raw", "95 %")
    lines = [_columns(heads)]
    before = None
    for row in rows:
        if (now := (say_fs(row), row.drives)) != before:
            lines.append(f"{now[0]}, {say_count(row.drives, 'drive')}")
            before = now
        rate, raw = row.kbytes_s, row.raw_percent
        cells = (
            f" {row.test}{'*' if row.suspect else ''}",
            _three(rate.value) if rate else NOT_MEASURED,
            _span(rate, _three),
            str(rate.n) if rate else "0",
            f"{row.cpu_percent.value:.0f} %" if row.cpu_percent else NOT_MEASURED,
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
    return f"{percent:.0f} %" if percent >= 99.5 else f"{percent:.2g} %"


def _span(number: Interval | None, write: Callable[[float], str]) -> str:
    if number is None or number.low is None or number.high is None:
        return "no interval"
    return say_span(write(max(0.0, number.low)), write(number.high))
