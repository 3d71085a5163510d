"""`leadline measure TARGET --workload …`: how fast is this one workload?"""

from __future__ import annotations

import functools
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.text import Text

from leadline.cli.context import Context
from leadline.cli.fio_jobs import (
    EngineName,
    FioFile,
    one_of,
    read_file,
    with_write_fio,
    without_files,
    write_file,
)
from leadline.cli.options import (
    CacheLimit,
    Json,
    MaxBytes,
    Precondition,
    Seed,
    TargetArgument,
    capped,
    positive_seconds,
    reader,
    with_access,
)
from leadline.cli.talk import put_json, show, tell_findings
from leadline.cli.tell import heading
from leadline.engine import (
    Engine,
    Limits,
    Target,
    bounded,
    granule_bytes,
    open_engine,
    preflight,
    require_fit,
    target_facts,
    until_completed,
)
from leadline.errors import LeadlineError
from leadline.fio import FioRun, FioWorkload
from leadline.record import (
    CAP_REACHED,
    Access,
    Arrivals,
    EngineResult,
    Measurement,
    RunReading,
    Status,
    Workload,
    derive_seed,
)
from leadline.record.measurement import MEASUREMENT, Measured, MeasurementStart
from leadline.record.study import Took
from leadline.report.documents.measurement import measurement_document
from leadline.report.kinds import KINDS
from leadline.report.measurement.terminal import render_measurement

if TYPE_CHECKING:
    from leadline.store import Store  # SQLAlchemy takes a while to load

RUNS = 5
"""Runs of a closed loop; fewer tell too little of the spread between runs, and more leave each too
short to become steady in."""


_Workload = Annotated[
    str | None,
    typer.Option(
        metavar="k=v,…",
        help="unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4",
    ),
]
_Seconds = Annotated[
    float | None,
    typer.Option(
        parser=reader(positive_seconds),
        help="Time to measure, at most, all runs together.  [default: 5, or a fio job's runtime]",
    ),
]
_Runs = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100,
        help="Runs to spread it over: what differs between them decides the interval. An open "
        "loop takes one.  [default: 5, or 1 with --rate]",
    ),
]
_Accuracy = Annotated[
    float, typer.Option(min=0.0005, max=0.5, help="Stop when ± this fraction is reached.")
]
_Rate = Annotated[
    float | None,
    typer.Option(
        metavar="R",
        help="Open loop: this many requests become due each second, whether or not earlier "
        "ones are done.",
    ),
]
_ArrivalsKind = Annotated[
    str | None,
    typer.Option(
        metavar="poisson|constant",
        help="With --rate: at random moments, or evenly.  [default: poisson]",
    ),
]
_Placement = Annotated[
    str,
    typer.Option(
        metavar="auto|free",
        help="A processor of its own for each issuer while there are enough, or as the "
        "kernel likes.",
    ),
]


PAUSE_S = 2.0
"""Between two runs on a real target. What disturbs a shared machine comes and goes within some
seconds: five runs in six seconds scattered by 4 %, the same runs spread over minutes by 8 %."""


SECONDS = 5.0


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """One workload to run, from the command line or from a fio job file."""

    name: str | None = None
    """Of a fio job."""
    workload: Workload
    arrivals: Arrivals
    access: Access
    seconds: float | None
    warnings: tuple[str, ...] = ()
    """What of a fio job does not map."""


class _Asked(msgspec.Struct, frozen=True, kw_only=True):
    """The options that decide a lone measurement."""

    job: _Job
    limits: Limits
    precondition_bytes_max: int | None
    seed: int
    runs: int


@with_access
@with_write_fio
def command(
    context: typer.Context,
    *,
    target: TargetArgument,
    workload: _Workload = None,
    fio: FioFile = None,
    seconds: _Seconds = None,
    runs: _Runs = None,
    accuracy: _Accuracy = 0.01,
    rate: _Rate = None,
    arrivals: _ArrivalsKind = None,
    access: Access,
    placement: _Placement = "auto",
    precondition: Precondition = None,
    cache_limit: CacheLimit = None,
    max_bytes: MaxBytes = None,
    engine: EngineName = "leadline",
    write_fio: Path | None = None,
    seed: Seed = 1,
    json: Json = False,
) -> None:
    """Measure one workload: throughput, response times, and where the bytes came from."""
    chosen = Target.parse(target)
    if fio is not None and (rate is not None or arrivals is not None):
        raise typer.BadParameter("--rate and --arrivals go with --workload: a job has its own")
    jobs = _jobs(
        one_of(workload, fio),
        chosen,
        access=msgspec.structs.replace(capped(access, cache_limit), placement=placement),
        seconds=seconds,
        arrivals=_arrivals(rate, arrivals),
        files=chosen.kind == "directory" or bool(write_fio),
    )
    if write_fio is not None:
        _write(write_fio, jobs, chosen, source=fio)
        return
    own: Context = context.obj
    asked = [_asked(job, runs, accuracy, precondition, seed) for job in jobs]

    def opened(job: _Job) -> AbstractContextManager[Engine]:
        return open_engine(chosen, job.access, engine=engine, max_bytes=max_bytes, run_seed=seed)

    if len(jobs) > 1:  # a lone one is looked at when it begins
        for job in jobs:
            with _naming(job), opened(job) as looked_at:
                _require_fit(job, looked_at)
    _measure_all(asked, own.open_store(), chosen, opened, json=json)


