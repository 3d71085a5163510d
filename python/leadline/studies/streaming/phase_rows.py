"""The phases of a stream study as flat rows, for JSON, data frames and other tools."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.streaming import PhaseResult, StreamStudy


def phase_document(phase: PhaseResult) -> dict[str, Any]:
    """A phase's counters, and what follows from them.

    `cpu_user` and `cpu_system` are processors kept busy, `io_bytes` what the block layer moved.
    """
    blocks = (phase.block_read_bytes, phase.block_written_bytes)
    busy_s = phase.seconds or None
    return msgspec.structs.asdict(phase) | {
        "mb_s": phase.mb_s,
        "cpu_user": busy_s and phase.cpu_user_s / busy_s,
        "cpu_system": busy_s and phase.cpu_system_s / busy_s,
        "io_bytes": None if None in blocks else sum(count or 0 for count in blocks),
    }


def phase_rows(study: StreamStudy) -> list[dict[str, Any]]:
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
            **phase_document(phase),
        }
        for run in study.runs
        for phase in run.result.phases
    ]
