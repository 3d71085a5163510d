"""Answers a surveyor's questions from a formula, without an engine."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import UTC, datetime

import msgspec

from leadline.record import (
    EngineResult,
    Interval,
    LatencyUs,
    Measurement,
    MovedBytes,
    OperationSummary,
    Plan,
    Realised,
    SurveyStart,
    WarmUp,
    Workload,
)
from leadline.record.finding import Finding
from leadline.studies.script import PointRequest
from leadline.studies.survey.plan import make_plan
from leadline.studies.survey.strategy import Surveyor

MIB = 2**20
Formula = Callable[[Workload], float]


def two_levels(workload: Workload, cache_bytes: float = 480 * MIB) -> float:
    """Throughput in MB/s of a page cache over a disk; hits follow uniform random access."""
    hit = min(1.0, cache_bytes / workload.unique_bytes)
    fast_us = 2 + workload.size_mean / 8000
    disk_us = 100 * (1 - 0.5 * workload.seq_frac) + workload.size_mean / 2000
    mean_us = hit * fast_us + (1 - hit) * disk_us / min(4, workload.process_num)
    return workload.size_mean / mean_us


def plan(
    points_budget_s: float = 400.0,
    focal_mode: str = "middle",
    process_num_max: int = 16,
    learn_frac: float = 0.0,
) -> Plan:
    return make_plan(
        budget_s=points_budget_s,
        capacity_bytes=4 * 2**30,
        max_bytes=3 * 2**30,
        memory_bytes=512 * MIB,
        l3_cache_bytes=32 * MIB,
        process_num_max=process_num_max,
        virtual=False,
        focal_mode=focal_mode,
        learn_frac=learn_frac,
    )


def start(
    seed: int = 7,
    focal_mode: str = "middle",
    budget_s: float = 400.0,
    process_num_max: int = 16,
    learn_frac: float = 0.0,
) -> SurveyStart:
    return SurveyStart(
        study_id=f"survey{seed:04d}",
        system="formula",
        target="sim:formula",
        seed=seed,
        started_at=datetime(2026, 1, 1, tzinfo=UTC).isoformat(),
        focal_mode=focal_mode,
        backend="simulated",
        direct=False,
        cache_limit_bytes=None,
        accuracy=0.02,
        plan=plan(budget_s, focal_mode, process_num_max, learn_frac),
        facts={"kernel_release": "0.0"},
    )


def engine_result(mb_s: float, workload: Workload, *, admissible: bool = True) -> EngineResult:
    interval = Interval(mb_s, mb_s * 0.99, mb_s * 1.01, 20, 9)
    latency = LatencyUs(1.0, 1.0, 1.0, 1.0, 1.0, 1.0)
    empty = OperationSummary(0, 0, None)
    return EngineResult(
        version=1,
        job_id="job",
        throughput_mb_s=interval,
        iops=interval,
        latency_us=latency,
        read=empty,
        write=empty,
        wall_s=1.0,
        total_s=2.0,
        prepare_s=0.0,
        cpu_user=0.1,
        cpu_system=0.1,
        io_share=0.9,
        littles_law_error_frac=0.0,
        workload_bytes=MovedBytes(0, 0),
        device_bytes=None,
        cached_share=min(1.0, 480 * MIB / workload.unique_bytes),
        cache_resident_bytes=None,
        foreign_cpu=0.0,
        realised=Realised(workload.size_mean, 0.8, workload.read_frac, workload.seq_frac),
        warm_up=WarmUp(0.5, True),
        intervals=(),
        admissible=admissible,
        findings=() if admissible else (Finding.of("littles_law", error_frac=0.09),),
    )


def answer(
    request: PointRequest, formula: Formula, *, noise: float = 0.02, admissible: bool = True
) -> Measurement:
    factor = math.exp(random.Random(request.seed).gauss(0, noise))
    result = engine_result(
        formula(request.workload) * factor, request.workload, admissible=admissible
    )
    return Measurement(
        point_id=f"point{request.order:03d}",
        order=request.order,
        stage=request.stage,
        started_at="2026-01-01T00:00:00+00:00",
        clock_s=2.0 * request.order,
        seed=request.seed,
        workload=request.workload,
        backend="simulated",
        result=result,
    )


def surveyed(begin: SurveyStart, formula: Formula = two_levels, *, noise: float = 0.02) -> Surveyor:
    """Return a survey that was told all it asked for; to be read, not gone on with."""
    key = (msgspec.json.encode(begin), formula, noise)
    if key not in _SURVEYED:
        _SURVEYED[key] = _surveyed(begin, formula, noise)
    return _SURVEYED[key]


_SURVEYED: dict[tuple[bytes, Formula, float], Surveyor] = {}


def _surveyed(begin: SurveyStart, formula: Formula, noise: float) -> Surveyor:
    surveyor = Surveyor(begin)
    while (request := surveyor.ask()) is not None:
        surveyor.tell(answer(request, formula, noise=noise))
    return surveyor
