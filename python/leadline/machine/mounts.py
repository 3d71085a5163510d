"""Mounted file systems as /proc/PID/mountinfo lists them (proc(5))."""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

_ESCAPE = re.compile(r"\\([0-7]{3})")
_IN_MEMORY = frozenset({"tmpfs", "ramfs", "hugetlbfs", "devtmpfs"})


class Mount(msgspec.Struct, frozen=True, kw_only=True):
    """One mounted file system."""

    device: str
    """major:minor, as st_dev of the files on it (not for Btrfs, which numbers sub-volumes)."""
    root: str
    point: str
    options: tuple[str, ...]
    type: str
    source: str
    super_options: tuple[str, ...]


def read_mounts(process: Path = Path("/proc/self")) -> tuple[Mount, ...]:
    """Return the mounts in the order they were made; a later one hides an earlier one."""
    lines = (process / "mountinfo").read_text().splitlines()
    return tuple(mount for line in lines if (mount := _parse(line)))


def mount_of(path: str | Path) -> Mount | None:
    """Return the mount that holds `path`; None when it cannot be told."""
    resolved = Path(os.path.realpath(path))
    holding = [mount for mount in read_mounts() if resolved.is_relative_to(mount.point)]
    longest = max((len(Path(mount.point).parts) for mount in holding), default=0)
    return next(
        (mount for mount in reversed(holding) if len(Path(mount.point).parts) == longest), None
    )


def is_in_memory(path: str | Path) -> bool:
    """Tell whether the files of a path are memory and nothing else: no disk lies behind them."""
    mount = mount_of(path)
    return mount is not None and mount.type in _IN_MEMORY


def _parse(line: str) -> Mount | None:
    before, separator, after = line.partition(" - ")
    fields, rest = before.split(" "), after.split(" ")
    if not separator or len(fields) < 6 or len(rest) < 3:
        return None
    return Mount(
        device=fields[2],
        root=_unescape(fields[3]),
        point=_unescape(fields[4]),
        options=tuple(fields[5].split(",")),
        type=rest[0],
        source=_unescape(rest[1]),
        super_options=tuple(rest[2].split(",")),
    )


def _unescape(text: str) -> str:
    return _ESCAPE.sub(lambda match: chr(int(match[1], 8)), text)
