"""An engine child on a directory, on a server's directory, or on nothing (`null:`)."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from leadline.engine.ceiling import LIMITS as CEILING_LIMITS
from leadline.engine.ceiling import Ceiling, measure_ceiling
from leadline.engine.child import Child, OnEvent
from leadline.engine.fit import DEEP_BACKENDS, require_fit
from leadline.engine.pace import longer_windows
from leadline.engine.targets.place import Place
from leadline.engine.wear import Wear, WrittenSpent
from leadline.errors import LeadlineError, NothingCompleted, ServerLost, TargetRefused
from leadline.machine.cgroup import MemoryCgroup
from leadline.machine.facts import host_facts
from leadline.machine.resources import available_memory_bytes, l3_cache_bytes
from leadline.record import EngineResult, Workload
from leadline.record.access import Access
from leadline.record.job import (
    CLOSED,
    Arrivals,
    JobTarget,
    Limits,
    LoadAsked,
    MeasureJob,
    NullTarget,
    ReplayAsked,
    kind_of,
)
from leadline.record.jobs.streams import StreamAsked
from leadline.record.workload import Interval

PROCESS_NUM_MAX = 16
"""A survey tries at least this many workers; a disk's queue wants more than there are cores."""
NULL_CAPACITY_BYTES = 2**40
"""The null target stores nothing; any size will do that the address stream can count."""
COME_BACK_S = 5.0
"""A server that went away has this long to come back before the next run."""
COME_BACK_LOOK_S = 0.5


