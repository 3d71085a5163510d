"""A job document from its parts, and a result from its event (protocol/)."""

from __future__ import annotations

from typing import Any

import msgspec

from leadline.errors import EngineFault, TargetRefused
from leadline.record import NO_SYNC, Arrivals, EngineResult, Workload, sync_document
from leadline.units import format_bytes

WIRE_VERSION = 1
CLOSED = Arrivals()
DEEP_BACKENDS = ("uring", "nfs", "null", "simulated")
"""Backends whose issuers can have more than one request outstanding."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When a job ends (ARCHITECTURE.md, the wire)."""

    warm_up_s_max: float = 10.0
    measure_s_min: float = 1.0
    measure_s_max: float = 5.0
    accuracy: float = 0.05
    """Measuring ends when the 95 % interval's half-width is below this share of the mean."""
    total_s_max: float = 60.0
    """Bound of the whole job, prepare included."""


class JobOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What a job may say beside workload and limits; each is sent only when it says something."""

    arrivals: Arrivals = CLOSED
    placement: str = "auto"
    precondition_bytes_max: int | None = None
    ceiling_iops: float | None = None

    def fields(self) -> dict[str, Any]:
        """Return the job's fields for what differs from the wire's defaults."""
        found: dict[str, Any] = {}
        if self.arrivals.kind != "closed":
            found["arrivals"] = msgspec.to_builtins(self.arrivals)
        if self.placement != "auto":
            found["placement"] = self.placement
        if self.precondition_bytes_max is not None:
            found["precondition"] = {"bytes_max": self.precondition_bytes_max}
        if self.ceiling_iops is not None:
            found["ceiling_iops"] = self.ceiling_iops
        return found


def backend_document(name: str, *, direct: bool = False, sync: str = NO_SYNC) -> dict[str, Any]:
    """Return the job's `backend`; `sync` is sent only when some write waits."""
    waits = {} if sync == NO_SYNC else {"sync": sync_document(sync)}
    return {"name": name, "direct": direct, **waits}


def job_document(
    job_id: str,
    *,
    target: dict[str, Any],
    backend: dict[str, Any],
    workload: Workload,
    seed: int,
    limits: Limits,
    options: JobOptions,
) -> dict[str, Any]:
    """Return the job as the wire has it."""
    return {
        "version": WIRE_VERSION,
        "job_id": job_id,
        "target": target,
        "workload": msgspec.to_builtins(workload),
        "backend": backend,
        "seed": seed,
        "limits": msgspec.to_builtins(limits),
        **options.fields(),
    }


def require_fit(workload: Workload, *, capacity_bytes: int, backend: str) -> None:
    """Refuse a workload that the opened target cannot take, before anything is done for it.

    Raises:
        TargetRefused: what is too much, and what to type instead.

    """
    if workload.unique_bytes > capacity_bytes:
        raise TargetRefused(
            f"unique_bytes={format_bytes(workload.unique_bytes)} is more than the "
            f"{format_bytes(capacity_bytes)} that may be used here (free space less its floor, and "
            "--max-bytes); ask for less"
        )
    if workload.queue_depth > 1 and backend not in DEEP_BACKENDS:
        raise TargetRefused(
            f"queue_depth={workload.queue_depth} needs --backend uring: an issuer of {backend} "
            "waits for each request before it makes the next; or keep queue_depth=1 and raise "
            "process_num"
        )


def result_of(event: dict[str, Any]) -> EngineResult:
    """Return the record of a result event.

    Raises:
        EngineFault: it does not fit the record.

    """
    try:
        result = msgspec.convert(event, EngineResult)
    except msgspec.ValidationError as error:
        raise EngineFault(f"the engine's result does not fit the record: {error}") from error
    if result.version != WIRE_VERSION:
        raise EngineFault(f"the engine speaks version {result.version} of the wire, not 1")
    return result
