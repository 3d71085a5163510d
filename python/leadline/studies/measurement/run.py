"""Measure workload after workload, run after run; what is measured is stored at once.

Every finished run is durable before the next begins, because a workload may have a hundred of them
and a start-up, a layout and its preconditioning before the first. A run is stored without an id, in
a group of its workload's own; what has an id is the measurement that a workload's runs make
together, which is stored with the last of them. So a study that is killed loses the run in which it
is, and a workload that has one run is stored once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from leadline.engine import (
    Engine,
    Limits,
    Progress,
    Target,
    Wear,
    bounded,
    open_engine,
    preflight,
    require_fit,
    room_findings,
    until_completed,
)
from leadline.errors import UsageRefused
from leadline.lazy_import import late
from leadline.record import (
    Access,
    EngineResult,
    Measurement,
    RunReading,
    Status,
    derive_seed,
    point_id,
)
from leadline.record.finding import Finding
from leadline.record.measurement import (
    MEASUREMENT,
    RUN_STAGE,
    Measured,
    MeasurementAsked,
    MeasurementStart,
    WorkloadAsked,
)
from leadline.record.study import ElapsedAnswer
from leadline.record.wording import format_count
from leadline.store import Keeper, Store
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.measurement.plan import (
    POINTS,
    begin_measurements,
    find_begun,
    limits_of,
    load_measured,
    naming,
    runs_group,
)
from leadline.studies.measurement.replay import replayed
from leadline.studies.resume import clock_after, require_same_access
from leadline.studies.same_system import changed_facts
from leadline.units import format_bytes

STAGE = "measure"
PAUSE_S = 2.0
"""Between two runs on a real target. What disturbs a shared machine comes and goes within some
seconds: five runs in six seconds scattered by 4%, the same runs spread over minutes by 8%."""

pooled_result = late("leadline.stats:pooled_result")
"""Loaded after measuring, with numpy and scipy."""


def measure_workloads(
    target: Target,
    store: Keeper,
    start: MeasurementStart,
    before: Measured | None = None,
    *,
    written_bytes_max: int | None = None,
    on_findings: Callable[[Sequence[Finding]], object] = lambda _: None,
    on_measured: Callable[[Measured], object] = lambda _: None,
    on_progress: Callable[[Progress], object] = lambda _: None,
) -> Measured:
    """Measure every workload still missing and return all measurements.

    The start is durable before the first run, every run before the next. On any exception the
    stored runs remain, and the study can be resumed by passing what was stored as `before`.

    Args:
        target: what is measured.
        store: where it goes.
        start: what decides it, of `begin_measurements`.
        before: what earlier sittings kept.
        written_bytes_max: another limit than it began with.
        on_findings: told what may disturb a workload, before its first run of this sitting.
        on_measured: told of the study after every workload.
        on_progress: told before every run, but for those of a simulated system, which nobody waits
            for.

    Raises:
        TargetRefused: the target cannot take a workload, or is not as it was in its earlier runs.
        PointFailed: the storage failed while measuring.
        ServerLost: the server went away; that is stored as well.
        WrittenSpent: all that may be written is, or the next run would go past it.

    """
    growing = _Growing(store, start, before, written_bytes_max)
    if start.system_profile != target.profile:
        raise UsageRefused(
            f"{target.text} describes another system than when measurement {start.study_id[:8]} "
            "began: set back what changed, or start a new one without --resume"
        )
    left = start.workloads[len(growing.points) :]
    try:
        if len(left) > 1:  # a lone one is looked at when it begins
            for workload in left:
                with _opened(target, growing, workload) as looked_at:
                    _require_fit(workload, looked_at)
        for workload in left:
            with _opened(target, growing, workload) as engine:
                _require_fit(workload, engine)
                room = room_findings(engine, growing.asked.max_bytes)
                findings = (*preflight(target, engine.facts), *room)
                on_findings(findings)
                against = tuple(each for each in findings if not each.is_note)
                point = _measure(engine, growing, workload, against, on_progress)
                # Kept before the target is left: a server that went away cannot be tidied up.
                growing.add_point(point)
                on_measured(growing.study)
    finally:
        growing.end()
    return growing.study


class Measuring(Study[None, MeasurementStart, Measured | None]):
    """Measurements as requested, begun or gone on with."""

    records = MEASUREMENT

    def __init__(
        self,
        target: Target,
        asked: MeasurementAsked,
        *,
        access: Access | None = None,
        given: frozenset[str] | None = None,
    ) -> None:
        """Take what was asked for.

        Args:
            target: what is measured.
            asked: the workloads, none where those that it began with are gone on with.
            access: how it is reached, as it was said of all; that of the first without.
            given: names of the options of access that the user chose.

        """
        self._target, self.asked = target, asked
        first = asked.workloads[0].access if asked.workloads else Access()
        self._access, self._given = access or first, given

    def unfinished(self, store: Store) -> Measured:
        """Return the newest unfinished one of these workloads on this target."""
        found = find_begun(store, self._target, self.asked.workloads)
        for each in found.start.workloads:
            require_same_access(
                found.start.system, each.access, self._access, self._given, MEASUREMENT.said
            )
        return found

    def open(
        self, store: Store, earlier: Begun[MeasurementStart] | None, watcher: Watcher
    ) -> AbstractContextManager[None]:
        """Open nothing: every workload is reached in its own way."""
        return nullcontext()

    def begin(self, opened: None, findings: tuple[Finding, ...]) -> MeasurementStart:
        """Say what decides it."""
        return begin_measurements(self._target, self.asked)

    def kept(
        self, store: Store, start: MeasurementStart, earlier: Begun[MeasurementStart] | None
    ) -> Measured | None:
        """Return what is stored; a new one is kept when its first run begins."""
        return None if earlier is None else load_measured(store, start.study_id)

    def run(
        self,
        opened: None,
        store: Store,
        start: MeasurementStart,
        kept: Measured | None,
        watcher: Watcher,
    ) -> Measured:
        """Measure every workload that is missing."""
        runs = sum(each.runs for each in start.workloads)
        with watcher.progress(runs, what="runs", simulated=start.simulated) as on_progress:
            return measure_workloads(
                self._target,
                store,
                start,
                kept,
                written_bytes_max=self.asked.written_bytes_max,
                on_findings=watcher.found,
                on_measured=watcher.ended,
                on_progress=on_progress,
            )


class _Growing:
    """A study that grows by runs, and by measurements that are made of them."""

    def __init__(
        self,
        store: Keeper,
        start: MeasurementStart,
        before: Measured | None = None,
        written_bytes_max: int | None = None,
    ) -> None:
        if start.asked is None:
            raise UsageRefused(
                f"study {start.study_id[:8]} does not say what was to be measured, so it cannot go "
                "on; start a new one without --resume"
            )
        self.asked: MeasurementAsked = start.asked
        self.points = () if before is None else before.points
        self.runs = () if before is None else before.runs
        """Of the workload that is being measured."""
        limit = written_bytes_max or self.asked.written_bytes_max
        self.wear = Wear(limit, 0 if before is None else before.bytes_written)
        self.status = Status.RUNNING
        self._is_kept = before is not None
        self._begun = False
        """In this sitting: one that is refused before leaves the study as others have it."""
        self.store, self._start = store, start

    @property
    def study(self) -> Measured:
        written = self.wear.written_bytes
        return Measured(self._start, self.status, self.points, self.runs, written)

    def begin(self) -> None:
        """Begin to keep the study: one that is refused before leaves nothing."""
        if not self._is_kept:
            self.store.begin(MEASUREMENT, self._start)
        self._is_kept = self._begun = True

    def add_run(self, run: Measurement) -> None:
        self.store.add(self._start.study_id, run, runs_group(len(self.points)))
        self.runs = (*self.runs, run)

    def add_point(self, point: Measurement) -> None:
        self.store.add(self._start.study_id, point, POINTS)
        self.points, self.runs = (*self.points, point), ()

    def end(self) -> None:
        whole = len(self.points) == len(self.asked.workloads)
        self.status = Status.DONE if whole else Status.STOPPED
        if self._begun or (self._is_kept and whole):
            readings = [run.wall_s for point in self.points for run in point.runs]
            wall_s = sum(readings) + sum(run.result.wall_s for run in self.runs)
            took = ElapsedAnswer(wall_s=wall_s, written_bytes=self.wear.written_bytes)
            self.store.end(self._start.study_id, took, self.status)

    def point_id(self, workload: WorkloadAsked) -> str:
        """Return the id of what is measured next; of one alone that has no name its study's."""
        own = self._start.study_id
        alone = len(self.asked.workloads) == 1 and workload.name is None
        return own if alone else point_id(own, len(self.points))


