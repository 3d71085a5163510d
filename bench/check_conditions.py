"""Is this machine calm enough for a claim about speed, and did it stay so?

Foreign is every process that neither is this one nor descends from it; the kernel's own threads
are not counted, since they work for whoever does I/O.
"""

from __future__ import annotations

import os
import shutil
import time
from dataclasses import dataclass
from pathlib import Path

from leadline.machine.block_device import place_of
from leadline.machine.kernel_files import text
from leadline.record.result import CALM_FOREIGN_CPU_MAX, CALM_STEAL_SHARE_MAX

DEVICE_BUSY_MAX = 0.05
"""Share of time in which the device may be at work before a claim."""
FREE_BYTES_MIN = 8 << 30
LOOK_S = 1.0
CALM_WAIT_S = 20.0
"""How long a busy host is waited for before a claim is left open."""
_KERNEL_THREADS = 2
_TICKS_S = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Process:
    """One line of the process table."""

    parent: int
    began: int
    cpu_s: float
    """Its own, and that of children it has waited for."""


Table = dict[int, Process]


@dataclass(frozen=True)
class Look:
    """What is counted at one moment."""

    at_s: float
    table: Table
    steal_s: float
    device_busy_s: float | None


def look(directory: Path) -> Look:
    """Take down all counters now."""
    words = (text(Path("/proc/stat")) or "").partition("\n")[0].split()
    steal_s = int(words[8]) / _TICKS_S if len(words) > 8 else 0.0
    return Look(time.monotonic(), _processes(), steal_s, _device_busy_s(directory))


def why_not_calm_between(before: Look, after: Look) -> str | None:
    """Say what others did between two looks that spoils a claim; None when nothing did."""
    wall_s = after.at_s - before.at_s
    foreign = foreign_cpu_s(before.table, after.table, os.getpid()) / wall_s
    if foreign > CALM_FOREIGN_CPU_MAX:
        return f"other programs used {foreign:.2f} processors"
    steal = (after.steal_s - before.steal_s) / wall_s / (os.cpu_count() or 1)
    if steal > CALM_STEAL_SHARE_MAX:
        return f"the host took {steal:.0%} of the processors"
    return None


def why_not_calm(directory: Path) -> str | None:
    """Wait a while for a calm machine; say why it is none, or return None."""
    end_s = time.monotonic() + CALM_WAIT_S
    while True:
        before = look(directory)
        time.sleep(LOOK_S)
        after = look(directory)
        why = why_not_calm_between(before, after) or _why_device_busy(before, after)
        if why is None or time.monotonic() > end_s:
            return why


def why_no_room(directory: Path) -> str | None:
    """Say that the disk is too full for the data of the claims; None when it is not."""
    free_bytes = shutil.disk_usage(directory).free
    if free_bytes < FREE_BYTES_MIN:
        return f"only {free_bytes / 2**30:.1f} GiB are free under {directory}"
    return None


def foreign_cpu_s(before: Table, after: Table, own: int) -> float:
    """Return the processor time of others between two tables.

    A new process is foreign when one that was there before has begun it; a daemon whose parent is
    gone is taken for ours, since nobody else's is known.
    """
    handed_s = _handed_up_s(before, after)
    used_s = 0.0
    for number, process in after.items():
        ancestor = _known_ancestor(number, before, after)
        if ancestor in (0, 1) or _descends(ancestor, own, before):
            continue
        known_s = before[number].cpu_s if _is_same(number, before, after) else 0.0
        used_s += max(0.0, process.cpu_s - known_s - handed_s.get(number, 0.0))
    return used_s


def _handed_up_s(before: Table, after: Table) -> dict[int, float]:
    """Time that ended processes had used before; their nearest ancestor alive has it now."""
    handed_s: dict[int, float] = {}
    for number, process in before.items():
        if _is_same(number, before, after):
            continue
        heir = process.parent
        while heir in before and not _is_same(heir, before, after):
            heir = before[heir].parent
        handed_s[heir] = handed_s.get(heir, 0.0) + process.cpu_s
    return handed_s


def _is_same(number: int, before: Table, after: Table) -> bool:
    return number in before and number in after and before[number].began == after[number].began


def _known_ancestor(number: int, before: Table, after: Table) -> int:
    while number in after and not _is_same(number, before, after):
        number = after[number].parent
    return number


def _descends(number: int, from_whom: int, table: Table) -> bool:
    while number in table:
        if number == from_whom:
            return True
        number = table[number].parent
    return False


def _processes() -> Table:
    found: Table = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        words = (text(entry / "stat") or "").rpartition(")")[2].split()
        if len(words) < 20 or _KERNEL_THREADS in (int(words[1]), int(entry.name)):
            continue
        found[int(entry.name)] = Process(
            parent=int(words[1]),
            began=int(words[19]),
            cpu_s=sum(int(word) for word in words[11:15]) / _TICKS_S,
        )
    return found


def _device_busy_s(directory: Path) -> float | None:
    place = place_of(directory)
    words = (text(place.device / "stat") or "").split() if place.device else []
    return int(words[9]) / 1e3 if len(words) > 9 else None


def _why_device_busy(before: Look, after: Look) -> str | None:
    if before.device_busy_s is None or after.device_busy_s is None:
        return None
    share = (after.device_busy_s - before.device_busy_s) / (after.at_s - before.at_s)
    return f"the device is at work {share:.0%} of the time" if share > DEVICE_BUSY_MAX else None
