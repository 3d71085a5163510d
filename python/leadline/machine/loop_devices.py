"""Image files as block devices (loop(4)), by direct I/O, gone with whoever holds them.

The kernel is told from the first moment to clear a device when its last user is gone
(LO_FLAGS_AUTOCLEAR), and the only users are our open handle and the mounts in the engine's own
namespace: no end of Leadline, `kill -9` included, leaves a device behind.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.errors import EngineFault, TargetRefused
from leadline.machine.stop import shielded

CONTROL = Path("/dev/loop-control")
_LOOP_CONFIGURE = 0x4C0A
_LOOP_CTL_GET_FREE = 0x4C82
_AUTOCLEAR, _DIRECT_IO = 4, 16
_CONFIG = struct.Struct("=II 5Q 4I 64s 64s 32s 2Q 8Q")
"""`struct loop_config` of linux/loop.h: fd, block size, `struct loop_info64`, eight reserved."""
_TRIES = 50
_CLEARED_S = 5.0


def why_no_loop_devices() -> str | None:
    """Return why this process cannot have loop devices; None when it can."""
    if os.geteuid() != 0:
        return "loop devices need root"
    if not CONTROL.exists():
        return f"there is no {CONTROL}: this machine or container has no loop devices"
    try:
        os.close(os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return f"{CONTROL} cannot be opened: {error.strerror}"
    return None


class LoopDevice:
    """An image file as a block device; `close` lets go of it."""

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd = fd

    def close(self) -> None:
        """Let go, and wait until the kernel has cleared it; doing it again does nothing.

        Raises:
            EngineFault: somebody else still uses the device.

        """
        with shielded():
            if self._fd < 0:
                return
            fd, self._fd = self._fd, -1
            os.close(fd)
            end = time.monotonic() + _CLEARED_S
            # Its own image is the sign: another program may have taken the number meanwhile.
            while _backing_file(self.path) is not None:
                if time.monotonic() > end:
                    raise EngineFault(
                        f"{self.path} is still in use by another program; it is cleared by itself "
                        f"when that lets go (`losetup {self.path}` shows it)"
                    )
                time.sleep(0.01)


@contextmanager
def loop_device(image: Path | int) -> Iterator[LoopDevice]:
    """Make a block device of a file, with direct I/O, until the block ends.

    Args:
        image: the file; an open one where others might change what its path leads to. It stays
            the caller's to close, at once if he likes.

    Raises:
        TargetRefused: there is none free, or the file takes no direct I/O, so that its file
            system's cache would stand between.

    """
    device = None
    try:
        with shielded():
            device = _attach(image)
        if not _is_direct(device.path):
            raise TargetRefused(
                f"{_home(image)} takes no direct I/O from a loop device: the page cache would be "
                "measured, not the drive"
            )
        yield device
    finally:
        if device is not None:
            device.close()


def _home(image: Path | int) -> Path:
    path = image if isinstance(image, Path) else Path(f"/proc/self/fd/{image}").readlink()
    return path.parent


def _attach(image: Path | int) -> LoopDevice:
    if isinstance(image, int):
        image_fd = os.dup(image)
    else:
        image_fd = os.open(image, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        for _ in range(_TRIES):
            path = _free_device()
            device_fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                fcntl.ioctl(device_fd, _LOOP_CONFIGURE, _configuration(image_fd))
            except OSError as error:
                os.close(device_fd)
                if error.errno == errno.EBUSY:  # another program was faster
                    continue
                raise
            return LoopDevice(path, device_fd)
    except OSError as error:
        raise TargetRefused(f"no loop device can be had: {error.strerror}") from error
    finally:
        os.close(image_fd)
    raise TargetRefused("no loop device can be had: others take them faster than Leadline")


def _free_device() -> Path:
    control_fd = os.open(CONTROL, os.O_RDWR | os.O_CLOEXEC)
    try:
        number = fcntl.ioctl(control_fd, _LOOP_CTL_GET_FREE)
    finally:
        os.close(control_fd)
    path = Path(f"/dev/loop{number}")
    if not path.exists():
        raise TargetRefused(
            f"the kernel has {path}, but /dev has not: a container needs it as a device node"
        )
    if not stat.S_ISBLK(path.stat().st_mode):
        raise TargetRefused(f"{path} is no block device")
    return path


def _configuration(image_fd: int) -> bytes:
    nothing = (0,) * 5
    return _CONFIG.pack(
        image_fd,
        0,
        *nothing,
        0,
        0,
        0,
        _AUTOCLEAR | _DIRECT_IO,
        b"leadline",
        b"",
        b"",
        0,
        0,
        *(0,) * 8,
    )


def _backing_file(device: Path) -> str | None:
    try:
        return Path(f"/sys/block/{device.name}/loop/backing_file").read_text().strip()
    except OSError:
        return None


def _is_direct(device: Path) -> bool:
    try:
        return Path(f"/sys/block/{device.name}/loop/dio").read_text().strip() == "1"
    except OSError:
        return False
