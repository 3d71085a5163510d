"""What the device under a directory wrote from moment to moment, as the kernel counts it.

The engine tells what the device wrote within a window; this says when.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from leadline.machine.block_device import place_of
from leadline.machine.kernel_files import text

_SECTOR_BYTES = 512
"""Of the kernel's counters, whatever the device's own block is."""
_SECTORS_WRITTEN = 6
"""Field of /sys/block/NAME/stat (Documentation/block/stat.rst), from 0."""
PERIOD_S = 0.02
"""Time between two looks at the counter."""


class DeviceWrites:
    """Bytes written by one block device over time, on the clock of `time.monotonic`."""

    def __init__(self) -> None:
        self._at_s: list[float] = []
        self._bytes: list[int] = []

    def add(self, at_s: float, written_bytes: int) -> None:
        """Note the counter at a moment; moments come in order."""
        self._at_s.append(at_s)
        self._bytes.append(written_bytes)

    def between(self, from_s: float, to_s: float) -> float:
        """Bytes written from one moment to another, between two looks in proportion.

        Raises:
            ValueError: nobody looked before the first or after the last moment.

        """
        return self._until(to_s) - self._until(from_s)

    def _until(self, at_s: float) -> float:
        if not self._at_s or not self._at_s[0] <= at_s <= self._at_s[-1]:
            raise ValueError("the device was not watched at that moment")
        after = bisect_left(self._at_s, at_s)
        if self._at_s[after] == at_s:
            return self._bytes[after]
        before = after - 1
        share = (at_s - self._at_s[before]) / (self._at_s[after] - self._at_s[before])
        return self._bytes[before] + share * (self._bytes[after] - self._bytes[before])


def written_bytes(stat: Path) -> int | None:
    """Read a device's counter; None when the kernel does not tell."""
    fields = (text(stat) or "").split()
    if len(fields) <= _SECTORS_WRITTEN or not fields[_SECTORS_WRITTEN].isdigit():
        return None
    return int(fields[_SECTORS_WRITTEN]) * _SECTOR_BYTES


@contextmanager
def watched_device(directory: str | Path) -> Iterator[DeviceWrites | None]:
    """Watch the device under a directory until the block ends; None where there is none."""
    device = place_of(directory).device
    stat = device / "stat" if device is not None else None
    if stat is None or written_bytes(stat) is None:
        yield None
        return
    writes, ended = DeviceWrites(), threading.Event()

    def look(path: Path) -> None:
        now_s, count = time.monotonic(), written_bytes(path)
        if count is not None:
            writes.add(now_s, count)

    def watch(path: Path) -> None:
        look(path)
        while not ended.wait(PERIOD_S):
            look(path)
        look(path)

    thread = threading.Thread(target=watch, args=(stat,), name="device writes", daemon=True)
    thread.start()
    try:
        yield writes
    finally:
        ended.set()
        thread.join()
