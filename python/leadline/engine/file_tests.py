"""Directories opened for file tests: the files, images and devices of the drives, and the jobs."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Protocol

import msgspec

from leadline.engine.child import ENGINE_COMMAND, Child
from leadline.engine.targets.claim import Claim, claim, usable
from leadline.engine.targets.dirfd import Folder
from leadline.engine.targets.target import Target
from leadline.errors import EngineFault, PointFailed, TargetRefused
from leadline.machine.file_systems import make_file_system, mount_document
from leadline.machine.loop_devices import LoopDevice, loop_device
from leadline.machine.space import Growth, capacity_bytes, require_space
from leadline.record.files import FilesCell
from leadline.record.job import Drive, FileTestJob
from leadline.record.jobs.file_test import FileProgram, FileTestResult

PROTOCOL_ORDER: tuple[FileProgram, ...] = ("write_4096", "write_8192", "rewrite_8192", "read_8192")
"""A file is written before it is written over or read (the script of KM83 §4)."""
_IMAGE_MIN_BYTES = 384 * 2**20
"""mkfs.xfs takes no less than 300 MiB; Btrfs needs room for two copies of its own data."""
_IMAGE_SPARE_BYTES = 192 * 2**20
_FILL_BYTES = 4 * 2**20
_LEAST_S = 0.02
"""The shortest job that the wire takes."""
_ADVICE = "ask for smaller files"
_FILE = "file.bin"
"""What the programs write (crates/engine/src/file_test/programs.rs)."""


class ProgramsAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What the programs are to do on a cell."""

    file_bytes: int
    runs: int
    paper: bool
    """Timed as the paper did, the cache left alone."""
    seed: int
    total_s_max: float
    tests: tuple[FileProgram, ...] = PROTOCOL_ORDER


class FileTests(Protocol):
    """Opened directories. One job at a time."""

    def run(self, cell: FilesCell, asked: ProgramsAsked) -> FileTestResult:
        """Run the programs on one cell.

        Raises:
            TargetRefused: a file system or device cannot be had; the others may still work.
            PointFailed: a program failed, for want of space or time.
            EngineFault: the engine died or hung; the next run starts another.

        """

    def file_bytes_max(self, cells: Sequence[FilesCell]) -> int:
        """Return the longest file for which every directory has room."""


