"""What /proc and /sys tell of the machine; None when they do not."""

from __future__ import annotations

import ctypes
import os
import re
from collections.abc import Iterator
from pathlib import Path

from leadline.machine.hierarchy import groups_above, own_directory
from leadline.machine.kernel_files import PROC, SYS, attempt, fields, number, text

_SIZE = re.compile(r"([0-9]+)([KMG]?)")
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30}
_NO_LIMIT_BYTES = 2**62
"""Version 1 writes "no limit" as the largest multiple of a page below 2^63."""
_IO_URING_DISABLED = {0: "nobody", 1: "unprivileged processes", 2: "every process"}
_FREQUENCY = SYS / "devices/system/cpu/cpu0/cpufreq"


def cpu_model() -> str | None:
    """Return the processor's name."""
    found = fields(PROC / "cpuinfo")
    return next((found[name] for name in ("model name", "Model", "cpu") if name in found), None)


def cpu_count() -> int | None:
    """Return the processors that this process may run on."""
    return attempt(lambda: len(os.sched_getaffinity(0)))


def cpu_mhz() -> float | None:
    """Return the first processor's present frequency."""
    khz = number(_FREQUENCY / "scaling_cur_freq")
    if khz is not None:
        return khz / 1000
    return attempt(lambda: float(fields(PROC / "cpuinfo").get("cpu MHz", "")))


def governor() -> str | None:
    """Return the frequency governor; None where the kernel has no say in it."""
    return text(_FREQUENCY / "scaling_governor")


def l3_cache_bytes() -> int | None:
    """Return the size of one last-level (L3) processor cache."""
    for index in sorted(SYS.glob("devices/system/cpu/cpu0/cache/index*")):
        size = _SIZE.fullmatch(text(index / "size") or "")
        if size and text(index / "level") == "3":
            return int(size[1]) * _UNITS[size[2]]
    return None


def numa_node_count() -> int | None:
    """Return the number of memory nodes."""
    return attempt(lambda: sum(1 for _ in (SYS / "devices/system/node").glob("node[0-9]*"))) or None


def meminfo_bytes(name: str) -> int | None:
    """Return one line of /proc/meminfo."""
    size = fields(PROC / "meminfo").get(name, "").split()
    return int(size[0]) * 1024 if size and size[0].isdigit() else None


def available_memory_bytes() -> int | None:
    """Return the memory that page cache can have: the machine's, or our own cgroup's limit."""
    known = [size for size in (meminfo_bytes("MemTotal"), cgroup_memory_limit_bytes()) if size]
    return min(known, default=None)


def free_memory_bytes() -> int | None:
    """Return what programs can still have, page cache that would be given up included."""
    return meminfo_bytes("MemAvailable")


def cgroup_memory_limit_bytes() -> int | None:
    """Return the least memory limit on the way from the own group to the root."""
    return attempt(_cgroup_memory_limit_bytes)


def _cgroup_memory_limit_bytes() -> int | None:
    limits = []
    for version, name in ((2, "memory.max"), (1, "memory.limit_in_bytes")):
        own = own_directory(PROC / "self", version)
        for group in (own, *own.parents) if own else ():
            limit = number(group / name)
            if limit is not None and limit < _NO_LIMIT_BYTES:
                limits.append(limit)
    return min(limits, default=None)


def cgroup_cpu_limit_percent() -> float | None:
    """Return the least processor quota on the way to the root; 200 is two processors."""
    return attempt(lambda: min(_cpu_quotas(), default=None))


def _cpu_quotas() -> Iterator[float]:
    for group in groups_above("cpu"):
        words = (text(group / "cpu.max") or "").split()
        if len(words) == 2 and words[0].isdigit():
            yield 100 * int(words[0]) / int(words[1])
        quota = number(group / "cpu.cfs_quota_us")  # -1 is no limit, and no number here
        period = number(group / "cpu.cfs_period_us")
        if quota and period:
            yield 100 * quota / period


def io_uring_disabled_for() -> str | None:
    """Return who may not use io_uring (kernel 6.6 and later have the switch)."""
    switch = number(PROC / "sys/kernel/io_uring_disabled")
    return None if switch is None else _IO_URING_DISABLED.get(switch)


_IO_URING_SETUP = 425
"""The number of the system call, the same on every architecture."""
_PARAMETERS_BYTES = 120
"""Of `struct io_uring_params`, all zero."""


def why_no_io_uring() -> str | None:
    """Return why io_uring cannot be used here; None when it can.

    A ring is made and closed: a container may forbid what the kernel has.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    ring = libc.syscall(_IO_URING_SETUP, 1, ctypes.create_string_buffer(_PARAMETERS_BYTES))
    if ring >= 0:
        os.close(ring)
        return None
    said = os.strerror(ctypes.get_errno())
    disabled = io_uring_disabled_for()
    if disabled in (None, "nobody"):
        return f"refused ({said}): an older kernel than 5.6, or a container that forbids it"
    return f"switched off for {disabled}: sysctl kernel.io_uring_disabled=0 allows it"


DAMON = SYS / "kernel/mm/damon/admin"


def reclaims_idle_file_cache(admin: Path = DAMON) -> bool | None:
    """Whether the kernel takes unused pages away by itself (DAMON, a `pageout` scheme that runs).

    None where the kernel has no DAMON, or its state may not be read (root's).
    """
    if not (admin / "kdamonds").is_dir() or hides_damon(admin):
        return None
    for thread in admin.glob("kdamonds/[0-9]*"):
        actions = (text(path) for path in thread.glob("contexts/*/schemes/*/action"))
        if text(thread / "state") == "on" and "pageout" in actions:
            return True
    return False


def hides_damon(admin: Path = DAMON) -> bool:
    """Whether DAMON has threads whose state this user may not read."""
    return any(text(thread / "state") is None for thread in admin.glob("kdamonds/[0-9]*"))


def security_modules() -> str | None:
    """Return the security modules that see every system call's file access."""
    return text(SYS / "kernel/security/lsm")


def virtualisation() -> str | None:
    """Return the hypervisor's name, `none` on bare metal."""
    vendor = text(SYS / "class/dmi/id/sys_vendor")
    hypervisor = text(SYS / "hypervisor/type")
    flags = fields(PROC / "cpuinfo").get("flags", "").split()
    if hypervisor or "hypervisor" in flags:
        return hypervisor or vendor or "virtual machine"
    return "none" if flags else None
