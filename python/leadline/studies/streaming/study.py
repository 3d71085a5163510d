"""Streaming studies as they are asked for: disks added one by one, runs of a kernel."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import UTC, datetime

import msgspec

from leadline.engine import BudgetSpent, Streams, host_facts, open_streams, target_facts
from leadline.engine.streams.disks import (
    DATA_MULTIPLE_BYTES,
    Effort,
    StreamDisks,
    open_stream_disks,
)
from leadline.engine.streams.places import disks_of
from leadline.errors import UsageRefused
from leadline.record import Status, derive_seed
from leadline.record.finding import Finding
from leadline.record.streaming import (
    BLOCK_BYTES,
    KERNELS,
    STREAM,
    CapacityResult,
    KernelName,
    StreamOptions,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from leadline.store import Keeper, Store
from leadline.studies.conduct import Begun, Study, Watcher
from leadline.studies.resume import find_unfinished
from leadline.studies.streaming.answer import sentences_of
from leadline.studies.streaming.plan import Planned, capacities_of
from leadline.studies.streaming.run import (
    Before,
    KeptStream,
    begin_stream,
    kept_before,
    queue_notes,
    recent_capacities,
    run_stream,
    run_stream_on_ranks,
)
from leadline.units import format_bytes

# `leadline stream scale`: every kernel on 1..n disks, with the capacities of the same hour.
#
# A repetition is a whole: the numbers of disks in an order drawn by the seed, new data for each,
# every kernel on it in an order drawn as well. A machine that slows down meanwhile slows all alike.

REPETITIONS = 3
CAPACITY_BYTES = 128 * 2**20
"""Laid out on each disk to see what it can do, if the data is as large."""
_DATA_SEEDS = 100_000
"""Seeds of data lie above those of runs."""


class ScalingOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants to know."""

    system: str
    kernels: tuple[KernelName, ...] = KERNELS
    data_bytes: int
    memory_bytes: int
    threads: int = 1
    repetitions: int = REPETITIONS
    capacity_bytes: int = CAPACITY_BYTES
    budget_s: float = 3600.0
    seed: int = 1


class RunDone(msgspec.Struct, frozen=True):
    """Told after every run."""

    run: StreamRun
    done: int
    of: int


def begin_scaling(directories: Sequence[str], asked: ScalingOptions) -> StreamStart:
    """Return what decides the study.

    Raises:
        TargetRefused: there is no directory.

    """
    if not directories:
        raise UsageRefused("no directory was given; give one for each disk")
    facts = host_facts() | target_facts(directories[0])
    return StreamStart(
        study_id=uuid.uuid4().hex,
        system=asked.system,
        purpose="scaling",
        directories=tuple(directories),
        started_at=_now(),
        seed=asked.seed,
        facts=facts,
        notes=_notes(directories),
    )


def _notes(directories: Sequence[str]) -> tuple[Finding, ...]:
    apart = disks_of(directories)
    shared = (each for each in directories if each not in apart)
    return (*queue_notes(), *(Finding.of("one_disk", directory=each) for each in shared))


def whole_bytes(data_bytes: int) -> int:
    """Round to data that every kernel takes.

    Raises:
        TargetRefused: it is too little.

    """
    count = data_bytes // DATA_MULTIPLE_BYTES
    if count < 1:
        raise UsageRefused(
            f"--size {format_bytes(data_bytes)} is too little; give at least "
            f"{format_bytes(DATA_MULTIPLE_BYTES)}"
        )
    return count * DATA_MULTIPLE_BYTES


def shape_of(data_bytes: int) -> tuple[int, int]:
    """Return rows and columns of blocks, as near to a square as they can be."""
    blocks = data_bytes // BLOCK_BYTES
    rows = next(count for count in range(int(blocks**0.5), 0, -1) if blocks % count == 0)
    return rows, blocks // rows


def options_of(kernel: KernelName, asked: ScalingOptions) -> StreamOptions:
    """Return what decides a kernel's runs."""
    rows, columns = shape_of(whole_bytes(asked.data_bytes))
    transposes = kernel == "transpose"
    return StreamOptions(
        kernel=kernel,
        memory_bytes=asked.memory_bytes,
        threads=asked.threads,
        rows=rows if transposes else None,
        columns=columns if transposes else None,
    )


class Step(msgspec.Struct, frozen=True):
    """One run of the plan."""

    repetition: int
    disks: int
    kernel: KernelName


def plan_steps(disks: int, asked: ScalingOptions) -> tuple[Step, ...]:
    """Return the runs in their order; steps of the same data follow each other."""
    draw = random.Random(derive_seed(asked.seed, 0))  # noqa: S311 - an order, not a secret
    steps = []
    for repetition in range(asked.repetitions):
        counts = list(range(1, disks + 1))
        draw.shuffle(counts)
        for count in counts:
            kernels = list(asked.kernels)
            draw.shuffle(kernels)
            steps += [Step(repetition, count, kernel) for kernel in kernels]
    return tuple(steps)


