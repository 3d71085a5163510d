"""A measured point as JSON."""

from __future__ import annotations

from typing import Any

from leadline.record import Measurement
from leadline.record.measurement import MEASUREMENT, Measured
from leadline.record.survey import SURVEY
from leadline.record.validation import VALIDATION


def measurement_document(
    point: Measurement, kind: str = MEASUREMENT.kind, study_id: str | None = None
) -> dict[str, Any]:
    """The keys DESIGN.md promises for `measure --json`, and the whole result beside them."""
    result = point.result
    return {
        "point": point.point_id,
        "survey": study_id if kind == SURVEY.kind else None,
        "validation": study_id if kind == VALIDATION.kind else None,
        "workload": point.workload,
        "arrivals": point.arrivals,
        **point.access.stored_in(Measurement),
        "throughput_mb_s": result.throughput_mb_s,
        "iops": result.iops,
        "latency_us": result.latency_us,
        "spans_us": result.spans_us,
        "offered": result.offered,
        "cpu_user": result.cpu_user,
        "cpu_system": result.cpu_system,
        "cached_share": result.cached_share,
        "provenance": result.provenance,
        "levels": result.levels,
        "stalls": result.stalls,
        "generator": result.generator,
        "placement": result.placement,
        "precondition": result.precondition,
        "written_bytes": result.written_bytes,
        "other_load": result.other_load,
        "admissible": result.admissible,
        "findings": [each.document() for each in (*point.findings, *result.findings)],
        "read": result.read,
        "write": result.write,
        "runs": point.runs,
        "facts": point.facts,
        "result": result,
    }


def measured_document(study: Measured) -> Any:
    """Measurements as JSON: one alone, several as a list, those of a fio file as its `jobs`."""
    documents = [
        measurement_document(point, MEASUREMENT.kind, study.start.study_id)
        for point in study.points
    ]
    if any(each.name is not None for each in study.start.workloads):
        named = zip(study.names, documents, strict=True)
        return {"jobs": [{"name": name} | document for name, document in named]}
    return documents[0] if len(documents) == 1 else documents
