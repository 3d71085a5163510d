"""One measured point: what the engine's `result` event says, and where it belongs."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from leadline.record.discipline import NO_SYNC
from leadline.record.job import Access, Arrivals
from leadline.record.result import EngineResult
from leadline.record.study import Records, Status, StudyStart, Took
from leadline.record.workload import Interval, Workload


class RunReading(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs of a lone `measure`, as it spoke for itself."""

    seed: int
    wall_s: float
    throughput_mb_s: Interval
    """From within this run alone; the point's own interval has the spread between runs."""
    iops: Interval


class Measurement(msgspec.Struct, frozen=True, kw_only=True):
    """A finished point of a survey (or a lone `measure`); never edited once stored."""

    point_id: str
    order: int
    """Position in the order of execution, from 0."""
    stage: str
    """Stage of the plan this point was run for."""
    started_at: str
    """UTC, ISO 8601."""
    clock_s: float
    """Seconds since the survey began (virtual for a simulated system)."""
    seed: int
    workload: Workload
    backend: str
    result: EngineResult
    direct: bool = False
    """Past the file cache (O_DIRECT)."""
    arrivals: Arrivals = Arrivals()
    facts: dict[str, Any] = {}
    """Facts of the machine and the target, of a lone `measure`; a survey keeps its own once."""
    warnings: tuple[str, ...] = ()
    """What was found before a lone `measure`, each beginning with its name."""
    runs: tuple[RunReading, ...] = ()
    """The runs that `result` pools, of a lone `measure`."""
    sync: str = NO_SYNC
    """Which writes wait for the device (`leadline.record.discipline`)."""

    @property
    def access(self) -> Access:
        """How the storage was reached."""
        return Access.kept_by(self)

    @property
    def item_id(self) -> str:
        """The point's id."""
        return self.point_id


class AccessStart(StudyStart, frozen=True, kw_only=True):
    """The start of a study whose points are all reached in one way."""

    backend: str
    direct: bool
    sync: str = NO_SYNC
    """Which writes wait for the device (`leadline.record.discipline`)."""

    @property
    def access(self) -> Access:
        """How the storage was reached."""
        return Access.kept_by(self)


class MeasurementStart(AccessStart, frozen=True, kw_only=True):
    """What decides measurements that belong to no larger study; each point has its own facts."""

    target: str


class ReachedStart(AccessStart, frozen=True, kw_only=True):
    """The start of a larger study."""

    cache_limit_bytes: int | None


class Measured(NamedTuple):
    """Measurements that belong to no larger study."""

    start: MeasurementStart
    status: Status
    points: tuple[Measurement, ...]


MEASUREMENT = Records(
    "measurement",
    MeasurementStart,
    Measurement,
    Took,
    said="measurement",
    made_by="leadline measure TARGET",
    named=False,
)
