"""Open a target and run workloads on it: the one way from deciding code to an engine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import msgspec

from leadline.engine.child import ENGINE_COMMAND, OnEvent
from leadline.engine.process import ProcessEngine
from leadline.engine.simulated import SimulatedEngine
from leadline.engine.targets.claim import Claim, claim
from leadline.engine.targets.nfs import claim_on_server
from leadline.engine.targets.place import DirectoryPlace, Place
from leadline.engine.targets.target import Target
from leadline.engine.wear import Wear
from leadline.errors import UsageRefused
from leadline.machine.cgroup import memory_cgroup
from leadline.machine.dirty_limits import restore_left_limits
from leadline.record import EngineResult, Workload
from leadline.record.access import Access
from leadline.record.job import CLOSED, Arrivals, Limits, LoadAsked
from leadline.record.jobs.streams import StreamAsked
from leadline.record.workload import Interval

PLACEMENTS = ("auto", "free")
ENGINES = ("leadline", "fio")


class Engine(Protocol):
    """An opened target. One job at a time; it belongs to the thread that opened it."""

    access: Access
    """How the storage is reached; its backend is named."""
    virtual: bool
    """Whether its clock is virtual, so that time costs nothing."""
    capacity_bytes: int
    """Most `unique_bytes` that a workload may ask for."""
    memory_bytes: int | None
    """Memory that can hold page cache; None when that is unknown."""
    process_num_max: int
    """Most workers at once worth trying."""
    l3_cache_bytes: int | None
    facts: dict[str, Any]
    """Facts of the machine and the target by name (`leadline.machine.facts`), taken when it was
    opened; `prepare` adds the generator's ceiling."""

    @property
    def clock_s(self) -> float:
        """Seconds since it was opened; virtual for a simulated system."""

    def prepare(self) -> None:
        """Measure what must be known before the first run; a run without it does it itself.

        Raises:
            EngineFault: the engine died, hung or spoke nonsense.

        """

    def time_calls(self) -> dict[str, Interval]:
        """Return what calls about files take there, in us; nothing where there are no files."""

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
        load: LoadAsked | None = None,
    ) -> EngineResult:
        """Run one workload.

        Args:
            workload: what is asked of the target.
            seed: decides addresses, sizes and arrivals.
            limits: when the job ends.
            arrivals: what makes a request due; by default the completion of an earlier one.
            precondition_bytes_max: most bytes to write before the warm-up until the rate is on its
                plateau; None writes nothing.
            on_event: gets the events before the result.
            streams: what takes the place of the workload's sizes, places and shares.
            load: what a trial of the workbench keeps of an open loop; then the result's `load`.

        Raises:
            PointFailed: this point met an I/O error; the engine is good for the next.
            TargetRefused: the workload does not fit, or the target became unusable.
            EngineFault: the engine died, hung or spoke nonsense; the next run starts another.

        """

    def skip_to(self, clock_s: float) -> None:
        """Set the clock forward, as a resumed survey needs it."""

    def set_access(self, access: Access) -> None:
        """Reach the storage so in later runs: other writes wait, or direct I/O is used.

        Raises:
            TargetRefused: the target or the backend cannot do that.

        """


@contextmanager
def open_engine(
    target: Target,
    access: Access = Access(),  # noqa: B008 - frozen
    *,
    max_bytes: int | None = None,
    wear: Wear | None = None,
    run_seed: int = 0,
    engine: str = "leadline",
    command: Sequence[str] = ENGINE_COMMAND,
) -> Iterator[Engine]:
    """Open a target until the block ends; then nothing of it is left behind.

    Args:
        target: where I/O goes.
        access: how; without a backend by the only or the plainest one of the target.
        max_bytes: use no more than this of the target.
        wear: counts what is written, and may have a limit of it.
        run_seed: decides a simulated system's noise.
        engine: "leadline", or "fio" for a cross-check on a directory.
        command: the engine, for tests.

    Raises:
        TargetRefused: the target or the combination of options cannot be used.
        CacheLimitRefused: memory cannot be capped as asked.

    """
    access = fitting(target, access, engine)
    if target.virtual_time:
        yield SimulatedEngine(
            target, access, max_bytes=max_bytes, wear=wear or Wear(), run_seed=run_seed
        )
        return
    with ExitStack() as stack:
        place, claimed = _place(stack, target, command)
        group = None
        if access.cache_limit_bytes is not None:
            group = stack.enter_context(memory_cgroup(access.cache_limit_bytes))
            access = msgspec.structs.replace(access, cache_limit_bytes=group.limit_bytes)
        own = ProcessEngine(
            access, place=place, group=group, max_bytes=max_bytes, wear=wear, command=command
        )
        stack.callback(own.close)
        if engine == "fio":
            assert claimed is not None  # noqa: S101 - a directory was claimed
            # Its module loads numpy: a fifth of the time in which any command starts.
            from leadline.engine.fio import FioEngine  # noqa: PLC0415

            yield FioEngine(own, claimed, group)
        else:
            yield own


def _place(
    stack: ExitStack, target: Target, command: Sequence[str]
) -> tuple[Place | None, Claim | None]:
    """Claim where a target's data will lie; a claim of a directory can be handed on."""
    if target.nfs is not None:
        return stack.enter_context(claim_on_server(target.nfs, command)), None
    if target.path is None:
        return None, None
    restore_left_limits()
    claimed = stack.enter_context(claim(target.path))
    return DirectoryPlace(claimed), claimed


def fitting(target: Target, access: Access, engine: str) -> Access:
    """Return the access with its backend named; nothing is opened.

    Raises:
        TargetRefused: the target cannot do that, or not with this engine.
        CacheLimitRefused: there is no page cache here that could be capped.

    """
    named = msgspec.structs.replace(access, backend=_backend(target, access))
    if named.placement not in PLACEMENTS:
        raise UsageRefused(f"--placement is auto or free, not {named.placement!r}")
    _check_engine(target, engine, named)
    if named.cache_limit_bytes is not None:
        target.require_own_cache()
    return named


def _check_engine(target: Target, engine: str, access: Access) -> None:
    if engine not in ENGINES:
        raise UsageRefused(f"--engine is leadline or fio, not {engine!r}")
    if engine == "fio" and not target.has_files:
        raise UsageRefused(
            f"--engine fio needs a directory, which {target.text} is not: leave --engine out"
        )
    if access.waits and not target.has_device:
        raise UsageRefused(
            f"--sync {access.sync} waits for a device, and null: has none: leave it out"
        )
    if access.fills and (target.virtual_time or not target.has_device):
        raise UsageRefused(
            f"--compress and --dedup say what data are, and {target.text} has none: leave them out"
        )
    for said in access.beyond("backend", "direct") if engine == "fio" else ():
        raise UsageRefused(f"--{said} is Leadline's; leave it or --engine fio out")


def _backend(target: Target, access: Access) -> str:
    backend = access.backend
    if access.direct:
        target.require_direct()
    if backend and backend not in target.backends:
        raise UsageRefused(
            f"--backend {backend} does not work on {target.text}; it takes "
            f"{' or '.join(target.backends)}"
        )
    if backend == "mmap" and access.direct:
        raise UsageRefused(
            "--backend mmap reads through the page cache by its nature, and --direct goes past it: "
            "leave --direct out, or use --backend pread or uring"
        )
    return backend or target.backends[0]
