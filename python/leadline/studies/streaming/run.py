"""Runs of one kernel as a study: measured, kept as it grows, loaded again."""

from __future__ import annotations

import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from leadline.engine import (
    EngineFault,
    PointFailed,
    Streams,
    TargetRefused,
    host_facts,
    target_facts,
)
from leadline.engine.streams.places import disks_of
from leadline.machine.resources import why_no_io_uring
from leadline.record import Interval, Status, derive_seed, point_id
from leadline.record.balance import RESOURCE_WORDS, Bound
from leadline.record.finding import Finding
from leadline.record.job import Capacity, StreamJob
from leadline.record.streaming import (
    STREAM,
    Capacities,
    CapacitiesKnown,
    CapacityRun,
    RunEnded,
    StreamResult,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from leadline.record.study import TextAnswer
from leadline.record.wording import format_rate_ci
from leadline.store import Keeper, Store, Stored
from leadline.studies.streaming import rank_started
from leadline.studies.streaming.answer import sentences_of
from leadline.studies.streaming.measured import bound, readings_interval
from leadline.studies.streaming.plan import Planned, capacities_of
from leadline.units import format_bytes, format_rate, format_seconds

# A stream study that is kept as it grows: nothing before something is known, then item by item.


class Before(NamedTuple):
    """What earlier sittings kept."""

    study: StreamStudy
    items: int
    """How many: what comes next has the order after them."""


class KeptStream:
    """A study, and how much of it is kept; every change is a new document."""

    def __init__(self, store: Keeper, start: StreamStart, before: Before | None = None) -> None:
        """Begin a study, or take up a stored one where it was left."""
        self._store = store
        self._begun = before is not None
        self._items = 0 if before is None else before.items
        self._began_s = time.monotonic() - (0.0 if before is None else before.study.wall_s)
        self.study = (
            StreamStudy(start=start, status=Status.RUNNING)
            if before is None
            else msgspec.structs.replace(
                before.study, status=Status.RUNNING, sentences=(), findings=()
            )
        )

    @property
    def wall_s(self) -> float:
        """Time since the study began."""
        return time.monotonic() - self._began_s

    def begin(self) -> None:
        """Keep the start, if it is not kept."""
        if not self._begun:
            self._store.begin(STREAM, self.study.start)
            self._begun = True

    def doubt(self, found: Finding) -> None:
        """Say why no capacities are known; it is kept once something is measured."""
        self.study = msgspec.structs.replace(self.study, findings=(found,))

    def add_capacities(self, found: Capacities) -> None:
        """Keep what the machine can do; a later answer counts."""
        self._add(CapacitiesKnown(order=self._items, wall_s=self.wall_s, capacities=found))
        self.study = msgspec.structs.replace(self.study, capacities=found)

    def add_run(self, run: StreamRun) -> None:
        """Keep a run that ended."""
        doubts = self.study.findings
        if self._items == 0 and doubts:
            self._add(CapacitiesKnown(order=0, wall_s=self.wall_s, capacities=None, doubts=doubts))
        own = point_id(self.study.start.study_id, self._items)
        self._add(RunEnded(order=self._items, item_id=own, wall_s=self.wall_s, run=run))
        self.study = msgspec.structs.replace(self.study, runs=(*self.study.runs, run))

    def end(
        self, status: Status, sentences: tuple[str, ...], findings: tuple[Finding, ...]
    ) -> None:
        """Keep the answer, if anything is kept."""
        answer = TextAnswer(sentences=sentences, findings=findings, wall_s=self.wall_s)
        said = msgspec.structs.asdict(answer)
        self.study = msgspec.structs.replace(self.study, status=status, **said)
        if self._begun:
            self._store.end(self.study.start.study_id, answer, status)

    def _add(self, item: CapacitiesKnown | RunEnded) -> None:
        self.begin()
        self._store.add(self.study.start.study_id, item)
        self._items += 1


# One kernel over the user's data, as a study: capacities first, then the run, then the words.

CAPACITY_BYTES_MIN = 32 * 2**20
CAPACITY_BYTES_MAX = 256 * 2**20
_CAPACITY_SHARE = 8
"""A capacity is measured on an eighth of the data: long enough to tell, short beside the run."""
CAPACITIES_KEPT = timedelta(days=1)
"""How long later runs reuse what was measured."""
_MEMORY_BYTES_ENOUGH = 2**30
"""More memory than this does not change what is measured of it."""
_PASSING = ("memory_available_bytes", "free_bytes", "cpu_mhz")
NETWORK_BYTES = 64 * 2**20
NETWORK_READINGS = 5
"""What every rank sends to the others, so often, to measure the network."""
_LEAST_S = 0.02
"""The shortest job that the wire takes."""


def begin_stream(planned: Planned) -> StreamStart:
    """Return what decides the study; its disks are the file systems that the data lies on."""
    disks = disks_of(planned.directories)
    return StreamStart(
        study_id=uuid.uuid4().hex,
        system=planned.system,
        purpose="run",
        directories=disks,
        started_at=_now(),
        seed=planned.job.seed,
        facts=host_facts() | target_facts(disks[0]),
        notes=queue_notes(),
    )


def queue_notes() -> tuple[Finding, ...]:
    """Say by what requests are queued where io_uring is forbidden."""
    why = why_no_io_uring()
    instead = "a pool of threads"
    return () if why is None else (Finding.of("no_io_uring", instead=instead, why=why),)


def run_stream(
    planned: Planned,
    start: StreamStart,
    streams: Streams,
    store: Keeper,
    *,
    before: Before | None = None,
    known: Capacities | None = None,
    on_capacities: Callable[[Capacities], None] | None = None,
    on_run: Callable[[StreamRun], None] | None = None,
) -> StreamStudy:
    """Run the kernel, in the engine child, as often as planned, and keep what was found.

    Args:
        planned: what is to be run.
        start: what decides the study.
        streams: the engine.
        store: where the study is kept, as soon as something is measured.
        before: what earlier sittings kept of it; its runs are not run again.
        known: what the machine can do, where that need not be measured.
        on_capacities: told when they are known.
        on_run: told of every run, once it is kept.

    Raises:
        LeadlineError: the run was refused or failed; what was measured is kept.

    """
    growing = _Growing(planned, start, store, on_capacities, before=before, on_run=on_run)
    with growing.kept():
        growing.measure(streams, tuple, known)
        growing.run_all(lambda job: streams.run(job, output_bytes=planned.output_bytes))
    return growing.study


def run_stream_on_ranks(
    planned: Planned,
    start: StreamStart,
    streams: Streams,
    store: Keeper,
    *,
    tell: Callable[[str], None],
    on_capacities: Callable[[Capacities], None] | None = None,
) -> StreamStudy | None:
    """Run the kernel on all ranks that a launcher has started; every rank calls this.

    Returns:
        The study on rank 0; None on the others.

    """
    from leadline.studies.streaming import cluster  # noqa: PLC0415 - MPI is optional

    # The same on every rank, and another for every output: ranks of one node find each other by it.
    output = planned.job.output.path if planned.job.output is not None else ""
    job_id = f"{planned.job.name}-{hashlib.sha256(output.encode()).hexdigest()[:12]}"

    def network() -> Sequence[float]:
        measured = cluster.network_capacity(
            bytes_each=NETWORK_BYTES, readings=NETWORK_READINGS, tell=tell
        )
        return measured or ()

    if rank_started() > 0:
        if planned.capacities:
            network()
        for number in range(planned.runs):
            cluster.run_cluster(replace(_job(planned, number), job_id=job_id), tell=tell)
        return None

    def run(job: StreamJob) -> StreamResult:
        result = cluster.run_cluster(replace(job, job_id=job_id), tell=tell)
        if result is None:
            raise EngineFault("the ranks gave no result on rank 0; this is a defect in Leadline")
        return result

    growing = _Growing(planned, start, store, on_capacities)
    with growing.kept():
        # Before the first word to MPI: until then the other ranks sleep and disturb nothing.
        growing.measure(streams, network)
        growing.run_all(run)
    return growing.study


class _Growing:
    """A study that grows by capacities and runs."""

    def __init__(
        self,
        planned: Planned,
        start: StreamStart,
        store: Keeper,
        on_capacities: Callable[[Capacities], None] | None,
        *,
        before: Before | None = None,
        on_run: Callable[[StreamRun], None] | None = None,
    ) -> None:
        self._planned = planned
        self._on_capacities = on_capacities
        self._on_run = on_run
        self._kept = KeptStream(store, start, before)
        self._kept_before = len(self.study.runs)
        self._wall_s_before = self._kept.wall_s

    @contextmanager
    def kept(self) -> Iterator[None]:
        try:
            yield
        except BaseException:
            said = explain(self.study) if self.study.runs else self.study
            self._kept.end(Status.STOPPED, said.sentences, said.findings)
            raise

    @property
    def study(self) -> StreamStudy:
        return self._kept.study

    def measure(
        self,
        streams: Streams,
        network_bytes_s: Callable[[], Sequence[float]],
        known: Capacities | None = None,
    ) -> None:
        """Measure the capacities, if asked for and not known."""
        if not self._planned.capacities or self.study.capacities is not None:
            return
        found = known or self._measured(streams, network_bytes_s)
        if found is None:
            return
        self._kept.add_capacities(found)
        if self._on_capacities is not None:
            self._on_capacities(found)

    def _measured(
        self, streams: Streams, network_bytes_s: Callable[[], Sequence[float]]
    ) -> Capacities | None:
        start, measured_at = self.study.start, _now()
        readings, why = None, "the engine has not measured them"
        job = _capacity_job(self._planned, start)
        try:
            with _unbound() if self._planned.options.ranks > 1 else nullcontext():
                readings = streams.run(job).capacity
        except (TargetRefused, PointFailed) as error:
            why = str(error)
        network = network_bytes_s()
        if readings is None:
            self._kept.doubt(Finding.of("no_bound", why=why))
            return None
        found = capacities_of(readings, start.directories, network)
        return replace(found, run=_capacity_run(job, measured_at))

    def run_all(self, run_job: Callable[[StreamJob], StreamResult]) -> None:
        """Run the kernel as often as planned, all in the time that is left, and say what was found.

        The runs are the same; each is kept as soon as it is done.
        """
        for number in range(self._kept_before, self._planned.runs):
            self._run(number, run_job)
        said = explain(self.study)
        self._kept.end(Status.DONE, said.sentences, said.findings)

    def _run(self, number: int, run_job: Callable[[StreamJob], StreamResult]) -> None:
        left_s = self._planned.job.total_s_max - (self._kept.wall_s - self._wall_s_before)
        here = number - self._kept_before
        job = replace(_job(self._planned, here), total_s_max=max(_LEAST_S, left_s))
        started_at = _now()
        run = StreamRun(
            options=self._planned.options,
            disks=len(self.study.start.directories),
            repetition=number,
            started_at=started_at,
            result=run_job(job),
        )
        self._kept.add_run(run)
        if self._on_run is not None:
            self._on_run(run)


def _job(planned: Planned, number: int) -> StreamJob:
    """Return the job of a run: all but the first of a sitting replace the output of the one before.

    What is there when a sitting begins may be anybody's, so its first run replaces what it is told.
    """
    job = planned.job
    if number == 0 or job.output is None:
        return job
    return replace(job, output=replace(job.output, replace=True))


def recent_capacities(store: Store, planned: Planned, start: StreamStart) -> Capacities | None:
    """Return what memory and disks could do within the last day; None where that is not stored.

    It was measured on the same machine and disks as they are now, in the same way, on at least as
    much data and memory.
    """
    wanted = _capacity_run(_capacity_job(planned, start), start.started_at)
    for summary in store.list(STREAM):
        if not _is_recent(summary.started_at, wanted):
            continue
        found = store.find(summary.study_id, STREAM).start
        if found.directories != start.directories or _lasting(found) != _lasting(start):
            continue
        for item in store.items(summary.study_id):
            known = item.capacities if isinstance(item, CapacitiesKnown) else None
            if known is not None and known.run is not None and _serves(known.run, wanted):
                return known
    return None


def _is_recent(at: str, wanted: CapacityRun) -> bool:
    return datetime.fromisoformat(wanted.at) - datetime.fromisoformat(at) <= CAPACITIES_KEPT


def _serves(run: CapacityRun, wanted: CapacityRun) -> bool:
    return (
        _is_recent(run.at, wanted)
        and run.way == wanted.way
        and run.laid_bytes >= wanted.laid_bytes
        and run.memory_bytes >= min(wanted.memory_bytes, _MEMORY_BYTES_ENOUGH)
    )


def _lasting(start: StreamStart) -> dict[str, Any]:
    """Return the facts of machine and disk that stay the same while nobody changes it."""
    return {name: value for name, value in start.facts.items() if name not in _PASSING}


@contextmanager
def _unbound() -> Iterator[None]:
    """Let the engine, which starts within, use the whole machine.

    Launchers bind a rank to a processor or two of it.
    """
    bound = os.sched_getaffinity(0)
    os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
    try:
        yield
    finally:
        os.sched_setaffinity(0, bound)


def _capacity_run(job: StreamJob, at: str) -> CapacityRun:
    laid_bytes = job.kernel.bytes if isinstance(job.kernel, Capacity) else 0
    way = replace(job.io, read="uring")  # whatever the kernel reads by
    return CapacityRun(at=at, laid_bytes=laid_bytes, memory_bytes=job.memory_bytes, way=way)


def _capacity_job(planned: Planned, start: StreamStart) -> StreamJob:
    size = planned.data_bytes // _CAPACITY_SHARE
    return StreamJob(
        kernel=Capacity(
            directories=start.directories,
            bytes=max(CAPACITY_BYTES_MIN, min(CAPACITY_BYTES_MAX, size)),
        ),
        memory_bytes=planned.job.memory_bytes,
        threads=planned.options.threads,
        io=planned.job.io,
        seed=derive_seed(planned.job.seed, 0),
        total_s_max=max(_LEAST_S, planned.job.total_s_max / 2),
    )


def bound_of(study: StreamStudy) -> Bound | None:
    """Return the bound of the study's last run; None without a run or without capacities."""
    if not study.runs or study.capacities is None:
        return None
    run = study.runs[-1]
    return bound(run.result, run.options, study.capacities, run.disks)


def explain(study: StreamStudy) -> StreamStudy:
    """Return the study with what it says in words."""
    said = tuple(_sentences(study, bound_of(study)))
    _, findings = sentences_of(study)
    known = None if study.capacities is None else study.capacities.run
    if known is not None and known.at < study.start.started_at:
        findings = (Finding.of("capacities_kept", measured_at=known.at), *findings)
    findings = tuple(dict.fromkeys((*study.start.notes, *study.findings, *findings)))
    return replace(study, sentences=said, findings=findings)


def throughput_of(study: StreamStudy) -> Interval:
    """Return MB/s read and written together, over the runs; one run has no interval."""
    rates = [_moved_mb_s(run.result) for run in study.runs]
    return readings_interval(rates)


def _moved_mb_s(result: StreamResult) -> float:
    moved = sum(phase.bytes_moved for phase in result.phases)
    return moved / result.seconds / 1e6 if result.seconds > 0 else 0.0


def _sentences(study: StreamStudy, limit: Bound | None) -> list[str]:
    result, rate = study.runs[-1].result, throughput_of(study)
    seconds = readings_interval([run.result.seconds for run in study.runs])
    passes = "" if result.passes == 1 else f" in {result.passes} passes"
    took = f"{format_bytes(result.bytes_in)}{passes} took {format_seconds(seconds.value)}"
    said_rate, how_sure = format_rate(rate.value), "; one run, no interval (use --runs 3)"
    if rate.low is not None and rate.high is not None:
        said_rate, how_sure = format_rate_ci(rate, level=True), f" ({rate.n} runs)"
    said = [f"{result.kernel} of {took}: {said_rate} read plus written{how_sure}."]
    if limit is not None and limit.mb_s.value:
        share = 100 * rate.value / limit.mb_s.value
        said.append(
            f"Bound: {share:.0f}% of {format_rate(limit.mb_s.value)}, by "
            f"{RESOURCE_WORDS[limit.resource]}."
        )
    if result.verified:
        said.append(f"Output read back and verified in {format_seconds(result.verify_s)}.")
    return said


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# A stream study as it is told, from what is stored of it.


def load_stream(store: Store, ref: str) -> StreamStudy:
    """Return a stored study, finished or not.

    Raises:
        StoreError: no stream study, or several, go by this reference.

    """
    found = store.find(ref, STREAM)
    return stream_study(found, store.items(found.start.study_id))


def stream_study(
    found: Stored[StreamStart, TextAnswer], items: tuple[CapacitiesKnown | RunEnded, ...]
) -> StreamStudy:
    """Return the study that start, items and answer make together."""
    known = [item for item in items if isinstance(item, CapacitiesKnown)]
    study = StreamStudy(
        start=found.start,
        status=found.status,
        capacities=known[-1].capacities if known else None,
        runs=tuple(item.run for item in items if isinstance(item, RunEnded)),
        findings=known[-1].doubts if known else (),
        wall_s=items[-1].wall_s if items else 0.0,
    )
    if found.answer is not None:
        return msgspec.structs.replace(study, **msgspec.structs.asdict(found.answer))
    return explain(study) if study.runs and study.start.purpose == "run" else study


def kept_before(store: Store, study_id: str) -> Before:
    """Return what earlier sittings of a study kept, to go on with."""
    found, items = store.find(study_id, STREAM), store.items(study_id)
    return Before(stream_study(found, items), len(items))
