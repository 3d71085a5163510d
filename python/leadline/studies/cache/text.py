"""A study of a page cache on a terminal: sentences, two small charts, sizes and the evidence."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
from rich.console import RenderableType
from rich.text import Text

from leadline.charts.curve_lines import level_lines
from leadline.charts.terminal import Terminal, on_terminal
from leadline.record import CacheSize, CacheStart, CacheStudy, Curve, FileCache, WritePolicy
from leadline.record.file_cache import CACHE
from leadline.record.wording import format_bytes_ci, format_rate_ci, format_share
from leadline.studies.cache.study import load_study
from leadline.studies.cache.write_costs import HEADS, discipline_rows
from leadline.studies.registry import Kind, first, stored_points
from leadline.units import format_bytes

KINDS = ("reads", "writes")
EVIDENCE_HEADS = ("Write policy", "Seen", "Says")


@on_terminal
def render_cache_study(terminal: Terminal, study: CacheStudy) -> Iterator[RenderableType]:
    """Tell the sentences, tables and warnings; all of it: charts and evidence."""
    found = study.cache
    yield from terminal.sentences(found.sentences)
    if terminal.verbose:
        for curve in study.curves:
            size = found.reads if curve.focal.read_frac == 1.0 else found.writes
            yield Text("")
            for line in _chart(terminal, curve, size):
                yield Text(line, no_wrap=True, overflow="crop")
    yield terminal.table(size_heads(found), size_rows(found))
    if terminal.verbose:
        yield terminal.table(EVIDENCE_HEADS, evidence_rows(found))
    yield from _write_costs(terminal, study)
    yield from terminal.warnings(study.findings)


def _chart(terminal: Terminal, curve: Curve, size: CacheSize) -> list[str]:
    kind = KINDS[0] if curve.focal.read_frac == 1.0 else KINDS[1]
    boundaries = [size.bytes.value] if size.bytes else []
    what = f"of {kind} alone"
    return level_lines(curve.points, boundaries, terminal.width, plain=terminal.plain, what=what)


def _write_costs(terminal: Terminal, study: CacheStudy) -> Iterator[RenderableType]:
    """The write modes as a table, and what writeback costs."""
    found = study.disciplines
    missing = []
    if found is not None:
        rates = tuple(rate for rate in found.rates if rate.throughput_mb_s is not None)
        yield terminal.table(HEADS, discipline_rows(msgspec.structs.replace(found, rates=rates)))
        missing = [rate for rate in found.rates if rate.throughput_mb_s is None]
    told = [f"{rate.name}: n.m.: {'; '.join(rate.reasons)}." for rate in missing]
    told += [study.flusher.sentence if study.flusher else ""]
    told += [f"n.m.: {reason}." for reason in study.left_out]
    yield from map(terminal.text, filter(None, told))


def size_heads(found: FileCache) -> tuple[str, ...]:
    """Name the columns, with the size of the requests and of the data on both sides."""
    requests = f"{format_bytes(found.size_mean)} requests" if found.size_mean else ""
    inside, beyond = (
        f"{side}, {format_bytes(touched)}" if touched else side
        for side, touched in (("Cached", found.inside_bytes), ("Beyond", found.outside_bytes))
    )
    return requests, "Page cache holds (95% CI)", "Of memory", inside, beyond


def size_rows(found: FileCache) -> list[tuple[str, ...]]:
    """Return a row for each kind: the size, its share of memory and the rates on both sides."""
    rows = (
        (found.reads, found.read_mb_s, found.disk_read_mb_s),
        (found.writes, found.write_mb_s, found.disk_write_mb_s),
    )
    return [
        (
            kind,
            format_bytes_ci(size.bytes) if size.bytes else "n.m.",
            format_share(size.memory_frac) if size.memory_frac else "n.m.",
            format_rate_ci(inside) if inside else "n.m.",
            format_rate_ci(beyond) if beyond else "n.m.",
        )
        for kind, (size, inside, beyond) in zip(KINDS, rows, strict=True)
    ]


def evidence_rows(found: FileCache) -> list[tuple[str, ...]]:
    """Return a row for each sight of the write policy, and what it says by itself."""
    return [
        (item.name, item.sentence, "-" if item.says is WritePolicy.UNKNOWN else item.says.value)
        for item in found.evidence
    ]


# A study of a page cache as JSON.


def study_document(study: CacheStudy) -> dict[str, Any]:
    """The keys that `cache --json` promises (docs/concepts/file-cache.md)."""
    start, found = study.start, study.cache
    return {
        "system": start.system,
        "study": start.study_id,
        "target": start.target,
        "status": study.status,
        "wall_s": study.wall_s,
        "points": study.points,
        "planned_points": start.plan.points,
        "seed": start.seed,
        **start.access.stored_in(CacheStart),
        "memory_bytes": start.memory_bytes,
        "read_cache": found.reads,
        "write_cache": found.writes,
        "policy": found.policy,
        "evidence": found.evidence,
        "rates": {
            "size_mean": found.size_mean,
            "inside_bytes": found.inside_bytes,
            "outside_bytes": found.outside_bytes,
            "read_mb_s": found.read_mb_s,
            "write_mb_s": found.write_mb_s,
            "disk_read_mb_s": found.disk_read_mb_s,
            "disk_write_mb_s": found.disk_write_mb_s,
        },
        "curves": [
            {
                "read_frac": curve.focal.read_frac,
                "points": [
                    {"unique_bytes": point.x, "throughput_mb_s": point.throughput_mb_s}
                    for point in curve.points
                ],
            }
            for curve in study.curves
        ],
        "disciplines": study.disciplines,
        "flusher": study.flusher,
        "left_out": study.left_out,
        "noise_frac": study.noise_frac,
        "facts": start.facts,
        "plan": start.plan,
        "sentences": found.sentences,
        "findings": [each.document() for each in study.findings],
    }


KIND = Kind(
    CACHE,
    load=load_study,
    document=study_document,
    render=render_cache_study,
    rows=stored_points(CACHE),
    page="leadline.studies.cache.charts",
    ending="-cache.html",
    headline=lambda study: first(study.cache.sentences),
)
