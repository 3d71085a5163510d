"""What writes cost: writeback behind the cache, and the write modes a program can choose.

CP93 section 4.2 found writeback that cost a factor 4; the write modes are the choice between speed
and reliability that its write policies make for a program.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from leadline.record.workload import Interval, Workload


class FlusherCost(msgspec.Struct, frozen=True, kw_only=True):
    """The rate of cached writes while writeback works, against the rate while it rests."""

    workload: Workload
    method: Literal["dirty limits", "windows"]
    """By limits under which it rests or works all the time, or by moments at the usual limits."""
    verdict: Literal["slows", "does not slow", "inconclusive"]
    resting_mb_s: Interval | None
    working_mb_s: Interval | None
    cost_frac: Interval | None
    """Share of the rate lost while it works; `n` counts pairs of a resting and a working stretch.
    Below 0 where writes were faster meanwhile."""
    resting_reach: float | None
    """Bytes the device wrote per byte asked while it rested: the evidence that it did."""
    working_reach: float | None
    reason: str = ""
    """Why it cannot be told."""
    sentence: str = ""


class DisciplineRate(msgspec.Struct, frozen=True, kw_only=True):
    """One write mode on the focal write workload."""

    name: str
    """"buffered", "O_DSYNC", "fsync each 8", "direct", as `format_discipline` writes it."""
    sync: str
    direct: bool
    throughput_mb_s: Interval | None
    """None where it could not be measured; `reason` says why."""
    latency_us_p50: float | None
    latency_us_p99: float | None
    """Of one write, pooled over the passes; an fsync's time counts to the write that waited."""
    against_buffered: Interval | None
    """Throughput over that of buffered writes, from pairs of neighbouring runs."""
    device_reach: float | None
    """Bytes the device wrote per byte asked; 1 or more where every write reached it."""
    reasons: tuple[str, ...] = ()
    """Why it was not measured, or is not valid."""


class WriteDisciplines(msgspec.Struct, frozen=True, kw_only=True):
    """Buffered, `O_DSYNC`, `fsync` each n and direct writes of one workload, compared."""

    workload: Workload
    passes: int
    rates: tuple[DisciplineRate, ...]
    sentences: tuple[str, ...] = ()
