"""Limits that the own cgroup, or one above it, puts on a block device (blk-throttle).

Two systems on one disk that differ in nothing but such a limit would otherwise look alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from leadline.machine.block_device import Place
from leadline.machine.hierarchy import groups_above
from leadline.machine.kernel_files import attempt, text

_VERSION_1 = {
    "rbps": "blkio.throttle.read_bps_device",
    "wbps": "blkio.throttle.write_bps_device",
    "riops": "blkio.throttle.read_iops_device",
    "wiops": "blkio.throttle.write_iops_device",
}
_WORDS = {"rbps": "reads", "wbps": "writes", "riops": "reads", "wiops": "writes"}


def device_throttle(place: Place) -> str | None:
    """Return the least limits on the disk under a directory; `none`, or None if it is no disk."""
    number = text(place.device / "dev") if place.device else None
    if number is None:
        return None
    return attempt(lambda: format_limits(least_limits(number, groups_above("blkio"))))


def least_limits(number: str, groups: list[Path]) -> dict[str, int]:
    """Return the least of every limit on the device `major:minor`."""
    least: dict[str, int] = {}
    for group in groups:
        for kind, limit in _limits(number, group):
            least[kind] = min(limit, least.get(kind, limit))
    return least


def format_limits(limits: dict[str, int]) -> str:
    """Say limits as `reads 50 MB/s, writes 2000/s`; `none` without any."""
    said = [
        f"{_WORDS[kind]} {limits[kind] / 1e6:g} MB/s"
        if kind.endswith("bps")
        else f"{_WORDS[kind]} {limits[kind]}/s"
        for kind in _WORDS
        if kind in limits
    ]
    return ", ".join(said) or "none"


def _limits(number: str, group: Path) -> Iterator[tuple[str, int]]:
    for line in (text(group / "io.max") or "").splitlines():
        device, *pairs = line.split()
        for kind, _, limit in (pair.partition("=") for pair in pairs if device == number):
            if limit.isdigit():
                yield kind, int(limit)
    for kind, name in _VERSION_1.items():
        for line in (text(group / name) or "").splitlines():
            device, _, limit = line.partition(" ")
            if device == number and limit.strip().isdigit():
                yield kind, int(limit)