def run_scaling(
    disks: StreamDisks,
    store: Keeper,
    start: StreamStart,
    asked: ScalingOptions,
    *,
    before: Before | None = None,
    on_run: Callable[[RunDone], None] | None = None,
) -> StreamStudy:
    """Run the study and keep it; one that is stopped keeps the runs that were done.

    Args:
        disks: the opened directories.
        store: where the study is kept, before its first run and after each.
        start: what decides it.
        asked: what is wanted.
        before: what earlier sittings kept of it; its runs are not run again.
        on_run: told after every run.

    Raises:
        TargetRefused: the stored runs are not those that were asked for.
        TargetRefused, PointFailed, EngineFault: a run failed; those before it are kept.
        BudgetSpent: before every kernel ran once on every number of disks.

    """
    steps = plan_steps(len(disks.directories), asked)
    done = 0 if before is None else _runs_done(before.study, steps, asked)
    study = _Study(disks, store, start, asked, before)
    try:
        study.measure_capacities()
        for number, step in enumerate(steps[done:], done + 1):
            try:
                run = study.take(step, number)
            except BudgetSpent:
                if step.repetition == 0:
                    raise
                study.doubt(Finding.of("budget_ended", done=number - 1, planned=len(steps)))
                break
            if on_run is not None:
                on_run(RunDone(run, number, len(steps)))
        # Again at the end, for drift; what is there already answers without it.
        with suppress(BudgetSpent):
            study.measure_capacities()
    except BaseException:
        study.end(Status.STOPPED)
        raise
    study.end(Status.DONE)
    return study.document


def _runs_done(study: StreamStudy, steps: Sequence[Step], asked: ScalingOptions) -> int:
    """Count the stored runs; they must be the first of those that are asked for now."""
    for run, step in zip(study.runs, steps, strict=False):
        ran = Step(run.repetition, run.disks, run.options.kernel)
        if ran != step or run.options != options_of(step.kernel, asked):
            raise UsageRefused(
                f"stored run {run.options.kernel} on {run.disks} disks was begun with other "
                "options (--kernels, --size, --memory, --threads, --repeat or --seed): give those "
                "again, or start a new study without --resume"
            )
    return len(study.runs)


class _Study:
    """What is laid out and measured, and what of it is kept."""

    def __init__(
        self,
        disks: StreamDisks,
        store: Keeper,
        start: StreamStart,
        asked: ScalingOptions,
        before: Before | None,
    ) -> None:
        self._disks, self._asked = disks, asked
        self._data_bytes = whole_bytes(asked.data_bytes)
        self._readings: list[CapacityResult] = []
        self._laid: tuple[int, int] | None = None
        self._doubts: list[Finding] = []
        self._kept = KeptStream(store, start, before)
        self._kept.begin()

    @property
    def document(self) -> StreamStudy:
        return self._kept.study

    def measure_capacities(self) -> None:
        size = min(self._data_bytes, self._asked.capacity_bytes)
        effort = self._effort(-1 - len(self._readings), size)
        self._readings.append(self._disks.capacities(effort))
        found = capacities_of(pooled_readings(self._readings), self._disks.directories)
        self._kept.add_capacities(found)

    def take(self, step: Step, number: int) -> StreamRun:
        self._lay(step)
        options = options_of(step.kernel, self._asked)
        started_at = _now()
        result = self._disks.run(
            options,
            step.disks,
            seed=derive_seed(self._asked.seed, number),
            total_s_max=self._left_s,
        )
        run = StreamRun(
            options=options,
            disks=step.disks,
            repetition=step.repetition,
            started_at=started_at,
            result=result,
        )
        self._kept.add_run(run)
        return run

    def doubt(self, found: Finding) -> None:
        self._doubts.append(found)

    def end(self, status: Status) -> None:
        sentences, findings = sentences_of(self.document)
        findings = (*self._doubts, *self.document.start.notes, *findings)
        self._kept.end(status, sentences, findings)

    def _lay(self, step: Step) -> None:
        wanted = step.repetition, step.disks
        if self._laid == wanted:
            return
        self._laid = None
        order = _DATA_SEEDS * (1 + step.repetition) + step.disks
        self._disks.lay(step.disks, self._effort(order, self._data_bytes))
        self._laid = wanted

    def _effort(self, order: int, data_bytes: int) -> Effort:
        asked = self._asked
        return Effort(
            data_bytes=data_bytes,
            memory_bytes=asked.memory_bytes,
            threads=asked.threads,
            seed=derive_seed(asked.seed, order),
            total_s_max=self._left_s,
        )

    @property
    def _left_s(self) -> float:
        return self._asked.budget_s - self._kept.wall_s


def pooled_readings(results: Sequence[CapacityResult]) -> CapacityResult:
    """Return the readings of several capacity jobs as one."""
    first = results[0]
    return msgspec.structs.replace(
        first,
        **{
            name: tuple(reading for result in results for reading in getattr(result, name))
            for name in (
                "memory_copy_bytes_s",
                "memory_read_bytes_s",
                "all_read_bytes_s",
                "all_write_bytes_s",
                "all_both_bytes_s",
            )
        },
        **{
            name: tuple(_joined(name, disk, results) for disk in range(len(getattr(first, name))))
            for name in ("disk_read_bytes_s", "disk_write_bytes_s")
        },
    )


