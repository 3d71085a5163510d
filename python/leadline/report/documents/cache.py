"""A study of a file cache as JSON."""

from __future__ import annotations

from typing import Any

from leadline.record import CacheStart, CacheStudy


def study_document(study: CacheStudy) -> dict[str, Any]:
    """The keys that `cache --json` promises (docs/concepts/file-cache.md)."""
    start, found = study.start, study.cache
    return {
        "system": start.system,
        "study": start.study_id,
        "target": start.target,
        "status": study.status,
        "wall_s": study.wall_s,
        "points": study.points,
        "planned_points": start.plan.points,
        "seed": start.seed,
        **start.access.stored_in(CacheStart),
        "memory_bytes": start.memory_bytes,
        "read_cache": found.reads,
        "write_cache": found.writes,
        "policy": found.policy,
        "evidence": found.evidence,
        "rates": {
            "size_mean": found.size_mean,
            "inside_bytes": found.inside_bytes,
            "outside_bytes": found.outside_bytes,
            "read_mb_s": found.read_mb_s,
            "write_mb_s": found.write_mb_s,
            "disk_read_mb_s": found.disk_read_mb_s,
            "disk_write_mb_s": found.disk_write_mb_s,
        },
        "curves": [
            {
                "read_frac": curve.focal.read_frac,
                "points": [
                    {"unique_bytes": point.x, "throughput_mb_s": point.throughput_mb_s}
                    for point in curve.points
                ],
            }
            for curve in study.curves
        ],
        "disciplines": study.disciplines,
        "flusher": study.flusher,
        "left_out": study.left_out,
        "noise_frac": study.noise_frac,
        "facts": start.facts,
        "plan": start.plan,
        "sentences": found.sentences,
        "findings": [each.document() for each in study.findings],
    }
