"""Phases of kernels in the order of the paper, for charts, tables and terminals alike."""

from __future__ import annotations

from collections.abc import Iterable

from leadline.record.streaming import KERNELS

Group = tuple[str, str]
"""Kernel and phase."""
_PHASES = ("read", "write", "runs", "merge", "tiles")


def groups_of(cells: Iterable[Group]) -> list[Group]:
    """Return each pair of kernel and phase once, in the order of the paper."""
    found = set(cells)
    known = [(kernel, phase) for kernel in KERNELS for phase in _PHASES]
    return [group for group in known if group in found] + sorted(found - set(known))


def group_name(kernel: str, phase: str) -> str:
    """Write the group as data has it: `sort read`."""
    return f"{kernel} {phase}"
