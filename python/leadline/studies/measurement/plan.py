"""Which workloads are measured, how often and for how long: as typed, or as a fio file has them."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

import msgspec

from leadline.engine import Limits, Target, TargetRefused, bytes_written, fitting
from leadline.errors import LeadlineError, UsageRefused
from leadline.fio import FioWorkload
from leadline.fio.words import Typed
from leadline.record import Access, Arrivals, Workload
from leadline.record.access import NO_SYNC
from leadline.record.job import CLOSED
from leadline.record.measurement import (
    MEASUREMENT,
    Measured,
    MeasurementAsked,
    MeasurementStart,
    WorkloadAsked,
)
from leadline.record.wording import format_workload, join_words
from leadline.store import Store
from leadline.studies.resume import find_unfinished

RUNS = 5
"""Runs of a closed loop; fewer tell too little of the spread between runs, and more leave each too
short to become steady in."""
SECONDS = 5.0
ACCURACY = 0.01
FILL_S = 60.0
"""A third of it is the most that a pass over the data may take."""


class MeasurementRefused(LeadlineError):
    """Measurements that make no sense; nothing was touched."""

    exit_code = 2


def plan_workload(
    workload: Workload,
    access: Access,
    *,
    arrivals: Arrivals = CLOSED,
    seconds: float | None = None,
    runs: int | None = None,
) -> WorkloadAsked:
    """Return a workload with what was not said of it as usual.

    Args:
        workload: what is asked of the target.
        access: how it is reached.
        arrivals: what makes a request due.
        seconds: to measure, at most, all runs together.
        runs: to spread it over.

    Raises:
        MeasurementRefused: no run, or several of an open loop.

    """
    return WorkloadAsked(
        workload=workload,
        arrivals=arrivals,
        access=access,
        seconds=seconds or SECONDS,
        runs=_runs(runs, arrivals),
    )


def plan_words(
    typed: Typed,
    access: Access,
    *,
    arrivals: Arrivals = CLOSED,
    seconds: float | None = None,
    runs: int | None = None,
    files: bool,
) -> WorkloadAsked:
    """Return a workload typed in words; what was said beside them goes over fio's words.

    Args:
        typed: the words.
        access: as far as it was said, and the next three.
        arrivals: closed where none was said.
        seconds: as in `plan_workload`.
        runs: as well.
        files: whether the target has files, so that the words' way to them counts.

    Raises:
        MeasurementRefused: no run, or several of an open loop.

    """
    planned = plan_workload(
        typed.workload,
        access.over(typed.access if files else Access(sync=typed.access.sync)),
        arrivals=typed.arrivals if arrivals == CLOSED else arrivals,
        seconds=seconds or typed.seconds,
        runs=runs,
    )
    return msgspec.structs.replace(planned, findings=typed.findings)


def plan_jobs(
    jobs: Sequence[FioWorkload],
    target: Target,
    access: Access,
    *,
    seconds: float | None = None,
    runs: int | None = None,
    files: bool,
) -> tuple[WorkloadAsked, ...]:
    """Return the workloads of a fio file; what was said beside it goes over the jobs' own.

    Args:
        jobs: of the file.
        target: where they run.
        access: as far as it was said.
        seconds: as in `plan_workload`, and the next.
        runs: None is as usual.
        files: whether the target has files, so that a job's own way to them counts.

    Raises:
        MeasurementRefused: as above; the message names the job.

    """
    planned = []
    for job in jobs:
        sync = job.access.sync if target.has_device else NO_SYNC
        with naming(job.name):
            own = plan_workload(
                job.workload,
                access.over(job.access if files else Access(sync=sync)),
                arrivals=job.arrivals,
                seconds=seconds or job.seconds,
                runs=runs,
            )
        planned.append(msgspec.structs.replace(own, name=job.name, findings=job.findings))
    return tuple(planned)


@contextmanager
def naming(name: str | None) -> Iterator[None]:
    """Put the name of a fio job before what is wrong with it."""
    try:
        yield
    except LeadlineError as error:
        if name is not None:
            error.args = (f"[{name}]: {error}",)
        raise


def limits_of(
    seconds: float, accuracy: float, requests: int | None = None, *, begins_cold: bool = True
) -> Limits:
    """Return the limits of one run of so many seconds; its bound is not among them.

    Args:
        seconds: to measure, at most.
        accuracy: relative half-width of the rate that ends the window early.
        requests: after which it ends; None is the steady state.
        begins_cold: with an empty page cache, where it ends so.

    """
    if requests is not None:
        return Limits(
            warm_up_s_max=0.0 if begins_cold else FILL_S,
            measure_s_min=seconds,
            measure_s_max=seconds,
            accuracy=0.0,
            operations_max=requests,
        )
    return Limits(
        warm_up_s_max=max(2.0, seconds),
        measure_s_min=min(1.0, seconds / 2),
        measure_s_max=seconds,
        accuracy=accuracy,
    )


def _runs(runs: int | None, arrivals: Arrivals) -> int:
    if runs is not None and runs < 1:
        raise MeasurementRefused(f"--runs {runs} measures nothing; give 1 or more")
    if arrivals.rate_per_s is None:
        return runs or RUNS
    if runs not in (None, 1):
        raise MeasurementRefused(
            f"--runs {runs} does not go with --rate: an open loop is one run, so that no stall "
            "falls between two; leave --runs out"
        )
    return 1


# The record that decides measurements, made before the first.


def begin_measurements(target: Target, asked: MeasurementAsked) -> MeasurementStart:
    """Return what decides measurements of a target; nothing is opened for it.

    Raises:
        MeasurementRefused: there is nothing to measure, or nothing to precondition.
        TargetRefused: the target cannot be reached as a workload asks for it.

    """
    if not asked.workloads:
        raise MeasurementRefused("no workload was given: there is nothing to measure")
    if asked.precondition_bytes_max is not None and not target.has_files:
        raise MeasurementRefused(
            f"--precondition writes to a real device of this machine, and {target.text} has none: "
            "leave it out"
        )
    workloads = tuple(_fitting(target, each, asked.engine) for each in asked.workloads)
    return MeasurementStart(
        study_id=uuid.uuid4().hex,
        system=target.name,
        started_at=datetime.now(UTC).isoformat(),
        target=target.text,
        system_profile=target.profile,
        asked=msgspec.structs.replace(asked, workloads=workloads),
        **workloads[0].access.stored_in(MeasurementStart),
    )


def _fitting(target: Target, workload: WorkloadAsked, engine: str) -> WorkloadAsked:
    with naming(workload.name):
        access = fitting(target, workload.access, engine)
    return msgspec.structs.replace(workload, access=access)


# Measurements as they are told, and those that can go on.

POINTS = ""
"""Group of the measurements; every workload's runs are a group of their own."""


