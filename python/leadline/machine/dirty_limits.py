"""The kernel's limits of dirty data (`vm.dirty_*`), varied for a run and always put back.

They belong to the whole machine, so only root may change them, every program feels it, and an end
of any kind must not leave them changed. Three things see to that. What was there is recorded in a
file before the first change. A guard process that outlives Leadline (`dirty_guard`) puts it back
as soon as Leadline is gone, `kill -9` included. And where the guard was killed as well, the next
start does it (`restore_left_limits`). The record lies in /run, which a restart of the machine
empties as it resets the limits; one of another boot is thrown away.

What somebody else changes meanwhile is overwritten with what was there before.
"""

from __future__ import annotations

import fcntl
import json
import os
import selectors
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from leadline.errors import EngineFault, LeadlineError
from leadline.machine import dirty_guard
from leadline.machine.dirty_guard import READY, put_back, read_limits, write_limit
from leadline.machine.kernel_files import PROC, text
from leadline.machine.stop import shielded

VM = PROC / "sys/vm"
FOLDER = Path("/run/leadline")
RECORD = "dirty-limits.json"
NAMES = (
    "dirty_bytes",
    "dirty_background_bytes",
    "dirty_expire_centisecs",
    "dirty_writeback_centisecs",
)
"""What may be varied. The ratios follow: the kernel sets them to 0 beside a count of bytes."""
_GUARD_S = 10.0
"""How long the guard may take to begin, and to put back."""
_TRIES = 20
_LEFT_S = 5.0
"""How long a guard whose Leadline is gone may take before it counts as stuck."""


class DirtyLimitsRefused(LeadlineError):
    """The kernel's dirty limits cannot be varied here; nothing was changed."""

    exit_code = 2


class DirtyLimits:
    """The limits while they may be varied; made by `varied_dirty_limits`."""

    def __init__(self, vm: Path, before: dict[str, int]) -> None:
        self._vm = vm
        self.before = before
        """All six limits as they were found, by their names in /proc/sys/vm."""

    def put(self, **limits: int) -> None:
        """Change some of `NAMES`, in bytes and hundredths of a second; the others stay.

        Raises:
            DirtyLimitsRefused: the kernel does not take a value.

        """
        for name, value in limits.items():
            if name not in NAMES:
                raise ValueError(f"{name} is none of {', '.join(NAMES)}")
            try:
                write_limit(self._vm, name, value)
                now = int((self._vm / name).read_text())
            except OSError as error:
                raise DirtyLimitsRefused(
                    f"vm.{name} cannot be set to {value}: {error.strerror}"
                ) from error
            if now != value:
                raise DirtyLimitsRefused(f"vm.{name} was set to {value}, but the kernel says {now}")

    def put_back(self) -> None:
        """Put all back as they were found; `put` may follow."""
        put_back(self._vm, self.before)


def why_not(vm: Path = VM) -> str | None:
    """Return why the limits cannot be varied here; None when they can."""
    missing = [name for name in NAMES if not (vm / name).is_file()]
    if missing:
        return f"this kernel has no vm.{missing[0]}"
    if not all(os.access(vm / name, os.W_OK) for name in NAMES):
        return "only root may change the kernel's dirty limits (vm.dirty_*)"
    return None


@contextmanager
def varied_dirty_limits(vm: Path = VM, folder: Path = FOLDER) -> Iterator[DirtyLimits]:
    """Vary the limits until the block ends, in whatever way; then they are as they were.

    Args:
        vm: the kernel's folder, another in tests.
        folder: where what was there is recorded.

    Raises:
        DirtyLimitsRefused: they cannot be changed here, or another Leadline is varying them.
        EngineFault: they could not be put back; the message says what to type.

    """
    reason = why_not(vm)
    if reason is not None:
        raise DirtyLimitsRefused(f"{reason}; run as root, or measure at the limits as they are")
    with ExitStack() as stack:
        with shielded():
            restore_left_limits(vm, folder)
            lock = _lock_after_guard(folder)
            stack.callback(_unlock, lock, folder)
            before = read_limits(vm)
            record = folder / RECORD
            _keep(record, before)
            guard = _Guard(vm, record, lock)
            stack.callback(_end, guard, vm, record, before)
        yield DirtyLimits(vm, before)


def restore_left_limits(vm: Path = VM, folder: Path = FOLDER) -> bool:
    """Put back what a killed Leadline left changed; return whether there was something.

    Nothing is done while its Leadline, or the guard, still lives.
    """
    record = folder / RECORD
    if not record.exists() or why_not(vm) is not None:
        return False
    try:
        lock = _lock_after_guard(folder)
    except DirtyLimitsRefused:
        return False
    try:
        found = _read(record)
        if found is not None and found.get("boot_id") == _boot_id():
            _put_back_or_say(vm, found["before"])
        record.unlink(missing_ok=True)
        return found is not None
    finally:
        _unlock(lock, folder)


