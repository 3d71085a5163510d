"""Whether an opened target can take a workload."""

from __future__ import annotations

from leadline.errors import TargetRefused
from leadline.record import Workload
from leadline.units import format_bytes

DEEP_BACKENDS = ("uring", "nfs", "null", "simulated")
"""Backends whose workers can have more than one request outstanding."""


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
            f"queue_depth={workload.queue_depth} needs --backend uring: a worker of {backend} "
            "waits for each request before it makes the next; or keep queue_depth=1 and raise "
            "process_num"
        )
