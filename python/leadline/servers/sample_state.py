"""What a sample's trials keep on this machine between them, such as a filled database.

It lies below the system's temporary directory, one directory for each pair of server and sample,
held by a lock while a trial runs, so that the next trial finds it, also after a resume. What nobody
used for a day is removed by the next trial of any server.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec

from leadline.errors import TargetRefused
from leadline.machine.lock import hold_file
from leadline.record.workbench import Sample, ServerSpec

_UNUSED_S = 86_400.0
_LOCK, _PREPARED, _STATE = "lock", "prepared", "state"


class SampleState:
    """The held directory of one sample."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.directory = folder / _STATE

    @property
    def prepared(self) -> bool:
        """Whether `prepare` has been done here."""
        return (self._folder / _PREPARED).exists()

    def mark_prepared(self) -> None:
        """Remember that `prepare` has been done here."""
        (self._folder / _PREPARED).touch()

    def empty(self) -> None:
        """Forget all: a preparation that ended half-way is no preparation."""
        (self._folder / _PREPARED).unlink(missing_ok=True)
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(mode=0o711, exist_ok=True)


@contextmanager
def hold_state(server: ServerSpec, sample: Sample) -> Iterator[SampleState]:
    """Hold the sample's directory until the block ends; it is made when there is none.

    Raises:
        TargetRefused: another trial of this sample is under way on this machine, or the temporary
            directory is not safe.

    """
    folder = _made(server, sample)
    lock = hold_file(folder / _LOCK)
    if lock is None:
        raise TargetRefused(
            "another trial of the same server and sample is under way on this machine; wait for it"
        )
    with lock:
        os.utime(folder / _LOCK)
        state = SampleState(folder)
        state.directory.mkdir(mode=0o711, exist_ok=True)
        _remove_unused(folder)
        yield state


def remove_state(server: ServerSpec, sample: Sample) -> None:
    """Remove what the sample's trials kept on this machine, unless one is under way."""
    folder = _folder(server, sample)
    if folder.exists():
        _remove(folder)
    with suppress(OSError):  # it holds what other trials keep
        folder.parent.rmdir()


def _made(server: ServerSpec, sample: Sample) -> Path:
    while True:
        folder = _folder(server, sample)
        with suppress(FileNotFoundError):  # another process has just removed the empty root
            folder.mkdir(mode=0o711, exist_ok=True)
            return folder


def _folder(server: ServerSpec, sample: Sample) -> Path:
    words = msgspec.json.encode((server, sorted(sample.items())))
    # Short, since a Unix socket's path below it may have 107 characters.
    return _root() / hashlib.sha256(words).hexdigest()[:12]


def _root() -> Path:
    """The user's own directory; a name that others can guess is checked before it is used."""
    root = Path(tempfile.gettempdir()) / f"leadline-{os.geteuid()}"
    root.mkdir(mode=0o711, exist_ok=True)
    found = root.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise TargetRefused(
            f"{root} is not a directory of this user's alone; remove it, or set TMPDIR"
        )
    return root


def _remove_unused(own: Path) -> None:
    for folder in own.parent.iterdir():
        with suppress(OSError):
            if folder != own and time.time() - (folder / _LOCK).stat().st_mtime > _UNUSED_S:
                _remove(folder)


def _remove(folder: Path) -> None:
    lock = hold_file(folder / _LOCK)
    if lock is not None:
        with lock:
            shutil.rmtree(folder, ignore_errors=True)
