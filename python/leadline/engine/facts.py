"""Facts of the machine and of the target, read from /proc and /sys; None when they do not tell."""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any, TypeVar

from leadline.engine.hierarchy import own_directory
from leadline.engine.mounts import Mount, mount_of
from leadline.engine.space import read_space

T = TypeVar("T")  # the `def f[T]` spelling needs Python 3.12

_SYS = Path("/sys")
_PROC = Path("/proc")
_SIZE = re.compile(r"([0-9]+)([KMG]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_NO_LIMIT_BYTES = 2**62
"""Version 1 writes "no limit" as the largest multiple of a page below 2^63."""


def host_facts() -> dict[str, Any]:
    """Return what is known of the machine; flat names, units last."""
    return {
        "host_name": platform.node() or None,
        "kernel_release": platform.release() or None,
        "architecture": platform.machine() or None,
        "cpu_model": _cpu_model(),
        "cpu_count": _cpu_count(),
        "l3_cache_bytes": l3_cache_bytes(),
        "memory_bytes": _memory_bytes(),
        "cgroup_memory_limit_bytes": _attempt(_cgroup_limit_bytes),
        "dirty_ratio_percent": _number(_PROC / "sys/vm/dirty_ratio"),
        "dirty_background_ratio_percent": _number(_PROC / "sys/vm/dirty_background_ratio"),
        "transparent_hugepage": _chosen(_SYS / "kernel/mm/transparent_hugepage/enabled"),
        "clock_source": _text(_SYS / "devices/system/clocksource/clocksource0/current_clocksource"),
        "virtualisation": _virtualisation(),
        "leadline_version": _leadline_version(),
        "python_version": platform.python_version(),
    }


def target_facts(directory: str | Path) -> dict[str, Any]:
    """Return what is known of the file system and the device under a directory."""
    mount = _attempt(lambda: mount_of(directory))
    queue = _queue(mount) if mount else None
    space = _attempt(lambda: read_space(directory))
    read_ahead_kib = _number(queue / "read_ahead_kb") if queue else None
    rotational = _number(queue / "rotational") if queue else None
    return {
        "filesystem_type": mount.type if mount else None,
        "filesystem_bytes": space.total_bytes if space else None,
        "free_bytes": space.free_bytes if space else None,
        "mount_point": mount.point if mount else None,
        "mount_options": ",".join(sorted({*mount.options, *mount.super_options}))
        if mount
        else None,
        "device_name": queue.parent.name if queue else None,
        "device_model": _text(queue.parent / "device/model") if queue else None,
        "device_bytes": _sectors(queue.parent / "size") if queue else None,
        "scheduler": _chosen(queue / "scheduler") if queue else None,
        "rotational": bool(rotational) if rotational is not None else None,
        "read_ahead_bytes": read_ahead_kib * 1024 if read_ahead_kib is not None else None,
        "write_cache": _text(queue / "write_cache") if queue else None,
        "hardware_queue_count": _entries(queue.parent / "mq") if queue else None,
    }


def l3_cache_bytes() -> int | None:
    """Return the size of one last-level (L3) processor cache."""
    for index in sorted(_SYS.glob("devices/system/cpu/cpu0/cache/index*")):
        size = _SIZE.fullmatch(_text(index / "size") or "")
        if size and _text(index / "level") == "3":
            return int(size[1]) * _UNITS[size[2]]
    return None


def _queue(mount: Mount) -> Path | None:
    """Find the block device's queue directory; a partition has its disk's."""
    device = _SYS / "dev/block" / mount.device
    if not device.exists() and mount.source.startswith("/dev/"):
        device = _SYS / "class/block" / Path(mount.source).resolve().name
    for place in (device, device.resolve().parent):
        if (place / "queue").is_dir():
            return place.resolve() / "queue"
    return None


def _cpu_model() -> str | None:
    fields = _fields(_PROC / "cpuinfo")
    return next((fields[name] for name in ("model name", "Model", "cpu") if name in fields), None)


def _cpu_count() -> int | None:
    return _attempt(lambda: len(os.sched_getaffinity(0)))


def _memory_bytes() -> int | None:
    size = _fields(_PROC / "meminfo").get("MemTotal", "").split()
    return int(size[0]) * 1024 if size and size[0].isdigit() else None


def available_memory_bytes() -> int | None:
    """Return the memory that file cache can have: the machine's, or our own cgroup's limit."""
    known = [size for size in (_memory_bytes(), _attempt(_cgroup_limit_bytes)) if size]
    return min(known, default=None)


def _cgroup_limit_bytes() -> int | None:
    """Return the least memory limit on the way from the own group to the root."""
    limits = []
    for version, name in ((2, "memory.max"), (1, "memory.limit_in_bytes")):
        own = own_directory(_PROC / "self", version)
        for group in (own, *own.parents) if own else ():
            limit = _number(group / name)
            if limit is not None and limit < _NO_LIMIT_BYTES:
                limits.append(limit)
    return min(limits, default=None)


def _virtualisation() -> str | None:
    vendor = _text(_SYS / "class/dmi/id/sys_vendor")
    hypervisor = _text(_SYS / "hypervisor/type")
    flags = _fields(_PROC / "cpuinfo").get("flags", "").split()
    if hypervisor or "hypervisor" in flags:
        return hypervisor or vendor or "virtual machine"
    return "none" if flags else None


def _leadline_version() -> str | None:
    try:
        return metadata.version("leadline")
    except metadata.PackageNotFoundError:  # a source tree that was never installed
        return None


def _fields(path: Path) -> dict[str, str]:
    """Read `name : value` lines; the first of a name counts."""
    found: dict[str, str] = {}
    for line in (_text(path) or "").splitlines():
        name, _, value = line.partition(":")
        found.setdefault(name.strip(), value.strip())
    return found


def _chosen(path: Path) -> str | None:
    """Return the chosen word of `none [mq-deadline] kyber`."""
    text = _text(path)
    match = re.search(r"\[([^\]]+)\]", text or "")
    return match[1] if match else text


def _sectors(path: Path) -> int | None:
    sectors = _number(path)  # always of 512 bytes, whatever the device has
    return sectors * 512 if sectors is not None else None


def _entries(path: Path) -> int | None:
    return _attempt(lambda: sum(1 for _ in path.iterdir()))


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text and text.isdigit() else None


def _text(path: Path) -> str | None:
    return _attempt(lambda: path.read_text(encoding="utf-8", errors="replace").strip() or None)


def _attempt(read: Callable[[], T]) -> T | None:
    try:
        return read()
    except (OSError, ValueError):
        return None
