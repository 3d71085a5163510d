"""A stream study as JSON, and as rows for other tools."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.streaming import PhaseResult, StreamResult, StreamRun, StreamStudy
from leadline.streaming.run import bound_of


def stream_document(study: StreamStudy) -> dict[str, Any]:
    """The keys DESIGN.md promises for `stream --json`, and more beside them.

    They are of the last run; a scaling study's others are in `runs`.
    """
    start = study.start
    last = _run(study.runs[-1]) if study.runs else {"phases": []}
    limit = bound_of(study)
    return {
        "system": start.system,
        "study": start.study_id,
        "status": study.status,
        "purpose": start.purpose,
        "directories": start.directories,
        "seed": start.seed,
        **last,
        "bound_mb_s": limit and limit.mb_s.value,
        "bound": limit,
        "capacities": study.capacities,
        "runs": [_run(run) for run in study.runs],
        "wall_s": study.wall_s,
        "facts": start.facts,
        "sentences": study.sentences,
        "warnings": study.warnings,
    }


def _run(run: StreamRun) -> dict[str, Any]:
    options = msgspec.structs.asdict(run.options)
    return {
        **options,
        "platform": run.options.platform,
        "disks": run.disks,
        "repetition": run.repetition,
        "started_at": run.started_at,
        **result_document(run.result),
    }


def result_document(result: StreamResult) -> dict[str, Any]:
    """What a run of any kernel says."""
    return {
        "kernel": result.kernel,
        "passes": result.passes,
        "bytes": result.bytes_in or result.bytes_out,
        "bytes_in": result.bytes_in,
        "bytes_out": result.bytes_out,
        "seconds": result.seconds,
        "verified": result.verified,
        "verify_s": result.verify_s,
        "memory_peak_bytes": result.memory_peak_bytes,
        "memory_bus_counter": result.memory_bus_counter,
        "not_measurable": result.not_measurable,
        "check": result.check,
        "phases": [_phase(phase) for phase in result.phases],
    }


def _phase(phase: PhaseResult) -> dict[str, Any]:
    blocks = (phase.block_read_bytes, phase.block_written_bytes)
    busy_s = phase.seconds or None
    return msgspec.structs.asdict(phase) | {
        "mb_s": phase.mb_s,
        "cpu_user": busy_s and phase.cpu_user_s / busy_s,
        "cpu_system": busy_s and phase.cpu_system_s / busy_s,
        "io_bytes": None if None in blocks else sum(count or 0 for count in blocks),
    }


def stream_rows(study: StreamStudy) -> list[dict[str, Any]]:
    """One flat row for every phase of every run, all with the same keys."""
    return [
        {
            "study_id": study.start.study_id,
            "system": study.start.system,
            "started_at": run.started_at,
            "repetition": run.repetition,
            "platform": run.options.platform,
            "disks": run.disks,
            **msgspec.structs.asdict(run.options),
            "passes": run.result.passes,
            "bytes_in": run.result.bytes_in,
            "bytes_out": run.result.bytes_out,
            "run_seconds": run.result.seconds,
            "verified": run.result.verified,
            "memory_peak_bytes": run.result.memory_peak_bytes,
            **_phase(phase),
        }
        for run in study.runs
        for phase in run.result.phases
    ]
