"""In which recorded facts do systems differ? Listed before any ratio (METHODS §4).

Names, titles and units are those of `leadline.machine.facts`. What changes from one moment to the
next on one machine is no difference between systems and is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from leadline.machine.facts import FACTS
from leadline.record import (
    CacheStart,
    Measurement,
    Region,
    Status,
    Survey,
    SurveyStart,
    WritePolicy,
)
from leadline.record.access import ACCESS_OPTIONS
from leadline.record.comparison import AccessCurve, CacheSize, FactDifference
from leadline.record.file_cache import CACHE
from leadline.store import Store
from leadline.studies.cache.explain import find_in_survey
from leadline.studies.cache.sizes import share_of_memory
from leadline.studies.comparison.contenders import KnownCache, Named
from leadline.studies.memory import memory_bytes_of

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


class Recorded(Protocol):
    """What is known of a system: the start of a survey, or of measurements with their facts."""

    @property
    def facts(self) -> dict[str, Any]:
        """Of the machine and the target."""

    @property
    def system_profile(self) -> dict[str, Any] | None:
        """Of a simulated one."""


def differing_facts(starts: Sequence[Recorded]) -> tuple[FactDifference, ...]:
    """Return every fact in which two or more studies differ, grouped, one value per study.

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
                values = [getattr(start, field, None) for start in starts]
                found += _difference(group, field, title, unit, values)
    known = {name for names in GROUPS.values() for name in names} | NOISE
    others = dict.fromkeys(name for start in starts for name in start.facts if name not in known)
    for name in others:
        found += _difference(
            "Other", name, name, "text", [start.facts.get(name) for start in starts]
        )
    return tuple(found)


def _profile_differences(starts: Sequence[Recorded]) -> list[FactDifference]:
    """What the profiles of simulated systems say of themselves, and that they differ at all."""
    told = [_profile_facts(start) for start in starts]
    names = dict.fromkeys(name for facts in told for name in facts)
    found: list[FactDifference] = []
    for name in names:
        title = name.replace("_", " ").capitalize()
        values = [facts.get(name) for facts in told]
        found += _difference("System", f"profile_{name}", title, "text", values)
    return found


def _profile_facts(start: Recorded) -> dict[str, Any]:
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


# How systems were reached, and what their writes waited for: local or a server (CP93 §4.3).
#
# CP93 Fig. 6 holds two clients of file servers against each other over the read fraction; CP94
# Fig. 23 shows the same two as whole surveys. Both papers draw what was measured, each at its own
# focal point, and so do these curves: no model brings them to one request size.

NFS = "nfs://"
PROTOCOL_FACT = "network_file_system"
"""A profile's fact that says how a simulated client reaches its server."""


def access_curves(systems: Sequence[Named]) -> tuple[AccessCurve, ...]:
    """Return each system's curve over read_frac, measured at its first level."""
    found = []
    for system in systems:
        survey = system.predictor.survey
        region = first_level(survey)
        family = next((each for each in survey.families if each.region == 0), None)
        curve = family.curve("read_frac") if family else None
        if region is None or curve is None or len(curve.points) < 2:
            continue
        found.append(
            AccessCurve(
                name=system.name,
                through=format_protocol(survey.start),
                discipline=format_waits(survey.start),
                level=region.name,
                curve=curve,
            )
        )
    return tuple(found)


def first_level(survey: Survey) -> Region | None:
    """Return the level that small workloads stay in; None while there is none."""
    return survey.regions[0] if survey.regions else None


def format_protocol(start: SurveyStart) -> str | None:
    """Name the protocol to the server; None when the files are local."""
    if start.target.startswith(NFS):
        return "NFS"
    facts = (start.system_profile or {}).get("meta", {}).get("facts", {})
    told = facts.get(PROTOCOL_FACT) if isinstance(facts, dict) else None
    return str(told) if told else None


def format_waits(start: SurveyStart) -> str:
    """Say what a write waits for, in the words of the way it takes."""
    if not start.target.startswith(NFS):
        return start.access.discipline
    each = start.access.fsync_each
    if each is not None:
        return f"UNSTABLE, COMMIT each {each}"
    return "FILE_SYNC" if start.access.waits else "UNSTABLE"


# The page caches of the systems compared: sizes and write policies (CP93 Figs. 4 and 5).
#
# A study of a page cache (`leadline cache`) tells sizes for reads and writes apart; a survey tells
# them as far as its mixed curve goes. The newest finished study of the very same system counts.


def known_cache(store: Store, survey: Survey, points: Sequence[Measurement]) -> KnownCache:
    """Return what the newest study of the surveyed system found, else what the survey says.

    A study counts when it is finished and ran on the same target in the same way.
    """
    for each in store.list(CACHE):
        if each.target != survey.start.target or each.status is not Status.DONE:
            continue
        study = store.find(each.study_id, CACHE).answer
        if study is not None and _same_way(study.start, survey.start):
            return KnownCache(study.cache, studied=True)
    return KnownCache(find_in_survey(survey, points), studied=False)


def _same_way(study: CacheStart, survey: SurveyStart) -> bool:
    fields = ("system", "access", "system_profile")
    return all(getattr(study, field) == getattr(survey, field) for field in fields)


def cache_sizes(systems: Sequence[Named]) -> tuple[CacheSize, ...]:
    """Return each effective page cache, in bytes and as a share of the memory (CP93 Fig. 4)."""
    return tuple(_cache_size(system) for system in systems)


def _cache_size(system: Named) -> CacheSize:
    start = system.predictor.survey.start
    memory_bytes = memory_bytes_of(start.cache_limit_bytes, start.facts, start.system_profile)
    capped = start.cache_limit_bytes is not None
    if system.cache is None:
        size = system.predictor.survey.cache_bytes
        return CacheSize(
            name=system.name,
            bytes=size,
            memory_bytes=memory_bytes,
            capped=capped,
            share=share_of_memory(size, memory_bytes) if size else None,
        )
    found = system.cache.found
    writes = found.writes if found.writes.apart else None
    return CacheSize(
        name=system.name,
        bytes=found.reads.bytes,
        memory_bytes=memory_bytes,
        capped=capped,
        share=found.reads.memory_frac,
        writes_bytes=writes.bytes if writes else None,
        writes_share=writes.memory_frac if writes else None,
        policy=found.policy,
        evidence=tuple(
            item.sentence for item in found.evidence if item.says is not WritePolicy.UNKNOWN
        ),
        studied=system.cache.studied,
    )