def _measure_all(
    asked: Sequence[_Asked],
    store: Store,
    target: Target,
    opened: Callable[[_Job], AbstractContextManager[Engine]],
    *,
    json: bool,
) -> None:
    """Measure job by job; what was measured is told, whatever became of the next one."""
    points: list[Measurement] = []
    try:
        for each in asked:
            with _naming(each.job), opened(each.job) as target_engine:
                point = _measure(target_engine, target, each)
                # Kept before the target is left: a server that went away cannot be tidied up.
                kept = _keep(store, target, point)
                points.append(point)
                if not json:
                    if each.job.name is not None:
                        show(Text(f"[{each.job.name}]"))
                    show(heading(kept, KINDS[MEASUREMENT.kind]))
                    show(render_measurement(point))
    finally:
        if json and points:
            _put([one.job.name for one in asked[: len(points)]], points)


@contextmanager
def _naming(job: _Job) -> Iterator[None]:
    """Put the name of a fio job before what is wrong with it."""
    try:
        yield
    except LeadlineError as error:
        if job.name is not None:
            error.args = (f"[{job.name}]: {error}",)
        raise


def _asked(
    job: _Job, runs: int | None, accuracy: float, precondition: int | None, seed: int
) -> _Asked:
    try:
        count = _runs(runs, job.arrivals.rate_per_s)
    except typer.BadParameter as error:
        if job.name is None:
            raise
        raise typer.BadParameter(f"[{job.name}]: {error.message}") from error
    return _Asked(
        job=job,
        limits=_limits((job.seconds or SECONDS) / count, accuracy),
        runs=count,
        precondition_bytes_max=precondition,
        seed=seed,
    )


def _require_fit(job: _Job, engine: Engine) -> None:
    require_fit(job.workload, capacity_bytes=engine.capacity_bytes, backend=engine.access.backend)


def _jobs(
    source: str | Path,
    target: Target,
    *,
    access: Access,
    seconds: float | None,
    arrivals: Arrivals,
    files: bool,
) -> tuple[_Job, ...]:
    """What to run; of a fio job the command's own choices go over the job's."""
    if isinstance(source, str):
        return (
            _Job(
                workload=Workload.parse(source), arrivals=arrivals, access=access, seconds=seconds
            ),
        )
    read = read_file(source, tell=True, direct=access.direct)
    return tuple(
        _Job(
            name=job.name,
            workload=job.workload,
            arrivals=job.arrivals,
            access=_over(access, job, target, files=files),
            seconds=seconds or job.seconds,
            warnings=job.warnings,
        )
        for job in (read if files else [without_files(job, target) for job in read])
    )


def _over(access: Access, job: FioWorkload, target: Target, *, files: bool) -> Access:
    """The command's own choices over the job's, as far as the target has a choice."""
    own = access.waits or target.kind == "null"
    waiting = msgspec.structs.replace(access, sync=access.sync if own else job.sync)
    if not files:
        return waiting
    return msgspec.structs.replace(
        waiting, backend=access.backend or job.backend, direct=access.direct or job.direct
    )


def _put(names: Sequence[str | None], points: Sequence[Measurement]) -> None:
    """One document of a workload; of a fio file `jobs`, a document each with its `name`."""
    if names[0] is None:
        put_json(measurement_document(points[0]))
        return
    put_json(
        {
            "jobs": [
                {"name": name} | measurement_document(point)
                for name, point in zip(names, points, strict=True)
            ]
        }
    )


def _write(path: Path, jobs: Sequence[_Job], target: Target, *, source: Path | None) -> None:
    if source is not None and path.exists() and path.samefile(source):
        raise typer.BadParameter(
            f"--write-fio {path} would overwrite the job that --fio reads; give another file"
        )
    if len(jobs) != 1:
        raise typer.BadParameter(
            f"--write-fio writes one workload, and the file has {len(jobs)} jobs; "
            "give one with --workload"
        )
    job = jobs[0]
    for said in job.access.beyond(*FioRun.__struct_fields__):
        raise typer.BadParameter(f"--{said} does not go with --write-fio: leave it out")
    length_s = job.seconds or SECONDS
    facts = target_facts(target.path) if target.path and Path(target.path).is_dir() else {}
    run = FioRun(
        backend=job.access.backend or "pread",
        direct=job.access.direct,
        sync=job.access.sync,
        arrivals=job.arrivals,
        seconds=length_s,
        ramp_s=_limits(length_s, 0.01).warm_up_s_max,
        granule_bytes=granule_bytes(facts, direct=job.access.direct),
    )
    write_file(path, job.workload, run, target)