def runs_group(order: int) -> str:
    """Name the group of the runs of the workload with this place in its study."""
    return f"runs of {order}"


def load_measured(store: Store, ref: str) -> Measured:
    """Return stored measurements, finished or not.

    Raises:
        StoreError: no study of measurements, or several, go by this reference.

    """
    found = store.find(ref, MEASUREMENT)
    own = found.start.study_id
    points = store.items(own, POINTS)
    runs = store.items(own, runs_group(len(points)))
    told = found.answer.written_bytes if found.answer else 0
    counted = sum(bytes_written(item.result) for item in (*points, *runs))
    return Measured(found.start, found.status, points, runs, max(told, counted))


def find_begun(store: Store, target: Target, workloads: Sequence[WorkloadAsked]) -> Measured:
    """Return the newest unfinished measurements of these workloads, or of any when none are given.

    Raises:
        TargetRefused: there are none of this target, or only of other workloads.

    """
    system, asked = target.name, _questions(workloads)

    def begun(start: MeasurementStart) -> bool:
        return start.asked is not None

    def meant(start: MeasurementStart) -> bool:
        alike = not asked or _questions(start.workloads) == asked
        return begun(start) and start.target == target.text and alike

    try:
        found = find_unfinished(store, MEASUREMENT, system, target.text, meant=meant)
    except TargetRefused:
        other = find_unfinished(store, MEASUREMENT, system, target.text, meant=begun).start
        said = [each.name or format_workload(each.workload) for each in other.workloads]
        raise UsageRefused(
            f"the unfinished measurement {other.study_id[:8]} of {system!r} runs other workloads: "
            f"{join_words(said)}. Give those, or none, or start a new one without --resume"
        ) from None
    return load_measured(store, found.start.study_id)


def _questions(workloads: Sequence[WorkloadAsked]) -> list[object]:
    """What makes an answer another one's; how long it may take, and how sure it is, do not."""
    return [
        (each.name, each.workload, each.arrivals, each.streams, each.replay) for each in workloads
    ]
