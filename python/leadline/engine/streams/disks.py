"""Directories opened as disks: the same kernels on data striped over the first of them.

Everything lies in each directory's `.leadline/`, which is claimed for as long as the disks are
open; the output of a run is removed as soon as it was verified.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

import msgspec

from leadline.engine.child import ENGINE_COMMAND
from leadline.engine.pace import BudgetSpent
from leadline.engine.streams.jobs import scan_of_share
from leadline.engine.streams.places import LAYOUT_ENDING
from leadline.engine.streams.run import Streams, open_streams
from leadline.engine.targets.claim import Claim, claim
from leadline.engine.targets.dirfd import resolved
from leadline.errors import TargetRefused
from leadline.record.job import Capacity, Generate, Kernel, Output, Sort, StreamJob, Transpose
from leadline.record.streaming import RECORD_BYTES, CapacityResult, StreamOptions, StreamResult, Way

DATA_MULTIPLE_BYTES = 1_638_400
"""Whole records, whole blocks and whole stripe units: any kernel takes such data."""
_STRIPE_BYTES = 65536
_INPUT, _OUTPUT = "stream-in", "stream-out"


class Effort(msgspec.Struct, frozen=True, kw_only=True):
    """What a job that prepares or measures may take."""

    data_bytes: int
    memory_bytes: int
    threads: int
    seed: int
    total_s_max: float


class StreamDisks(Protocol):
    """Opened directories, one for each disk. One job at a time."""

    @property
    def directories(self) -> tuple[str, ...]:
        """As they were given, in the order in which disks are added."""

    def capacities(self, effort: Effort) -> CapacityResult:
        """Measure what memory and disks can do by themselves."""

    def lay(self, disks: int, effort: Effort) -> None:
        """Make records striped over the first `disks`, in the place of any that were there."""

    def run(
        self, options: StreamOptions, disks: int, *, seed: int, total_s_max: float
    ) -> StreamResult:
        """Run a kernel over the records that were laid on `disks`."""


@contextmanager
def open_stream_disks(
    directories: Sequence[str], *, command: Sequence[str] = ENGINE_COMMAND
) -> Iterator[StreamDisks]:
    """Claim the directories until the block ends; then nothing of it is left behind.

    Raises:
        TargetRefused: a directory is given twice, is another Leadline's, or holds what is not ours.

    """
    real = [os.path.realpath(directory) for directory in directories]
    twice = next((path for path in real if real.count(path) > 1), None)
    if twice is not None:
        raise TargetRefused(f"{twice} is given twice; give one directory for each disk")
    with ExitStack() as stack:
        claims = [stack.enter_context(claim(resolved(directory))) for directory in directories]
        streams = stack.enter_context(open_streams(command=command))
        yield ClaimedDisks(tuple(directories), claims, streams)


class ClaimedDisks:
    """See `StreamDisks`."""

    def __init__(
        self, directories: tuple[str, ...], claims: Sequence[Claim], streams: Streams
    ) -> None:
        self._directories = directories
        self._folders = [claim.folder for claim in claims]
        self._homes = [str(claim.run_directory) for claim in claims]
        self._streams = streams

    @property
    def directories(self) -> tuple[str, ...]:
        """As they were given."""
        return self._directories

    def capacities(self, effort: Effort) -> CapacityResult:
        """Measure what memory and disks can do by themselves."""
        kernel = Capacity(directories=tuple(self._homes), bytes=effort.data_bytes)
        result = self._streams.run(
            StreamJob(
                kernel=kernel,
                memory_bytes=effort.memory_bytes,
                threads=effort.threads,
                seed=effort.seed,
                total_s_max=_some(effort.total_s_max),
            )
        )
        assert result.capacity is not None  # noqa: S101 - this kernel's answer
        return result.capacity

    def lay(self, disks: int, effort: Effort) -> None:
        """Make records striped over the first `disks`."""
        self._remove(_INPUT)
        self._streams.run(
            StreamJob(
                kernel=Generate(records=effort.data_bytes // RECORD_BYTES),
                output=self._output(_INPUT, disks, _STRIPE_BYTES),
                memory_bytes=effort.memory_bytes,
                threads=effort.threads,
                seed=effort.seed,
                total_s_max=_some(effort.total_s_max),
            )
        )

    def run(
        self, options: StreamOptions, disks: int, *, seed: int, total_s_max: float
    ) -> StreamResult:
        """Run a kernel; its output is removed again."""
        try:
            return self._streams.run(
                StreamJob(
                    kernel=_kernel(options),
                    input=str(Path(self._homes[0], _INPUT)),
                    output=self._output(_OUTPUT, disks, options.stripe_bytes),
                    temporary=tuple(self._homes[:disks]),
                    memory_bytes=options.memory_bytes,
                    threads=options.threads,
                    io=Way(
                        read=options.read,
                        read_direct=options.read_direct,
                        write_direct=options.write_direct,
                        depth=options.depth,
                    ),
                    seed=seed,
                    total_s_max=_some(total_s_max),
                )
            )
        finally:
            self._remove(_OUTPUT)

    def _output(self, name: str, disks: int, stripe_bytes: int) -> Output:
        return Output(
            path=str(Path(self._homes[0], name)),
            stripes=tuple(self._homes[:disks]),
            stripe_bytes=stripe_bytes,
        )

    def _remove(self, name: str) -> None:
        self._folders[0].remove_file(name + LAYOUT_ENDING)  # first: without it they are no data set
        stripe = re.compile(re.escape(name) + r"(\.[0-9]+)?\.part[0-9]+\.stripe[0-9]+")
        for folder in self._folders:
            for file in filter(stripe.fullmatch, folder.names()):
                folder.remove_file(file)


def _kernel(options: StreamOptions) -> Kernel:
    if options.kernel == "scan":
        return scan_of_share(options.match_frac, "binary")
    if options.kernel == "sort":
        return Sort()
    assert options.rows is not None  # noqa: S101 - the study gives a transpose its shape
    assert options.columns is not None  # noqa: S101
    return Transpose(rows=options.rows, columns=options.columns)


def _some(total_s_max: float) -> float:
    if total_s_max <= 0:
        raise BudgetSpent("the budget was spent; give a larger --budget, or a smaller --size")
    return total_s_max
