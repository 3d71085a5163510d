"""Disks of known speed under a server: throttled loop devices, striped by btrfs.

A kernel without device mapper still has btrfs, whose raid0 lays 64 KiB stripes over its devices.
Each is held to a number of requests per second by the block layer (blk-throttle), which keeps it to
about 1% (RECIPES §2). Only what reaches a disk is throttled: the page cache in front of them is
the machine's, unless the server's is capped.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from leadline.engine.targets.claim import usable
from leadline.engine.targets.dirfd import Folder
from leadline.errors import TargetRefused
from leadline.machine.cgroup import remove_stale
from leadline.machine.hierarchy import own_groups
from leadline.machine.loop_devices import loop_device, why_no_loop_devices
from leadline.machine.stop import shielded

DISKS_MAX = 16
_DISK_BYTES_MIN = 160 << 20
"""The least mkfs.btrfs takes is 125 MiB."""
_ROOM = 2.0
"""Of the data: a copy-on-write file system needs some of it while it rewrites."""
_FLOOR_BYTES = 1280 << 20
"""Leadline leaves 1 GiB free on every file system. The images are sparse: it takes no room."""
_BLKIO = Path("/sys/fs/cgroup/blkio")
_MAKE_S = 60.0
_OPTIONS = ("noatime", "nodatasum", "nosuid", "nodev", "noexec")


class StripedDisks:
    """Block devices of one file system, and the cgroup in which they are slow."""

    def __init__(self, devices: list[Path], group: Path) -> None:
        self._devices = devices
        self.group = group
        self.mount = (
            "-t",
            "btrfs",
            "-o",
            ",".join((*_OPTIONS, *(f"device={path}" for path in devices))),
            str(devices[0]),
        )
        """What `mount` is given."""

    def slow_down(self, requests_per_s: int) -> None:
        """Hold each disk to so many requests per second, of reads and of writes."""
        for device in self._devices:
            number = device.stat().st_rdev
            line = f"{os.major(number)}:{os.minor(number)} {requests_per_s}\n"
            for way in ("read", "write"):
                (self.group / f"blkio.throttle.{way}_iops_device").write_text(line)


def why_no_disks() -> str | None:
    """Return why this machine cannot have throttled disks; None when it can."""
    if why := why_no_loop_devices():
        return why
    if not (_BLKIO / "blkio.throttle.read_iops_device").exists():
        return f"there is no {_BLKIO}/blkio.throttle.read_iops_device (cgroup version 1, blkio)"
    return None


@contextmanager
def striped_disks(folder: Folder, count: int, data_bytes: int) -> Iterator[StripedDisks]:
    """Make `count` disks with a file system over them, until the block ends.

    Args:
        folder: where the images lie, open and claimed by the caller, who removes them.
        count: number of disks.
        data_bytes: what they are to hold together.

    Raises:
        TargetRefused: this machine has no loop devices or no file system for them.

    """
    disk_bytes = max(_DISK_BYTES_MIN, round((_ROOM * data_bytes + _FLOOR_BYTES) / count))
    with ExitStack() as stack:
        devices = []
        for number in range(count):
            with usable(folder.shown):
                image_fd = folder.make_file(f"image-{number}.bin")
                stack.callback(os.close, image_fd)
                os.ftruncate(image_fd, disk_bytes)
            devices.append(stack.enter_context(loop_device(image_fd)).path)
        _make_file_system(devices)
        yield StripedDisks(devices, stack.enter_context(_throttle_group()))


@contextmanager
def _throttle_group() -> Iterator[Path]:
    own = own_groups(Path("/proc/self")).get("blkio", "/").lstrip("/")
    group = _BLKIO / own / f"leadline-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    with shielded():
        remove_stale(group.parent)
        group.mkdir()
    try:
        yield group
    finally:
        with shielded():
            group.rmdir()


def _make_file_system(devices: list[Path]) -> None:
    profile = "raid0" if len(devices) > 1 else "single"
    command = ["mkfs.btrfs", "-q", "-f", "-d", profile, "-m", profile, *map(str, devices)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=_MAKE_S,
            check=False,
            cwd="/",
            env=os.environ | {"PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetRefused(f"mkfs.btrfs (package btrfs-progs): {error}") from error
    if done.returncode:
        raise TargetRefused(f"mkfs.btrfs failed: {' '.join(done.stderr.split())[:300]}")
