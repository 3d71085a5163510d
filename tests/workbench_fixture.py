"""Experiments on simulated servers, and pools that show what they are asked."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from leadline.record.workbench import ExperimentStart
from leadline.studies.workbench.experiments.read import begin_peak, begin_surface, read_experiment
from leadline.studies.workbench.pool import LocalPool, Pool

TEXT = """
name = "tiny"
policy = "binary"

[server]
kind = "simulated"

[server.system]
service_ms = 10.0
service = { kind = "fixed" }
between_trials_sd = 0.01

[threshold]
mean = "40ms"

[goal]
run_length = "20s"
rate_start = 40

[factors]
workers = [1, 2, 4]

[sample]
workers = 2
"""


def peak_start(text: str = TEXT, **options: Any) -> ExperimentStart:
    """The start of a peak search."""
    return begin_peak(read_experiment(text, "tiny.toml"), **options)


def surface_start(text: str = TEXT, design: str = "full-grid", **options: Any) -> ExperimentStart:
    """The start of a surface of three samples."""
    return begin_surface(read_experiment(text, "tiny.toml"), design=design, **options)


class WatchedPool(LocalPool):
    """This machine; `before` is called with the order of each trial before it runs."""

    def __init__(self, before: Callable[[Any], None]) -> None:
        super().__init__(lambda _line: None)
        self._before = before

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        self._before(args[0])
        return super().submit(fn, *args, **kwargs)


class SeveralMachines(Pool):
    """Threads that stand for machines; counts how many trials run at once."""

    def __init__(self, machines: int, lost: int = 0) -> None:
        self._machines, self._lost = machines, lost
        self._threads = ThreadPoolExecutor(machines)
        self._running: set[Future[Any]] = set()
        self.most_at_once = 0

    @property
    def machines(self) -> int:
        return self._machines

    @property
    def lost_trials(self) -> int:
        return self._lost

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(f"machine-{number}" for number in range(self._machines))

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future = self._threads.submit(fn, *args, **kwargs)
        self._running = {each for each in self._running if not each.done()} | {future}
        self.most_at_once = max(self.most_at_once, len(self._running))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        self._threads.shutdown(wait, cancel_futures=cancel_futures)
