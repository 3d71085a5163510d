"""Which cgroup hierarchy holds the memory controller, and where a group may be made in it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import msgspec

from leadline.errors import CacheLimitRefused
from leadline.machine.mounts import Mount, read_mounts

_HINT = "leave --cache-limit out to survey with the machine's whole memory"


class Hierarchy(msgspec.Struct, frozen=True):
    """A place in which a group with a memory limit can be made."""

    version: int
    parent: Path


def own_groups(process: Path) -> dict[str, str]:
    """Return the path of the process's group by controller; version 2 has the empty name."""
    lines = (process / "cgroup").read_text().splitlines()
    groups = {}
    for line in lines:
        _, controllers, path = line.split(":", 2)
        groups.update(dict.fromkeys(controllers.split(","), path))
    return groups


def own_directory(process: Path, version: int) -> Path | None:
    """Return the directory of the process's own memory group; None when there is none."""
    path = own_groups(process).get("memory" if version == 1 else "")
    if path is None:
        return None
    for mount in read_mounts(process):
        if version == 1 and (mount.type != "cgroup" or "memory" not in mount.super_options):
            continue
        if version == 2 and mount.type != "cgroup2":
            continue
        own = _below(mount, path)
        if own is not None:
            return own
    return None


def groups_above(controller: str) -> list[Path]:
    """Return the groups whose limits hold here, of both versions: the own and those above it."""
    groups: list[Path] = []
    second = own_directory(Path("/proc/self"), 2)
    groups += (second, *second.parents) if second else ()
    path = own_groups(Path("/proc/self")).get(controller)
    for mount in read_mounts() if path is not None else ():
        if mount.type == "cgroup" and controller in mount.super_options and path is not None:
            own = Path(mount.point) / path.lstrip("/")
            groups += (own, *own.parents)
    return groups


def find_hierarchy(process: Path = Path("/proc/self")) -> Hierarchy:
    """Return where a memory group can be made, version 2 first.

    Raises:
        CacheLimitRefused: nowhere; the message says what is missing.

    """
    try:
        second = own_directory(process, 2)
        first = own_directory(process, 1)
    except OSError as error:
        raise CacheLimitRefused(
            f"--cache-limit: this system does not tell the process's cgroup ({error}); {_HINT}"
        ) from error
    if second is not None and "memory" in _words(second / "cgroup.controllers"):
        return Hierarchy(2, _second_parent(second))
    if first is not None:
        return Hierarchy(1, first)
    raise CacheLimitRefused(
        "--cache-limit needs the memory cgroup controller (version 1 or 2), and this process sees "
        f"neither; mount one, or run outside the container, or {_HINT}"
    )


def _second_parent(own: Path) -> Path:
    if "memory" in _words(own / "cgroup.subtree_control"):
        return own
    # Succeeds only in the root group or in one without processes ("no internal processes").
    with contextlib.suppress(OSError), (own / "cgroup.subtree_control").open("r+") as file:
        file.write("+memory")
    if "memory" in _words(own / "cgroup.subtree_control"):
        return own
    above = own.parent
    hands_down = "memory" in _words(above / "cgroup.subtree_control")
    unlimited = _words(own / "memory.max") in (("max",), ())
    if hands_down and unlimited and os.access(above, os.W_OK):
        return above
    raise CacheLimitRefused(
        f"--cache-limit: the cgroup {own} may not hand the memory controller down (it holds "
        "processes, or belongs to another user); run as root or under "
        f"`systemd-run --user --scope -p Delegate=yes`, or {_HINT}"
    )


def _below(mount: Mount, path: str) -> Path | None:
    """Translate a group's path into a directory; the mount may show only a part of the tree."""
    root = mount.root.rstrip("/")
    if path != root and not path.startswith(f"{root}/"):
        return None
    directory = Path(mount.point) / path[len(root) :].lstrip("/")
    return directory if directory.is_dir() else None


def _words(path: Path) -> tuple[str, ...]:
    try:
        return tuple(path.read_text().split())
    except OSError:
        return ()
