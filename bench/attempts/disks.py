"""Small file systems of our own to fill, lose and break; all are gone when their block ends."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

MIB = 1 << 20
GIB = 1 << 30
FLOOR_BYTES = GIB
"""Leadline leaves so much free: a file system that it is to use has more."""


def why_no_mounts() -> str:
    """Say why nothing can be mounted here; nothing when it can."""
    return "" if os.geteuid() == 0 else "only root may mount"


@contextmanager
def mounted_ext4(image: Path, at: Path, size_bytes: int) -> Iterator[Path]:
    """Mount a new ext4 in a sparse image through a loop device."""
    with image.open("wb") as file:
        file.truncate(size_bytes)
    quick = "lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    _do("mkfs.ext4", "-q", "-F", "-m", "0", "-E", quick, "-O", "^has_journal", str(image))
    at.mkdir(exist_ok=True)
    _do("mount", "-o", "loop,noatime", str(image), str(at))
    try:
        (at / "lost+found").rmdir()
        yield at
    finally:
        unmount(at)
        image.unlink()


@contextmanager
def mounted_memory(at: Path, size_bytes: int) -> Iterator[Path]:
    """Mount a tmpfs."""
    at.mkdir(exist_ok=True)
    _do("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "leadline-fault", str(at))
    try:
        yield at
    finally:
        unmount(at)


def resize_memory(at: Path, size_bytes: int) -> None:
    """Give a tmpfs another size."""
    _do("mount", "-o", f"remount,size={size_bytes}", str(at))


def unmount(at: Path) -> None:
    """Unmount, also where it is still in use; what is not mounted stays as it is."""
    # Not asked first whether it is a mount: of a dead file system nothing can be asked.
    subprocess.run(["umount", "-l", str(at)], check=False, capture_output=True)


def fill(folder: Path) -> Path:
    """Take all the room there is, in a file that is returned."""
    filler = folder / "filler"
    with filler.open("wb") as file:
        for step in (256 * MIB, MIB, 4096):
            with suppress(OSError):
                while True:
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, step)
    return filler


def is_full(folder: Path) -> bool:
    """Whether a byte more is refused."""
    probe = folder / "probe"
    try:
        probe.write_bytes(b"x" * 65536)
    except OSError as error:
        return error.errno == errno.ENOSPC
    finally:
        with suppress(OSError):
            probe.unlink()
    return False


def _do(*words: str) -> None:
    path = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"
    subprocess.run(words, check=True, capture_output=True, env=os.environ | {"PATH": path})
