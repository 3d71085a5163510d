"""A memory cgroup for the engine child, so that a large machine has a small page cache.

Version 2 or version 1, whichever of them has the memory controller here. The group is made below
the own one (docs: Control Group v1 "Memory Resource Controller", Control Group v2 §2.3-2.4). Under
version 2 a group that holds processes cannot hand controllers down, so there a sibling is made when
the parent already hands them down and the own group has no limit that this would evade.
Page cache is charged to the group that first touches a page: the child itself writes the data
file, hence every page of it is under the limit.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.errors import CacheLimitRefused, EngineFault
from leadline.machine.hierarchy import Hierarchy, find_hierarchy
from leadline.machine.stop import shielded
from leadline.units import format_bytes

LIMIT_MIN_BYTES = 32 * 2**20
"""The engine's own memory and its request buffers need about half of this."""
_NAME = re.compile(r"leadline-([0-9]+)-[0-9a-f]{8}\Z")
_REMOVAL_S = 2.0
"""The kernel lets go of a group a moment after its last process was reaped."""
_HINT = "leave --cache-limit out to survey with the machine's whole memory"


class MemoryCgroup:
    """A group with a memory limit; processes are put in by `adopt`."""

    def __init__(self, path: Path, hierarchy: Hierarchy, limit_bytes: int) -> None:
        self.path = path
        self.limit_bytes = limit_bytes
        self.version = hierarchy.version
        self._process = os.getpid()

    def adopt(self, pid: int) -> None:
        """Move a process into the group; what it allocates from now on is charged to it.

        Raises:
            CacheLimitRefused: the kernel does not allow it.

        """
        try:
            (self.path / "cgroup.procs").write_text(str(pid))
            inside = (self.path / "cgroup.procs").read_text().split()
        except ProcessLookupError:
            return  # it is dead already; whoever talks to it will say so
        except OSError as error:
            raise CacheLimitRefused(
                f"--cache-limit: the engine cannot be moved into {self.path} ({error.strerror}); "
                f"{_HINT}"
            ) from error
        if str(pid) not in inside and Path(f"/proc/{pid}").exists():
            raise CacheLimitRefused(
                f"--cache-limit: the engine did not arrive in {self.path}; {_HINT}"
            )

    def usage_bytes(self) -> int:
        """Return the memory charged now, page cache included."""
        name = "memory.current" if self.version == 2 else "memory.usage_in_bytes"
        return int((self.path / name).read_text())

    def stat(self) -> dict[str, int]:
        """Return `memory.stat` as the kernel names it: `cache` (v1) or `file` (v2), and so on."""
        return _table(self.path / "memory.stat")

    def oom_kills(self) -> int:
        """Count the processes of the group that the kernel killed for want of memory."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        return _table(self.path / name).get("oom_kill", 0)

    def remove(self) -> None:
        """Remove the group; its processes must be gone."""
        if os.getpid() != self._process:
            return
        with shielded():
            end = time.monotonic() + _REMOVAL_S
            while True:
                try:
                    self.path.rmdir()
                except FileNotFoundError:
                    return
                except OSError as error:
                    if time.monotonic() > end:
                        raise EngineFault(
                            f"the memory cgroup {self.path} could not be removed "
                            f"({error.strerror}); the next start tries again"
                        ) from error
                    time.sleep(0.01)
                else:
                    return


@contextmanager
def memory_cgroup(
    limit_bytes: int, *, process: Path = Path("/proc/self")
) -> Iterator[MemoryCgroup]:
    """Make a group with this memory limit, verified by reading it back, until the block ends.

    Raises:
        CacheLimitRefused: this machine or this user cannot have it; the message says why.

    """
    _check_size(limit_bytes)
    hierarchy = find_hierarchy(process)
    remove_stale(hierarchy.parent)
    group = None
    try:
        with shielded():
            group = _make(hierarchy, limit_bytes)
            _limit(group)
        yield group
    finally:
        if group is not None:
            group.remove()


def remove_stale(parent: Path) -> None:
    """Remove the empty groups of Leadlines that were killed; a living one's group stays."""
    with contextlib.suppress(OSError):
        for group in parent.iterdir():
            name = _NAME.match(group.name)
            if name and not Path(f"/proc/{name[1]}").exists():
                # Not empty means that a child is still dying: then the next start does it.
                with contextlib.suppress(OSError):
                    group.rmdir()


def _check_size(limit_bytes: int) -> None:
    if limit_bytes < LIMIT_MIN_BYTES:
        raise CacheLimitRefused(
            f"--cache-limit {format_bytes(limit_bytes)} is too small: the engine itself needs room "
            f"below the limit; give at least {format_bytes(LIMIT_MIN_BYTES)}"
        )
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    if limit_bytes >= memory_bytes:
        raise CacheLimitRefused(
            f"--cache-limit {format_bytes(limit_bytes)} is no limit on a machine with "
            f"{format_bytes(memory_bytes)} of memory; give less, or leave it out"
        )


def _make(hierarchy: Hierarchy, limit_bytes: int) -> MemoryCgroup:
    path = hierarchy.parent / f"leadline-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    try:
        path.mkdir()
    except OSError as error:
        raise CacheLimitRefused(
            f"--cache-limit needs a memory cgroup, and none may be made in {hierarchy.parent} "
            f"({error.strerror}); run as root or under "
            f"`systemd-run --user --scope -p Delegate=yes`, or {_HINT}"
        ) from error
    return MemoryCgroup(path, hierarchy, limit_bytes)


def _limit(group: MemoryCgroup) -> None:
    limit = group.path / ("memory.max" if group.version == 2 else "memory.limit_in_bytes")
    swap = group.path / ("memory.swap.max" if group.version == 2 else "memory.swappiness")
    try:
        _write(limit, str(group.limit_bytes))
        # Swapping the engine out would blur the limit; a kernel without swap lacks the file.
        with contextlib.suppress(OSError):
            _write(swap, "0")
        now = limit.read_text().strip()
    except OSError as error:
        raise CacheLimitRefused(
            f"--cache-limit: the limit cannot be set in {limit} ({error.strerror}); {_HINT}"
        ) from error
    page = os.sysconf("SC_PAGE_SIZE")
    if not now.isdigit() or not group.limit_bytes - page < int(now) <= group.limit_bytes:
        raise CacheLimitRefused(
            f"--cache-limit: asked for {group.limit_bytes} bytes, but {limit} says {now}; {_HINT}"
        )
    outer = _outer_limit(group)
    if outer is not None and outer < group.limit_bytes - page:
        raise CacheLimitRefused(
            f"--cache-limit {format_bytes(group.limit_bytes)}: this process may itself use only "
            f"{format_bytes(outer)} (its own cgroup says so); give less than that"
        )


def _write(path: Path, text: str) -> None:
    # Opened for update, because a cgroup file that is missing must not be made.
    with path.open("r+") as file:
        file.write(text)


def _outer_limit(group: MemoryCgroup) -> int | None:
    if group.version == 1:
        return group.stat().get("hierarchical_memory_limit")
    limits = []
    for above in group.path.parents:
        with contextlib.suppress(OSError):
            text = (above / "memory.max").read_text().strip()
            if text.isdigit():
                limits.append(int(text))
    return min(limits, default=None)


def _table(path: Path) -> dict[str, int]:
    pairs = (line.split() for line in path.read_text().splitlines())
    return {pair[0]: int(pair[1]) for pair in pairs if len(pair) == 2 and pair[1].isdigit()}
