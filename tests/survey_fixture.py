"""Made-up surveys with known shapes, so that what renders them can be tested without measuring.

`Machine` is a little closed form: the time of a request is a fixed cost plus bytes over a rate,
mixed over levels by the share of the touched bytes that each level holds, and divided among
processes up to a limit. Readings scatter log-normally with a fixed seed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np

from leadline.record import (
    Boundary,
    Curve,
    CurvePoint,
    EngineResult,
    Family,
    Interval,
    IntervalRecord,
    LatencyUs,
    Measurement,
    MovedBytes,
    OperationSummary,
    Plan,
    PlanStage,
    Realised,
    Region,
    Sentinel,
    SlopePoint,
    Status,
    Survey,
    SurveyStart,
    WarmUp,
    Workload,
)
from leadline.record.finding import Finding

MIB = 2**20
HOSTILE = "</script><img src=x onerror=\"document.title='owned'\">&{{7*7}}'\""
T_975 = {2: 12.706, 3: 4.303, 4: 3.182, 5: 2.776, 6: 2.571}


def said(text: str) -> Finding:
    """A finding that says so."""
    return Finding.of("points_found", found=3, points=240, example=text)


@dataclass(frozen=True)
class Level:
    """One level of the hierarchy; read and write rates in MB/s, fixed cost in microseconds."""

    name: str
    holds_bytes: float
    read_mb_s: float
    write_mb_s: float
    cost_us: float
    random_cost_us: float = 0.0
    processes: float = 1.0
    """How many processes it serves at once."""


@dataclass
class Machine:
    """Levels from the fastest to the slowest; the last one holds everything."""

    levels: tuple[Level, ...]
    noise: float = 0.015
    drift: float = 0.0
    rng: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1994))

    def truth_mb_s(self, work: Workload, clock_frac: float = 0.0) -> float:
        """Expected throughput."""
        seconds, covered = 0.0, 0.0
        for level in self.levels:
            share = min(1.0, level.holds_bytes / work.unique_bytes) - covered
            if share <= 0:
                continue
            covered += share
            rate = work.read_frac / level.read_mb_s + (1 - work.read_frac) / level.write_mb_s
            cost_us = level.cost_us + (1 - work.seq_frac) * level.random_cost_us
            speedup = min(work.process_num, level.processes)
            seconds += share * (cost_us * 1e-6 + work.size_mean / 1e6 * rate) / speedup
        return work.size_mean / 1e6 / seconds * (1 + self.drift * clock_frac)

    def readings(self, work: Workload, count: int) -> tuple[float, ...]:
        """Scattered readings."""
        scatter = np.exp(self.noise * self.rng.standard_normal(count))
        return tuple(float(value) for value in self.truth_mb_s(work) * scatter)


def interval(readings: tuple[float, ...]) -> Interval:
    """Student's t interval; none for a single reading."""
    mean = float(np.mean(readings))
    if len(readings) < 2:
        return Interval(mean, None, None, len(readings))
    half = T_975[len(readings)] * float(np.std(readings, ddof=1)) / len(readings) ** 0.5
    return Interval(mean, mean - half, mean + half, len(readings))


def _curve(
    machine: Machine, focal: Workload, parameter: str, xs: list[float], region: int | None
) -> Curve:
    points = []
    for number, x in enumerate(xs):
        readings = machine.readings(focal.with_value(parameter, x), 4)
        ids = tuple(f"{parameter}-{region}-{number}-{take}" for take in range(len(readings)))
        points.append(CurvePoint(x, interval(readings), readings, ids))
    best = max(point.throughput_mb_s.value for point in points)
    good = [point.x for point in points if point.throughput_mb_s.value >= 0.75 * best]
    return Curve(
        parameter=parameter,
        region=region,
        points=tuple(points),
        focal=focal,
        good_low=min(good),
        good_high=max(good),
    )


