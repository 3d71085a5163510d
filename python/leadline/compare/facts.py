"""In which recorded facts do systems differ? Listed before any ratio (METHODS §4).

Names, titles and units are those of `leadline.machine.facts`. What changes from one moment to the
next on one machine is no difference between systems and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.machine.facts import FACTS
from leadline.record import SurveyStart
from leadline.record.comparison import FactDifference
from leadline.record.job import ACCESS_OPTIONS

GROUPS: dict[str, tuple[str, ...]] = {
    "System": ("host_name", "simulated_system"),
    "Kernel": (
        "kernel_release",
        "io_uring_disabled_for",
        "reclaims_idle_file_cache",
        "transparent_hugepage",
        "vfs_cache_pressure_percent",
        "clock_source",
        "security_modules",
        "virtualisation",
    ),
    "Processor": (
        "architecture",
        "cpu_model",
        "cpu_count",
        "cpu_mhz",
        "governor",
        "l3_cache_bytes",
        "numa_node_count",
    ),
    "Memory": (
        "memory_bytes",
        "swap_bytes",
        "dirty_ratio_percent",
        "dirty_background_ratio_percent",
        "dirty_bytes",
        "dirty_background_bytes",
        "dirty_expire_centisecs",
        "dirty_writeback_centisecs",
    ),
    "Cgroup": ("cache_limit_bytes", "cgroup_memory_limit_bytes", "cgroup_cpu_limit_percent"),
    "File system": (
        "filesystem_type",
        "mount_options",
        "mount_point",
        "filesystem_bytes",
        "filesystem_block_bytes",
    ),
    "Device": (
        "device_model",
        "device_name",
        "device_bytes",
        "scheduler",
        "rotational",
        "read_ahead_bytes",
        "write_cache",
        "hardware_queue_count",
        "queue_request_count",
        "max_segment_count",
        "logical_block_bytes",
        "physical_block_bytes",
        "merge_limit",
        "device_polling",
        "device_interrupt_cpus",
        "loop_backing_file",
        "loop_direct_io",
        "device_throttle",
    ),
    "Server": (
        "nfs_server",
        "nfs_export",
        "nfs_read_bytes_max",
        "nfs_write_bytes_max",
        "nfs_round_trip_us",
    ),
    "How it was run": (
        "placement",
        "precondition_bytes_max",
        "generator_ceiling_iops_one_issuer",
        "generator_ceiling_iops_all_processors",
    ),
    "Leadline": ("leadline_version", "engine_build", "python_version"),
}
"""Facts by what they are about, in the order in which they are listed."""

NOISE = frozenset({"memory_available_bytes", "free_bytes"})
"""Facts that differ from one hour to the next on the same machine."""

TOLERANCES = {
    "memory_bytes": 0.01,  # a kernel keeps a little more or less for itself
    "cpu_mhz": 0.2,  # the governor's choice of the moment
    "nfs_round_trip_us": 0.5,  # the shortest of a few, on a machine that does other things
    "generator_ceiling_iops_one_issuer": 0.2,  # measured, so it scatters
    "generator_ceiling_iops_all_processors": 0.2,
}
"""Relative difference up to which a fact counts as the same."""

_START = (
    ("target", "Target", "text"),
    *(
        (name, told.title, "flag" if kind is bool else "text")
        for name, (kind, told) in ACCESS_OPTIONS.items()
    ),
    ("focal_mode", "Focal points", "text"),
)
"""What the start record itself tells of how a survey was run: field, title, unit."""


def differing_facts(starts: Sequence[SurveyStart]) -> tuple[FactDifference, ...]:
    """Return every fact in which two or more surveys differ, grouped, one value per survey.

    A fact that one system tells and another does not is a difference. Facts this version does not
    know come last, in the group "Other".
    """
    found: list[FactDifference] = []
    for group, names in GROUPS.items():
        for name in names:
            fact = FACTS[name]
            found += _difference(
                group, name, fact.title, fact.unit, [start.facts.get(name) for start in starts]
            )
        if group == "System":
            found += _profile_differences(starts)
        if group == "How it was run":
            for field, title, unit in _START:
                values = [getattr(start, field) for start in starts]
                found += _difference(group, field, title, unit, values)
    known = {name for names in GROUPS.values() for name in names} | NOISE
    others = dict.fromkeys(name for start in starts for name in start.facts if name not in known)
    for name in others:
        found += _difference(
            "Other", name, name, "text", [start.facts.get(name) for start in starts]
        )
    return tuple(found)


def _profile_differences(starts: Sequence[SurveyStart]) -> list[FactDifference]:
    """What the profiles of simulated systems say of themselves, and that they differ at all."""
    told = [_profile_facts(start) for start in starts]
    names = dict.fromkeys(name for facts in told for name in facts)
    found: list[FactDifference] = []
    for name in names:
        title = name.replace("_", " ").capitalize()
        values = [facts.get(name) for facts in told]
        found += _difference("System", f"profile_{name}", title, "text", values)
    return found


def _profile_facts(start: SurveyStart) -> dict[str, Any]:
    meta = (start.system_profile or {}).get("meta", {})
    facts = meta.get("facts", {})
    return dict(facts) if isinstance(facts, dict) else {}


def _difference(
    group: str, name: str, title: str, unit: str, values: list[Any]
) -> list[FactDifference]:
    first = values[0]
    if all(_same(name, first, value) for value in values[1:]):
        return []
    return [FactDifference(group, name, title, unit, tuple(values))]


def _same(name: str, one: Any, other: Any) -> bool:
    tolerance = TOLERANCES.get(name)
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    if tolerance is None or not numbers:
        return bool(one == other)
    return bool(abs(one - other) <= tolerance * max(abs(one), abs(other)))
