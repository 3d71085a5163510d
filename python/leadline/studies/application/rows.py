"""An application as rows: one for each stream of each phase."""

from __future__ import annotations

from typing import Any

from leadline.record.application import Application


def stream_rows(study: Application) -> list[dict[str, Any]]:
    """Return flat rows with units in their names."""
    return [
        {
            "study": study.start.study_id,
            "system": study.start.system,
            "phase": phase.order,
            "from_s": phase.from_s,
            "to_s": phase.to_s,
            "phase_requests": phase.requests,
            "phase_syncs": phase.syncs,
            "stream": place,
            "kind": stream.kind,
            "weight": stream.weight,
            "bytes_weight": stream.bytes_weight,
            "unique_bytes": stream.unique_bytes,
            "size_mean_bytes": stream.size_mean,
            "read_frac": stream.read_frac,
            "seq_frac": stream.seq_frac,
            "uses_apart": stream.uses_apart,
            "seen_again": stream.seen_again,
        }
        for phase in study.phases
        for place, stream in enumerate(phase.streams)
    ]
