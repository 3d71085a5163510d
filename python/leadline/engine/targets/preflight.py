"""What would spoil a measurement, looked for before it starts; each finding has a name.

docs/concepts/honesty.md says what each name means and what to do about it.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import msgspec

from leadline.engine.targets.target import Target
from leadline.machine.kernel_files import PROC, text
from leadline.units import format_bytes

SAMPLE_S = 0.2
"""How long the machine is watched for other programs."""
FOREIGN_CPU_MAX = 0.1
"""Processors that others may keep busy before it is said."""
PRESSURE_MAX_PERCENT = 10.0
"""Share of the sample in which tasks may have waited (PSI) before it is said."""
MEMORY_FREE_MIN = 0.05
MEMORY_FREE_MIN_BYTES = 256 * 2**20
READ_AHEAD_MAX_BYTES = 4 * 2**20
MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")

Facts = dict[str, Any]


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One thing found before measuring."""

    name: str
    text: str
    """What was found."""
    advice: str
    """What to do about it."""
    note: bool = False
    """True when it spoils nothing but is good to know."""

    def __str__(self) -> str:
        """Return `name: what was found; what to do`."""
        return f"{self.name}: {self.text}; {self.advice}"


class Busyness(msgspec.Struct, frozen=True, kw_only=True):
    """What other programs do at the moment; None where the kernel does not tell."""

    foreign_cpu: float | None
    """Processors that others keep busy."""
    cpu_pressure_percent: float | None
    """Share of the sample in which a task waited for a processor (PSI)."""
    io_pressure_percent: float | None


class _Roomy(Protocol):
    @property
    def capacity_bytes(self) -> int:
        """What may be laid out."""


def room_findings(engine: _Roomy, max_bytes: int | None) -> tuple[Finding, ...]:
    """Say where a target has less room than --max-bytes allows: what was opened with it is used.

    Args:
        engine: opened with `max_bytes`.
        max_bytes: what was asked for; None asks for all there is.

    """
    if max_bytes is None or engine.capacity_bytes >= max_bytes:
        return ()
    return (
        Finding(
            name="less room than --max-bytes",
            text=f"--max-bytes allows {format_bytes(max_bytes)} and this target takes "
            f"{format_bytes(engine.capacity_bytes)}",
            advice="that is the limit now; 5 % of a file system, at least 1 GiB, stay free",
            note=True,
        ),
    )


def preflight(
    target: Target, facts: Facts, *, busyness: Callable[[], Busyness] | None = None
) -> tuple[Finding, ...]:
    """Look for what would spoil a measurement on an opened real target.

    It takes a fifth of a second; for a simulated target and for `null:` there is nothing to find.

    Args:
        target: the target.
        facts: what `Engine.facts` says of the machine and the target.
        busyness: looks at the machine, for tests.

    """
    if target.kind not in ("directory", "nfs"):
        return ()
    busy = (busyness or watch)()
    if target.kind == "nfs":
        remote = (_debug_build(facts), _busy(busy), _governor(facts))
        return tuple(each for each in remote if each is not None)
    found = (
        _debug_build(facts),
        _busy(busy),
        _low_memory(facts),
        _idle_cache(facts),
        _governor(facts),
        _memory_filesystem(facts),
        _loop(facts),
        _read_ahead(facts),
    )
    return tuple(each for each in found if each is not None)


def watch(seconds: float = SAMPLE_S, proc: Path = PROC) -> Busyness:
    """Watch the machine for a moment.

    Averages of the kernel over longer times (avg10, loadavg) hold Leadline's own last job.
    """
    waits = proc / "pressure/cpu", proc / "pressure/io"
    waited = [_waited_s(path) for path in waits]
    before, own_before = _busy_s(proc), _own_s()
    start = time.monotonic()
    time.sleep(seconds)
    passed = time.monotonic() - start
    after, own_after = _busy_s(proc), _own_s()
    cpu, disk = (
        None if first is None or last is None else 100 * (last - first) / passed
        for first, last in zip(waited, map(_waited_s, waits), strict=True)
    )
    foreign = None
    if before is not None and after is not None:
        foreign = max(0.0, (after - before - (own_after - own_before)) / passed)
    return Busyness(foreign_cpu=foreign, cpu_pressure_percent=cpu, io_pressure_percent=disk)


