"""Disks and processors of known speed: throttled loop devices, and a quota of processor time.

Files on this machine's disk become loop devices with a file system each; a blkio cgroup of the
engine throttles every device by itself, a cpu cgroup limits its processor time. Both are held by
the kernel to about 1% (RECIPES §2), so what must be the limit is known beforehand.
"""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from leadline.engine.child import ENGINE_COMMAND
from leadline.machine.file_systems import make_file_system
from leadline.machine.loop_devices import loop_device, why_no_loop_devices

CGROUPS = Path("/sys/fs/cgroup")
PERIOD_US = 50_000
"""Of the quota: short, so that a phase of a second is throttled evenly."""
QUOTA_US_MIN = 1000
"""The kernel takes no less."""
FLOOR_BYTES = 2**30
"""What Leadline leaves free on every file system."""


def why_no_throttles() -> str | None:
    """Return why this machine cannot throttle; None when it can."""
    if os.geteuid() != 0:
        return "cgroups and mounts need root"
    if why := why_no_loop_devices():
        return why
    for file in ("blkio/blkio.throttle.read_bps_device", "cpu/cpu.cfs_quota_us"):
        if not (CGROUPS / file).exists():
            return f"there is no {CGROUPS / file}: cgroup v1 is not mounted so"
    return None


@dataclass(frozen=True)
class Disk:
    """A mounted file system on a loop device."""

    directory: Path
    number: str
    """Major and minor number, as the throttle wants it."""


@contextmanager
def loop_disks(directory: Path, count: int, room_bytes: int) -> Iterator[list[Disk]]:
    """Mount `count` file systems with this much room each; afterwards nothing is left.

    Images are sparse and made smaller than their contents may grow: only what is written is taken
    from this disk.
    """
    with ExitStack() as stack:
        disks = []
        for number in range(count):
            image = directory / f"disk-{number}.img"
            stack.callback(image.unlink, missing_ok=True)
            with image.open("wb") as file:
                file.truncate(FLOOR_BYTES + room_bytes + (256 << 20))
            device = stack.enter_context(loop_device(image))
            make_file_system("ext4", 4096, device.path)
            point = directory / f"disk-{number}"
            point.mkdir()
            stack.callback(point.rmdir)
            subprocess.run(["mount", str(device.path), str(point)], check=True, timeout=60)
            stack.callback(subprocess.run, ["umount", str(point)], check=True, timeout=60)
            info = device.path.stat().st_rdev
            disks.append(Disk(point, f"{os.major(info)}:{os.minor(info)}"))
        yield disks


class Throttle:
    """Two cgroups: what the engine in them may read, write and compute."""

    def __init__(self, blkio: Path, cpu: Path) -> None:
        self._blkio, self._cpu = blkio, cpu

    @property
    def command(self) -> tuple[str, ...]:
        """The engine, inside both groups from its first instruction."""
        join = "".join(f"echo $$ > {group}/cgroup.procs && " for group in (self._blkio, self._cpu))
        return ("sh", "-c", f'{join}exec "$@"', "engine", *ENGINE_COMMAND)

    def limit_disks(self, disks: Sequence[Disk], mb_s: float) -> None:
        """Limit every disk to this in either direction; 0 takes the limit away."""
        for disk in disks:
            for way in ("read", "write"):
                file = self._blkio / f"blkio.throttle.{way}_bps_device"
                file.write_text(f"{disk.number} {round(mb_s * 1e6)}\n")

    def limit_processors(self, processors: float | None) -> None:
        """Limit processor time to that of so many processors; None takes the limit away."""
        (self._cpu / "cpu.cfs_period_us").write_text(f"{PERIOD_US}\n")
        quota = -1 if processors is None else max(round(PERIOD_US * processors), QUOTA_US_MIN)
        (self._cpu / "cpu.cfs_quota_us").write_text(f"{quota}\n")


@contextmanager
def throttle() -> Iterator[Throttle]:
    """Make the groups until the block ends; the engine must have ended by then."""
    name = f"leadline-throttle-{uuid.uuid4().hex[:8]}"
    with ExitStack() as stack:
        groups = []
        for controller in ("blkio", "cpu"):
            group = CGROUPS / controller / _own(controller) / name
            group.mkdir()
            stack.callback(group.rmdir)
            groups.append(group)
        yield Throttle(*groups)


def _own(controller: str) -> str:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if controller in names.split(","):
            return path.lstrip("/")
    return ""
