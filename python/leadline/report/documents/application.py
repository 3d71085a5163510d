"""An application as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.application import Application, Capture


def application_document(study: Application) -> dict[str, Any]:
    """The keys that `characterize --json` promises (docs/concepts/characterize.md)."""
    start, found = study.start, study.found
    return {
        "application": start.study_id,
        "system": start.system,
        "trace": start.trace,
        "status": study.status,
        "wall_s": found.wall_s,
        "workload": found.workload,
        "seconds": found.seconds,
        "in_io": found.in_io,
        "in_calls_s": dict(found.in_calls_s),
        "read_bytes": found.read_bytes,
        "written_bytes": found.written_bytes,
        "miss_ratios": found.reuse.points,
        "reuse": found.reuse,
        "phases": study.phases,
        "facts": start.facts,
        "capture": _capture(start.capture),
        "predictable": study.predictable,
        "sentences": found.sentences,
        "findings": [each.document() for each in found.findings],
    }


def _capture(capture: Capture | None) -> dict[str, Any] | None:
    """What was seen of a running program, with what it comes to; None of a trace."""
    if capture is None:
        return None
    return msgspec.structs.asdict(capture) | {
        "bytes_off": capture.bytes_off,
        "lost_share": capture.lost_share,
    }