def _busy_s(proc: Path) -> float | None:
    """Seconds that all processors together have worked: neither idle nor waiting for I/O."""
    words = (text(proc / "stat") or "").partition("\n")[0].split()
    if len(words) < 8 or words[0] != "cpu" or not all(word.isdigit() for word in words[1:9]):
        return None
    user, nice, system, _idle, _iowait, irq, soft_irq, *_ = (int(word) for word in words[1:])
    return (user + nice + system + irq + soft_irq) / os.sysconf("SC_CLK_TCK")


def _own_s() -> float:
    own = os.times()
    return own.user + own.system


def _waited_s(path: Path) -> float | None:
    some = re.search(r"^some .* total=([0-9]+)$", text(path) or "", flags=re.MULTILINE)
    return int(some[1]) / 1e6 if some else None


def _debug_build(facts: Facts) -> Finding | None:
    if facts.get("engine_build") != "debug":
        return None
    return Finding(
        name="debug build",
        text="the engine was compiled without optimisation and is many times slower than it can be",
        advice="build it with `make build`, or install the released wheel",
    )


def _busy(busy: Busyness) -> Finding | None:
    signs = []
    if busy.foreign_cpu is not None and busy.foreign_cpu > FOREIGN_CPU_MAX:
        signs.append(f"other programs use {100 * busy.foreign_cpu:.0f} % of a processor")
    if (busy.cpu_pressure_percent or 0.0) > PRESSURE_MAX_PERCENT:
        signs.append(
            f"tasks waited for a processor in {busy.cpu_pressure_percent:.0f} % of the time (PSI)"
        )
    if (busy.io_pressure_percent or 0.0) > PRESSURE_MAX_PERCENT:
        signs.append(f"tasks waited for I/O in {busy.io_pressure_percent:.0f} % of the time (PSI)")
    if not signs:
        return None
    return Finding(
        name="busy machine",
        text=", ".join(signs),
        advice="stop what else runs, or wait, and measure again",
    )


def _low_memory(facts: Facts) -> Finding | None:
    whole, free = facts.get("memory_bytes"), facts.get("memory_available_bytes")
    if not whole or free is None or free >= max(MEMORY_FREE_MIN_BYTES, MEMORY_FREE_MIN * whole):
        return None
    return Finding(
        name="low free memory",
        text=f"{format_bytes(free)} of {format_bytes(whole)} are available, so the file cache is "
        "smaller than the memory suggests and may shrink while measuring",
        advice="stop what holds the memory, or cap the cache with --cache-limit",
    )


def _idle_cache(facts: Facts) -> Finding | None:
    if not facts.get("reclaims_idle_file_cache"):
        return None
    return Finding(
        name="idle cache reclaimed",
        text="this kernel takes file cache away that nobody used for some seconds (DAMON)",
        advice="do not expect a file to stay cached between two runs; within a run the share from "
        "cache is looked up, not assumed",
    )


def _governor(facts: Facts) -> Finding | None:
    governor = facts.get("governor")
    if governor in (None, "performance"):
        return None
    return Finding(
        name="frequency governor",
        text=f"the processors' governor is {governor}, so their frequency follows the load",
        advice="choose performance while measuring: `cpupower frequency-set -g performance`",
    )


def _memory_filesystem(facts: Facts) -> Finding | None:
    kind = facts.get("filesystem_type")
    if kind not in MEMORY_FILESYSTEMS:
        return None
    return Finding(
        name="memory file system",
        text=f"the target is on {kind}, which lives in memory: no device is measured",
        advice="give a directory on a disk, unless memory is what you want to measure",
    )


def _loop(facts: Facts) -> Finding | None:
    if facts.get("loop_direct_io") is not False:
        return None
    return Finding(
        name="loop device",
        text=f"{facts.get('device_name')} stands for a file that is read through the file cache, "
        "so even direct requests may be answered from memory",
        advice="attach it with `losetup --direct-io=on`",
    )


def _read_ahead(facts: Facts) -> Finding | None:
    size = facts.get("read_ahead_bytes")
    if size is None or size < READ_AHEAD_MAX_BYTES:
        return None
    return Finding(
        name="read-ahead",
        text=f"the device reads up to {format_bytes(size)} ahead of a sequential reader",
        advice="buffered reads that are partly sequential move more bytes than were asked for",
        note=True,
    )
