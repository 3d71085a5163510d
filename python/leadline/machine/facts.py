"""Facts of the machine and of the target: one table of names, units, titles and readers.

A stored survey keeps a flat `name -> value`; unit and title are looked up here when it is shown.
A fact that the machine does not tell is None, never a guess. `docs/reference/facts.md` lists them.
"""

from __future__ import annotations

import functools
import platform
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

import msgspec

from leadline.machine import block_device
from leadline.machine import resources as machine
from leadline.machine.block_device import Place, place_of, queue_number
from leadline.machine.kernel_files import PROC, SYS, chosen, flag, number, text
from leadline.machine.throttles import device_throttle

Value = str | int | float | bool | None
Unit = Literal[
    "bytes",
    "percent",
    "count",
    "text",
    "flag",
    "MHz",
    "centiseconds",
    "microseconds",
    "requests/s",
    "version",
]


class Fact(msgspec.Struct, frozen=True):
    """One fact: what it is called, in which unit, and how it is read."""

    name: str
    """Stored under this name; the unit comes last in it where it has one."""
    unit: Unit
    title: str
    """For people."""


class HostFact(Fact, frozen=True):
    """A fact of the machine."""

    read: Callable[[], Value]


class TargetFact(Fact, frozen=True):
    """A fact of the file system or of the device under a directory."""

    read: Callable[[Place], Value]


@functools.cache  # the library looks for it anew each time, and keeps something of each look
def leadline_version() -> str | None:
    """Return the version of the installed package; None in a tree that was never installed."""
    try:
        return metadata.version("leadline")
    except metadata.PackageNotFoundError:
        return None


def engine_build() -> str | None:
    """Return how the engine was compiled, `release` or `debug`; None when it does not say."""
    try:
        from leadline import _engine  # noqa: PLC0415 - a tree without the module has facts too
    except ImportError:
        return None
    found = getattr(_engine, "BUILD", None)
    return found if isinstance(found, str) else None


_VM = PROC / "sys/vm"


def _vm(name: str, unit: Unit, title: str) -> HostFact:
    """A setting of the kernel's memory; a percentage is called so by us alone."""
    return HostFact(name, unit, title, lambda: number(_VM / name.removesuffix("_percent")))


def _queue(name: str, unit: Unit, title: str, setting: str) -> TargetFact:
    return TargetFact(name, unit, title, lambda at: queue_number(at, setting))


HOST_FACTS = (
    HostFact("host_name", "text", "Host name", lambda: platform.node() or None),
    HostFact("kernel_release", "version", "Kernel", lambda: platform.release() or None),
    HostFact("architecture", "text", "Architecture", lambda: platform.machine() or None),
    HostFact("cpu_model", "text", "Processor", machine.cpu_model),
    HostFact("cpu_count", "count", "Processors it may use", machine.cpu_count),
    HostFact("cpu_mhz", "MHz", "Frequency of the first processor", machine.cpu_mhz),
    HostFact("governor", "text", "Frequency governor", machine.governor),
    HostFact("l3_cache_bytes", "bytes", "Last-level processor cache", machine.l3_cache_bytes),
    HostFact("numa_node_count", "count", "Memory nodes (NUMA)", machine.numa_node_count),
    HostFact("memory_bytes", "bytes", "Memory", lambda: machine.meminfo_bytes("MemTotal")),
    HostFact(
        "memory_available_bytes",
        "bytes",
        "Memory available at the start",
        lambda: machine.meminfo_bytes("MemAvailable"),
    ),
    HostFact("swap_bytes", "bytes", "Swap", lambda: machine.meminfo_bytes("SwapTotal")),
    HostFact(
        "cgroup_memory_limit_bytes",
        "bytes",
        "Memory limit of the own cgroup",
        machine.cgroup_memory_limit_bytes,
    ),
    HostFact(
        "cgroup_cpu_limit_percent",
        "percent",
        "Processor quota of the own cgroup",
        machine.cgroup_cpu_limit_percent,
    ),
    _vm("dirty_ratio_percent", "percent", "Memory that unwritten data may take"),
    _vm("dirty_background_ratio_percent", "percent", "Memory from which writing back starts"),
    _vm("dirty_bytes", "bytes", "Unwritten data allowed (0: the percentage counts)"),
    _vm(
        "dirty_background_bytes",
        "bytes",
        "Unwritten data from which writing back starts (0: the percentage counts)",
    ),
    _vm("dirty_expire_centisecs", "centiseconds", "Age at which unwritten data is written back"),
    _vm("dirty_writeback_centisecs", "centiseconds", "Time between two looks for unwritten data"),
    _vm(
        "vfs_cache_pressure_percent", "percent", "Eagerness to drop cached directories (100: fair)"
    ),
    HostFact(
        "reclaims_idle_file_cache",
        "flag",
        "Kernel drops idle page cache by itself",
        machine.reclaims_idle_file_cache,
    ),
    HostFact(
        "transparent_hugepage",
        "text",
        "Huge pages",
        lambda: chosen(SYS / "kernel/mm/transparent_hugepage/enabled"),
    ),
    HostFact(
        "clock_source",
        "text",
        "Kernel's clock",
        lambda: text(SYS / "devices/system/clocksource/clocksource0/current_clocksource"),
    ),
    HostFact("virtualisation", "text", "Virtualisation", machine.virtualisation),
    HostFact("security_modules", "text", "Security modules", machine.security_modules),
    HostFact(
        "io_uring_disabled_for", "text", "io_uring is disabled for", machine.io_uring_disabled_for
    ),
    HostFact("engine_build", "text", "Build of the engine", engine_build),
    HostFact("leadline_version", "version", "Leadline", leadline_version),
    HostFact("python_version", "version", "Python", platform.python_version),
)