def _slope(curve: Curve) -> tuple[SlopePoint, ...]:
    pairs = pairwise(curve.points)
    return tuple(
        SlopePoint(
            (a.x * b.x) ** 0.5,
            (b.throughput_mb_s.value - a.throughput_mb_s.value) / ((b.x - a.x) / 1e6),
        )
        for a, b in pairs
    )


_SIZES = [float(1024 * 4**step) for step in range(6)]
_PROCESSES = [1.0, 2.0, 4.0, 8.0, 16.0]
_FRACTIONS = [0.0, 0.25, 0.5, 0.75, 1.0]


def build(
    machine: Machine,
    edges: list[int],
    *,
    top_bytes: int,
    system: str = "atlas",
    status: Status = Status.DONE,
    facts: dict[str, object] | None = None,
    drift: Interval | None = None,
    cache_limit_bytes: int | None = None,
    findings: tuple[Finding, ...] = (),
) -> Survey:
    """Survey `machine` with boundaries at `edges`."""
    low = 4 * MIB if not edges else max(64 * 1024, edges[0] // 32)
    bounds = [low, *edges, top_bytes]
    xs = sorted({*np.geomspace(low, top_bytes, 17).round().tolist(), *(1.02 * at for at in edges)})
    middles = [round((a * b) ** 0.5) for a, b in pairwise(bounds)]
    focals = [Workload(unique_bytes=middle, size_mean=32768, process_num=2) for middle in middles]
    whole = _curve(machine, focals[0], "unique_bytes", xs, None)
    names = [level.name for level in machine.levels][-len(focals) :]
    regions, families, noise, sentinels = [], [], {}, []
    for index, focal in enumerate(focals):
        readings = machine.readings(focal, 6)
        regions.append(
            Region(
                index=index,
                name=names[index],
                low_bytes=bounds[index],
                high_bytes=bounds[index + 1],
                focal=focal,
                throughput_mb_s=interval(readings),
                cached_share=1.0 if index < len(focals) - 1 else 0.08,
            )
        )
        families.append(
            Family(
                index,
                (
                    _curve(machine, focal, "size_mean", _SIZES, index),
                    _curve(machine, focal, "read_frac", _FRACTIONS, index),
                    _curve(machine, focal, "process_num", _PROCESSES, index),
                    _curve(machine, focal, "seq_frac", _FRACTIONS, index),
                ),
            )
        )
        noise[names[index]] = machine.noise * (1 + index)
        for take in range(6):
            truth = machine.truth_mb_s(focal, take / 5)
            wobble = float(np.exp(machine.noise * machine.rng.standard_normal()))
            sentinels.append(Sentinel(20.0 + 95 * take + 7 * index, truth * wobble, index))
    boundaries = tuple(
        Boundary(
            bytes=Interval(edge * 1.01, edge * 0.97, edge * 1.04, 200),
            shape="uniform",
            time_ratio=8.0,
            evidence_bic=85.0,
        )
        for edge in edges
    )
    stages = (
        PlanStage("lay out", 0, "write the data that will be read"),
        PlanStage("unique_bytes", len(xs) * 4, "find where the levels end"),
        PlanStage("focal points", 6 * len(focals), "settle the focal vectors"),
        PlanStage("families", 21 * 4 * len(focals), "vary one parameter at a time"),
        PlanStage("sentinels", len(sentinels), "see whether the system moves"),
    )
    start = SurveyStart(
        study_id="7f3a9c2e51d04b6f",
        system=system,
        target="/srv/data",
        seed=1994,
        started_at="2026-11-21T06:50:12Z",
        focal_mode="middle",
        backend="pread",
        direct=False,
        cache_limit_bytes=cache_limit_bytes,
        accuracy=0.02,
        plan=Plan(
            stages=stages,
            budget_s=600.0,
            expected_s=571.0,
            point_s=7.5,
            layout_bytes=top_bytes,
            unique_bytes_min=low,
            unique_bytes_max=top_bytes,
            size_mean_min=1024,
            size_mean_max=MIB,
            process_num_max=16,
        ),
        facts=facts if facts is not None else dict(_FACTS),
    )
    return Survey(
        start=start,
        status=status,
        wall_s=578.4,
        points=start.plan.points if status is Status.DONE else 23,
        regions=tuple(regions),
        boundaries=boundaries,
        unique_bytes_curve=whole,
        slope=_slope(whole),
        families=tuple(families),
        cache_bytes=boundaries[-1].bytes if boundaries else None,
        sentinels=tuple(sentinels),
        drift_frac=drift or Interval(-0.004, -0.012, 0.004, 12),
        noise_frac=noise,
        accuracy_frac=0.021,
        settled=True,
        cross_check_bytes=(),
        sentences=(),
        findings=findings,
    )


_FACTS: dict[str, object] = {
    "cpu_model": "AMD EPYC 7B13",
    "cpu_count": 2,
    "memory_bytes": 8 * 2**30,
    "kernel": "6.8.0-45-generic",
    "filesystem": "ext4",
    "device": "/dev/nvme0n1",
    "device_model": "Example NVMe 1 TB",
    "rotational": False,
    "scheduler": "none",
    "mount_options": ["rw", "relatime"],
    "load_average": [0.2, 0.1, 0.1],
}

CACHE = Level("page cache", 480 * MIB, 5200, 3900, 2.0, processes=2)
DISK = Level("disk", 2**50, 240, 130, 60.0, 800.0, processes=4)


def two_region(**changes: object) -> Survey:
    """A page cache of 480 MiB before a disk."""
    limit = {
        "cache_limit_bytes": 512 * MIB,
        "findings": (said("The cache was capped at 512 MiB."),),
    }
    asked: dict[str, Any] = limit | changes
    return build(Machine((CACHE, DISK)), [480 * MIB], top_bytes=3 * 2**30, **asked)


def three_region() -> Survey:
    """The Sprite DECstation: a write cache of 5 MiB, of 20 MiB for reads, a disk (CP94 Fig. 8)."""
    levels = (
        Level("write cache", 5 * MIB, 12, 12, 500.0),
        Level("page cache", 20 * MIB, 12, 1.4, 800.0),
        Level("disk", 2**50, 0.9, 1.3, 20000.0, 12000.0),
    )
    return build(Machine(levels), [5 * MIB, 20 * MIB], top_bytes=80 * MIB, system="sprite")


def one_region() -> Survey:
    """A disk without a cache."""
    return build(Machine((DISK,)), [], top_bytes=2**30, system="bare")


def smooth() -> Survey:
    """A smooth slope: throughput falls all the way and no boundary is shown (the Solbourne)."""
    levels = tuple(
        Level(f"level {step}", 4 * MIB * 2**step, 900 / 1.3**step, 800 / 1.3**step, 5.0)
        for step in range(9)
    )
    last = Level("disk", 2**50, 80, 70, 5.0)
    return build(Machine((*levels, last)), [], top_bytes=2**30, system="solbourne")


def drifting() -> Survey:
    """The disk of `two_region`, slowing down by 9% over the survey."""
    return build(
        Machine((CACHE, DISK), drift=-0.09),
        [480 * MIB],
        top_bytes=3 * 2**30,
        drift=Interval(-0.088, -0.104, -0.071, 12),
        findings=(Finding.of("drift", slower_frac=0.088, low_frac=-0.104, high_frac=-0.071),),
    )


def stopped() -> Survey:
    """Stopped before the second region's families: what was not measured must be said so."""
    whole = two_region()
    return msgspec.structs.replace(
        whole,
        status=Status.STOPPED,
        points=23,
        wall_s=61.0,
        sentinels=(),
        drift_frac=None,
        families=(Family(0, whole.families[0].curves[:2]),),
        accuracy_frac=None,
        settled=False,
    )


def empty() -> Survey:
    """Stopped before the first point."""
    whole = two_region()
    return msgspec.structs.replace(
        whole,
        status=Status.STOPPED,
        points=0,
        wall_s=2.0,
        sentinels=(),
        drift_frac=None,
        families=(),
        regions=(),
        boundaries=(),
        slope=(),
        cache_bytes=None,
        noise_frac={},
        accuracy_frac=None,
        settled=False,
        unique_bytes_curve=msgspec.structs.replace(
            whole.unique_bytes_curve, points=(), good_low=None, good_high=None
        ),
    )


def hostile() -> Survey:
    """Every string that a stranger controls tries to break out of the page."""
    whole = two_region(
        system=HOSTILE, facts={HOSTILE: HOSTILE, "cpu_model": HOSTILE}, findings=(said(HOSTILE),)
    )
    regions = tuple(
        msgspec.structs.replace(region, name=f"{HOSTILE}{region.index}") for region in whole.regions
    )
    return msgspec.structs.replace(
        whole, regions=regions, noise_frac={f"{HOSTILE}0": 0.01}, sentences=(HOSTILE,) * 5
    )


def _latency(mean_us: float) -> LatencyUs:
    return LatencyUs(mean_us, mean_us * 0.9, mean_us * 1.6, mean_us * 4, mean_us * 9, mean_us * 20)


def _result(
    work: Workload, reading: float, point_id: str, rng: np.random.Generator
) -> EngineResult:
    mean_us = work.size_mean / reading * work.process_num
    slices = tuple(
        IntervalRecord(0.5 * at, 0.5, 100, round(reading * 5e5 * float(np.exp(0.03 * draw))))
        for at, draw in enumerate(rng.standard_normal(10))
    )
    half = 0.01 * reading
    iops = reading * 1e6 / work.size_mean
    side = OperationSummary(500, round(2.5e6 * reading), _latency(mean_us))
    moved = MovedBytes(round(2.5e6 * reading), round(2.5e6 * reading))
    bad = point_id.endswith("read_frac-1-2-3")
    return EngineResult(
        version=1,
        job_id=point_id,
        throughput_mb_s=Interval(reading, reading - half, reading + half, 10, 9),
        iops=Interval(iops, iops * 0.99, iops * 1.01, 10, 9),
        latency_us=_latency(mean_us),
        read=side,
        write=side,
        wall_s=5.0,
        total_s=6.4,
        prepare_s=0.0,
        cpu_user=0.1,
        cpu_system=0.4,
        io_share=0.97,
        littles_law_error_frac=0.08 if bad else 0.004,
        workload_bytes=moved,
        device_bytes=MovedBytes(moved.read // 9, moved.write // 2),
        cached_share=0.89,
        cache_resident_bytes=400 * MIB,
        foreign_cpu=0.02,
        realised=Realised(work.size_mean, 0.86, work.read_frac, work.seq_frac),
        warm_up=WarmUp(1.2, not bad),
        intervals=slices,
        admissible=not bad,
        findings=(Finding.of("littles_law", error_frac=0.08),) if bad else (),
    )


def points(survey: Survey) -> tuple[Measurement, ...]:
    """The stored points behind a made-up survey's curves."""
    rng = np.random.default_rng(84)
    curves = [survey.unique_bytes_curve]
    curves += [curve for family in survey.families for curve in family.curves]
    found: list[Measurement] = []
    for curve in curves:
        for point in curve.points:
            work = curve.focal.with_value(curve.parameter, point.x)
            stage = "unique_bytes" if curve.region is None else "families"
            for reading, point_id in zip(point.readings_mb_s, point.point_ids, strict=True):
                found.append(
                    Measurement(
                        point_id=point_id,
                        order=len(found),
                        stage=stage,
                        started_at=survey.start.started_at,
                        clock_s=2.0 * len(found),
                        seed=len(found),
                        workload=work,
                        backend="pread",
                        result=_result(work, reading, point_id, rng),
                    )
                )
    return tuple(found)
