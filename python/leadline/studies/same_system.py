"""Is it still the same system? Only then may what was measured at two times be held together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SYSTEM = (
    "simulated_system",
    "kernel_release",
    "architecture",
    "cpu_model",
    "cpu_count",
    "governor",
    "memory_bytes",
    "cgroup_memory_limit_bytes",
    "cgroup_cpu_limit_percent",
    "cache_limit_bytes",
    "dirty_ratio_percent",
    "dirty_background_ratio_percent",
    "dirty_bytes",
    "dirty_background_bytes",
    "filesystem_type",
    "filesystem_block_bytes",
    "mount_options",
    "device_model",
    "device_bytes",
    "scheduler",
    "rotational",
    "read_ahead_bytes",
    "write_cache",
    "loop_direct_io",
)
"""Facts (docs/reference/facts.md) of which each is known to change throughput by itself. Left out
is what differs between two runs of one system: host and device names, free space, Leadline's own
version, and the generator's ceiling, which is a measurement."""

DECISIVE = (*SYSTEM, "engine_build")
"""With another build of the engine a model's error cannot be told from the generator's."""

MEMORY_SHARE = 0.01
"""Memory as the kernel counts it differs a little from start to start."""


def changed_facts(
    before: Mapping[str, Any], now: Mapping[str, Any], names: Sequence[str] = DECISIVE
) -> tuple[str, ...]:
    """Return the named facts that differ, as `name: then, now`; unknown ones cannot differ."""
    found = []
    for name in names:
        old, new = before.get(name), now.get(name)
        if old is None or new is None:
            continue
        if name == "memory_bytes" and abs(new - old) <= MEMORY_SHARE * old:
            continue
        if old != new:
            found.append(f"{name}: {old} then, {new} now")
    return tuple(found)
