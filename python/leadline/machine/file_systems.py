"""File systems that can be made for a test: their block sizes, and the programs that make them."""

from __future__ import annotations

import mmap
import os
import shutil
import subprocess
from pathlib import Path

import msgspec

from leadline.errors import TargetRefused
from leadline.machine.loop_devices import why_no_loop_devices
from leadline.units import format_bytes

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"
_MAKE_S = 120.0
_SAID_BYTES = 200


class Maker(msgspec.Struct, frozen=True, kw_only=True):
    """How one type of file system is made."""

    command: tuple[str, ...]
    """`{block}` stands for the block's bytes. Nothing is discarded, because a hole in the image
    would be read from nowhere, and nothing is left to be initialised while files are timed."""
    package: str
    blocks_bytes: tuple[int, ...]
    """Blocks that the kernel mounts here."""
    usual_blocks_bytes: tuple[int, ...]
    """Blocks that are tested when none were asked for."""
    options: str = ""
    """For the mount."""


_PAGE_BYTES = mmap.PAGESIZE

MAKERS = {
    "ext4": Maker(
        command=(
            "mkfs.ext4",
            "-q",
            "-F",
            "-b",
            "{block}",
            "-m",
            "0",
            "-E",
            "nodiscard,lazy_itable_init=0,lazy_journal_init=0",
        ),
        package="e2fsprogs",
        blocks_bytes=(1024, 2048, 4096),
        usual_blocks_bytes=(1024, 2048, 4096),
    ),
    "xfs": Maker(
        command=("mkfs.xfs", "-q", "-f", "-K", "-b", "size={block}"),
        package="xfsprogs",
        blocks_bytes=(1024, 2048, 4096),
        usual_blocks_bytes=(4096,),
    ),
    "btrfs": Maker(
        command=("mkfs.btrfs", "-q", "-f", "-K", "-s", "{block}"),
        package="btrfs-progs",
        blocks_bytes=(_PAGE_BYTES,),
        usual_blocks_bytes=(_PAGE_BYTES,),
        options="nodiscard",
    ),
}


def usual_blocks(fs: str) -> tuple[int, ...]:
    """Return the block sizes that are tested when none were asked for."""
    return MAKERS[fs].usual_blocks_bytes


def why_not_made(fs: str, block_bytes: int) -> str | None:
    """Return why this file system cannot be made and mounted here; None when it may be tried."""
    maker = MAKERS[fs]
    if os.geteuid() != 0:
        return "making file systems needs root"
    if block_bytes not in maker.blocks_bytes:
        known = ", ".join(format_bytes(size) for size in maker.blocks_bytes)
        return f"{fs} has no blocks of {format_bytes(block_bytes)} here (it has {known})"
    if _program(maker) is None:
        return f"{maker.command[0]} is not installed (package {maker.package})"
    return why_no_loop_devices()


def make_file_system(fs: str, block_bytes: int, device: Path) -> None:
    """Make a fresh file system on a device that was made for it.

    Raises:
        TargetRefused: the program failed; the message says what it said.

    """
    maker = MAKERS[fs]
    program = _program(maker)
    if program is None:
        raise TargetRefused(f"{maker.command[0]} is not installed (package {maker.package})")
    rest = [part.format(block=block_bytes) for part in maker.command[1:]]
    try:
        done = subprocess.run(
            [program, *rest, str(device)],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_MAKE_S,
            check=False,
            cwd="/",
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise TargetRefused(f"{maker.command[0]} failed on {device}: {error}") from error
    if done.returncode != 0:
        said = " ".join((done.stderr or done.stdout).split())[:_SAID_BYTES]
        raise TargetRefused(f"{maker.command[0]} failed on {device}: {said}")


def mount_document(fs: str, device: Path) -> dict[str, str]:
    """Return what the engine is told to mount."""
    return {"device": str(device), "type": fs, "options": MAKERS[fs].options}


def _program(maker: Maker) -> str | None:
    return shutil.which(maker.command[0], path=f"{os.environ.get('PATH', '')}:{_SBIN}")
