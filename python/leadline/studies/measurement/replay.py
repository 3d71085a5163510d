"""A trace made again on a target: what of it is, and the steps that the engine takes."""

from __future__ import annotations

import os
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, cast

import msgspec

from leadline import _engine
from leadline.engine import Target
from leadline.inputs import InputRefused, open_regular
from leadline.machine.resources import free_memory_bytes
from leadline.record import Access, Measurement, Workload
from leadline.record.application import APPLICATION
from leadline.record.job import ReplayAsked
from leadline.record.jobs.replay import Replay
from leadline.record.measurement import WorkloadAsked
from leadline.record.wording import format_count, join_words
from leadline.store import Keeper
from leadline.studies.measurement.plan import MeasurementRefused
from leadline.units import format_bytes, format_seconds

if TYPE_CHECKING:
    from leadline.store import Store

RUNS = 3
"""Each makes the whole trace."""
SECONDS_LEAST, SECONDS_MOST = 300.0, 3600.0
"""Between these, and usually `SPANS` times as long as the trace took, a run is waited for."""
SPANS = 20.0
HELD_SHARE_MOST = 0.75
"""Of the memory that there is, for what the program held."""


def plan_replay(
    trace: str,
    target: Target,
    access: Access,
    *,
    at_times: bool,
    seconds: float | None = None,
    runs: int | None = None,
) -> WorkloadAsked:
    """Read a trace, and return its replay as what is to be measured.

    Args:
        trace: a file of any format that `characterize` reads.
        target: a directory.
        access: as far as it was said.
        at_times: whether requests wait for their times in the trace.
        seconds: most that all runs may take; each ends with its trace.
        runs: how often it is made.

    Raises:
        MeasurementRefused: the trace cannot be replayed, or not so.
        InputRefused: there is no such file, or it is none.

    """
    if not target.has_files:
        raise MeasurementRefused(
            f"--replay makes the files of a trace, and {target.text} has none: give a directory"
        )
    if access.direct or access.backend not in ("", "pread"):
        raise MeasurementRefused(
            "--replay reads and writes by pread through the page cache: leave --direct and "
            "--backend out"
        )
    with _steps(trace) as (_, found):
        return plan_steps(found, access, at_times=at_times, seconds=seconds, runs=runs)


def plan_steps(
    found: Replay,
    access: Access,
    *,
    at_times: bool,
    seconds: float | None = None,
    runs: int | None = None,
) -> WorkloadAsked:
    """Return a replay as what is to be measured; as `plan_replay`.

    Raises:
        MeasurementRefused: it has no times to wait for.

    """
    if at_times and not found.times:
        raise MeasurementRefused(
            f"{found.trace} does not say when requests were made: leave --at-times out"
        )
    replay = msgspec.structs.replace(found, at_times=at_times)
    times = runs or RUNS
    usual_s = min(SECONDS_MOST, max(SECONDS_LEAST, SPANS * (replay.span_s or 0.0)))
    return WorkloadAsked(
        workload=_workload(replay),
        access=access,
        seconds=seconds or times * usual_s,
        runs=times,
        requests=sum(replay.requests),
        replay=replay,
    )


def _workload(replay: Replay) -> Workload:
    """The five parameters of a trace, for those who ask for them."""
    reads, writes, _ = replay.requests
    moving = max(1, reads + writes)
    size = max(512, round(sum(replay.bytes) / moving))
    return Workload(
        unique_bytes=max(size, replay.files_bytes),
        size_mean=size,
        read_frac=reads / moving,
        seq_frac=min(1.0, replay.sequential / moving),
        process_num=replay.lanes,
    )


