"""Probe a target again and again, a little each time, and tell when its level changed."""

from __future__ import annotations

import math
import statistics
import time
from collections import deque
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

import msgspec

from leadline.engine import Limits
from leadline.errors import LeadlineError
from leadline.machine.block_device import place_of
from leadline.machine.kernel_files import text
from leadline.record import EngineResult, Interval, Workload, derive_seed
from leadline.stats.monitor import Change, Monitor
from leadline.studies.diary import Diary, Opened

STAGE = "watch"
SHARE_MAX = 0.05
"""Of the time that probes may take."""
BUSY = 3.0
"""Times its usual latency that a device takes for others' requests: no probe is added then."""
TINY = 1e-9
"""In place of zero, which has no logarithm."""
BUSY_LOOKS_MIN = 10
"""Looks that tell what is usual."""


class WatchRefused(LeadlineError):
    """What cannot be watched like this; the message says what to type instead."""

    exit_code = 2


class WatchAsked(msgspec.Struct, frozen=True, kw_only=True):
    """What to probe, how gently, for how long."""

    workload: Workload
    every_s: float
    seconds: float
    """Of one probe, at most."""
    requests: int
    """Of one probe, at most: its bytes are bounded by them."""
    for_s: float = math.inf
    seed: int = 1

    def require_gentle(self) -> None:
        """Refuse probes that would be a load.

        Raises:
            WatchRefused: they take too much of the time.

        """
        if self.seconds > SHARE_MAX * self.every_s:
            raise WatchRefused(
                f"a probe of {self.seconds:g} s every {self.every_s:g} s takes more than "
                f"{100 * SHARE_MAX:g}% of the time: raise --every, or lower --seconds"
            )


class Changed(NamedTuple):
    """A change of what was watched, told when there is no doubt."""

    metric: str
    """`throughput` or `p99`."""
    at: datetime
    """The first probe after it."""
    earliest: datetime
    latest: datetime
    ratio: Interval
    """After over before."""


class Probe(NamedTuple):
    """One probe, and what it completed."""

    at: datetime
    result: EngineResult | None
    """None where the target was too busy to be probed."""
    changes: tuple[Changed, ...] = ()


class DeviceLatency:
    """What requests of all programs took on a device since the last look."""

    def __init__(self, path: str | None) -> None:
        """Look at the device of a directory; of what has none nothing is told."""
        device = None if path is None else place_of(path).device
        self._stat = None if device is None else device / "stat"
        self._last = self._read()
        self._usual = deque[float](maxlen=300)

    def busy(self) -> bool:
        """Tell whether they took far longer than they use to."""
        before, self._last = self._last, self._read()
        requests, took_ms = (now - then for now, then in zip(self._last, before, strict=True))
        if requests <= 0:
            return False
        each_ms = took_ms / requests
        usual = len(self._usual) >= BUSY_LOOKS_MIN and statistics.median(self._usual)
        self._usual.append(each_ms)
        return bool(usual) and each_ms > BUSY * usual

    def skip(self) -> None:
        """Leave out what was asked since: it was ours."""
        self._last = self._read()

    def _read(self) -> tuple[int, int]:
        """Requests and ms of reads and writes (Documentation/block/stat.rst)."""
        fields = [] if self._stat is None else (text(self._stat) or "").split()
        if len(fields) < 8:
            return 0, 0
        return int(fields[0]) + int(fields[4]), int(fields[3]) + int(fields[7])


def watch(system: Opened, path: str | None, asked: WatchAsked, diary: Diary) -> Iterator[Probe]:
    """Probe until the time is over; every probe is stored before it is told.

    Args:
        system: opened.
        path: of its directory, if it has one.
        asked: what to do.
        diary: where probes go.

    """
    engine = system.engine
    limits = Limits(
        warm_up_s_max=0.0,
        measure_s_min=asked.seconds,
        measure_s_max=asked.seconds,
        accuracy=0.0,
        operations_max=None if engine.virtual else asked.requests,
    )
    began, began_s = datetime.now(UTC), engine.clock_s
    monitors = {"throughput": Monitor(), "p99": Monitor()}
    moments: list[datetime] = []
    device = DeviceLatency(path)
    number = 0
    while True:
        due_s = began_s + number * asked.every_s
        if number * asked.every_s > asked.for_s:
            return
        if engine.virtual:
            engine.skip_to(due_s)
        else:
            time.sleep(max(0.0, due_s - engine.clock_s))
        at = began + timedelta(seconds=engine.clock_s - began_s)
        number += 1
        if device.busy():
            yield Probe(at, None)
            continue
        result = diary.read(system, asked.workload, derive_seed(asked.seed, number), limits)
        device.skip()
        moments.append(at)
        readings = {"throughput": result.throughput_mb_s.value, "p99": result.latency_us.p99}
        found = [
            _changed(metric, change, moments)
            for metric, monitor in monitors.items()
            if (change := monitor.take(max(readings[metric], TINY))) is not None
        ]
        yield Probe(at, result, tuple(found))


def _changed(metric: str, change: Change, moments: Sequence[datetime]) -> Changed:
    at, earliest, latest = (moments[each] for each in change[:3])
    return Changed(metric, at, earliest, latest, change.ratio)