def image_bytes(file_bytes: int) -> int:
    """Return the size of an image that holds the file twice (Btrfs copies on write) and more."""
    return max(_IMAGE_MIN_BYTES, file_bytes * 5 // 2 + _IMAGE_SPARE_BYTES)


@contextmanager
def open_file_tests(
    targets: Sequence[Target], *, max_bytes: int | None = None
) -> Iterator[DirectoryTests]:
    """Claim the directories until the block ends; then nothing of it is left behind.

    Raises:
        TargetRefused: a directory is another Leadline's, or holds what is not ours.

    """
    with ExitStack() as stack:
        paths = [target.path for target in targets if target.path is not None]
        claims = [stack.enter_context(claim(path)) for path in paths]
        tests = DirectoryTests(claims, max_bytes)
        stack.callback(tests.close)
        yield tests


class DirectoryTests:
    """See `FileTests`."""

    def __init__(self, claims: Sequence[Claim], max_bytes: int | None) -> None:
        self._claims = claims
        self._max_bytes = max_bytes
        self._child = Child(ENGINE_COMMAND)
        self._jobs = 0

    @property
    def capacity_bytes(self) -> int:
        """What all directories take together, that of each at most what the fullest takes."""
        rooms = [capacity_bytes(claim.folder.fd) for claim in self._claims]
        return len(rooms) * min(rooms)

    def file_bytes_max(self, cells: Sequence[FilesCell]) -> int:
        """Return the longest file for which every directory has room."""
        return min(self._file_bytes_max(directory, cells) for directory in range(len(self._claims)))

    def run(self, cell: FilesCell, asked: ProgramsAsked) -> FileTestResult:
        """Run the programs on one cell."""
        end_s = time.monotonic() + asked.total_s_max
        with ExitStack() as stack:
            drives = tuple(
                self._drive(stack, cell, number, asked.file_bytes, end_s)
                for number in range(cell.drives)
            )
            self._jobs += 1
            job = FileTestJob(
                job_id=f"files-{self._jobs}",
                drives=drives,
                tests=asked.tests,
                file_bytes=asked.file_bytes,
                runs=asked.runs,
                timing="program" if asked.paper else "drive",
                seed=asked.seed,
                total_s_max=_left_s(end_s),
            )
            result = self._child.run(job, look=self._growth(cell, asked.file_bytes).keep_floors)
            _require_blocks(cell, result)
            return result

    def close(self) -> None:
        """End the child; what it has mounted goes with it."""
        self._child.close()

    def _drive(
        self, stack: ExitStack, cell: FilesCell, number: int, file_bytes: int, end_s: float
    ) -> Drive:
        folder = self._claims[number % len(self._claims)].folder
        raw = _filled(folder, f"raw-{number}.bin", file_bytes, end_s)
        system = cell.system
        if not system.made:
            _require_room(folder, _FILE, file_bytes)
            raw_path = str(folder.shown / raw) if _takes_direct_io(folder, raw) else None
            return Drive(directory=str(folder.shown), raw=raw_path)
        assert system.block_bytes is not None  # noqa: S101 - the plan gives a made one its block
        image = _filled(folder, f"image-{number}.bin", image_bytes(file_bytes), end_s)
        point = f"mount-{number}"
        with usable(folder.shown), suppress(FileExistsError):
            folder.make_folder(point)  # or of a cell before; the engine looks whether it is ours
        # A loop device of the raw file, too: the file system's own device is such a one.
        raw_device = stack.enter_context(_loop_device(folder, raw))
        device = stack.enter_context(_loop_device(folder, image))
        make_file_system(system.fs, system.block_bytes, device.path)
        return Drive(
            directory=str(folder.shown / point),
            mount=mount_document(system.fs, device.path),
            raw=str(raw_device.path),
        )

    def _growth(self, cell: FilesCell, file_bytes: int) -> Growth:
        """What the programs write while they run; a made file system has its room in its image."""
        used = [] if cell.system.made else self._claims[: cell.drives]
        folders = [(claim.folder.fd, str(claim.folder.shown)) for claim in used]
        return Growth(folders=folders, bytes=file_bytes * cell.drives, advice=_ADVICE)

    def _file_bytes_max(self, directory: int, cells: Sequence[FilesCell]) -> int:
        count = len(self._claims)
        room = capacity_bytes(self._claims[directory].folder.fd)
        if self._max_bytes is not None:
            room = min(room, self._max_bytes // count)
        here = max((len(range(directory, cell.drives, count)) for cell in cells), default=1) or 1
        room //= here
        if not any(cell.system.made for cell in cells):
            return room // 3
        # Raw file, file of the existing file system, and the image with twice the file and more.
        return max(0, min((room - _IMAGE_SPARE_BYTES) // 5, (room - _IMAGE_MIN_BYTES) // 3))


def _left_s(end_s: float) -> float:
    left_s = end_s - time.monotonic()
    if left_s < _LEAST_S:
        raise PointFailed("the time was up before its drives were laid out; give a larger --budget")
    return left_s


def _filled(folder: Folder, name: str, size_bytes: int, end_s: float) -> str:
    """Make a file of written, incompressible blocks; one that is long enough stays."""
    with usable(folder.shown):
        fd = folder.make_or_open_file(name)
    try:
        if os.fstat(fd).st_size < size_bytes:
            _require_room(folder, name, size_bytes)
            _fill(fd, folder, name, size_bytes, end_s)
    finally:
        os.close(fd)
    return name


def _require_room(folder: Folder, name: str, size_bytes: int) -> None:
    found = folder.look(name)
    have = 0 if found is None else found.st_size
    require_space(folder.fd, str(folder.shown), max(0, size_bytes - have))


@contextmanager
def _loop_device(folder: Folder, name: str) -> Iterator[LoopDevice]:
    fd = folder.open_file(name, os.O_RDWR)
    try:
        with loop_device(fd) as device:
            yield device
    finally:
        os.close(fd)


def _fill(fd: int, folder: Folder, name: str, size_bytes: int, end_s: float) -> None:
    block = os.urandom(_FILL_BYTES)
    before = os.fstat(fd).st_size
    shown = [(folder.fd, str(folder.shown))]
    growth = Growth(folders=shown, bytes=size_bytes - before, advice=_ADVICE)
    at = before
    try:
        while at < size_bytes:
            _left_s(end_s)
            growth.keep_floors()
            at += os.pwrite(fd, block[: min(_FILL_BYTES, size_bytes - at)], at)
        os.fsync(fd)
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)
    except TargetRefused:
        os.ftruncate(fd, before)  # the next cell may want less, and the room is needed now
        raise
    except OSError as error:
        raise TargetRefused(
            f"{folder.shown / name} cannot be written: {error.strerror}; {_ADVICE}"
        ) from error


def _takes_direct_io(folder: Folder, name: str) -> bool:
    try:
        os.close(folder.open_file(name, os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    return True


def _require_blocks(cell: FilesCell, result: FileTestResult) -> None:
    """Refuse an answer from another file system than the one that was made."""
    wanted = cell.system.block_bytes
    if cell.system.made and any(found not in (0, wanted) for found in result.block_bytes):
        raise EngineFault(
            f"asked for blocks of {wanted} bytes, but the mounted file system has "
            f"{result.block_bytes}"
        )
