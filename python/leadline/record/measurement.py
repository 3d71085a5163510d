"""One measured point: what the engine's `result` event says, and where it belongs."""

from __future__ import annotations

from typing import Any, NamedTuple

import msgspec

from leadline.record.access import Access, AccessKept, AccessStart
from leadline.record.finding import Finding
from leadline.record.job import Arrivals
from leadline.record.jobs.replay import Replay
from leadline.record.jobs.streams import StreamAsked
from leadline.record.result import EngineResult
from leadline.record.study import ElapsedAnswer, Records, Status
from leadline.record.workload import Interval, Workload

RUN_STAGE = "run"
"""Stage of one of several runs of a lone `measure`: an item of its own until all are pooled."""


class RunReading(msgspec.Struct, frozen=True, kw_only=True):
    """One of several runs of a lone `measure`, as it spoke for itself."""

    seed: int
    wall_s: float
    throughput_mb_s: Interval
    """From within this run alone; the point's own interval has the spread between runs."""
    iops: Interval


class Measurement(AccessKept, frozen=True, kw_only=True):
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
    result: EngineResult
    arrivals: Arrivals = Arrivals()
    facts: dict[str, Any] = msgspec.field(default_factory=dict)
    """Facts of the machine and the target, of a lone `measure`; a survey keeps its own once."""
    findings: tuple[Finding, ...] = ()
    """What was found before a lone `measure`."""
    runs: tuple[RunReading, ...] = ()
    """The runs that `result` pools, of a lone `measure`."""
    streams: tuple[StreamAsked, ...] = ()
    """Of an application: in place of the workload's sizes, places and shares."""
    replay: Replay | None = None
    """The trace that was made again, in their place."""

    @property
    def item_id(self) -> str | None:
        """The point's id; None of a run, which becomes part of a point."""
        return None if self.stage == RUN_STAGE else self.point_id


class WorkloadAsked(msgspec.Struct, frozen=True, kw_only=True):
    """One workload to measure, from the command line or from a fio job file."""

    name: str | None = None
    """Of a fio job."""
    workload: Workload
    arrivals: Arrivals = Arrivals()
    access: Access
    seconds: float
    """Time to measure, at most, all runs together."""
    runs: int
    findings: tuple[Finding, ...] = ()
    """What of a fio job or of an application differs."""
    streams: tuple[StreamAsked, ...] = ()
    """Of an application: in place of the workload's sizes, places and shares."""
    application_id: str | None = None
    """Of the description that they are from."""
    phase: int | None = None
    """Of it, from 0."""
    replay: Replay | None = None
    """The trace that is made again, in place of all that."""
    requests: int | None = None
    """Of each run, which ends after so many; None is the steady state."""
    begins_cold: bool = True
    """Such a run: with nothing of its data in the page cache, or else with what a pass over them
    leaves there."""


class MeasurementAsked(msgspec.Struct, frozen=True, kw_only=True):
    """All that decides measurements of workloads, one after the other."""

    workloads: tuple[WorkloadAsked, ...]
    seed: int
    accuracy: float
    """Relative half-width that ends a workload's windows early."""
    precondition_bytes_max: int | None = None
    max_bytes: int | None = None
    """Most data to lay out on the target."""
    written_bytes_max: int | None = None
    """Most bytes to write on it in all, by layouts and requests; None without a limit."""
    engine: str = "leadline"
    """Who makes the requests: `leadline` or `fio`."""


class MeasurementStart(AccessStart, frozen=True, kw_only=True):
    """What decides measurements that belong to no larger study; each point has its own facts.

    Its access is that of the first: every point says its own.
    """

    target: str
    asked: MeasurementAsked | None = None
    """None of readings that `compare` takes, and of what was stored when every workload was a study
    of its own: those cannot go on."""
    system_profile: dict[str, Any] | None = None
    """The simulated system, so that it is the same when they go on."""

    @property
    def workloads(self) -> tuple[WorkloadAsked, ...]:
        """What is to be measured, as far as it is known."""
        return self.asked.workloads if self.asked is not None else ()


class ReachedStart(AccessStart, frozen=True, kw_only=True):
    """The start of a larger study."""

    cache_limit_bytes: int | None


class Measured(NamedTuple):
    """Measurements that belong to no larger study."""

    start: MeasurementStart
    status: Status
    points: tuple[Measurement, ...]
    runs: tuple[Measurement, ...] = ()
    """Those that are kept of the workload which is not measured whole."""
    bytes_written: int = 0
    """By all sittings so far, a run included that was ended and is none of those."""

    @property
    def names(self) -> tuple[str | None, ...]:
        """Of each point the name of its fio job; None of what comes from none."""
        if not self.start.workloads:
            return (None,) * len(self.points)
        return tuple(self.start.workloads[point.order].name for point in self.points)

    @property
    def runs_kept(self) -> int:
        """Runs that need not be made again."""
        return sum(len(point.runs) for point in self.points) + len(self.runs)


MEASUREMENT = Records(
    "measurement",
    MeasurementStart,
    Measurement,
    ElapsedAnswer,
    said="measurement",
    made_by="leadline measure TARGET",
    named=False,
)