@contextmanager
def _opened(target: Target, growing: _Growing, workload: WorkloadAsked) -> Iterator[Engine]:
    asked = growing.asked
    with (
        naming(workload.name),
        open_engine(
            target,
            workload.access,
            engine=asked.engine,
            max_bytes=asked.max_bytes,
            wear=growing.wear.again(),
            run_seed=asked.seed,
        ) as engine,
    ):
        yield engine


def _require_fit(workload: WorkloadAsked, engine: Engine) -> None:
    replay = workload.replay
    if replay is not None and replay.files_bytes > engine.capacity_bytes:
        raise UsageRefused(
            f"the {format_count(replay.files, 'file')} of {replay.trace} are "
            f"{format_bytes(replay.files_bytes)} long, more than the "
            f"{format_bytes(engine.capacity_bytes)} that may be used here (free space less its "
            "floor, and --max-bytes); free some, or replay a part"
        )
    backend = engine.access.backend
    require_fit(workload.workload, capacity_bytes=engine.capacity_bytes, backend=backend)


def _measure(
    engine: Engine,
    growing: _Growing,
    workload: WorkloadAsked,
    findings: tuple[Finding, ...],
    on_progress: Callable[[Progress], object],
) -> Measurement:
    """Make the runs that a workload still needs, and of all of them its measurement."""
    asked, kept = growing.asked, growing.runs
    _require_same_system(kept, engine)
    engine.prepare()
    nothing = engine.access.backend == "null"
    layout_bytes = 0 if nothing else workload.workload.unique_bytes
    if workload.replay is not None:
        layout_bytes = workload.replay.initial_bytes
    if not engine.virtual:
        growing.wear.require_layout(layout_bytes, asked.precondition_bytes_max or 0)
    growing.begin()
    pause_s = 0.0 if engine.virtual or nothing else PAUSE_S
    limits = bounded(
        limits_of(
            workload.seconds / workload.runs,
            asked.accuracy,
            workload.requests,
            begins_cold=workload.begins_cold,
        ),
        runs=workload.runs,
        pause_s=pause_s,
        layout_bytes=layout_bytes,
        precondition_bytes_max=asked.precondition_bytes_max,
    )
    end_s = engine.clock_s + limits.total_s_max
    # Only now: what a virtual clock has behind it counts towards the same bound.
    engine.skip_to(clock_after(kept))

    def timed(run: Callable[..., EngineResult]) -> EngineResult:
        return until_completed(run, limits, lambda: end_s - engine.clock_s)

    ahead = _Ahead(workload, limits, pause_s, begun_s=engine.clock_s)
    with replayed(workload.replay, growing.store, engine.memory_bytes) as replay:
        beside: dict[str, Any] = {"streams": workload.streams} if workload.streams else {}
        beside |= {"replay": replay} if replay is not None else {}
        for number in range(len(kept), workload.runs):
            if number > len(kept):
                time.sleep(pause_s)
            if not engine.virtual:
                on_progress(ahead.progress(growing, engine.clock_s))
            run = _run(engine, asked, workload, number, beside, findings=findings, timed=timed)
            if run.result.server_lost or number + 1 == workload.runs:
                break
            growing.add_run(run)
    return _whole(growing, workload, run)


