"""A claim in this process that can be killed between any two of its system calls.

A killed process does nothing any more, whatever its `finally` says, and the kernel closes what it
had open. So from the step at which a claim is to die, every call on files fails without having
done anything, and only closing works.
"""

from __future__ import annotations

import fcntl
import functools
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

from leadline.engine.targets import claim as claims
from leadline.engine.targets import dirfd
from leadline.engine.targets.claim import Claim, claim
from leadline.engine.targets.dirfd import forget_claimed

CALLS = frozenset(
    {
        *("open", "stat", "fstat", "listdir", "mkdir", "rmdir", "unlink", "ftruncate"),
        *("read", "pread", "write", "pwrite", "fsync", "flock", "set_blocking"),
    }
)
"""System calls of a claim, all but `close`."""


class Killed(BaseException):
    """The process is no more."""


class Steps:
    """Counts the calls of a claim; dies at one, or lets something else happen before one."""

    def __init__(
        self, kill_at: int | None = None, before: tuple[int, Callable[[], None]] | None = None
    ) -> None:
        self.taken = 0
        self.dead = False
        self._kill_at = kill_at
        self._before = before
        self._open: set[int] = set()

    def close(self, handle: int) -> None:
        """Close, which the dead can do: the kernel does it for them."""
        self._open.discard(handle)
        os.close(handle)

    def bury(self) -> None:
        """Close what a dead process has open still."""
        while self.dead and self._open:
            os.close(self._open.pop())

    def take(self, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make a system call, unless the process is dead by then."""
        if self.taken == self._kill_at:
            self.dead = True
        if self.dead:
            raise Killed
        if self._before is not None and self.taken == self._before[0]:
            happens, self._before = self._before[1], None
            happens()
        self.taken += 1
        done = call(*arguments, **options)
        if call is os.open:
            self._open.add(done)
        return done


class _Watched:
    """A module whose system calls are steps."""

    def __init__(self, module: ModuleType, steps: Steps) -> None:
        self._module, self._steps = module, steps

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._module, name)
        if name == "close":
            return self._steps.close
        return functools.partial(self._steps.take, found) if name in CALLS else found


@contextmanager
def stepping(steps: Steps) -> Iterator[None]:
    """Make the calls of claims steps, in the block."""
    with (
        mock.patch.object(dirfd, "os", _Watched(os, steps)),
        mock.patch.object(claims, "os", _Watched(os, steps)),
        mock.patch.object(claims, "fcntl", _Watched(fcntl, steps)),
    ):
        try:
            yield
        finally:
            steps.bury()


@contextmanager
def undisturbed() -> Iterator[None]:
    """Make what happens in between no steps of the claim that it happens to."""
    with (
        mock.patch.object(dirfd, "os", os),
        mock.patch.object(claims, "os", os),
        mock.patch.object(claims, "fcntl", fcntl),
    ):
        yield


class Holder:
    """A claim that is held until it is released or killed."""

    def __init__(self, place: Path) -> None:
        """Claim a directory. Raises what `claim` raises, and `Killed`."""
        self._context = claim(place)
        self.claimed: Claim = self._context.__enter__()

    def release(self) -> None:
        """Let go, as at the end of a command. Raises what `claim` raises, and `Killed`."""
        self._context.__exit__(None, None, None)

    def die(self) -> None:
        """What the kernel does with a killed process: its files are closed, and nothing else is."""
        held, self.claimed._held = self.claimed._held, None
        assert held is not None
        held.close()
        forget_claimed(self.claimed.run_directory)
        self.release()  # does nothing now but forget what was to be done at the exit
