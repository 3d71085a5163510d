"""Runs the `leadline` command as a user does."""

from __future__ import annotations

import functools
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from pathlib import Path

from forked_command import SERVER, Forked, run_forked
from steered_command import kill_after, shorten, stall_after

LEADLINE = str(Path(sys.executable).with_name("leadline"))
STEERED = str(Path(__file__).with_name("steered_command.py"))
POINT_S = 0.2
"""Of a hurried survey."""


def environment(store: Path) -> dict[str, str]:
    """A clean environment whose store is a file of the test's own."""
    kept = {name: value for name, value in os.environ.items() if name != "LEADLINE_STORE"}
    return kept | {"LEADLINE_STORE": str(store), "NO_COLOR": "1", "COLUMNS": "100"}


def leadline(
    *arguments: str, store: Path, timeout_s: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    return run_forked(arguments, environment(store), timeout_s)


def steered(*arguments: str, point_s: float = 0.0, stall: tuple[int, int] = (0, 0)) -> list[str]:
    """Return the command as steered_command.py runs it."""
    return [sys.executable, STEERED, str(point_s), *map(str, stall), *arguments]


@contextmanager
def running(command: list[str], store: Path) -> Iterator[subprocess.Popen[str]]:
    """Run a command until the block ends, in a session of its own."""
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(store),
        start_new_session=True,
    ) as child:
        try:
            yield child
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)


def hurried(*arguments: str, store: Path) -> subprocess.CompletedProcess[str]:
    """Run a survey or study of many real points to its end; none of them takes long."""
    return run_forked(arguments, environment(store), 110, steer=_hurry)


def _hurry() -> None:
    shorten(POINT_S)


def killed_after(items: int, *arguments: str, store: Path) -> subprocess.CompletedProcess[str]:
    """Run the command until it has stored so many items, those without an id too; then -9."""
    return run_forked(arguments, environment(store), 60, steer=functools.partial(kill_after, items))


def ended_after(
    rows: int, number: signal.Signals, *arguments: str, store: Path
) -> subprocess.CompletedProcess[str]:
    """Run the command until it has stored so many points or trials; there it gets a signal."""
    told, tells = SERVER.Pipe(duplex=False)
    with Forked(arguments, environment(store), functools.partial(_stall, rows, tells)) as child:
        tells.close()
        came_so_far = _hears(told)
        assert child.process.pid is not None
        if came_so_far:
            os.kill(child.process.pid, number)
        done = child.wait(60)
    assert came_so_far, f"it ended by itself with {done.returncode}: {done.stderr}"
    return done


def _stall(rows: int, tells: Connection) -> None:
    stall_after(rows, tells.fileno())


def _hears(told: Connection) -> bool:
    """Wait for the byte that a stalled command sends; one that ended before sends none."""
    with told:
        return bool(os.read(told.fileno(), 1))
