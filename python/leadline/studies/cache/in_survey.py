"""What a survey, made for another purpose, says of the file cache.

Its curve over unique_bytes mixes reads and writes, so that one border cannot tell them apart; only
a level whose reads stay in memory while its writes go to the device shows two sizes (Sprite, CP94
section 8.1.2).
The write policy is judged from the curves over read_frac, as CP93 does in Fig. 5.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import (
    CacheSize,
    Curve,
    FileCache,
    Interval,
    Measurement,
    Region,
    Survey,
    WritePolicy,
)
from leadline.studies.cache.policy import Rates, judge, promised, tally
from leadline.studies.cache.sizes import share_of_memory
from leadline.studies.cache.words import sentences
from leadline.studies.counted import EDGE, always_held
from leadline.studies.memory import memory_bytes_of
from leadline.units import format_bytes

HELD_MIN = 0.9
"""A level holds what comes from it, or ends in it, to more than this share."""


def find_in_survey(survey: Survey, points: Sequence[Measurement]) -> FileCache:
    """Find the file cache in a survey, finished or not; pure.

    Args:
        survey: the explained survey.
        points: its points.

    """
    start = survey.start
    memory_bytes = memory_bytes_of(start.cache_limit_bytes, start.facts, start.system_profile)
    first, last = (survey.regions[0], survey.regions[-1]) if survey.regions else (None, None)
    beyond = first is not last
    rates = Rates(
        read=_mix(survey, first, 1.0),
        write=_mix(survey, first, 0.0),
        disk_read=_mix(survey, last, 1.0) if beyond else None,
        disk_write=_mix(survey, last, 0.0) if beyond else None,
    )
    end = survey.borders[0].bytes.value / EDGE if survey.borders else 0.0
    policy, evidence = judge(
        rates,
        tally([p for p in points if p.workload.unique_bytes <= end]),
        beyond=beyond,
        word=promised(points),
    )
    reads, writes = _sizes(survey, points, policy, memory_bytes)
    found = FileCache(
        reads=reads,
        writes=writes,
        policy=policy,
        evidence=evidence,
        size_mean=first.focal.size_mean if first else None,
        inside_bytes=first.focal.unique_bytes if first else None,
        outside_bytes=last.focal.unique_bytes if last and beyond else None,
        read_mb_s=rates.read,
        write_mb_s=rates.write,
        disk_read_mb_s=rates.disk_read,
        disk_write_mb_s=rates.disk_write,
        memory_bytes=memory_bytes,
    )
    return sentences(found)


def _mix(survey: Survey, region: Region | None, read_frac: float) -> Interval | None:
    """Throughput of one end of the curve over read_frac at a region's focal point."""
    if region is None:
        return None
    family = next((item for item in survey.families if item.region == region.index), None)
    curve: Curve | None = family.curve("read_frac") if family else None
    found = [point for point in curve.points if point.x == read_frac] if curve else []
    return found[0].throughput_mb_s if found else None


def _sizes(
    survey: Survey, points: Sequence[Measurement], policy: WritePolicy, memory_bytes: int | None
) -> tuple[CacheSize, CacheSize]:
    def size(index: int, *, apart: bool) -> CacheSize:
        border = survey.borders[index]
        share = share_of_memory(border.bytes, memory_bytes)
        return CacheSize(bytes=border.bytes, memory_frac=share, shape=border.shape, apart=apart)

    reason = _no_size(survey, points, memory_bytes)
    if reason:
        none = CacheSize(bytes=None, memory_frac=None, reason=reason)
        return none, none
    reads = _last_holding_reads(survey)
    if policy is WritePolicy.THROUGH:
        reason = "no write ends in it: every write goes through"
        through = CacheSize(bytes=None, memory_frac=None, reason=reason)
        return size(reads, apart=True), through
    writes = _last_holding_writes(survey, points)
    if writes is not None and writes != reads:
        return size(reads, apart=True), size(writes, apart=True)
    if policy is WritePolicy.CANCELLING:
        return size(reads, apart=False), size(reads, apart=False)
    reason = "reads and writes were only seen mixed"
    return size(reads, apart=False), CacheSize(bytes=None, memory_frac=None, reason=reason)


def _no_size(survey: Survey, points: Sequence[Measurement], memory_bytes: int | None) -> str:
    """Say why no border of this survey is the file cache's end; empty where one is."""
    if not survey.borders:
        return "this survey found no border"
    if any(border.basis == "counted" for border in survey.borders):
        return ""
    along = [p for p in points if p.workload.read_frac > 0.0 and p.result.admissible]
    if survey.start.access.buffered and always_held(along):
        most = format_bytes(max(point.workload.unique_bytes for point in along))
        return f"no read left it up to {most}"
    border = survey.borders[_last_holding_reads(survey)].bytes.value
    if memory_bytes is not None and border > memory_bytes:
        return (
            f"the border found at {format_bytes(border)} lies beyond the memory of "
            f"{format_bytes(memory_bytes)}, so that it is not the file cache's"
        )
    return ""


def _last_holding_reads(survey: Survey) -> int:
    """Index of the last region, but for the slowest, whose reads come from the file cache."""
    counted = [i for i, border in enumerate(survey.borders) if border.basis == "counted"]
    if counted:
        return counted[0]
    held = [r.index for r in survey.regions if (r.cached_share or 0.0) > HELD_MIN]
    return min(max(held, default=0), len(survey.borders) - 1)


def _last_holding_writes(survey: Survey, points: Sequence[Measurement]) -> int | None:
    """Index of the last region, from the first on, whose writes mostly stay off the device.

    None where the device cannot be seen, or where not even the first region holds them.
    """
    last = None
    for region in survey.regions[: len(survey.borders)]:
        inside = [
            point
            for point in points
            if region.low_bytes * EDGE <= point.workload.unique_bytes <= region.high_bytes / EDGE
        ]
        moved = tally(inside)
        if moved is None or moved.device_bytes > (1 - HELD_MIN) * moved.asked_bytes:
            break
        last = region.index
    return last
