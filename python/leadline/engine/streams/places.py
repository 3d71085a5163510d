"""Data sets of streaming jobs on this machine: found, held against the job, and made room for."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from leadline.engine.targets.dirfd import claimed, facts_of, open_input
from leadline.errors import TargetRefused
from leadline.inputs import TEXT_BYTES_MAX, UNREADABLE_JSON
from leadline.machine.resources import available_memory_bytes
from leadline.machine.space import Growth, read_space, require_room
from leadline.record.job import (
    STREAM_MEMORY_BYTES_MIN,
    Capacity,
    Generate,
    Output,
    StreamJob,
    Transpose,
)
from leadline.record.streaming import BLOCK_BYTES, RECORD_BYTES
from leadline.units import format_bytes

LAYOUT_ENDING = ".layout"
_SORT_MEMORY = 1.25
"""Memory for every byte of a sort in one pass: the record, and its place in the order."""
_ROOM_ADVICE = "give less data, or free some"


class _Part(msgspec.Struct, frozen=True):
    """Files that take turns, `stripe_bytes` each."""

    files: tuple[str, ...]
    bytes: int
    stripe_bytes: int


class _Layout(msgspec.Struct, frozen=True):
    """Where the stripes of a data set lie (crates/kernels/src/layout.rs)."""

    version: int
    parts: tuple[_Part, ...]


class DataSet(msgspec.Struct, frozen=True, kw_only=True):
    """An input: a plain file, or stripes with a layout file beside its name."""

    path: str
    size_bytes: int
    files: tuple[str, ...]

    @property
    def directories(self) -> tuple[str, ...]:
        """Where its files lie, each once."""
        return tuple(dict.fromkeys(str(Path(file).parent) for file in self.files))

    def first_bytes(self, count: int) -> bytes:
        """Return its beginning."""
        try:
            with open(open_input(self.files[0]), "rb") as file:  # noqa: PTH123 - a handle
                return file.read(count)
        except OSError as error:
            raise TargetRefused(f"{self.files[0]} cannot be read: {error.strerror}") from error


def absolute(spelled: str) -> str:
    """Return a path as the engine wants it: from the root, its directory without symlinks.

    Raises:
        TargetRefused: it is empty, or names a user that there is not.

    """
    if not spelled.strip() or "\0" in spelled:
        raise TargetRefused(f"{spelled!r} is no path; name a file, for example /data/records")
    try:
        path = Path(spelled).expanduser()
    except RuntimeError:
        raise TargetRefused(f"{spelled}: there is no such user; write the path in full") from None
    whole = Path(os.path.abspath(path))  # noqa: PTH100 - the last part may be a link on purpose
    return str(whole.parent.resolve() / whole.name)


def absolute_directory(spelled: str) -> str:
    """Return a directory's path as the engine wants it: from the root, without symlinks.

    The engine follows none: what is a link when it looks was put there after this.

    Raises:
        TargetRefused: it is empty, or names a user that there is not.

    """
    return os.path.realpath(absolute(spelled))


def find_data_set(path: str) -> DataSet:
    """Look at an input.

    Raises:
        TargetRefused: there is none, or it is no file that could be read.

    """
    plain, layout = Path(path), Path(path + LAYOUT_ENDING)
    found, striped = facts_of(plain), _is_file(layout)
    if striped and found is not None:
        raise TargetRefused(
            f"{path} is a file and has stripes as well, named by {layout}; move the one that is "
            "not meant"
        )
    if striped:
        return _striped(path, layout)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise TargetRefused(f"{path} is a directory; name the file with the data in it")
    if found is None:
        raise TargetRefused(
            f"{path} does not exist, nor does a layout of stripes {layout.name} beside it; "
            f"`leadline stream generate {path} --bytes 1GB` makes records"
        )
    if not stat.S_ISREG(found.st_mode):
        raise TargetRefused(f"{path} is no plain file; copy its data into one first")
    if not os.access(plain, os.R_OK):
        raise TargetRefused(f"{path} may not be read by this user; change its permissions")
    return DataSet(path=path, size_bytes=found.st_size, files=(path,))


def _striped(path: str, file: Path) -> DataSet:
    try:
        with open(open_input(file), "rb") as opened:  # noqa: PTH123 - a handle
            layout = msgspec.json.decode(opened.read(TEXT_BYTES_MAX), type=_Layout)
    except (OSError, *UNREADABLE_JSON) as error:
        raise TargetRefused(
            f"{file} says where the stripes of {path} lie, and cannot be read: {error}; make the "
            "data anew"
        ) from error
    files = [Path(name) for part in layout.parts for name in part.files]
    try:
        missing = [stripe for stripe in files if not _is_file(stripe)]
    except (OSError, ValueError) as error:  # a name that is too long, or holds a NUL
        raise TargetRefused(
            f"{file} names stripes of {path} that cannot be looked at: {error}; make the data anew"
        ) from error
    if missing or not files:
        raise TargetRefused(
            f"{missing[0] if missing else 'every stripe'} of {path} is not there: is its disk "
            f"mounted? {file} names all stripes"
        )
    return DataSet(
        path=path,
        size_bytes=sum(part.bytes for part in layout.parts),
        files=tuple(name for part in layout.parts for name in part.files),
    )


def require_possible(job: StreamJob, output_bytes: int | None = None) -> None:
    """Refuse what the engine would refuse later, or could not finish.

    Args:
        job: with absolute paths.
        output_bytes: how much it will write; None takes the length of the input.

    Raises:
        TargetRefused: what is wrong, why, and what to type instead.

    """
    _require_memory(job.memory_bytes)
    source = find_data_set(job.input) if job.input is not None else None
    if source is not None:
        _require_whole(job, source)
    if job.output is not None:
        _require_output(job.output, source)
    for directory in job.temporary:
        _require_directory("--temp", directory)
    _require_space(job, source, output_bytes)


def _require_memory(memory_bytes: int) -> None:
    if memory_bytes < STREAM_MEMORY_BYTES_MIN:
        raise TargetRefused(
            f"--memory {format_bytes(memory_bytes)} is too little: a kernel's buffers need at "
            f"least {format_bytes(STREAM_MEMORY_BYTES_MIN)}"
        )
    most = available_memory_bytes()
    if most is not None and memory_bytes > most:
        raise TargetRefused(
            f"--memory {format_bytes(memory_bytes)} is more than the {format_bytes(most)} that "
            "this machine, or the cgroup of this process, has; give less"
        )


def _require_whole(job: StreamJob, source: DataSet) -> None:
    kernel = job.kernel
    blocks = isinstance(kernel, Transpose)
    unit, called = (BLOCK_BYTES, "blocks") if blocks else (RECORD_BYTES, "records")
    if source.size_bytes == 0:
        raise TargetRefused(f"{source.path} is empty: there is nothing to stream")
    if source.size_bytes % unit:
        raise TargetRefused(
            f"{source.path} has {source.size_bytes} bytes, which is no whole number of {called} of "
            f"{unit} bytes ({source.size_bytes % unit} are left over); it is cut short, or holds "
            "something else"
        )
    if isinstance(kernel, Transpose) and kernel.rows * kernel.columns * unit != source.size_bytes:
        raise TargetRefused(
            f"{source.path} has {source.size_bytes // unit} blocks of 4 KiB, which are not "
            f"{kernel.rows} rows × {kernel.columns} columns; give --rows and --columns that fit"
        )


def _require_output(output: Output, source: DataSet | None) -> None:
    path = Path(output.path)
    if path.suffix == LAYOUT_ENDING:
        raise TargetRefused(
            f"{path}: names that end in {LAYOUT_ENDING} are of layout files; name it otherwise"
        )
    _require_directory("the output's directory", str(path.parent))
    found = facts_of(path)
    if found is not None and stat.S_ISDIR(found.st_mode):
        raise TargetRefused(f"{path} is a directory; name the file that is to be made")
    _require_other(path, source)
    there = [str(name) for name in (path, Path(f"{path}{LAYOUT_ENDING}")) if _is_taken(name)]
    if there and not output.replace:
        raise TargetRefused(
            f"{there[0]} exists already; name another output, or type --replace to replace it"
        )
    for directory in output.stripes:
        _require_directory("--stripe", directory)
    if len({os.path.realpath(directory) for directory in output.stripes}) < len(output.stripes):
        raise TargetRefused("--stripe names a directory twice; give one directory for each disk")


def _require_other(path: Path, source: DataSet | None) -> None:
    """Refuse to write what is being read, by whatever name."""
    if source is None:
        return
    found = facts_of(path)
    read = [facts for file in source.files if (facts := facts_of(file)) is not None]
    same = found is not None and any(os.path.samestat(found, facts) for facts in read)
    if same or str(path) == source.path:
        raise TargetRefused(
            f"{path} is the input itself, which is only ever read; name another output"
        )


def _require_directory(what: str, directory: str) -> None:
    if Path(directory) in claimed():
        return
    if not Path(directory).is_dir():
        there = "is no directory" if os.path.lexists(directory) else "does not exist"
        raise TargetRefused(f"{what}: {directory} {there}; make it first: mkdir -p {directory}")
    if not os.access(directory, os.W_OK | os.X_OK):
        raise TargetRefused(f"{what}: {directory} may not be written by this user")


def _require_space(job: StreamJob, source: DataSet | None, output_bytes: int | None) -> None:
    """Add up what is written on every file system, and keep its floor."""
    size = source.size_bytes if source is not None else 0
    for shown, count in _needed(job, size, output_bytes).values():
        require_room(shown, read_space(_handle(shown)), count, _ROOM_ADVICE)


def growth_of(job: StreamJob, output_bytes: int | None = None) -> Growth:
    """Return what a job that is possible writes, to keep the floors while it runs."""
    size = find_data_set(job.input).size_bytes if job.input is not None else 0
    needed = _needed(job, size, output_bytes).values()
    folders = [(_handle(shown), shown) for shown, _ in needed]
    return Growth(
        folders=folders, bytes=max((count for _, count in needed), default=0), advice=_ROOM_ADVICE
    )


def _handle(directory: str) -> str | int:
    """Return a directory's handle where it is claimed."""
    own = claimed().get(Path(directory))
    return directory if own is None else own.fd


