"""One kernel over the user's data, as a study: capacities first, then the run, then the words."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

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
from leadline.record import Interval, Status, derive_seed
from leadline.record.balance import RESOURCE_WORDS, Bound
from leadline.record.finding import Finding
from leadline.record.job import Capacity, StreamJob
from leadline.record.streaming import Capacities, StreamResult, StreamRun, StreamStart, StreamStudy
from leadline.store import Keeper
from leadline.studies.streaming.answer import sentences_of
from leadline.studies.streaming.bounds import bound
from leadline.studies.streaming.capacities import capacities_of
from leadline.studies.streaming.keeping import Before, KeptStream
from leadline.studies.streaming.measured import readings_interval
from leadline.studies.streaming.plan import Planned
from leadline.studies.streaming.ranks.launcher import rank_started
from leadline.units import format_bytes, format_rate, format_seconds

CAPACITY_BYTES_MIN = 32 * 2**20
CAPACITY_BYTES_MAX = 256 * 2**20
_CAPACITY_SHARE = 8
"""A capacity is measured on an eighth of the data: long enough to tell, short beside the run."""
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
    )


def run_stream(
    planned: Planned,
    start: StreamStart,
    streams: Streams,
    store: Keeper,
    *,
    before: Before | None = None,
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
        on_capacities: told when they are known.
        on_run: told of every run, once it is kept.

    Raises:
        LeadlineError: the run was refused or failed; what was measured is kept.

    """
    growing = _Growing(planned, start, store, on_capacities, before=before, on_run=on_run)
    with growing.kept():
        growing.measure(streams, tuple)
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
    from leadline.studies.streaming.ranks import cluster  # noqa: PLC0415 - MPI is optional

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

    def measure(self, streams: Streams, network_bytes_s: Callable[[], Sequence[float]]) -> None:
        """Measure the capacities, if asked for and not known."""
        if not self._planned.capacities or self.study.capacities is not None:
            return
        readings, why = None, "the engine has not measured them"
        try:
            readings = streams.run(_capacity_job(self._planned, self.study.start)).capacity
        except (TargetRefused, PointFailed) as error:
            why = str(error)
        network = network_bytes_s()
        if readings is None:
            self._kept.doubt(Finding.of("no_bound", why=why))
            return
        found = capacities_of(readings, self.study.start.directories, network)
        self._kept.add_capacities(found)
        if self._on_capacities is not None:
            self._on_capacities(found)

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
    findings = tuple(dict.fromkeys((*study.findings, *findings)))
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
    how_sure = "; one run, so without an interval: --runs 3 gives one"
    if rate.low is not None and rate.high is not None:
        how_sure = f" ({format_rate(rate.low)} to {format_rate(rate.high)}, {rate.n} runs)"
    said = [
        f"{result.kernel} of {took}: {format_rate(rate.value)} read and written together{how_sure}."
    ]
    if limit is not None and limit.mb_s.value:
        share = 100 * rate.value / limit.mb_s.value
        said.append(
            f"That is {share:.0f} % of the {format_rate(limit.mb_s.value)} that the "
            f"{RESOURCE_WORDS[limit.resource]} of this machine would allow."
        )
    if result.verified:
        said.append(f"The output was read back and is right ({format_seconds(result.verify_s)}).")
    return said


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
