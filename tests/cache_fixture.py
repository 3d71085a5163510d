"""Points of a made-up page cache: what it holds stays off the device, whatever it is asked."""

from __future__ import annotations

import msgspec

from leadline.record import Interval, Measurement, MovedBytes, Workload
from proving.samples import sample_point, sample_result

MIB = 2**20
ASKED_BYTES = 4096 * MIB


def cache_point(
    unique_bytes: int,
    read_frac: float,
    *,
    order: int = 0,
    mb_s: float = 1000.0,
    missed: float | None = 0.0,
    asked_bytes: int = ASKED_BYTES,
    admissible: bool = True,
) -> Measurement:
    """Return a point of reads alone or writes alone.

    Args:
        unique_bytes: working set.
        read_frac: 1 or 0.
        order: place in the study, which also names the point.
        mb_s: its throughput.
        missed: share of its bytes that reached the device; None where that is not seen.
        asked_bytes: bytes asked for in the window.
        valid: whether it may be used.

    """
    reads = read_frac == 1.0
    asked = MovedBytes(asked_bytes, 0) if reads else MovedBytes(0, asked_bytes)
    moved = round((missed or 0.0) * asked_bytes)
    result = msgspec.structs.replace(
        sample_result(mb_s=mb_s),
        throughput_mb_s=Interval(mb_s, mb_s * 0.98, mb_s * 1.02, 20, 9),
        workload_bytes=asked,
        device_bytes=None
        if missed is None
        else MovedBytes(moved, 0)
        if reads
        else MovedBytes(0, moved),
        cached_share=None if missed is None or not reads else 1.0 - missed,
        admissible=admissible,
    )
    return msgspec.structs.replace(
        sample_point(f"point-{order}", order=order),
        workload=Workload(
            unique_bytes=unique_bytes,
            size_mean=32768,
            read_frac=read_frac,
            seq_frac=0.0,
            size_dist="fixed",
        ),
        result=result,
    )
