"""A simulated system in this process, in virtual time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any

import msgspec

from leadline.engine.child import OnEvent, answer, read_answer
from leadline.engine.fit import require_fit
from leadline.engine.targets.target import Target
from leadline.engine.wear import Wear
from leadline.errors import EngineFault, NothingCompleted, TargetRefused
from leadline.machine.facts import leadline_version
from leadline.record import EngineResult, Workload
from leadline.record.access import Access
from leadline.record.job import (
    CLOSED,
    Answer,
    Arrivals,
    Job,
    Limits,
    LoadAsked,
    MeasureJob,
    SimulatedTarget,
)
from leadline.record.jobs.streams import StreamAsked
from leadline.record.workload import Interval

PROCESS_NUM_MAX = 16
CAPACITY_BYTES = 2**40
"""A profile without a hint stores nothing; any size will do that the address stream can count."""


class SimulatedEngine:
    """A simulated system; see `Engine` for what every engine offers."""

    def __init__(
        self, target: Target, access: Access, *, max_bytes: int | None, wear: Wear, run_seed: int
    ) -> None:
        self._profile = target.profile or {}
        self.access = msgspec.structs.replace(access, placement="auto")
        self.virtual = True
        self._wear = wear
        self.memory_bytes: int | None = None
        self._run_seed = run_seed
        self._clock_s = 0.0
        self._jobs = 0
        hints = self._profile.get("survey", {})
        capacity = int(hints.get("unique_bytes_max", CAPACITY_BYTES))
        self.capacity_bytes = capacity if max_bytes is None else min(capacity, max_bytes)
        self.process_num_max = int(hints.get("process_num_max", PROCESS_NUM_MAX))
        self.l3_cache_bytes: int | None = None
        # Nothing of the host: the answer must be the same on every machine.
        self.facts: dict[str, Any] = {
            "simulated_system": target.name,
            "leadline_version": leadline_version(),
        }

    @property
    def clock_s(self) -> float:
        """Virtual seconds since it was opened (plus what was skipped)."""
        return self._clock_s

    def skip_to(self, clock_s: float) -> None:
        """Set the virtual clock forward."""
        self._clock_s = max(self._clock_s, clock_s)

    def set_access(self, access: Access) -> None:
        """Make the writes of later runs wait as it says."""
        if access.direct:
            raise TargetRefused("a simulated system has no file that could be opened O_DIRECT")
        self.access = access

    def prepare(self) -> None:
        """Do nothing: a virtual clock has no generator that could fall short."""

    def time_calls(self) -> dict[str, Interval]:
        """Time none: it has no files."""
        return {}

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
        """Run one workload in virtual time."""
        if precondition_bytes_max is not None:
            raise TargetRefused(
                "--precondition writes to a real device; a simulated system has none: leave it out"
            )
        require_fit(workload, capacity_bytes=self.capacity_bytes, backend=self.access.backend)
        self._wear.begin(workload, lays_out=False)
        self._jobs += 1
        job = MeasureJob.of(
            f"job-{self._jobs}",
            SimulatedTarget(
                system=self._profile, clock_s=self._clock_s, run_seed=self._noise_seed(seed)
            ),
            self.access,
            workload,
            seed=seed,
            limits=limits,
            arrivals=arrivals,
            streams=streams,
            load=load,
        )
        try:
            result = run_here(job, on_event)
        except NothingCompleted:
            waited_s = limits.warm_up_s_max + limits.measure_s_max
            self._clock_s += min(waited_s, limits.total_s_max)
            raise
        self._wear.add(workload, result)
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


def run_here(job: Job[Answer], on_event: OnEvent | None = None) -> Answer:
    """Run a job that measures nothing real in this process; `on_event` gets the events before.

    Raises:
        TargetRefused: the job makes no sense; the message names the field.
        EngineFault: the engine spoke nonsense.

    """
    from leadline import _engine  # noqa: PLC0415 - a real target's controller does not need it

    lines = _engine.run_job(json.dumps(msgspec.to_builtins(job)))
    events = [json.loads(line) for line in lines]
    if not events:
        raise EngineFault("the simulated engine gave no event")
    for event in events[:-1]:
        if on_event is not None:
            on_event(event)
    return read_answer(job, answer(events[-1]))
