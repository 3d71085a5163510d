"""Commands in processes of their own that need not load Leadline first.

Loading it takes longer than most commands take. A server that has loaded everything forks for each
command (multiprocessing's `forkserver`); such a process has its own id, descriptors, signals and
exit code, as one that a shell starts has. What is tested of the start itself starts `LEADLINE`.
"""

from __future__ import annotations

import multiprocessing
import os
import pkgutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from multiprocessing import forkserver
from pathlib import Path
from typing import Any, Self

import leadline
from leadline.app import main
from shared_results import share

_LOADED_LATE = (
    "altair",
    "distributed.cli.dask_worker",
    "pydantic.type_adapter",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "typer._adapters",
    "vl_convert",
    "frozen_modules",
)
"""Beside Leadline's own; the last one ends the loading."""


def _modules() -> list[str]:
    """Name what commands load: all of Leadline, and what is loaded late."""
    inside = pkgutil.walk_packages(leadline.__path__, "leadline.")
    own = [module.name for module in inside if "__main__" not in module.name]
    return [*own, *_LOADED_LATE]


SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(_modules())
_ADDRESS = "LEADLINE_TEST_SERVER"
"""Names the socket of the server that the processes of a run share."""


def offer() -> None:
    """Start the server that this process and those started from now on share."""
    forkserver.ensure_running()
    os.environ[_ADDRESS] = _shared()._forkserver_address


def _shared() -> Any:
    return forkserver._forkserver


def _take() -> None:
    server = _shared()
    server._forkserver_address = os.environ[_ADDRESS]
    server._forkserver_alive_fd = os.open(os.devnull, os.O_RDONLY)  # the run's first process has it
    server.ensure_running = lambda: None


if _ADDRESS in os.environ:
    _take()


class Forked:
    """A command that runs; at the end of the block it is killed, if it still does."""

    def __init__(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        steer: Callable[[], None] | None = None,
    ) -> None:
        """Start `leadline ARGUMENTS`.

        Args:
            arguments: what stands behind `leadline`.
            environment: all its variables.
            steer: called in the process first; it is pickled on its way there.

        """
        self._words = ["leadline", *arguments]
        self._folder = tempfile.TemporaryDirectory(prefix="leadline-command-")
        self._said = [Path(self._folder.name) / name for name in ("out", "err")]
        paths = [str(path) for path in self._said]
        self.process = SERVER.Process(
            target=_command, args=(list(arguments), dict(environment), paths, steer)
        )
        self.process.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.join()
        self._folder.cleanup()

    def wait(self, timeout_s: float) -> subprocess.CompletedProcess[str]:
        """Wait for its end and return what it said.

        Raises:
            subprocess.TimeoutExpired: it had not ended.

        """
        self.process.join(timeout_s)
        said = [path.read_text(encoding="utf-8") if path.exists() else "" for path in self._said]
        if self.process.exitcode is None:
            raise subprocess.TimeoutExpired(self._words, timeout_s, *said)
        return subprocess.CompletedProcess(self._words, self.process.exitcode, *said)


def run_forked(
    arguments: Sequence[str],
    environment: Mapping[str, str],
    timeout_s: float,
    *,
    steer: Callable[[], None] | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run `leadline ARGUMENTS` to its end, as subprocess.run does with text captured.

    Raises:
        subprocess.TimeoutExpired: it had not ended, and was killed.

    """
    with Forked(arguments, environment, steer) as child:
        return child.wait(timeout_s)


def _command(
    arguments: list[str],
    environment: dict[str, str],
    said: list[str],
    steer: Callable[[], None] | None,
) -> None:
    take_place(dict(enumerate(said, 1)), environment)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.argv = ["leadline", *arguments]
    share()
    if steer is not None:
        steer()
    main()


def take_place(said: Mapping[int, str], environment: Mapping[str, str]) -> None:
    """Make this process one that was started so: its descriptors are files, its variables these."""
    for descriptor, path in said.items():
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.dup2(opened, descriptor)
        os.close(opened)
    for name in os.environ.keys() - environment.keys():
        del os.environ[name]
    os.environ.update(environment)
