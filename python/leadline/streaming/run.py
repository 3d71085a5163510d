"""One kernel over the user's data, as a study: capacities first, then the run, then the words."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Protocol

import msgspec

from leadline.engine import PointFailed, Streams, TargetRefused, host_facts, target_facts
from leadline.engine.stream_jobs import Capacity, StreamJob
from leadline.engine.stream_places import disks_of
from leadline.record import SurveyStatus, derive_seed
from leadline.record.balance import RESOURCE_WORDS, Bound
from leadline.record.streaming import (
    Capacities,
    StreamResult,
    StreamRun,
    StreamStart,
    StreamStudy,
)
from leadline.streaming.answer import sentences_of
from leadline.streaming.bounds import bound
from leadline.streaming.capacities import capacities_of
from leadline.streaming.plan import Planned
from leadline.units import format_bytes, format_rate, format_seconds

CAPACITY_BYTES_MIN = 32 * 2**20
CAPACITY_BYTES_MAX = 256 * 2**20
_CAPACITY_SHARE = 8
"""A capacity is measured on an eighth of the data: long enough to tell, short beside the run."""
_LEAST_S = 0.02
"""The shortest job that the wire takes."""

RunJob = Callable[[StreamJob], StreamResult]
"""Runs the kernel: in the engine child, or on all ranks."""


class Keeper(Protocol):
    """Where studies are kept."""

    def save_stream(self, study: StreamStudy) -> None:
        """Keep a study, or what is new of it."""


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
    streams: Streams,
    store: Keeper,
    start: StreamStart,
    planned: Planned,
    run_job: RunJob,
    *,
    network_bytes_s: Callable[[], Sequence[float]] = tuple,
    on_capacities: Callable[[Capacities], None] | None = None,
) -> StreamStudy:
    """Run the kernel once and keep what was found.

    Args:
        streams: the engine, for the capacities.
        store: where the study is kept, as soon as something is measured.
        start: what decides it.
        planned: what is to be run.
        run_job: runs the kernel.
        network_bytes_s: measures the network between ranks.
        on_capacities: told when they are known.

    Raises:
        LeadlineError: the run was refused or failed; the study is kept as stopped.

    """
    began_s = time.monotonic()
    study = StreamStudy(start=start, status=SurveyStatus.RUNNING)

    def keep(status: SurveyStatus) -> StreamStudy:
        told = explain(study) if study.runs else study
        kept = msgspec.structs.replace(told, status=status, wall_s=time.monotonic() - began_s)
        if kept.runs or kept.capacities is not None:  # refused before: nothing to keep
            store.save_stream(kept)
        return kept

    try:
        study = _with_capacities(streams, study, planned, network_bytes_s)
        if study.capacities is not None and on_capacities is not None:
            on_capacities(study.capacities)
        keep(SurveyStatus.RUNNING)
        left_s = planned.job.total_s_max - (time.monotonic() - began_s)
        job = msgspec.structs.replace(planned.job, total_s_max=max(_LEAST_S, left_s))
        started_at = _now()
        run = StreamRun(
            options=planned.options, disks=len(start.directories), repetition=0,
            started_at=started_at, result=run_job(job),
        )  # fmt: skip
        study = msgspec.structs.replace(study, runs=(run,))
    except BaseException:
        keep(SurveyStatus.STOPPED)
        raise
    return keep(SurveyStatus.DONE)


def _with_capacities(
    streams: Streams,
    study: StreamStudy,
    planned: Planned,
    network_bytes_s: Callable[[], Sequence[float]],
) -> StreamStudy:
    if not planned.capacities:
        return study
    size = planned.data_bytes // _CAPACITY_SHARE
    job = StreamJob(
        kernel=Capacity(
            directories=study.start.directories,
            bytes=max(CAPACITY_BYTES_MIN, min(CAPACITY_BYTES_MAX, size)),
        ),
        memory_bytes=planned.job.memory_bytes,
        threads=planned.options.threads,
        io=planned.job.io,
        seed=derive_seed(planned.job.seed, 0),
        total_s_max=max(_LEAST_S, planned.job.total_s_max / 2),
    )
    try:
        readings = streams.run(job).capacity
    except (TargetRefused, PointFailed) as error:
        said = f"there is no bound, because the capacities were not measured: {error}"
        return msgspec.structs.replace(study, warnings=(said,))
    if readings is None:
        return study
    found = capacities_of(readings, study.start.directories, network_bytes_s())
    return msgspec.structs.replace(study, capacities=found)


def bound_of(study: StreamStudy) -> Bound | None:
    """Return the bound of the study's last run; None without a run or without capacities."""
    if not study.runs or study.capacities is None:
        return None
    run = study.runs[-1]
    return bound(run.result, run.options, study.capacities, run.disks)


def explain(study: StreamStudy) -> StreamStudy:
    """Return the study with what it says in words."""
    said = tuple(_sentences(study.runs[-1], bound_of(study)))
    _, warnings = sentences_of(study)
    warnings = tuple(dict.fromkeys((*study.warnings, *warnings)))
    return msgspec.structs.replace(study, sentences=said, warnings=warnings)


def _sentences(run: StreamRun, limit: Bound | None) -> list[str]:
    result = run.result
    moved = sum(phase.bytes_moved for phase in result.phases)
    rate = moved / result.seconds / 1e6 if result.seconds > 0 else 0.0
    passes = "" if result.passes == 1 else f" in {result.passes} passes"
    took = f"{format_bytes(result.bytes_in)}{passes} took {format_seconds(result.seconds)}"
    said = [f"{result.kernel} of {took}: {format_rate(rate)} read and written together."]
    if limit is not None and limit.mb_s.value:
        share = 100 * rate / limit.mb_s.value
        said.append(
            f"That is {share:.0f} % of the {format_rate(limit.mb_s.value)} that the "
            f"{RESOURCE_WORDS[limit.resource]} of this machine would allow."
        )
    if result.verified:
        said.append(f"The output was read back and is right ({format_seconds(result.verify_s)}).")
    return said


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
