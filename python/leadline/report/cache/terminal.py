"""A study of a file cache on a terminal: sentences, two small charts, sizes and the evidence."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rich import box
from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from leadline.record import CacheSize, CacheStudy, Curve, FileCache, WritePolicy
from leadline.record.wording import say_bytes, say_rate, say_share
from leadline.report.survey.terminal import level_lines, printable
from leadline.studies.cache.disciplines import HEADS, discipline_rows

KINDS = ("reads", "writes")
SIZE_HEADS = ("", "File cache holds (95 %)", "Of memory", "In it", "Beyond")
EVIDENCE_HEADS = ("Write policy", "Seen", "Says")


def render_cache_study(study: CacheStudy) -> CacheStudyView:
    """Return what a rich console can print; it fits itself to the console's width and encoding."""
    return CacheStudyView(study)


class CacheStudyView:
    """A study that rich can print."""

    def __init__(self, study: CacheStudy) -> None:
        self.study = study

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield sentences, charts, tables and warnings for this console."""
        plain, found = options.ascii_only, self.study.cache
        for number, sentence in enumerate(found.sentences):
            yield Text(printable(sentence, plain=plain), style="bold" if number == 0 else "")
            yield Text("")
        for curve in self.study.curves:
            size = found.reads if curve.focal.read_frac == 1.0 else found.writes
            for line in _chart(curve, size, options.max_width, plain=plain):
                yield Text(line, no_wrap=True, overflow="crop")
            yield Text("")
        yield size_table(found, plain=plain)
        yield evidence_table(found, plain=plain)
        yield from _write_costs(self.study, plain=plain)
        for warning in self.study.warnings:
            yield Text(printable(f"warning: {warning}", plain=plain), style="yellow")


def _chart(curve: Curve, size: CacheSize, width: int, *, plain: bool) -> list[str]:
    kind = KINDS[0] if curve.focal.read_frac == 1.0 else KINDS[1]
    borders = [size.bytes.value] if size.bytes else []
    return level_lines(curve.points, borders, width, plain=plain, what=f"of {kind} alone")


def _write_costs(study: CacheStudy, *, plain: bool) -> Iterator[Text | Table]:
    """The disciplines as a table with its sentences, and what the flusher costs."""
    found = study.disciplines
    if found is not None:
        yield _filled(HEADS, discipline_rows(found), plain=plain)
    told = [*(found.sentences if found else ()), study.flusher.sentence if study.flusher else ""]
    told += [f"n.m.: {reason}." for reason in study.left_out]
    for sentence in filter(None, told):
        yield Text(printable(sentence, plain=plain))
        yield Text("")


def size_table(found: FileCache, *, plain: bool) -> Table:
    """One row for each kind: the size, its share of memory and the rates on both sides."""
    return _filled(SIZE_HEADS, size_rows(found), plain=plain)


def size_rows(found: FileCache) -> list[tuple[str, ...]]:
    """Return a row for each kind: the size, its share of memory and the rates on both sides."""
    rows = (
        (found.reads, found.read_mb_s, found.disk_read_mb_s),
        (found.writes, found.write_mb_s, found.disk_write_mb_s),
    )
    return [
        (
            kind,
            say_bytes(size.bytes) if size.bytes else f"n.m.: {size.reason}",
            say_share(size.memory_frac) if size.memory_frac else "n.m.",
            say_rate(inside) if inside else "n.m.",
            say_rate(beyond) if beyond else "n.m.",
        )
        for kind, (size, inside, beyond) in zip(KINDS, rows, strict=True)
    ]


def evidence_table(found: FileCache, *, plain: bool) -> Table:
    """What was seen of the write policy, and what each sight says by itself."""
    return _filled(EVIDENCE_HEADS, evidence_rows(found), plain=plain)


def evidence_rows(found: FileCache) -> list[tuple[str, ...]]:
    """Return a row for each sight of the write policy, and what it says by itself."""
    return [
        (item.name, item.sentence, "-" if item.says is WritePolicy.UNKNOWN else item.says.value)
        for item in found.evidence
    ]


def _filled(heads: tuple[str, ...], rows: Iterable[tuple[str, ...]], *, plain: bool) -> Table:
    table = _table(heads, plain=plain)
    for row in rows:
        table.add_row(*(Text(printable(cell, plain=plain)) for cell in row))
    return table


def _table(heads: tuple[str, ...], *, plain: bool) -> Table:
    table = Table(box=box.ASCII if plain else box.SIMPLE_HEAD, pad_edge=False)
    for head in heads:
        table.add_column(head, overflow="fold")
    return table