TARGET_FACTS = (
    TargetFact(
        "filesystem_type", "text", "File system", lambda at: at.mount.type if at.mount else None
    ),
    TargetFact(
        "filesystem_bytes",
        "bytes",
        "Size of the file system",
        lambda at: at.space.total_bytes if at.space else None,
    ),
    TargetFact(
        "free_bytes", "bytes", "Free on it", lambda at: at.space.free_bytes if at.space else None
    ),
    TargetFact(
        "filesystem_block_bytes",
        "bytes",
        "Block of the file system",
        block_device.filesystem_block_bytes,
    ),
    TargetFact(
        "mount_point", "text", "Mounted on", lambda at: at.mount.point if at.mount else None
    ),
    TargetFact("mount_options", "text", "Mount options", block_device.mount_options),
    TargetFact("device_name", "text", "Device", lambda at: at.device.name if at.device else None),
    TargetFact(
        "device_model",
        "text",
        "Model",
        lambda at: text(at.device / "device/model") if at.device else None,
    ),
    TargetFact("device_bytes", "bytes", "Size of the device", block_device.device_bytes),
    TargetFact(
        "scheduler",
        "text",
        "I/O scheduler",
        lambda at: chosen(at.queue / "scheduler") if at.queue else None,
    ),
    TargetFact(
        "rotational",
        "flag",
        "Device says that it rotates",
        lambda at: flag(at.queue / "rotational") if at.queue else None,
    ),
    TargetFact("read_ahead_bytes", "bytes", "Read-ahead", block_device.read_ahead_bytes),
    TargetFact(
        "write_cache",
        "text",
        "Cache mode of the device",
        lambda at: text(at.queue / "write_cache") if at.queue else None,
    ),
    TargetFact(
        "hardware_queue_count", "count", "Hardware queues", block_device.hardware_queue_count
    ),
    _queue("queue_request_count", "count", "Requests a queue holds", "nr_requests"),
    _queue("max_segment_count", "count", "Memory segments of one request", "max_segments"),
    _queue("logical_block_bytes", "bytes", "Logical block", "logical_block_size"),
    _queue("physical_block_bytes", "bytes", "Physical block", "physical_block_size"),
    _queue(
        "merge_limit", "count", "Merging of requests (0: all, 1: simple ones, 2: none)", "nomerges"
    ),
    TargetFact(
        "device_polling",
        "flag",
        "Completions are polled for",
        lambda at: flag(at.queue / "io_poll") if at.queue else None,
    ),
    TargetFact(
        "device_interrupt_cpus",
        "text",
        "Processors serving its interrupts",
        block_device.interrupt_cpus,
    ),
    TargetFact(
        "loop_backing_file", "text", "File behind the loop device", block_device.loop_backing_file
    ),
    TargetFact(
        "loop_direct_io", "flag", "Loop device uses direct I/O", block_device.loop_direct_io
    ),
    TargetFact("device_throttle", "text", "Limit of the own cgroup on the device", device_throttle),
)

RUN_FACTS = (
    Fact("cache_limit_bytes", "bytes", "Cap on the page cache (cgroup)"),
    Fact("placement", "text", "Placement of the workers"),
    Fact("generator_ceiling_iops_one_issuer", "requests/s", "Leadline's own ceiling, one worker"),
    Fact(
        "generator_ceiling_iops_all_processors",
        "requests/s",
        "Leadline's own ceiling, a worker on each processor",
    ),
    Fact("nfs_server", "text", "NFS server"),
    Fact("nfs_export", "text", "Export"),
    Fact("nfs_read_bytes_max", "bytes", "Longest READ the server answers"),
    Fact("nfs_write_bytes_max", "bytes", "Longest WRITE it takes"),
    Fact("nfs_round_trip_us", "microseconds", "Shortest round trip to it"),
    Fact("precondition_bytes_max", "bytes", "Most bytes written to precondition"),
    Fact("simulated_system", "text", "Simulated system"),
)
"""Facts of how it was run; who runs it adds them."""

FACTS: dict[str, Fact] = {fact.name: fact for fact in (*HOST_FACTS, *TARGET_FACTS, *RUN_FACTS)}
"""Every fact by its name, in the order in which they are shown."""


def host_facts() -> dict[str, Any]:
    """Return what is known of the machine, by name."""
    return {fact.name: fact.read() for fact in HOST_FACTS}


def target_facts(directory: str | Path) -> dict[str, Any]:
    """Return what is known of the file system and the device under a directory, by name."""
    place = place_of(directory)
    return {fact.name: fact.read(place) for fact in TARGET_FACTS}


def granule_bytes(facts: Mapping[str, Any], *, direct: bool) -> int:
    """Return the bytes of which a target with these facts takes multiples; buffered takes 512."""
    block = facts.get("logical_block_bytes")
    return block if direct and isinstance(block, int) else 512
