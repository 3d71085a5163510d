"""What the machine can do: readings of the engine's capacity job with their intervals."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.record import Interval
from leadline.record.streaming import Capacities, CapacityResult, DiskCapacity
from leadline.stats import Noise, pooled_noise, reading_interval
from leadline.stats.arithmetic import exactly

_MB = 1e6


def capacities_of(
    readings: CapacityResult, directories: Sequence[str], network_bytes_s: Sequence[float] = ()
) -> Capacities:
    """Return capacities in MB/s; noise is pooled over all disks, and over both uses of memory.

    Args:
        readings: of the capacity job.
        directories: of its disks, in its order.
        network_bytes_s: of one rank, in and out together, one for each reading.

    """
    disks = _noise(
        *readings.disk_read_bytes_s,
        *readings.disk_write_bytes_s,
        readings.all_read_bytes_s,
        readings.all_write_bytes_s,
        readings.all_both_bytes_s,
    )
    memory = _noise(readings.memory_copy_bytes_s, readings.memory_read_bytes_s)
    return Capacities(
        processors=readings.processors,
        memory_copy_mb_s=_mb_s(readings.memory_copy_bytes_s, memory),
        memory_read_mb_s=_mb_s(readings.memory_read_bytes_s, memory),
        disks=tuple(
            DiskCapacity(
                directory=directory,
                devices=devices,
                read_mb_s=_mb_s(read, disks),
                write_mb_s=_mb_s(write, disks),
            )
            for directory, devices, read, write in zip(
                directories,
                readings.disk_devices,
                readings.disk_read_bytes_s,
                readings.disk_write_bytes_s,
                strict=True,
            )
        ),
        all_read_mb_s=_mb_s(readings.all_read_bytes_s, disks),
        all_write_mb_s=_mb_s(readings.all_write_bytes_s, disks),
        all_both_mb_s=_mb_s(readings.all_both_bytes_s, disks),
        network_mb_s=_mb_s(network_bytes_s, _noise(network_bytes_s)) if network_bytes_s else None,
    )


def _noise(*groups: Sequence[float]) -> Noise | None:
    """None when no group has two readings: then there is no interval."""
    known = [group for group in groups if group]
    return pooled_noise(known) if any(len(group) > 1 for group in known) else None


def _mb_s(readings: Sequence[float], noise: Noise | None) -> Interval:
    values = [reading / _MB for reading in readings]
    if not values:
        return exactly(0.0, 0)
    if noise is None:
        return exactly(sum(values) / len(values), len(values))
    return reading_interval(values, None, noise)
