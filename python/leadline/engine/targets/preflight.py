"""What would spoil a measurement, looked for before it starts (docs/concepts/honesty.md)."""

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
from leadline.record.finding import Finding
from leadline.record.result import CALM_FOREIGN_CPU_MAX

SAMPLE_S = 0.2
"""How long the machine is watched for other programs."""
PRESSURE_MAX_PERCENT = 10.0
"""Share of the sample in which tasks may have waited (PSI) before it is said."""
MEMORY_FREE_MIN = 0.05
MEMORY_FREE_MIN_BYTES = 256 * 2**20
READ_AHEAD_MAX_BYTES = 4 * 2**20
MEMORY_FILESYSTEMS = ("tmpfs", "ramfs")

Facts = dict[str, Any]


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
    capacity_bytes = engine.capacity_bytes
    return (Finding.of("less_room", max_bytes=max_bytes, capacity_bytes=capacity_bytes),)


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
    if target.virtual_time or not target.has_device:
        return ()
    busy = (busyness or watch)()
    if not target.has_files:
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
    return Finding.of("debug_build") if facts.get("engine_build") == "debug" else None


def _busy(busy: Busyness) -> Finding | None:
    signs = {
        "foreign_frac": (busy.foreign_cpu or 0.0, CALM_FOREIGN_CPU_MAX),
        "cpu_wait_frac": ((busy.cpu_pressure_percent or 0.0) / 100, PRESSURE_MAX_PERCENT / 100),
        "io_wait_frac": ((busy.io_pressure_percent or 0.0) / 100, PRESSURE_MAX_PERCENT / 100),
    }
    seen = {name: value for name, (value, most) in signs.items() if value > most}
    return Finding.of("busy_machine", **seen) if seen else None


def _low_memory(facts: Facts) -> Finding | None:
    whole, free = facts.get("memory_bytes"), facts.get("memory_available_bytes")
    if not whole or free is None or free >= max(MEMORY_FREE_MIN_BYTES, MEMORY_FREE_MIN * whole):
        return None
    return Finding.of("low_free_memory", available_bytes=free, memory_bytes=whole)


def _idle_cache(facts: Facts) -> Finding | None:
    return Finding.of("idle_cache_reclaimed") if facts.get("reclaims_idle_file_cache") else None


def _governor(facts: Facts) -> Finding | None:
    governor = facts.get("governor")
    if governor in (None, "performance"):
        return None
    return Finding.of("frequency_governor", governor=governor)


def _memory_filesystem(facts: Facts) -> Finding | None:
    kind = facts.get("filesystem_type")
    return Finding.of("target_in_memory", file_system=kind) if kind in MEMORY_FILESYSTEMS else None


def _loop(facts: Facts) -> Finding | None:
    if facts.get("loop_direct_io") is not False:
        return None
    return Finding.of("loop_device", device=str(facts.get("device_name")))


def _read_ahead(facts: Facts) -> Finding | None:
    size = facts.get("read_ahead_bytes")
    if size is None or size < READ_AHEAD_MAX_BYTES:
        return None
    return Finding.of("read_ahead", read_ahead_bytes=size)
