"""A study of a file cache on a terminal: sentences, two small charts, sizes and the evidence."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from leadline.record import CacheSize, CacheStudy, Curve, FileCache, WritePolicy
from leadline.record.wording import say_bytes, say_rate, say_share
from leadline.report.drawing.terminal import Terminal, on_terminal
from leadline.report.survey.terminal import level_lines
from leadline.studies.cache.disciplines import HEADS, discipline_rows

KINDS = ("reads", "writes")
SIZE_HEADS = ("", "File cache holds (95 %)", "Of memory", "In it", "Beyond")
EVIDENCE_HEADS = ("Write policy", "Seen", "Says")


@on_terminal
def render_cache_study(terminal: Terminal, study: CacheStudy) -> Iterator[RenderableType]:
    """Tell the sentences, charts, tables and warnings."""
    found = study.cache
    for sentence in terminal.sentences(found.sentences):
        yield sentence
        yield Text("")
    for curve in study.curves:
        size = found.reads if curve.focal.read_frac == 1.0 else found.writes
        for line in _chart(terminal, curve, size):
            yield Text(line, no_wrap=True, overflow="crop")
        yield Text("")
    yield terminal.table(SIZE_HEADS, size_rows(found))
    yield terminal.table(EVIDENCE_HEADS, evidence_rows(found))
    yield from _write_costs(terminal, study)
    yield from terminal.warnings(study.findings)


def _chart(terminal: Terminal, curve: Curve, size: CacheSize) -> list[str]:
    kind = KINDS[0] if curve.focal.read_frac == 1.0 else KINDS[1]
    borders = [size.bytes.value] if size.bytes else []
    what = f"of {kind} alone"
    return level_lines(curve.points, borders, terminal.width, plain=terminal.plain, what=what)


def _write_costs(terminal: Terminal, study: CacheStudy) -> Iterator[RenderableType]:
    """The disciplines as a table with its sentences, and what the flusher costs."""
    found = study.disciplines
    if found is not None:
        yield terminal.table(HEADS, discipline_rows(found))
    told = [*(found.sentences if found else ()), study.flusher.sentence if study.flusher else ""]
    told += [f"n.m.: {reason}." for reason in study.left_out]
    for sentence in filter(None, told):
        yield terminal.text(sentence)
        yield Text("")


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


def evidence_rows(found: FileCache) -> list[tuple[str, ...]]:
    """Return a row for each sight of the write policy, and what it says by itself."""
    return [
        (item.name, item.sentence, "-" if item.says is WritePolicy.UNKNOWN else item.says.value)
        for item in found.evidence
    ]