def _measure(engine: Engine, target: Target, asked: _Asked) -> Measurement:
    _require_fit(asked.job, engine)
    warnings = asked.job.warnings + tell_findings(preflight(target, engine.facts))
    engine.prepare()
    started_at = datetime.now(UTC).isoformat()
    pause_s = 0.0 if engine.virtual or target.kind == "null" else PAUSE_S
    limits = bounded(
        asked.limits,
        runs=asked.runs,
        pause_s=pause_s,
        layout_bytes=0 if target.kind == "null" else asked.job.workload.unique_bytes,
        precondition_bytes_max=asked.precondition_bytes_max,
    )
    end_s = engine.clock_s + limits.total_s_max
    results, readings = [], []
    for number in range(asked.runs):
        if number > 0:
            time.sleep(pause_s)
        seed = derive_seed(asked.seed, number)
        run = functools.partial(
            engine.run,
            asked.job.workload,
            seed=seed,
            arrivals=asked.job.arrivals,
            precondition_bytes_max=asked.precondition_bytes_max if number == 0 else None,
        )
        result = until_completed(run, limits, lambda: end_s - engine.clock_s)
        results.append(result)
        rates = (result.throughput_mb_s, result.iops)
        readings.append(
            RunReading(seed=seed, wall_s=result.wall_s, throughput_mb_s=rates[0], iops=rates[1])
        )
        if result.server_lost:  # the verdict is its own: nothing is made of it with the others
            results = [result]
            break
    return Measurement(
        point_id=uuid.uuid4().hex,
        order=0,
        stage="measure",
        started_at=started_at,
        clock_s=0.0,
        seed=asked.seed,
        workload=asked.job.workload,
        **engine.access.stored_in(Measurement),
        arrivals=asked.job.arrivals,
        facts=engine.facts,
        warnings=warnings,
        result=_answer(results, asked.limits.accuracy),
        runs=tuple(readings),
    )


def _answer(results: list[EngineResult], accuracy: float) -> EngineResult:
    """The pooled result; whether the accuracy was reached is said of the whole, not of a run."""
    from leadline.stats import pooled_result  # noqa: PLC0415 - numpy and scipy, after measuring

    pooled = pooled_result(results)
    reached = pooled.throughput_mb_s.half_width_frac
    if len(results) == 1 or reached is None:
        return pooled
    kept = [warning for warning in pooled.warnings if not warning.startswith(CAP_REACHED)]
    if reached > accuracy:
        kept.append(
            f"{CAP_REACHED} before the asked accuracy: ±{reached:.1%} instead of ±{accuracy:.1%} "
            f"over {len(results)} runs; more --seconds, or more --runs, narrow it"
        )
    return msgspec.structs.replace(pooled, warnings=tuple(kept))


def _runs(runs: int | None, rate_per_s: float | None) -> int:
    if rate_per_s is None:
        return runs or RUNS
    if runs not in (None, 1):
        raise typer.BadParameter(
            f"--runs {runs} does not go with --rate: an open loop is one run, so that no stall "
            "falls between two; leave --runs out"
        )
    return 1


def _limits(seconds: float, accuracy: float) -> Limits:
    return Limits(
        warm_up_s_max=max(2.0, seconds),
        measure_s_min=min(1.0, seconds / 2),
        measure_s_max=seconds,
        accuracy=accuracy,
    )


def _arrivals(rate_per_s: float | None, kind: str | None) -> Arrivals:
    if kind not in (None, "poisson", "constant"):
        raise typer.BadParameter(f"--arrivals is poisson or constant, not {kind!r}")
    if rate_per_s is None:
        if kind is not None:
            raise typer.BadParameter(f"--arrivals {kind} needs a rate: add --rate 2000")
        return Arrivals()
    return Arrivals("constant" if kind == "constant" else "poisson", rate_per_s)


def _keep(store: Store, target: Target, point: Measurement) -> Measured:
    """Keep the point as a study of its own, whose id is the point's as well."""
    start = MeasurementStart(
        study_id=point.point_id,
        system=target.name,
        started_at=point.started_at,
        target=target.text,
        **point.access.stored_in(MeasurementStart),
    )
    store.begin(MEASUREMENT, start)
    store.add(start.study_id, point)
    wall_s = sum(run.wall_s for run in point.runs)
    store.end(start.study_id, Took(wall_s=wall_s), Status.DONE)
    return Measured(start, Status.DONE, (point,))
