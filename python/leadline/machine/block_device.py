"""What /sys tells of the file system's mount and of the block device under it."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from leadline.machine.kernel_files import PROC, SYS, attempt, entries, flag, number, text
from leadline.machine.mounts import Mount, mount_of
from leadline.machine.space import Space, read_space

_SHARE_MIN = 0.05
"""A processor that served fewer of the device's interrupts than this is not named."""


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """A directory with its mount and its device, as far as they can be told."""

    directory: Path
    mount: Mount | None
    device: Path | None
    """The disk in /sys/block; a partition has its disk's."""
    space: Space | None

    @property
    def queue(self) -> Path | None:
        """The device's queue directory."""
        return self.device / "queue" if self.device else None


def place_of(directory: str | Path) -> Place:
    """Look at what lies under a directory."""
    mount = attempt(lambda: mount_of(directory))
    return Place(
        directory=Path(directory),
        mount=mount,
        device=attempt(lambda: _device(mount)) if mount else None,
        space=attempt(lambda: read_space(directory)),
    )


def _device(mount: Mount) -> Path | None:
    device = SYS / "dev/block" / mount.device
    if not device.exists() and mount.source.startswith("/dev/"):
        device = SYS / "class/block" / Path(mount.source).resolve().name
    for found in (device, device.resolve().parent):
        if (found / "queue").is_dir():
            return found.resolve()
    return None


def queue_number(place: Place, name: str) -> int | None:
    """Return a number of the device's queue."""
    return number(place.queue / name) if place.queue else None


def mount_options(place: Place) -> str | None:
    """Return the options of the mount and of its file system, sorted."""
    mount = place.mount
    return ",".join(sorted({*mount.options, *mount.super_options})) if mount else None


def filesystem_block_bytes(place: Place) -> int | None:
    """Return the file system's own block."""
    return attempt(lambda: os.statvfs(place.directory).f_bsize)


def device_bytes(place: Place) -> int | None:
    """Return the device's size."""
    sectors = number(place.device / "size") if place.device else None
    return sectors * 512 if sectors is not None else None  # always of 512 bytes


def read_ahead_bytes(place: Place) -> int | None:
    """Return how far a buffered sequential read looks ahead at most."""
    kib = queue_number(place, "read_ahead_kb")
    return kib * 1024 if kib is not None else None


def hardware_queue_count(place: Place) -> int | None:
    """Return the queues that the device takes requests from."""
    return entries(place.device / "mq") if place.device else None


def loop_backing_file(place: Place) -> str | None:
    """Return the file that a loop device stands for."""
    return text(place.device / "loop/backing_file") if place.device else None


def loop_direct_io(place: Place) -> bool | None:
    """Whether a loop device reads its file by direct I/O; None when it is no loop device."""
    return flag(place.device / "loop/dio") if place.device else None


def interrupt_cpus(place: Place, interrupts: Path = PROC / "interrupts") -> str | None:
    """Return the processors that served the device's interrupts since the machine started."""
    device = place.device
    numbers = attempt(lambda: _interrupt_numbers(device)) if device else None
    lines = (text(interrupts) or "").splitlines()
    if not numbers or not lines:
        return None
    names = [head.removeprefix("CPU") for head in lines[0].split()]
    served = dict.fromkeys(names, 0)
    for line in lines[1:]:
        irq, _, rest = line.partition(":")
        if irq.strip() in numbers:
            for name, count in zip(names, rest.split(), strict=False):
                served[name] += int(count) if count.isdigit() else 0
    total = sum(served.values())
    busy = [name for name, count in served.items() if total and count >= _SHARE_MIN * total]
    return ",".join(busy) or None


def _interrupt_numbers(device: Path) -> set[str]:
    """Find the device's interrupts at the nearest bus device above it that has any."""
    own = (device / "device").resolve()
    for above in (own, *own.parents):
        if (above / "msi_irqs").is_dir():
            return {entry.name for entry in (above / "msi_irqs").iterdir()}
        irq = number(above / "irq")
        if irq:
            return {str(irq)}
        if above.name == "devices":
            break
    return set()
