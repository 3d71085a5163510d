"""The floor of free space that no run may touch (DESIGN.md, invariant 4)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from leadline.errors import TargetRefused
from leadline.units import format_bytes

FLOOR_FRAC = 0.05
FLOOR_BYTES = 2**30
SMALL_SHARE, SMALL_BYTES = 4, 256 << 20
"""Of one below 4 GiB this part stays free; one below 256 MiB has no room to measure in."""
FLOOR = "5%, at least 1 GiB, a quarter below 4 GiB"
_BOOKS_SHARE = 64
"""A file system keeps less than such a part of a file's size in books about it."""
USEFUL_BYTES = 2**20
"""Least room worth starting for: even a single request needs its bytes."""


class Space(msgspec.Struct, frozen=True):
    """Room on the file system that holds a directory."""

    total_bytes: int
    free_bytes: int
    """Free to an ordinary user: the blocks reserved for root are not counted."""

    @property
    def floor_bytes(self) -> int:
        """What must stay free: 5%, but at least 1 GiB, a quarter of less than 4 GiB."""
        small = self.total_bytes // SMALL_SHARE if self.total_bytes >= SMALL_BYTES else FLOOR_BYTES
        return max(int(self.total_bytes * FLOOR_FRAC), min(FLOOR_BYTES, small))

    @property
    def capacity_bytes(self) -> int:
        """What may be written, 0 when the floor is reached already."""
        return max(0, self.free_bytes - self.floor_bytes)


def read_space(directory: str | Path | int) -> Space:
    """Ask the file system of a directory, or of an open one."""
    answer = os.statvfs(directory)
    return Space(answer.f_blocks * answer.f_frsize, answer.f_bavail * answer.f_frsize)


def room_of(directory: str | Path | int, shown: str | None = None) -> Space:
    """Ask the file system of a target, by its path or a handle that is shown as `shown`.

    Raises:
        TargetRefused: it is not there any more.

    """
    try:
        return read_space(directory)
    except OSError as error:
        raise TargetRefused(
            f"{shown or directory} cannot be asked for its room: {error.strerror}; was it removed "
            "or unmounted meanwhile? What was measured before is kept"
        ) from error


def capacity_bytes(directory: str | Path | int) -> int:
    """Return the bytes that may be written below `directory` without touching the floor."""
    return room_of(directory).capacity_bytes


def require_space(directory: int, shown: str, needed_bytes: int) -> None:
    """Refuse when writing `needed_bytes` more into an open directory would touch the floor.

    Raises:
        TargetRefused: how much is free, how much is needed, and what stays free.

    """
    require_room(shown, room_of(directory, shown), needed_bytes)


def keep_floor(
    shown: str, space: Space, layout_bytes: int, advice: str = "give a smaller --max-bytes"
) -> None:
    """Refuse to go on laying out once the floor is touched: others write there, too.

    A file system's own books may take a little of what is left after a layout that fills the room
    to the floor.

    Raises:
        TargetRefused: how much is free, and what stays free.

    """
    if space.free_bytes >= space.floor_bytes - layout_bytes // _BOOKS_SHARE:
        return
    raise TargetRefused(
        f"{shown}: another process writes to this file system: while Leadline laid out its data, "
        f"{format_bytes(space.free_bytes)} of {format_bytes(space.total_bytes)} were left free, "
        f"and {format_bytes(space.floor_bytes)} must stay free ({FLOOR}); the "
        f"layout was stopped and is removed: free some space, or {advice}"
    )


class Growth(msgspec.Struct, frozen=True, kw_only=True):
    """What somebody writes below directories, and what he is told when others fill the disk."""

    folders: Sequence[tuple[str | int, str]]
    """Each by its path or a handle, and as it is shown."""
    bytes: int
    """In all."""
    advice: str

    def keep_floors(self) -> None:
        """Look at all of their file systems as they are now.

        Raises:
            TargetRefused: as `keep_floor`; or one of them is not there any more.

        """
        for folder, shown in self.folders:
            keep_floor(shown, room_of(folder, shown), self.bytes, self.advice)


def require_room(
    shown: str, space: Space, needed_bytes: int, advice: str = "lower --max-bytes or free some"
) -> None:
    """Refuse when writing `needed_bytes` more into this room would touch the floor.

    Raises:
        TargetRefused: how much is free, how much is needed, and what stays free.

    """
    if needed_bytes <= space.capacity_bytes:
        return
    rest = (
        f"at most {format_bytes(space.capacity_bytes)} can be used: {advice}"
        if space.capacity_bytes >= USEFUL_BYTES
        else "nothing can be used: free some space or give a directory on a larger file system"
    )
    raise TargetRefused(
        f"{shown}: too little free space: {format_bytes(space.free_bytes)} of "
        f"{format_bytes(space.total_bytes)} free, {format_bytes(needed_bytes)} needed, and "
        f"{format_bytes(space.floor_bytes)} must stay free ({FLOOR}); {rest}"
    )