@contextmanager
def replayed(
    replay: Replay | None, store: Keeper, memory_bytes: int | None
) -> Iterator[ReplayAsked | None]:
    """Yield what the engine is asked for while the steps are there; None of no replay.

    As much memory as the program had is held meanwhile, within a share of what there is.

    Raises:
        MeasurementRefused: the trace is another by now, or the application's description is gone.

    """
    if replay is None:
        yield None
        return
    most_bytes = HELD_SHARE_MOST * min(memory_bytes or 0, free_memory_bytes() or 0)
    held_bytes = min(replay.memory_bytes, int(most_bytes))
    if replay.application_id is not None:
        with tempfile.NamedTemporaryFile(prefix="leadline-replay-") as steps:
            steps.write(_kept(replay.application_id, store))
            steps.flush()
            yield ReplayAsked(steps.name, replay.at_times, held_bytes)
        return
    with _steps(replay.trace) as (steps, found):
        if msgspec.structs.replace(found, at_times=replay.at_times) != replay:
            raise MeasurementRefused(
                f"{replay.trace} is another trace than when this began: start a new measurement"
            )
        yield ReplayAsked(str(steps), replay.at_times, held_bytes)


def _kept(application_id: str, store: Keeper) -> bytes:
    # Whoever keeps measurements of an application has found it in the same store.
    answer = cast("Store", store).find(application_id, APPLICATION).answer
    if answer is None or answer.steps is None:
        raise MeasurementRefused(
            f"application {application_id[:8]} keeps no requests to be made again; give its trace "
            "to --replay"
        )
    return zlib.decompress(answer.steps.packed)


@contextmanager
def _steps(trace: str) -> Iterator[tuple[Path, Replay]]:
    """Read a trace; yield the file of its steps, which is removed at the end, and what they are."""
    if trace == "-":
        raise InputRefused("--replay reads a trace more than once: give a file, not -")
    with tempfile.NamedTemporaryFile(prefix="leadline-replay-") as steps:
        with open_regular(trace) as file:
            try:
                said = _engine.replay_steps(file.fileno(), steps.fileno(), lambda _: None)
            except ValueError as error:
                raise MeasurementRefused(f"{trace} is not replayed: {error}") from None
        found = msgspec.json.decode(said, type=dict)
        yield (
            Path(steps.name),
            msgspec.convert({**found, "trace": os.path.realpath(trace)}, Replay, strict=False),
        )


# What a replay is told as.


def replay_s(point: Measurement) -> float:
    """Time that the requests of a replayed trace took here in one run, all added up."""
    result = point.result
    kinds = (result.read, result.write, result.syncs)
    us = sum(
        kind.operations * kind.latency_us.mean
        for kind in kinds
        if kind is not None and kind.latency_us is not None
    )
    return 1e-6 * us / max(1, len(point.runs))


def format_replay(point: Measurement) -> str | None:
    """Say what trace was made again, and how long its requests took there and here."""
    replay, result = point.replay, point.result
    if replay is None:
        return None
    pace = "at its own times" if replay.at_times else "as fast as it goes"
    run_s, here_s = result.wall_s / max(1, len(point.runs)), replay_s(point)
    lanes = format_count(replay.lanes, "request")
    files = (
        f"{format_count(replay.files, 'file')}, {format_bytes(replay.initial_bytes)} of it there"
    )
    said = [
        f"{Path(replay.trace).name}, {pace}: {files} before, {lanes} at a time at most",
        f"a run took {format_seconds(run_s)}, its requests {format_seconds(here_s)} in all",
    ]
    if replay.in_io_s:
        said.append(
            f"in the trace {format_seconds(replay.in_io_s)} (here ×{here_s / replay.in_io_s:.2f})"
        )
    if replay.memory_bytes:
        held = format_bytes(replay.memory_bytes)
        said.append(
            f"holding {held} as the program did, if that is at most three quarters of memory"
        )
    if replay.left_out:
        calls = join_words([f"{count:,} {name}" for name, count in replay.left_out])
        said.append(f"not made again: {calls}")
    short = replay.bytes[0] * max(1, len(point.runs)) - result.workload_bytes.read
    if short > 0:
        said.append(f"{format_bytes(short)} fewer read: files ended before, or the time did")
    if replay.unplaced_bytes:
        said.append(f"{format_bytes(replay.unplaced_bytes)} of it have no known place")
    return "; ".join(said)
