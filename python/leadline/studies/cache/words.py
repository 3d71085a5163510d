"""What was found of a file cache, in plain sentences."""

from __future__ import annotations

import msgspec

from leadline.record import CacheSize, FileCache, WritePolicy
from leadline.record.findings import compare
from leadline.record.wording import say_bytes, say_rate, say_share, say_times
from leadline.units import format_bytes

_MEANING = {
    WritePolicy.CANCELLING: "a write that is written over in time never reaches the disk",
    WritePolicy.THROUGH: "every write goes to the disk",
}


ONE_SIZE = 1.25
"""Sizes within this factor are one cache's, as profiles count borders; a dirty page needs a little
more room than a clean one."""


def sentences(found: FileCache) -> FileCache:
    """Return the findings with their sentences; pure, so the same findings always read the same."""
    told = (_sizes(found), _policy(found), _rates(found))
    return msgspec.structs.replace(found, sentences=tuple(filter(None, told)))


def _sizes(found: FileCache) -> str:
    reads, writes = found.reads, found.writes
    if reads.bytes is None and writes.bytes is None:
        return (
            f"File cache: no size to tell: for reads, {reads.reason}; for writes, {writes.reason}."
        )
    if not reads.apart and reads.bytes is not None:
        return (
            f"File cache: it holds {_size(reads)} of reads and writes mixed; `leadline cache` "
            "measures each apart."
        )
    if reads.bytes is not None and writes.bytes is not None:
        return f"File cache: it holds {_size(reads)} for reads and {_size(writes)} for writes." + (
            _two_sizes(found)
        )
    if reads.bytes is not None:
        return f"File cache: it holds {_size(reads)} for reads; for writes, {writes.reason}."
    return f"File cache: it holds {_size(writes)} for writes; for reads, {reads.reason}."


def _size(size: CacheSize) -> str:
    assert size.bytes is not None  # noqa: S101 - callers looked
    text = say_bytes(size.bytes, level=True)
    return f"{text}, {say_share(size.memory_frac)} of memory," if size.memory_frac else text


def _two_sizes(found: FileCache) -> str:
    """Say that the sizes differ only where their intervals show it."""
    reads, writes = found.reads.bytes, found.writes.bytes
    if reads is None or writes is None:
        return ""
    ratio = compare(reads, writes)
    if not ratio.shown:
        return " No difference between the two is shown."
    if max(ratio.ratio, 1 / ratio.ratio) < ONE_SIZE:
        return " The two are alike."
    if ratio.faster:
        return f" The two sizes differ: reads are held {say_times(ratio)} as far as writes."
    return f" The two sizes differ: writes are held {say_times(ratio.inverse())} as far as reads."


def _policy(found: FileCache) -> str:
    proof = [item.sentence for item in found.evidence if item.says is found.policy]
    if found.policy is WritePolicy.UNKNOWN:
        seen = "; ".join(item.sentence for item in found.evidence)
        return f"Write policy: cannot tell: {seen}."
    return f"Write policy: {found.policy.value}, {_MEANING[found.policy]}: {'; '.join(proof)}."


def _rates(found: FileCache) -> str:
    parts = []
    for place, reads, writes in (
        (found.inside_bytes, found.read_mb_s, found.write_mb_s),
        (found.outside_bytes, found.disk_read_mb_s, found.disk_write_mb_s),
    ):
        if place is None or reads is None or writes is None:
            continue
        parts.append(
            f"with {format_bytes(place)} touched reads run at {say_rate(reads)} and writes at "
            f"{say_rate(writes)}"
        )
    if not parts or found.size_mean is None:
        return ""
    return f"Rates of {format_bytes(found.size_mean)} requests: {'; '.join(parts)}."