class _Ahead:
    """What is left to wait for, from how long the runs of this sitting took."""

    def __init__(
        self, workload: WorkloadAsked, limits: Limits, pause_s: float, *, begun_s: float
    ) -> None:
        self._workload, self._limits, self._pause_s = workload, limits, pause_s
        self._begun_s = begun_s
        self._first: int | None = None

    def progress(self, growing: _Growing, now_s: float) -> Progress:
        """Return where the measurement stands before its next run."""
        work, runs = self._workload, growing.runs
        if self._first is None:
            self._first = len(runs)
        made = len(runs) - self._first
        usual_s = self._limits.warm_up_s_max + self._limits.measure_s_max + self._pause_s
        each_s = (now_s - self._begun_s) / made if made else usual_s
        planned = growing.asked.workloads
        later = planned[len(growing.points) + 1 :]
        left_s = each_s * (work.runs - len(runs)) + usual_s * sum(each.runs for each in later)
        done = sum(each.runs for each in planned[: len(growing.points)]) + len(runs)
        return Progress(
            done=done,
            planned=sum(each.runs for each in planned),
            stage=work.name or "run",
            left_s=left_s,
            throughput_mb_s=runs[-1].result.throughput_mb_s.value if runs else None,
        )


def _run(
    engine: Engine,
    asked: MeasurementAsked,
    workload: WorkloadAsked,
    number: int,
    beside: dict[str, Any],
    *,
    findings: tuple[Finding, ...],
    timed: Callable[[Callable[..., EngineResult]], EngineResult],
) -> Measurement:
    """Make one run; `beside` is what an engine is told beside the workload."""
    seed, clock_s = derive_seed(asked.seed, number), engine.clock_s
    started_at = datetime.now(UTC).isoformat()
    result = timed(
        partial(
            engine.run,
            workload.workload,
            seed=seed,
            arrivals=workload.arrivals,
            precondition_bytes_max=asked.precondition_bytes_max if number == 0 else None,
            **beside,
        )
    )
    return Measurement(
        point_id="",
        order=number,
        stage=RUN_STAGE,
        started_at=started_at,
        clock_s=clock_s,
        seed=seed,
        workload=workload.workload,
        streams=workload.streams,
        replay=workload.replay,
        **engine.access.stored_in(Measurement),
        arrivals=workload.arrivals,
        facts=engine.facts,
        findings=findings,
        result=result,
    )