class _Guard:
    """The process that puts the limits back when this one is gone."""

    def __init__(self, vm: Path, record: Path, lock: int) -> None:
        command = [sys.executable, "-I", "-S", dirty_guard.__file__, str(vm), str(record)]
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                pass_fds=(lock,),  # the lock is free only when the guard is gone, too
                cwd="/",
                bufsize=0,
            )
        except OSError as error:
            record.unlink(missing_ok=True)
            raise EngineFault(f"the guard of the dirty limits cannot start: {error}") from error
        if _line(self._process.stdout) != READY:
            self._process.kill()
            self.end()
            record.unlink(missing_ok=True)
            raise EngineFault("the guard of the dirty limits did not begin; nothing was changed")

    @property
    def pid(self) -> int:
        return self._process.pid

    def end(self) -> None:
        """Let the guard put the limits back, and wait for it."""
        with suppress(OSError):
            if self._process.stdin is not None:
                self._process.stdin.close()
        try:
            self._process.wait(_GUARD_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait(_GUARD_S)
        if self._process.stdout is not None:
            self._process.stdout.close()


def _end(guard: _Guard, vm: Path, record: Path, before: dict[str, int]) -> None:
    with shielded():
        guard.end()
        if not record.exists() and read_limits(vm) == before:
            return
        _put_back_or_say(vm, before)  # the guard was killed, or failed
        record.unlink(missing_ok=True)


def _put_back_or_say(vm: Path, before: dict[str, int]) -> None:
    try:
        put_back(vm, before)
    except OSError as error:
        typed = " ".join(f"vm.{name}={value}" for name, value in before.items() if value)
        raise EngineFault(
            f"the kernel's dirty limits could not be put back ({error.strerror}); type: "
            f"sysctl -w {typed}"
        ) from error


def _lock_after_guard(folder: Path) -> int:
    """Lock the folder; a guard whose Leadline is gone may finish first, a living one refuses."""
    end = time.monotonic() + _LEFT_S
    while True:
        try:
            return _lock(folder)
        except DirtyLimitsRefused:
            if _owner_lives(folder / RECORD) or time.monotonic() > end:
                raise
            time.sleep(0.02)


def _lock(folder: Path) -> int:
    """Lock the folder itself, made if it is missing; the kernel drops the lock at any end."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    for _ in range(_TRIES):
        try:
            folder.mkdir(mode=0o755, exist_ok=True)
            lock = os.open(folder, flags)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(lock), folder.stat()):
                return lock
            os.close(lock)
        except BlockingIOError:
            os.close(lock)
            raise DirtyLimitsRefused(
                "another Leadline is varying the kernel's dirty limits, which are the whole "
                "machine's; wait for it"
            ) from None
        except FileNotFoundError:
            continue  # another Leadline has just removed it
        except OSError as error:
            raise DirtyLimitsRefused(
                f"what the dirty limits were cannot be recorded in {folder}: {error.strerror}; "
                "they are left alone"
            ) from error
    raise DirtyLimitsRefused(f"other Leadlines keep coming and going in {folder}; try again")


def _unlock(lock: int, folder: Path) -> None:
    with suppress(OSError):  # a record that could not be worked off stays, and its folder
        folder.rmdir()
    os.close(lock)


def _keep(record: Path, before: dict[str, int]) -> None:
    """Write the record so that it is whole, or not there."""
    fresh = record.with_suffix(".new")
    document = {"version": 1, "pid": os.getpid(), "boot_id": _boot_id(), "before": before}
    with fresh.open("w") as file:
        json.dump(document, file)
        file.flush()
        os.fsync(file.fileno())
    fresh.replace(record)
    own = os.open(record.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(own)
    finally:
        os.close(own)


def _read(record: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(record.read_text())
    except (FileNotFoundError, ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) and isinstance(found.get("before"), dict) else None


def _owner_lives(record: Path) -> bool:
    try:
        pid = int(json.loads(record.read_text())["pid"])
        return Path(f"/proc/{pid}").exists()
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return False


def _boot_id() -> str | None:
    return text(PROC / "sys/kernel/random/boot_id")


def _line(stdout: IO[bytes] | None) -> bytes:
    if stdout is None:
        return b""
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        return os.read(stdout.fileno(), 64) if selector.select(_GUARD_S) else b""