def _joined(name: str, disk: int, results: Sequence[CapacityResult]) -> tuple[float, ...]:
    return tuple(reading for result in results for reading in getattr(result, name)[disk])


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


# Streaming studies as requested: runs of a kernel, and disks added one by one.


class KernelRuns(Study[Streams, StreamStart, Before | None]):
    """Runs of one kernel as requested; on ranks, of which this is the first."""

    records = STREAM

    def __init__(
        self,
        planned: Planned,
        *,
        anew: bool = False,
        cache_limit_bytes: int | None = None,
        tell_end: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Take what is to be run.

        Args:
            planned: what, and how often.
            anew: measure memory and disks even if that was done within the last day.
            cache_limit_bytes: of the engine.
            tell_end: told why all ranks are ended.

        """
        self.planned, self._anew = planned, anew
        self._cache_limit_bytes, self._tell_end = cache_limit_bytes, tell_end

    def unfinished(self, store: Store) -> StreamStudy:
        """Return the newest unfinished study of these runs.

        Raises:
            TargetRefused: there is none, or it runs with other options.

        """
        planned = self.planned
        found = find_unfinished(
            store,
            STREAM,
            planned.system,
            begin_stream(planned).target,
            meant=lambda begun: begun.purpose == "run",
        )
        study = kept_before(store, found.start.study_id).study
        for run in study.runs:
            asked, kept = (msgspec.structs.asdict(each) for each in (planned.options, run.options))
            asked["data"], kept["data"] = planned.data_bytes, run.result.bytes_in
            differs = [
                f"{name} {kept[name]}, not {asked[name]}"
                for name in asked
                if kept[name] != asked[name]
            ]
            if differs:
                raise UsageRefused(
                    f"the unfinished study {found.start.study_id[:8]} runs with "
                    f"{'; '.join(differs)}: give the same options, or leave out --resume to start "
                    "a new one"
                )
        return study

    def open(
        self, store: Store, earlier: Begun[StreamStart] | None, watcher: Watcher
    ) -> AbstractContextManager[Streams]:
        """Open the engine."""
        return open_streams(cache_limit_bytes=self._cache_limit_bytes)

    def begin(self, opened: Streams, findings: tuple[Finding, ...]) -> StreamStart:
        """Say what decides it."""
        return begin_stream(self.planned)

    def kept(
        self, store: Store, start: StreamStart, earlier: Begun[StreamStart] | None
    ) -> Before | None:
        """Return what is stored; a new study is kept when something is measured."""
        return None if earlier is None else kept_before(store, start.study_id)

    def run(
        self,
        opened: Streams,
        store: Store,
        start: StreamStart,
        kept: Before | None,
        watcher: Watcher,
    ) -> StreamStudy:
        """Run the kernel as often as it is missing."""
        if self.planned.options.ranks == 1:
            return run_stream(
                self.planned,
                start,
                opened,
                store,
                before=kept,
                known=None if self._anew else recent_capacities(store, self.planned, start),
                on_capacities=watcher.ended,
                on_run=watcher.ended,
            )
        study = run_stream_on_ranks(
            self.planned, start, opened, store, tell=self._tell_end, on_capacities=watcher.ended
        )
        if study is None:
            raise RuntimeError("rank 0 has no study")
        return study


class DiskScaling(Study[StreamDisks, StreamStart, Before | None]):
    """Every kernel on 1 to n disks, as requested."""

    records = STREAM

    def __init__(self, directories: Sequence[str], asked: ScalingOptions) -> None:
        """Take what was asked for; a directory for each disk."""
        self._directories, self._asked = directories, asked

    def unfinished(self, store: Store) -> StreamStudy:
        """Return the newest unfinished study of these disks."""
        found = find_unfinished(
            store,
            STREAM,
            self._asked.system,
            ", ".join(self._directories),
            meant=lambda begun: begun.purpose == "scaling",
        )
        return kept_before(store, found.start.study_id).study

    def open(
        self, store: Store, earlier: Begun[StreamStart] | None, watcher: Watcher
    ) -> AbstractContextManager[StreamDisks]:
        """Claim the directories."""
        return open_stream_disks(self._directories)

    def begin(self, opened: StreamDisks, findings: tuple[Finding, ...]) -> StreamStart:
        """Say what decides it."""
        return begin_scaling(self._directories, self._asked)

    def kept(
        self, store: Store, start: StreamStart, earlier: Begun[StreamStart] | None
    ) -> Before | None:
        """Return what is stored; a new study is kept before its first run."""
        return None if earlier is None else kept_before(store, start.study_id)

    def run(
        self,
        opened: StreamDisks,
        store: Store,
        start: StreamStart,
        kept: Before | None,
        watcher: Watcher,
    ) -> StreamStudy:
        """Make every run that is missing."""
        return run_scaling(opened, store, start, self._asked, before=kept, on_run=watcher.ended)
