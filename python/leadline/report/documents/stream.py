"""A stream study as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.streaming import StreamResult, StreamRun, StreamStudy
from leadline.studies.streaming.phase_rows import phase_document
from leadline.studies.streaming.run import bound_of, throughput_of


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
        "throughput_mb_s": throughput_of(study) if study.runs else None,
        "bound_mb_s": limit and limit.mb_s.value,
        "bound": limit,
        "capacities": study.capacities,
        "runs": [_run(run) for run in study.runs],
        "wall_s": study.wall_s,
        "facts": start.facts,
        "sentences": study.sentences,
        "findings": [each.document() for each in study.findings],
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
        "phases": [phase_document(phase) for phase in result.phases],
    }
