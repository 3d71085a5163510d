"""Open a target and run workloads on it: the one way from deciding code to an engine."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

import msgspec

from leadline.engine.cgroup import MemoryCgroup, memory_cgroup
from leadline.engine.child import ENGINE_COMMAND, EngineChild, OnEvent, answer
from leadline.engine.claim import Claim, claim
from leadline.engine.errors import CacheLimitRefused, EngineFault, TargetRefused
from leadline.engine.facts import available_memory_bytes, host_facts, l3_cache_bytes, target_facts
from leadline.engine.space import USEFUL_BYTES, capacity_bytes, require_space
from leadline.engine.stop import shielded
from leadline.engine.target import Target
from leadline.record import EngineResult, Workload
from leadline.units import format_bytes

WIRE_VERSION = 1
PROCESS_NUM_MAX = 16
"""A survey tries at least this many issuers; a disk's queue wants more than there are cores."""
NULL_CAPACITY_BYTES = 2**40
"""The null target stores nothing; any size will do that the address stream can count."""


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """When a job ends (ARCHITECTURE.md, the wire)."""

    warm_up_s_max: float = 10.0
    measure_s_min: float = 1.0
    measure_s_max: float = 5.0
    accuracy: float = 0.05
    """Measuring ends when the 95 % interval's half-width is below this share of the mean."""
    total_s_max: float = 60.0
    """Bound of the whole job, prepare included."""


class Engine(Protocol):
    """An opened target. One job at a time; it belongs to the thread that opened it."""

    backend: str
    """Name of the backend."""
    direct: bool
    virtual: bool
    """Whether its clock is virtual, so that time costs nothing."""
    capacity_bytes: int
    """Most `unique_bytes` that a workload may ask for."""
    memory_bytes: int | None
    """Memory that can hold file cache; None when that is unknown."""
    process_num_max: int
    """Most issuers at once worth trying."""
    l3_cache_bytes: int | None
    cache_limit_bytes: int | None
    facts: dict[str, Any]
    """Facts of the machine and the target, taken when it was opened."""

    @property
    def clock_s(self) -> float:
        """Seconds since it was opened; virtual for a simulated system."""

    def run(
        self, workload: Workload, *, seed: int, limits: Limits, on_event: OnEvent | None = None
    ) -> EngineResult:
        """Run one workload.

        Raises:
            PointFailed: this point met an I/O error; the engine is good for the next.
            TargetRefused: the workload does not fit, or the target became unusable.
            EngineFault: the engine died, hung or spoke nonsense; the next run starts another.

        """

    def skip_to(self, clock_s: float) -> None:
        """Set the clock forward, as a resumed survey needs it."""


@contextmanager
def open_engine(
    target: Target,
    *,
    backend: str | None = None,
    direct: bool = False,
    cache_limit_bytes: int | None = None,
    max_bytes: int | None = None,
    run_seed: int = 0,
    command: Sequence[str] = ENGINE_COMMAND,
) -> Iterator[Engine]:
    """Open a target until the block ends; then nothing of it is left behind.

    Args:
        target: where I/O goes.
        backend: how; by default the only or the plainest one of the target.
        direct: past the file cache (O_DIRECT).
        cache_limit_bytes: run the engine in a memory cgroup of this size.
        max_bytes: use no more than this of the target.
        run_seed: decides a simulated system's noise.
        command: the engine, for tests.

    Raises:
        TargetRefused: the target or the combination of options cannot be used.
        CacheLimitRefused: memory cannot be capped as asked.

    """
    backend = _backend(target, backend, direct=direct)
    if target.kind == "simulated":
        if cache_limit_bytes is not None:
            raise CacheLimitRefused(
                "--cache-limit caps real memory; a simulated system has the cache its profile "
                "says: change it there"
            )
        yield SimulatedEngine(target, max_bytes=max_bytes, run_seed=run_seed)
        return
    with ExitStack() as stack:
        claimed = None
        if target.kind == "directory":
            assert target.path is not None  # noqa: S101 - parse sets it for a directory
            claimed = stack.enter_context(claim(target.path))
        group = None
        if cache_limit_bytes is not None:
            group = stack.enter_context(memory_cgroup(cache_limit_bytes))
        engine = ProcessEngine(
            target,
            {"name": backend, "direct": direct},
            claimed=claimed,
            group=group,
            max_bytes=max_bytes,
            command=command,
        )
        stack.callback(engine.close)
        yield engine


