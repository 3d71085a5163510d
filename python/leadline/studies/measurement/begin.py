"""The record that decides measurements, made before the first."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime

import msgspec

from leadline.engine import Target, fitting
from leadline.record.measurement import MeasurementAsked, MeasurementStart, WorkloadAsked
from leadline.studies.measurement.plan import MeasurementRefused, naming


def begin_measurements(target: Target, asked: MeasurementAsked) -> MeasurementStart:
    """Return what decides measurements of a target; nothing is opened for it.

    Raises:
        MeasurementRefused: there is nothing to measure, or nothing to precondition.
        TargetRefused: the target cannot be reached as a workload asks for it.

    """
    if not asked.workloads:
        raise MeasurementRefused("no workload was given: there is nothing to measure")
    if asked.precondition_bytes_max is not None and not target.has_files:
        raise MeasurementRefused(
            f"--precondition writes to a real device of this machine, and {target.text} has none: "
            "leave it out"
        )
    workloads = tuple(_fitting(target, each, asked.engine) for each in asked.workloads)
    return MeasurementStart(
        study_id=uuid.uuid4().hex,
        system=target.name,
        started_at=datetime.now(UTC).isoformat(),
        target=target.text,
        system_profile=target.profile,
        asked=msgspec.structs.replace(asked, workloads=workloads),
        **workloads[0].access.stored_in(MeasurementStart),
    )


def _fitting(target: Target, workload: WorkloadAsked, engine: str) -> WorkloadAsked:
    with naming(workload.name):
        access = fitting(target, workload.access, engine)
    return msgspec.structs.replace(workload, access=access)
