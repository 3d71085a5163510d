"""What a process and its places hold at one moment."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import msgspec

KIB = 1024


class Look(msgspec.Struct, kw_only=True):
    """One look; None where there is nothing of the kind to look at."""

    at_s: float
    """Since the course began."""
    rss_kib: int
    """Resident memory of the process that runs Leadline (proc(5), VmRSS)."""
    peak_kib: int = 0
    """The most that it ever was (VmHWM)."""
    engine_kib: int | None = None
    """Resident memory of its engine child, the largest where there are several."""
    handles: int
    threads: int
    children: int
    temporary: int
    """Files and directories below its own temporary directory."""
    in_target: int
    """The same below the target."""
    target_kib: int = 0
    """Room that those take."""
    store_kib: int


class Places(msgspec.Struct, frozen=True):
    """Where a course keeps its things."""

    target: Path
    store: Path
    temporary: Path


def look(at_s: float, places: Places, pid: int | None = None) -> Look:
    """Look at this process, or at another one of ours."""
    process = Path(f"/proc/{os.getpid() if pid is None else pid}")
    own = status_of(process)
    children = children_of(process)
    engines = [kib(status_of(Path(f"/proc/{child}")), "VmRSS") for child in children]
    laid = list(places.target.rglob("*"))
    return Look(
        at_s=at_s,
        rss_kib=kib(own, "VmRSS"),
        peak_kib=kib(own, "VmHWM"),
        engine_kib=max(engines, default=None),
        # The listing itself is a handle.
        handles=len(os.listdir(process / "fd")) - (pid is None),  # noqa: PTH208 - a number
        threads=int(own.get("Threads", "0")),
        children=len(children),
        temporary=len(list(places.temporary.rglob("*"))),
        in_target=len(laid),
        target_kib=_room_kib(laid),
        store_kib=_room_kib(places.store.parent.rglob("*")),
    )


def status_of(process: Path) -> dict[str, str]:
    """Return a process's status by its keys; nothing of one that has ended."""
    with suppress(OSError):
        lines = (process / "status").read_text(encoding="utf-8").splitlines()
        return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}
    return {}


def children_of(process: Path) -> list[int]:
    """Return the processes that any thread of it has started and that live."""
    found = []
    for task in process.glob("task/*/children"):
        with suppress(OSError):
            found += [int(word) for word in task.read_text(encoding="ascii").split()]
    return found


def kib(status: dict[str, str], key: str) -> int:
    """Return an amount of memory that a status tells; 0 where it tells none."""
    return int(status.get(key, "0 kB").split()[0])


def _room_kib(paths: Iterable[Path]) -> int:
    total = 0
    for path in paths:
        with suppress(OSError):  # it may go away meanwhile
            total += path.lstat().st_blocks * 512 // KIB
    return total