def _backend(target: Target, backend: str | None, *, direct: bool) -> str:
    if direct and target.kind != "directory":
        raise TargetRefused(
            f"--direct goes past the file cache, and {target.text} has no file: leave it out"
        )
    fitting = {"directory": ("pread",), "null": ("null",), "simulated": ("simulated",)}[target.kind]
    if backend is None or backend in fitting:
        return backend or fitting[0]
    raise TargetRefused(
        f"--backend {backend} does not work on {target.text}; it takes {' or '.join(fitting)}"
    )


class ProcessEngine:
    """An engine child on a directory or on nothing (`null:`)."""

    def __init__(
        self,
        target: Target,
        backend: dict[str, Any],
        *,
        claimed: Claim | None,
        group: MemoryCgroup | None,
        max_bytes: int | None,
        command: Sequence[str],
    ) -> None:
        self._start_s = time.monotonic()
        self._backend = backend
        self.backend: str = backend["name"]
        self.direct: bool = backend["direct"]
        self.virtual = False
        self._claim = claimed
        self._group = group
        self._command = command
        self._child: EngineChild | None = None
        self._jobs = 0
        self.cache_limit_bytes = group.limit_bytes if group else None
        self.l3_cache_bytes = l3_cache_bytes()
        self.facts = host_facts() | {"cache_limit_bytes": self.cache_limit_bytes}
        self.memory_bytes: int | None = self.cache_limit_bytes or available_memory_bytes()
        self.process_num_max = max(PROCESS_NUM_MAX, 4 * (self.facts["cpu_count"] or 1))
        capacity = NULL_CAPACITY_BYTES
        if claimed is not None:
            # After the claim, because it removed what a killed run may have left.
            require_space(claimed.directory, USEFUL_BYTES)
            capacity = capacity_bytes(claimed.directory)
            self.facts |= target_facts(claimed.directory)
        self.capacity_bytes = capacity if max_bytes is None else min(capacity, max_bytes)
        self._target = (
            {"kind": "directory", "path": str(claimed.run_directory)}
            if claimed is not None
            else {"kind": target.kind}
        )

    @property
    def clock_s(self) -> float:
        """Wall seconds since it was opened (plus what was skipped)."""
        return time.monotonic() - self._start_s

    def skip_to(self, clock_s: float) -> None:
        """Set the clock forward."""
        self._start_s = min(self._start_s, time.monotonic() - clock_s)

    def run(
        self, workload: Workload, *, seed: int, limits: Limits, on_event: OnEvent | None = None
    ) -> EngineResult:
        """Run one workload in the child, which is started when there is none."""
        _check_capacity(workload, self.capacity_bytes)
        if self._claim is not None:
            # Others write to the file system too, so the room is looked at again each time.
            missing = workload.unique_bytes - self._claim.data_bytes()
            require_space(self._claim.directory, max(0, missing))
        if self._child is None or not self._child.alive:
            self.close()
            with shielded():  # a child that nobody knows could not be ended
                self._child = EngineChild(self._command, self._group)
        self._jobs += 1
        job = _job(
            f"job-{self._jobs}",
            target=self._target,
            backend=self._backend,
            workload=workload,
            seed=seed,
            limits=limits,
        )
        event = self._child.run(job, total_s_max=limits.total_s_max, on_event=on_event)
        return _result(event)

    def close(self) -> None:
        """End the child."""
        if self._child is not None:
            child, self._child = self._child, None
            child.close()


