"""The courses: surveys in a row, and surveys that are long, each in a process of its own."""

from __future__ import annotations

import os
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import leadline
from command import environment
from endurance.looks import Look, Places, kib, look, status_of
from forked_command import Forked
from leadline.engine import Target, open_engine
from leadline.errors import LeadlineError
from leadline.machine.stop import Stopped, stop_on_signals
from leadline.record import Workload
from leadline.record.job import Limits
from steered_command import shorten

ASKED: dict[str, tuple[str, dict[str, Any]]] = {
    "simulated": ("sim:two-level", {"budget": "300s"}),
    "tiny": ("sim:convex-c240", {"budget": "90s", "learn": 0.0}),
    "real": ("", {"budget": "60s", "max_bytes": "96MiB", "cache_limit": "64MiB"}),
}
"""Target, none for the course's own directory, and options of each of many surveys."""
POINT_S = 0.05
"""Most time of a point of each of many real surveys: a row of them is to end today."""
WINDOW_PROFILE = "convex-c240"
WINDOW_BYTES_MAX = 4 << 30
"""Of address space: what needs more than this grows, and fails instead of filling the machine."""
LOOK_S = 10.0
"""Between two looks at a long survey."""

Told = Callable[[Look], None]


def places(base: Path) -> Places:
    """Return a course's places, made."""
    made = Places(base / "target", base / "store" / "store.sqlite", base / "tmp")
    for folder in (made.target, made.store.parent, made.temporary):
        folder.mkdir()
    tempfile.tempdir = str(made.temporary)
    return made


def api_row(base: Path, told: Told, *, count: int, kind: str) -> None:
    """Survey so often in this process, through the Python interface."""
    where, begun_s = places(base), time.monotonic()
    target, asked = ASKED[kind]
    if kind == "real":
        shorten(POINT_S)
    for number in range(count):
        leadline.survey(
            target or str(where.target),
            name=f"round-{number}",
            seed=number,
            store=str(where.store),
            **asked,
        )
        told(look(time.monotonic() - begun_s, where))


def command_row(base: Path, told: Told, *, count: int, kind: str) -> None:
    """Survey so often by the command, each a process; what is looked at is what each leaves."""
    where, begun_s = places(base), time.monotonic()
    tempfile.tempdir = None  # that of the commands is looked at, not what starts them
    target, asked = ASKED[kind]
    options = [f"--{key.replace('_', '-')}={value}" for key, value in asked.items()]
    variables = environment(where.store) | {"TMPDIR": str(where.temporary)}
    steer = _hurried if kind == "real" else _plain
    for number in range(count):
        words = ["survey", target or str(where.target), *options, f"--seed={number}"]
        with Forked(words, variables, steer) as child:
            peak_kib = _watch(child)
            done = child.wait(600.0)
        if done.returncode != 0:
            raise RuntimeError(
                f"survey {number} ended with {done.returncode}: {done.stderr[-500:]}"
            )
        found = look(time.monotonic() - begun_s, where)
        # This process only waits: the memory is that of the command.
        found.rss_kib = found.peak_kib = peak_kib
        found.engine_kib = None
        told(found)


def _plain() -> None:
    tempfile.tempdir = None


def _hurried() -> None:
    tempfile.tempdir = None
    shorten(POINT_S)


def _watch(child: Forked) -> int:
    """Return the most memory that a command ever had, as far as it was seen, in KiB."""
    most, process = 0, Path(f"/proc/{child.process.pid}")
    while child.process.exitcode is None:
        most = max(most, kib(status_of(process), "VmHWM"))
        child.process.join(0.02)
    return most


def virtual_hours(base: Path, told: Told, *, profile: str, virtual_s: float) -> None:
    """Make one survey of so much virtual time; the memory of this process is the engine's, too."""
    where, begun_s = places(base), time.monotonic()
    leadline.survey(f"sim:{profile}", name="long", budget=virtual_s, store=str(where.store))
    told(look(time.monotonic() - begun_s, where))


def window(base: Path, told: Told, *, seconds: float) -> None:
    """Run one job with a window of so much virtual time, in whose warm-up nothing is completed."""
    where, begun_s = places(base), time.monotonic()
    resource.setrlimit(resource.RLIMIT_AS, (WINDOW_BYTES_MAX, WINDOW_BYTES_MAX))
    limits = Limits(
        warm_up_s_max=0.01,
        measure_s_min=seconds,
        measure_s_max=seconds,
        total_s_max=2 * seconds + 1,
        accuracy=1e-6,
    )
    work = Workload(unique_bytes=64 << 20, size_mean=64 << 10)
    with open_engine(Target.parse(f"sim:{WINDOW_PROFILE}")) as engine:
        result = engine.run(work, seed=1, limits=limits)
    if result.wall_s < 0.99 * seconds:
        raise RuntimeError(f"the window had {result.wall_s} s instead of {seconds}")
    told(look(time.monotonic() - begun_s, where))


def real_time(base: Path, told: Told, *, minutes: float) -> None:
    """Measure one workload in one window of so much real time, looked at by another process.

    Not a survey: that holds its points, some hundred KiB each and at most 84, whatever the time.
    A signal ends it as it would end anybody's, and what was looked at by then is told.
    """
    where, begun_s = places(base), time.monotonic()
    pid = os.fork()
    if not pid:
        os._exit(_measure_for(where, minutes))
    try:
        for at_s in _every(LOOK_S, begun_s):
            if os.waitpid(pid, os.WNOHANG)[0]:
                return
            found = look(at_s, where, pid)
            if found.rss_kib:  # else it has just ended
                told(found)
    except BaseException:
        os.kill(pid, signal.SIGINT)
        os.waitpid(pid, 0)
        raise
    finally:
        ended = look(time.monotonic() - begun_s, where)
        if ended.in_target or ended.temporary or ended.children:
            raise RuntimeError(f"something was left: {ended}")


def _measure_for(where: Places, minutes: float) -> int:
    """Measure in a process that nothing else runs in; 0 for an end in order, a stop among them."""
    work = Workload(unique_bytes=64 << 20, size_mean=16 << 10, read_frac=0.5, process_num=4)
    try:
        with stop_on_signals():
            leadline.measure(
                str(where.target),
                work,
                seconds=60.0 * minutes,
                runs=1,
                accuracy=1e-6,  # else the window ends when the rate is known
                store=str(where.store),
            )
    except (Stopped, LeadlineError) as ended:
        print(ended, file=sys.stderr)
    return 0


def _every(seconds: float, begun_s: float) -> Iterator[float]:
    next_s = begun_s + seconds
    while True:
        time.sleep(max(0.0, next_s - time.monotonic()))
        next_s += seconds
        yield time.monotonic() - begun_s
