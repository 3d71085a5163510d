"""A study of plain files as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.record.files import FilesRow, FilesStudy


def files_document(study: FilesStudy) -> dict[str, Any]:
    """The keys DESIGN.md promises for `files --json`, and more beside them."""
    start = study.start
    return {
        "system": start.system,
        "study": start.study_id,
        "status": study.status,
        "directories": start.directories,
        "storage": start.storage,
        "paper": start.paper,
        "runs": start.runs,
        "seed": start.seed,
        "file_bytes": study.file_bytes,
        "size_steps": study.size_steps,
        "size_reason": study.size_reason,
        "wall_s": study.wall_s,
        "rows": [_row(row) for row in study.rows],
        "facts": start.facts,
        "sentences": study.sentences,
        "findings": [each.document() for each in study.findings],
    }


def _row(row: FilesRow) -> dict[str, Any]:
    whole = msgspec.structs.asdict(row)
    return whole | {
        "cpu_percent": row.cpu_percent and row.cpu_percent.value,
        "cpu_percent_interval": row.cpu_percent,
        "raw_percent": row.raw_percent and row.raw_percent.value,
        "raw_percent_interval": row.raw_percent,
    }
