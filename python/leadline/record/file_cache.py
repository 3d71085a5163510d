"""The page cache of a system: its size for reads and for writes, and what it does with writes.

CP93 sections 4.1 and 4.2: policies of the page cache, not disks, make the largest differences.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

import msgspec

from leadline.record.finding import Finding
from leadline.record.measurement import Measurement, ReachedStart
from leadline.record.study import Records, Status
from leadline.record.survey import Curve, PlanStage
from leadline.record.workload import Interval
from leadline.record.writes import FlusherCost, WriteDisciplines


class WritePolicy(StrEnum):
    """What becomes of a write that the page cache could hold (CP93 section 4.2)."""

    CANCELLING = "write-back"
    """A later write to the same place takes it back before it reached the disk."""
    THROUGH = "write-through"
    """Every write goes to the disk, with or without a write buffer."""
    UNKNOWN = "inconclusive"


class Evidence(msgspec.Struct, frozen=True, kw_only=True):
    """One observation, and the policy that it speaks for by itself."""

    name: str
    """"bytes at the device", "writes against the disk", "writes against reads" or "the server's
    word"."""
    says: WritePolicy
    value: Interval | None
    """The ratio or share behind it; None where it could not be measured."""
    sentence: str
    """What was seen, or why nothing could be."""


class CacheSize(msgspec.Struct, frozen=True, kw_only=True):
    """Effective size for one kind of request: the working set up to which they stay fast."""

    bytes: Interval | None
    """None where there is no boundary, or none that is the page cache's; `reason` says which."""
    memory_frac: Interval | None
    """Share of the memory that could hold it; None when that is unknown."""
    shape: str | None = None
    """How the hit ratio falls beyond it, as in `Boundary`."""
    apart: bool = True
    """False where reads and writes were only seen mixed."""
    reason: str = ""


class FileCache(msgspec.Struct, frozen=True, kw_only=True):
    """What was found of one system's page cache."""

    reads: CacheSize
    writes: CacheSize
    policy: WritePolicy
    evidence: tuple[Evidence, ...]
    size_mean: int | None
    """Mean request of the four rates below; None where none was measured."""
    inside_bytes: int | None
    """Working set by the rates within the cache."""
    outside_bytes: int | None
    """Working set by the rates beyond it."""
    read_mb_s: Interval | None
    write_mb_s: Interval | None
    disk_read_mb_s: Interval | None
    disk_write_mb_s: Interval | None
    memory_bytes: int | None
    """Memory that could hold page cache: the cgroup's cap, or the machine's."""
    sentences: tuple[str, ...] = ()


class CachePlan(msgspec.Struct, frozen=True, kw_only=True):
    """What a cache study will run, fixed before its first point."""

    stages: tuple[PlanStage, ...]
    budget_s: float
    point_s: float
    """Time of one point, warm-up included, when every point before it took its share."""
    layout_bytes: int
    unique_bytes_min: int
    unique_bytes_max: int
    size_mean: int
    """Of every request: fixed, so that no write has to read what it does not cover."""
    writes_s: float = 0.0
    """Time of the budget kept for the write modes and writeback; 0 leaves them out."""

    @property
    def points(self) -> int:
        """Points in all."""
        return sum(stage.points for stage in self.stages)


class CacheStart(ReachedStart, frozen=True, kw_only=True):
    """Everything that decides a cache study, recorded before its first point."""

    target: str
    seed: int
    accuracy: float
    plan: CachePlan
    facts: dict[str, Any]
    memory_bytes: int | None
    system_profile: dict[str, Any] | None = None
    """The simulated system, when it is one."""
    findings: tuple[Finding, ...] = ()


class CacheStudy(msgspec.Struct, frozen=True, kw_only=True):
    """The answer of `leadline cache`; derived from the start and the stored points."""

    start: CacheStart
    status: Status
    wall_s: float
    points: int
    cache: FileCache
    curves: tuple[Curve, ...]
    """Throughput over unique_bytes of only reads and of only writes, in this order."""
    flusher: FlusherCost | None = None
    disciplines: WriteDisciplines | None = None
    left_out: tuple[str, ...] = ()
    """What of the two was not measured, and why."""
    noise_frac: float
    """Standard deviation of one reading from run to run, as a fraction."""
    findings: tuple[Finding, ...] = ()


CACHE = Records(
    "cache",
    CacheStart,
    Measurement,
    CacheStudy,
    said="study of a page cache",
    made_by="leadline cache TARGET",
)