def _needed(job: StreamJob, size: int, output_bytes: int | None) -> dict[int, tuple[str, int]]:
    """Return what is written on each file system, with one of its directories."""
    wanted: list[tuple[str, int]] = []
    if isinstance(job.kernel, Generate):
        size = job.kernel.records * RECORD_BYTES
    if isinstance(job.kernel, Capacity):
        wanted += [(directory, job.kernel.bytes) for directory in job.kernel.directories]
    if job.output is not None:
        homes = job.output.stripes or (str(Path(job.output.path).parent),)
        wanted += _shared(homes, size if output_bytes is None else output_bytes)
        if job.name == "sort" and size * _SORT_MEMORY > job.memory_bytes:
            wanted += _shared(job.temporary or homes, size)
    needed: dict[int, tuple[str, int]] = {}
    for directory, count in wanted:
        found = facts_of(directory)
        if found is None:
            raise TargetRefused(f"{directory} is gone; make it again: mkdir -p {directory}")
        shown, before = needed.get(found.st_dev, (directory, 0))
        needed[found.st_dev] = shown, before + count
    return needed


def _is_file(path: Path) -> bool:
    found = facts_of(path)
    return found is not None and stat.S_ISREG(found.st_mode)


def _is_taken(path: Path) -> bool:
    """Tell whether anything has the name, a link that leads nowhere included."""
    own = claimed().get(path.parent)
    return os.path.lexists(path) if own is None else own.look(path.name) is not None


def _shared(directories: Sequence[str], count: int) -> Iterable[tuple[str, int]]:
    return [(directory, -(-count // len(directories))) for directory in directories]


def disks_of(directories: Iterable[str]) -> tuple[str, ...]:
    """Return one directory for each file system: two on the same disk are no two disks."""
    found: dict[int, str] = {}
    for directory in directories:
        found.setdefault(Path(directory).stat().st_dev, directory)
    return tuple(found.values())