class ProcessEngine:
    """An engine child; see `Engine` for what every engine offers."""

    def __init__(
        self,
        access: Access,
        *,
        place: Place | None,
        group: MemoryCgroup | None,
        max_bytes: int | None,
        wear: Wear | None = None,
        command: Sequence[str],
    ) -> None:
        self._start_s = time.monotonic()
        self.access = access
        self.virtual = False
        self.wear = wear or Wear()
        self._place = place
        self._child = Child(command, group)
        self._ceiling: Ceiling | None = None
        self._jobs = 0
        self.l3_cache_bytes = l3_cache_bytes()
        self.facts = host_facts() | {
            "cache_limit_bytes": access.cache_limit_bytes,
            "placement": access.placement,
        }
        self.memory_bytes: int | None = access.cache_limit_bytes or available_memory_bytes()
        self.process_num_max = max(PROCESS_NUM_MAX, 4 * (self.facts["cpu_count"] or 1))
        capacity = NULL_CAPACITY_BYTES
        if place is not None:
            capacity = place.capacity_bytes
            self.facts |= place.facts
            if not place.cached_here:
                self.memory_bytes = None
        self.capacity_bytes = capacity if max_bytes is None else min(capacity, max_bytes)
        self._target: JobTarget = NullTarget() if place is None else place.target
        if kind_of(self._target) == "nfs":
            self.l3_cache_bytes = None  # next to a round trip no processor's cache is seen

    @property
    def clock_s(self) -> float:
        """Wall seconds since it was opened (plus what was skipped)."""
        return time.monotonic() - self._start_s

    def skip_to(self, clock_s: float) -> None:
        """Set the clock forward."""
        self._start_s = min(self._start_s, time.monotonic() - clock_s)

    def set_access(self, access: Access) -> None:
        """Make the writes of later runs wait as it says, and go by direct I/O or not."""
        kind = kind_of(self._target)
        if access.waits and kind == "null":
            raise TargetRefused("null: has no device to wait for")
        if access.direct and kind != "directory":
            raise TargetRefused(f"{kind} targets have no file that could be opened O_DIRECT")
        if access.direct and access.backend == "mmap":
            raise TargetRefused("--backend mmap cannot use direct I/O")
        self.access = access

    def prepare(self) -> None:
        """Measure the generator's ceiling, once; the null target is itself that measurement."""
        if self._place is None or self._ceiling is not None:
            return

        null = Access(backend="null", placement=self.access.placement)

        def measure(workload: Workload) -> EngineResult:
            failure = NothingCompleted("there was no time to try it")
            for limits in longer_windows(CEILING_LIMITS):
                job = MeasureJob.of(
                    self._next_id(), NullTarget(), null, workload, seed=1, limits=limits
                )
                try:
                    return self._ask(job)
                except NothingCompleted as error:
                    failure = error
            raise failure

        self._ceiling = measure_ceiling(
            measure,
            cpu_count=self.facts["cpu_count"] or 1,
            deep=self.access.backend in DEEP_BACKENDS,
        )
        self.facts |= self._ceiling.facts()

    def time_calls(self) -> dict[str, Interval]:
        """Time calls about files where the data lie."""
        return {} if self._place is None else self._place.time_calls()

    def run(
        self,
        workload: Workload,
        *,
        seed: int,
        limits: Limits,
        arrivals: Arrivals = CLOSED,
        precondition_bytes_max: int | None = None,
        on_event: OnEvent | None = None,
        streams: Sequence[StreamAsked] = (),
        replay: ReplayAsked | None = None,
        load: LoadAsked | None = None,
    ) -> EngineResult:
        """Run one workload in the child, which is started when there is none."""
        kind = kind_of(self._target)
        if precondition_bytes_max is not None and kind != "directory":
            raise TargetRefused(
                "--precondition writes to a real device of this machine; "
                f"{kind}: has none: leave it out"
            )
        self._wait_for_server()
        self._require_room(workload)
        self.prepare()
        if self._place is not None:
            self.wear.begin(workload, precondition_bytes_max or 0)
        job = MeasureJob.of(
            self._next_id(),
            self._target,
            self.access,
            workload,
            seed=seed,
            limits=limits,
            arrivals=arrivals,
            precondition_bytes_max=precondition_bytes_max,
            ceiling_iops=self._ceiling.iops(workload.process_num, workload.queue_depth)
            if self._ceiling
            else None,
            streams=streams,
            replay=replay,
            load=load,
        )
        return self._counted(job, on_event)

    def lay_out(
        self, workload: Workload, *, seed: int, limits: Limits, on_event: OnEvent | None = None
    ) -> EngineResult:
        """Run for the sake of the file and the cache: the generator's ceiling is not asked for."""
        self._require_room(workload)
        self.wear.begin(workload)
        job = MeasureJob.of(
            self._next_id(), self._target, self.access, workload, seed=seed, limits=limits
        )
        return self._counted(job, on_event)

    def _next_id(self) -> str:
        self._jobs += 1
        return f"job-{self._jobs}"

    def _wait_for_server(self) -> None:
        """Give a server that was lost a moment to come back; if it does not, the run says so."""
        end_s = time.monotonic() + COME_BACK_S
        while self._place is not None and self._place.lost and time.monotonic() < end_s:
            with suppress(ServerLost):
                self._place.require_room(0)
                self._place.lost = False
                return
            time.sleep(COME_BACK_LOOK_S)

    def _require_room(self, workload: Workload) -> None:
        require_fit(workload, capacity_bytes=self.capacity_bytes, backend=self.access.backend)
        if self._place is not None:
            self._place.require_room(workload.unique_bytes)

    def _counted(self, job: MeasureJob, on_event: OnEvent | None) -> EngineResult:
        """Run a job, and count what it writes, also where it tells nothing."""
        if self._place is None:
            return self._ask(job, on_event)
        self.wear.watch(self._child.pid)
        try:
            result = self._ask(job, on_event)
        except WrittenSpent:
            raise  # what was written is counted
        except LeadlineError:
            self.wear.add_failed(job.workload, self._child.pid)
            raise
        self.wear.add(job.workload, result)
        return result

    def _ask(self, job: MeasureJob, on_event: OnEvent | None = None) -> EngineResult:
        def watch(event: dict[str, Any]) -> None:
            grows = event["event"] == "progress" and event.get("phase") == "prepare"
            if self._place is not None and grows:
                self._place.keep_floor(job.workload.unique_bytes)
            if on_event is not None:
                on_event(event)

        try:
            result = self._child.run(job, watch, self._look)
        except ServerLost:
            self._note_lost(True)
            raise
        self._note_lost(result.server_lost)
        return result

    def _look(self) -> None:
        self.wear.look(self._child.pid)

    def _note_lost(self, lost: bool) -> None:
        if self._place is not None:
            self._place.lost = lost

    def close(self) -> None:
        """End the child."""
        self._child.close()
