"""A Dask scheduler and workers as processes on loopback, for tests of the pool."""

from __future__ import annotations

import json
import multiprocessing.process
import os
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from forked_command import SERVER, take_place

_START_S = 110.0
"""Only a process that hangs takes longer."""


def written_address(file: Path) -> str | None:
    """Return the address in a scheduler's file; None until it is there, and whole.

    Dask writes it in place: it can be seen empty, or half.
    """
    try:
        address: str = json.loads(file.read_text(encoding="utf-8"))["address"]
    except (FileNotFoundError, json.JSONDecodeError):
        return None
    return address


class Cluster:
    """One scheduler and its workers; all end with the test."""

    def __init__(self, folder: Path, environment: dict[str, str], protocol: str) -> None:
        self.folder = folder
        self.environment = os.environ | {"OMP_NUM_THREADS": "1"} | environment
        self.processes: dict[str, multiprocessing.process.BaseProcess] = {}
        self.file = folder / "scheduler.json"
        options = ("--no-dashboard", "--no-show", "--scheduler-file", str(self.file))
        self._start(
            "scheduler", "scheduler", "--host", f"{protocol}://127.0.0.1", "--port", "0", *options
        )
        end = time.monotonic() + _START_S
        while (address := written_address(self.file)) is None:
            self._still("scheduler", end)
        self.address = address

    def add_worker(
        self, name: str, *, testbeds: int | None = 1, threads: int = 1, preload: str = ""
    ) -> None:
        """Start a worker and wait until the scheduler has it."""
        self._start_worker(name, testbeds, threads, preload)
        self._wait_registered([name])

    def add_workers(self, names: Sequence[str], threads: int = 1) -> None:
        """Start plain workers side by side and wait until the scheduler has them all."""
        for name in names:
            self._start_worker(name, 1, threads, "")
        self._wait_registered(names)

    def _start_worker(self, name: str, testbeds: int | None, threads: int, preload: str) -> None:
        """Start a worker without a nanny, which would start it again."""
        more: list[str] = []
        if testbeds is not None:
            more += ["--resources", f"testbed={testbeds}"]
        if preload:
            script = self.folder / f"{name}-preload.py"
            script.write_text(preload)
            more += ["--preload", str(script)]
        self._start(
            name,
            "worker",
            "--scheduler-file",
            str(self.file),
            "--nthreads",
            str(threads),
            "--no-nanny",
            "--no-dashboard",
            "--name",
            name,
            "--death-timeout",
            "30",
            "--local-directory",
            str(self.folder / name),
            *more,
        )

    def _wait_registered(self, names: Sequence[str]) -> None:
        end = time.monotonic() + _START_S
        for name in names:
            while "Registered to:" not in self.log(name):
                self._still(name, end)

    def kill(self, name: str) -> None:
        """SIGKILL, as the end of a machine looks from outside."""
        process = self.processes.pop(name)
        process.kill()
        process.join()

    def log(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text()

    def stop(self) -> None:
        for process in self.processes.values():
            process.kill()
        for process in self.processes.values():
            process.join()

    def _start(self, name: str, *words: str) -> None:
        log = self.folder / f"{name}.log"
        log.write_bytes(b"")
        self.processes[name] = process = SERVER.Process(
            target=_dask, args=(words, self.environment, str(log))
        )
        process.start()

    def _still(self, name: str, end: float) -> None:
        assert self.processes[name].is_alive(), self.log(name)
        assert time.monotonic() < end, self.log(name)
        time.sleep(0.05)


def _dask(words: Sequence[str], environment: dict[str, str], log: str) -> None:
    """Be `dask WORDS`: the variables are Dask's settings, which it reads when it is loaded."""
    import dask  # noqa: PLC0415 - optional, as the pool is
    from dask.cli import run_cli  # noqa: PLC0415

    take_place({1: log, 2: log}, environment)
    dask.config.refresh()
    sys.argv = ["dask", *words]
    run_cli()  # type: ignore[no-untyped-call]


@contextmanager
def dask_cluster(
    folder: Path,
    workers: Sequence[str] = (),
    *,
    environment: dict[str, str] | None = None,
    protocol: str = "tcp",
) -> Iterator[Cluster]:
    """Start a scheduler and workers that each offer one testbed."""
    folder.mkdir(parents=True, exist_ok=True)
    cluster = Cluster(folder, environment or {}, protocol)
    try:
        cluster.add_workers(workers)
        yield cluster
    finally:
        cluster.stop()
