"""What calls about files take in a claimed directory: each timed on files of Leadline's own."""

from __future__ import annotations

import math
import os
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from leadline.engine.targets.dirfd import Folder
from leadline.record.workload import Interval

FILES = 32
ROUNDS = 12
MOST_S = 2.0
"""Of all rounds; no more is begun then."""
FOLDER = "mount-0"
"""It and the files have names of a run directory's own (`claim`): the next start sweeps them."""


def time_calls(folder: Folder) -> dict[str, Interval]:
    """Return the time of each call in us, with the range in which 95% of the rounds lie.

    What a file system is, and not how it fares at the moment: in ext4 a file takes the longer to
    make the more were removed in the last five minutes, and its neighbours are at fault. A call
    that it refuses is left out.
    """
    found: dict[str, list[float]] = {}
    end_s = time.monotonic() + MOST_S
    for turn in range(ROUNDS + 1):
        for name, took_us in _round(folder):
            if turn:  # the first one makes what the others find
                found.setdefault(name, []).append(math.log(max(took_us, 1e-3)))
        if turn >= 2 and time.monotonic() > end_s:  # two to tell how much they differ
            break
    return {name: _interval(logs) for name, logs in found.items() if len(logs) > 1}


def _interval(logs: list[float]) -> Interval:
    value, half = math.exp(statistics.fmean(logs)), 2.0 * statistics.stdev(logs)
    return Interval(value, value * math.exp(-half), value * math.exp(half), len(logs))


def _round(folder: Folder) -> Iterator[tuple[str, float]]:
    """Make files, do everything with them, remove them."""
    at, opened = folder.fd, list[int]()
    names = [f"replay-{number}.bin" for number in range(FILES)]
    try:
        yield from _timed("mkdir", folder.make_folder, [FOLDER])
        yield from _timed("create", lambda name: opened.append(folder.make_file(name)), names)
        yield from _timed("chmod", lambda fd: os.fchmod(fd, 0o600), opened)
        yield from _timed("fadvise", lambda fd: os.posix_fadvise(fd, 0, 0, 0), opened)
        yield from _timed("fallocate", lambda fd: os.posix_fallocate(fd, 0, 4096), opened)
        yield from _timed("truncate", lambda fd: os.ftruncate(fd, 0), opened)
        yield from _timed("end of file", lambda fd: os.pread(fd, 1, 4096), opened)
        yield from _timed("getdents", lambda _: os.listdir(at), [0])  # noqa: PTH208 - a handle
        yield from _timed("close", lambda _: os.close(opened.pop()), tuple(opened))
        yield from _timed("stat", folder.look, names)
        yield from _timed("open", lambda name: opened.append(folder.open_file(name)), names)
        while opened:
            os.close(opened.pop())
        yield from _timed("unlink", folder.remove_file, names)
        yield from _timed("rmdir", folder.remove_folder, [FOLDER])
    finally:  # what a refusal or a stop left
        while opened:
            os.close(opened.pop())
        for name in names:
            folder.remove_file(name)
        folder.remove_folder(FOLDER)


def _timed(
    name: str, call: Callable[[Any], object], of: Sequence[Any]
) -> Iterator[tuple[str, float]]:
    if not of:  # files that could not be made
        return
    with suppress(OSError):
        begun_ns = time.perf_counter_ns()
        for each in of:
            call(each)
        yield name, (time.perf_counter_ns() - begun_ns) / 1e3 / len(of)