class SimulatedEngine:
    """A simulated system in this process, in virtual time."""

    def __init__(self, target: Target, *, max_bytes: int | None, run_seed: int) -> None:
        self._profile = target.profile or {}
        self._backend = {"name": "simulated", "direct": False}
        self.backend = "simulated"
        self.direct = False
        self.virtual = True
        self.memory_bytes: int | None = None
        self._run_seed = run_seed
        self._clock_s = 0.0
        self._jobs = 0
        hints = self._profile.get("survey", {})
        capacity = int(hints.get("unique_bytes_max", NULL_CAPACITY_BYTES))
        self.capacity_bytes = capacity if max_bytes is None else min(capacity, max_bytes)
        self.process_num_max = int(hints.get("process_num_max", PROCESS_NUM_MAX))
        self.l3_cache_bytes: int | None = None
        self.cache_limit_bytes: int | None = None
        # Nothing of the host: the answer must be the same on every machine.
        self.facts: dict[str, Any] = {
            "simulated_system": target.name,
            "leadline_version": host_facts()["leadline_version"],
        }

    @property
    def clock_s(self) -> float:
        """Virtual seconds since it was opened (plus what was skipped)."""
        return self._clock_s

    def skip_to(self, clock_s: float) -> None:
        """Set the virtual clock forward."""
        self._clock_s = max(self._clock_s, clock_s)

    def run(
        self, workload: Workload, *, seed: int, limits: Limits, on_event: OnEvent | None = None
    ) -> EngineResult:
        """Run one workload in virtual time."""
        _check_capacity(workload, self.capacity_bytes)
        self._jobs += 1
        target = {
            "kind": "simulated",
            "system": self._profile,
            "clock_s": self._clock_s,
            "run_seed": self._noise_seed(seed),
        }
        job = _job(
            f"job-{self._jobs}",
            target=target,
            backend=self._backend,
            workload=workload,
            seed=seed,
            limits=limits,
        )
        events = [json.loads(line) for line in _run_job()(json.dumps(job))]
        if not events:
            raise EngineFault("the simulated engine gave no event")
        for event in events[:-1]:
            if on_event is not None:
                on_event(event)
        result = _result(answer(events[-1]))
        if result.simulated is None:
            raise EngineFault("the simulated engine did not tell its clock")
        self._clock_s = max(self._clock_s, result.simulated.clock_s)
        return result

    def _noise_seed(self, seed: int) -> int:
        """Derive the noise of a run from the survey's seed, the job's seed and the clock.

        The clock tells replicates of one job apart and is restored on a resume, so a resumed survey
        meets the same noise as one that was never stopped.
        """
        text = f"{self._run_seed}:{seed}:{self._clock_s!r}".encode()
        return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little") >> 1


def _run_job() -> Callable[[str], list[str]]:
    from leadline import _engine  # noqa: PLC0415 - a real target's controller does not need it

    return _engine.run_job


def _check_capacity(workload: Workload, capacity: int) -> None:
    if workload.unique_bytes > capacity:
        raise TargetRefused(
            f"unique_bytes={format_bytes(workload.unique_bytes)} is more than the "
            f"{format_bytes(capacity)} that may be used here (free space less its floor, and "
            "--max-bytes); ask for less"
        )


def _job(
    job_id: str,
    *,
    target: dict[str, Any],
    backend: dict[str, Any],
    workload: Workload,
    seed: int,
    limits: Limits,
) -> dict[str, Any]:
    return {
        "version": WIRE_VERSION,
        "job_id": job_id,
        "target": target,
        "workload": msgspec.to_builtins(workload),
        "backend": backend,
        "seed": seed,
        "limits": msgspec.to_builtins(limits),
    }


def _result(event: dict[str, Any]) -> EngineResult:
    try:
        result = msgspec.convert(event, EngineResult)
    except msgspec.ValidationError as error:
        raise EngineFault(f"the engine's result does not fit the record: {error}") from error
    if result.version != WIRE_VERSION:
        raise EngineFault(f"the engine speaks version {result.version} of the wire, not 1")
    return result
