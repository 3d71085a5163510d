"""Streaming jobs (AD98) in an engine child, optionally with a memory cgroup of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Protocol

import msgspec

from leadline.engine.child import ENGINE_COMMAND, Child
from leadline.engine.pace import BudgetSpent
from leadline.engine.streams.places import growth_of, require_possible
from leadline.errors import CacheLimitRefused, TargetRefused
from leadline.machine.cgroup import MemoryCgroup, memory_cgroup
from leadline.record.job import StreamJob
from leadline.record.streaming import StreamResult
from leadline.units import format_bytes

GROUP_SPARE_BYTES = 64 * 2**20
"""The program, its stacks and a little page cache need room beside the kernel's memory."""


class Streams(Protocol):
    """Runs streaming jobs, one at a time."""

    def run(self, job: StreamJob, *, output_bytes: int | None = None) -> StreamResult:
        """Run one job.

        Args:
            job: with absolute paths.
            output_bytes: how much it is expected to write; None takes the length of the input.

        Raises:
            TargetRefused: paths, memory or space do not fit; nothing was touched.
            PointFailed: reading or writing failed; no output has a name.
            BudgetSpent: `total_s_max` was over before the job; no output has a name.
            EngineFault: the engine died or hung; the next run starts another.

        """


@contextmanager
def open_streams(
    *, cache_limit_bytes: int | None = None, command: Sequence[str] = ENGINE_COMMAND
) -> Iterator[Streams]:
    """Run jobs until the block ends; then no process is left.

    Args:
        cache_limit_bytes: put the engine into a memory cgroup of this size, its page cache counted.
        command: the engine, for tests.

    Raises:
        CacheLimitRefused: memory cannot be capped as asked.

    """
    with ExitStack() as stack:
        group = None
        if cache_limit_bytes is not None:
            group = stack.enter_context(memory_cgroup(cache_limit_bytes))
        streams = ChildStreams(group, command)
        stack.callback(streams.close)
        yield streams


class ChildStreams:
    """See `Streams`."""

    def __init__(self, group: MemoryCgroup | None, command: Sequence[str]) -> None:
        self._group = group
        self._child = Child(command, group)
        self._jobs = 0

    def run(self, job: StreamJob, *, output_bytes: int | None = None) -> StreamResult:
        """Run one job in the child, which is started when there is none."""
        self._require_fit(job)
        require_possible(job, output_bytes)
        self._jobs += 1
        numbered = msgspec.structs.replace(job, job_id=f"{job.name}-{self._jobs}")
        began_s = time.monotonic()
        try:
            return self._child.run(numbered, look=growth_of(job, output_bytes).keep_floors)
        except TargetRefused as refused:
            if time.monotonic() - began_s >= job.total_s_max:
                raise BudgetSpent(str(refused)) from refused
            raise

    def close(self) -> None:
        """End the child."""
        self._child.close()

    def _require_fit(self, job: StreamJob) -> None:
        if self._group is None:
            return
        least = job.memory_bytes + GROUP_SPARE_BYTES
        if self._group.limit_bytes < least:
            raise CacheLimitRefused(
                f"--cache-limit {format_bytes(self._group.limit_bytes)} leaves no room beside "
                f"--memory {format_bytes(job.memory_bytes)}: give at least {format_bytes(least)}, "
                "or less --memory"
            )