def _whole(growing: _Growing, workload: WorkloadAsked, last: Measurement) -> Measurement:
    """Return the measurement that a workload's runs make together."""
    asked, runs = growing.asked, (*growing.runs, last)
    # A server that went away is a verdict of its own: nothing is made of it with the others.
    pooled = [last] if last.result.server_lost else runs
    found = dict.fromkeys(each for run in runs for each in run.findings)
    return msgspec.structs.replace(
        last,
        point_id=growing.point_id(workload),
        order=len(growing.points),
        stage=STAGE,
        started_at=runs[0].started_at,
        clock_s=0.0,
        seed=asked.seed,
        findings=(*workload.findings, *found),
        result=_answer([run.result for run in pooled], asked.accuracy),
        runs=tuple(map(_reading, runs)),
    )


def _reading(run: Measurement) -> RunReading:
    result = run.result
    return RunReading(
        seed=run.seed,
        wall_s=result.wall_s,
        throughput_mb_s=result.throughput_mb_s,
        iops=result.iops,
    )


def _answer(results: list[EngineResult], accuracy: float) -> EngineResult:
    """The pooled result; whether the accuracy was reached is said of the whole, not of a run."""
    pooled: EngineResult = pooled_result(results)
    reached = pooled.throughput_mb_s.half_width_frac
    if len(results) == 1 or reached is None:
        return pooled
    kept = [found for found in pooled.findings if found.code != "time_cap"]
    if reached > accuracy:
        capped = len(kept) < len(pooled.findings)
        missed = {"half_width_frac": reached, "accuracy_frac": accuracy, "runs": len(results)}
        kept.append(
            Finding.of("time_cap", **missed)
            if capped
            else Finding.of("runs_differ", **missed, wall_s=pooled.wall_s)
        )
    return msgspec.structs.replace(pooled, findings=tuple(kept))


def _require_same_system(kept: Sequence[Measurement], engine: Engine) -> None:
    """Refuse to make one answer of runs on two systems.

    Raises:
        TargetRefused: which facts differ.

    """
    changed = changed_facts(kept[-1].facts, engine.facts) if kept else ()
    if changed:
        raise UsageRefused(
            f"this is not the system of the {format_count(len(kept), 'run')} before: "
            f"{'; '.join(changed)}. Together they would be an answer about neither: set back what "
            "changed, or start a new measurement without --resume"
        )
