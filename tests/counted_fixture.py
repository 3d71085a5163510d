"""Points of a made-up curve over unique_bytes, with what was counted of the page cache."""

from __future__ import annotations

import msgspec

from leadline.record import Interval, Measurement, MovedBytes, Provenance, Realised, Workload
from proving.samples import sample_point, sample_result

MIB = 2**20
ASKED_BYTES = 1024 * MIB
LOOKUPS = 4000


def mixed_point(
    unique_bytes: float,
    *,
    mb_s: float = 1000.0,
    found: float | None = None,
    fetched: float | None = None,
    order: int = 0,
    direct: bool = False,
    admissible: bool = True,
) -> Measurement:
    """Return a point of half reads, half of them sequential.

    Args:
        unique_bytes: working set.
        mb_s: its throughput.
        found: share of bytes that looked-up reads at random places found; None without lookups.
        fetched: bytes the device delivered per byte read; None where it is not counted.
        order: place in the survey, which also names the point.
        direct: whether it passed the page cache by.
        valid: whether it may be used.

    """
    cached = None if fetched is None else min(1.0, max(0.0, 1 - fetched))
    result = msgspec.structs.replace(
        sample_result(mb_s=mb_s),
        throughput_mb_s=Interval(mb_s, mb_s * 0.98, mb_s * 1.02, 20),
        workload_bytes=MovedBytes(ASKED_BYTES, ASKED_BYTES),
        device_bytes=None if fetched is None else MovedBytes(round(fetched * ASKED_BYTES), 0),
        cached_share=cached if found is None else found,
        realised=Realised(size_mean=65536.0, size_cv=1.0, read_frac=0.5, seq_frac=0.5),
        provenance=Provenance(
            probed=0 if found is None else 2 * LOOKUPS,
            probed_random=0 if found is None else LOOKUPS,
            found_random_share=found,
        ),
        admissible=admissible,
    )
    workload = Workload(unique_bytes=round(unique_bytes / 4096) * 4096, size_mean=65536)
    return msgspec.structs.replace(
        sample_point(f"point-{order}", order), workload=workload, direct=direct, result=result
    )
