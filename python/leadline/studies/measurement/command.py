"""`leadline measure TARGET --workload …`: how fast is this one workload?"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer

from leadline.engine import Target, granule_bytes, target_facts
from leadline.fio import FioJobRefused, FioRun, FioWorkload, read_job, write_job
from leadline.fio.words import USUAL, Typed, read_alone, read_words
from leadline.lazy_import import late
from leadline.outputs import write_whole
from leadline.record import Access, Arrivals, Status, Workload
from leadline.record.access import NO_SYNC
from leadline.record.finding import Finding
from leadline.record.measurement import (
    MEASUREMENT,
    Measured,
    MeasurementAsked,
    MeasurementStart,
    WorkloadAsked,
)
from leadline.record.wording import (
    format_count,
    format_parameters,
    format_rate_ci,
    format_workload,
    join_words,
)
from leadline.store import StoreError
from leadline.studies.conduct import conduct
from leadline.studies.measurement.plan import (
    ACCURACY,
    limits_of,
    load_measured,
    plan_jobs,
    plan_words,
)
from leadline.studies.measurement.run import Measuring
from leadline.studies.registry import KINDS
from leadline.studies.resume import format_kept, resume_options
from leadline.terminal.context import Context
from leadline.terminal.options import (
    CacheLimit,
    Json,
    MaxBytes,
    MaxWritten,
    Precondition,
    Seed,
    TargetArgument,
    capped,
    given_access,
    positive_seconds,
    print_ignored_options,
    reader,
    share_between,
    with_access,
    with_output,
)
from leadline.terminal.talk import talk
from leadline.terminal.tell import tell
from leadline.terminal.watch import Teller
from leadline.units import format_bytes, format_percent, format_seconds

if TYPE_CHECKING:
    from leadline.store import Store

# What `measure` and `predict` share about fio's job files: options, reading, writing.

DATA_NAME = "leadline-fio.bin"
"""The file that a written job makes and keeps in the target; not in `.leadline`, which is ours."""

FioFile = Annotated[
    Path | None,
    typer.Option(
        "--fio", metavar="JOB.fio", help="The workloads of a fio job file, one after the other."
    ),
]
with_write_fio = with_output(
    "Write the workload as a fio job for TARGET instead of measuring it.",
    "--write-fio",
    parameter="write_fio",
)
EngineName = Annotated[
    str, typer.Option(metavar="leadline|fio", help="Who makes the requests; fio as a cross-check.")
]


def read_file(path: Path, *, tell: bool, direct: bool = False) -> tuple[FioWorkload, ...]:
    """Read a job file, `${NAME}` from the environment; `tell` says what does not map.

    `direct` is the command's --direct, which goes over the jobs' own.
    """
    jobs = read_job(path, environment=os.environ, direct=direct)
    for job in jobs if tell else ():
        for found in job.findings:
            talk(f"warning: [{job.name}] {found}")
    return jobs


def without_files(job: FioWorkload, target: Target) -> FioWorkload:
    """Return the job as a target without files takes it; what that leaves out is said."""
    sync = NO_SYNC if target.has_device else job.access.sync
    left_out = msgspec.structs.replace(job.access, sync=sync)
    if not left_out.beyond() or left_out == Access(backend="pread"):
        return job
    said = f"{left_out.backend}, {left_out.discipline}"
    what = f"the job goes by {said}; {target.text} has one way, which is taken"
    found = Finding.of("not_mapped", what=what)
    talk(f"warning: [{job.name}] {found}")
    return msgspec.structs.replace(job, findings=(*job.findings, found))


def one_of(
    words: Sequence[str],
    fio: Path | None,
    application: str | None = None,
    replay: str | None = None,
) -> Sequence[str] | Path:
    """Return what says what to run; refuse two, and take no words as the usual workload."""
    others = (fio, application, replay)
    if (len(words) > 0) + sum(each is not None for each in others) > 1:
        raise typer.BadParameter(
            "say what to run once: either in words, unique_bytes=2GiB size_mean=32KiB …, or with "
            "--fio JOB.fio, --application A or --replay TRACE"
        )
    return words if fio is None else fio


def read_workload(text: str) -> Workload:
    """Read a workload that nobody runs, of Leadline's words or fio's.

    Raises:
        WorkloadError: some of the words say how storage is reached, or when.

    """
    typed = read_alone(text)
    for found in typed.findings:
        talk(f"warning: {found}")
    return typed.workload


def print_words(typed: Typed) -> None:
    """Say what runs where its size was left open, and what of fio's words differs here."""
    if {"unique_bytes", "size_mean"} & {*typed.usual}:
        workload = typed.workload
        talk(f"workload: {format_workload(workload)}; as usual: {', '.join(typed.usual)}")
    for found in typed.findings:
        talk(f"warning: {found}")


def write_workload(
    path: Path, workloads: Sequence[WorkloadAsked], target: Target, *, source: Path | None
) -> None:
    """Write the only workload as a job file whose data file lies in the target's directory.

    Args:
        path: of the file.
        workloads: one.
        target: the job is for.
        source: the job file that it was read from, if it was.

    """
    if source is not None and path.exists() and path.samefile(source):
        raise typer.BadParameter(
            f"--write-fio {path} would overwrite the job that --fio reads; give another file"
        )
    if len(workloads) != 1:
        raise typer.BadParameter(
            f"--write-fio writes one workload, and the file has {len(workloads)} jobs; "
            "give one with --workload"
        )
    (asked,) = workloads
    facts = target_facts(target.path) if target.path and Path(target.path).is_dir() else {}
    run = FioRun(
        filename=f"{target.path}/{DATA_NAME}" if target.path else DATA_NAME,
        **asked.access.over(Access(backend="pread")).stored_in(FioRun),
        arrivals=asked.arrivals,
        seconds=asked.seconds,
        ramp_s=limits_of(asked.seconds, ACCURACY).warm_up_s_max,
        granule_bytes=granule_bytes(facts, direct=asked.access.direct),
    )
    text = write_job(asked.workload, run)
    try:
        write_whole(path, text)
    except OSError as error:
        raise FioJobRefused(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error
    talk(f"wrote {path}; run it with: fio {path} (it makes {run.filename} and leaves it there)")


# Descriptions of applications load numpy, which a lone workload does without.
plan_application = late("leadline.studies.application.command:plan_application")
print_application = late("leadline.studies.application.command:print_application")
write_application = late("leadline.studies.application.command:write_application")
plan_replay = late("leadline.studies.measurement.replay:plan_replay")

_Words = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="k=v…",
        help="The workload, in Leadline's words or fio's: size_mean=4KiB read_frac=80%, or bs=4k "
        "rw=randread iodepth=32 numjobs=4 direct=1 size=2g. What is not said is as in "
        f"{format_parameters(USUAL)}.",
    ),
]
_Workload = Annotated[
    str | None, typer.Option(metavar="k=v,…", help="The same words, with commas between them.")
]
_Application = Annotated[
    str | None,
    typer.Option(
        metavar="A",
        help="What this application does, that `leadline characterize` described: its id or the "
        "first letters of it, or its name.",
    ),
]
_ReplayTrace = Annotated[
    str | None,
    typer.Option(
        "--replay",
        metavar="TRACE",
        help="The reads, writes and syncs of a trace, of any format that `leadline characterize "
        "--trace` reads, on files of its own; each process makes its next request when the last "
        "has ended.",
    ),
]
_AtTimes = Annotated[
    bool | None,
    typer.Option(
        "--at-times/--as-fast",
        help="With --replay or --application: no request before its time in the trace, or each as "
        "soon as the last has ended.  [default: an application's at its times, a trace's as fast]",
    ),
]
_Phase = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        min=1,
        help="With --application: one of its phases, as streams that are like it.  [default: all "
        "its requests where they are kept and the target is a directory; else the phase with most]",
    ),
]
_Seconds = Annotated[
    float | None,
    typer.Option(
        parser=reader(positive_seconds),
        metavar="TIME",
        help="Time to measure, at most, all runs together.  [default: 5s, a fio job's runtime, or "
        "in a directory all of an application's phase]",
    ),
]
_Runs = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=100,
        help="Runs to spread it over: what differs between them decides the interval. An open "
        "loop takes one.  [default: 5, 1 with --rate, 3 with --replay]",
    ),
]
_Accuracy = Annotated[
    float,
    typer.Option(
        parser=share_between(0.0005, 0.5),
        metavar="SHARE",
        help="A run stops when ± this share of its rate is reached, e.g. 0.5%.  [0.0005 to 0.5]",
    ),
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
_Resume = Annotated[
    bool,
    typer.Option(
        "--resume", help="Go on with this target's unfinished measurement, of --workload or --fio."
    ),
]
_Placement = Annotated[
    str,
    typer.Option(
        metavar="auto|free",
        help="A processor of its own for each worker while there are enough, or as the "
        "kernel likes.",
    ),
]


@with_access
@with_write_fio
def command(
    context: typer.Context,
    *,
    target: TargetArgument,
    words: _Words = None,
    workload: _Workload = None,
    fio: FioFile = None,
    application: _Application = None,
    phase: _Phase = None,
    replay: _ReplayTrace = None,
    at_times: _AtTimes = None,
    seconds: _Seconds = None,
    runs: _Runs = None,
    accuracy: _Accuracy = ACCURACY,
    rate: _Rate = None,
    arrivals: _ArrivalsKind = None,
    access: Access,
    placement: _Placement = "auto",
    precondition: Precondition = None,
    cache_limit: CacheLimit = None,
    max_bytes: MaxBytes = None,
    max_written: MaxWritten = None,
    engine: EngineName = "leadline",
    write_fio: Path | None = None,
    seed: Seed = 1,
    resume: _Resume = False,
    json: Json = False,
) -> None:
    """Measure one workload: throughput, latency, cache hits.

    Example: leadline measure /data bs=4k rw=randread iodepth=32 direct=1 size=2g
    """
    chosen = Target.parse(target)
    _check(fio, application, phase, typed=rate is not None or arrivals is not None)
    others = {"--rate": rate, "--precondition": precondition, "--write-fio": write_fio}
    _check_replay(replay, application, others, at_times=at_times, engine=engine)
    typed = [*(words or ()), *filter(None, [workload])]
    source = _source(typed, fio, application, replay, write_fio, resume=resume)
    reached = msgspec.structs.replace(capped(access, cache_limit), placement=placement)
    own: Context = context.obj
    how: dict[str, Any] = {"seconds": seconds, "runs": runs}
    if application is not None:
        read = own.read_store()
        how |= {"at_times": at_times, "as_streams": write_fio is not None}
        planned = plan_application(read, application, phase, chosen, reached, **how)
    elif replay is not None:
        planned = (plan_replay(replay, chosen, reached, at_times=bool(at_times), **how),)
    else:
        files, due = chosen.has_files or bool(write_fio), _arrivals(rate, arrivals)
        planned = _workloads(source, chosen, access=reached, arrivals=due, files=files, **how)
    if write_fio is not None:
        _write(write_fio, planned, chosen, fio=fio, application=application)
        return
    asked = MeasurementAsked(
        workloads=planned,
        seed=seed,
        accuracy=accuracy,
        precondition_bytes_max=precondition,
        max_bytes=max_bytes,
        written_bytes_max=max_written,
        engine=engine,
    )
    store = own.open_store()
    measuring = Measuring(chosen, asked, access=access, given=given_access(context))
    study = conduct(measuring, store, _Teller(context, asked, json=json), resume=resume)
    if study.start.workloads[0].application_id is not None and study.points:
        print_application(store, study, json=json)
    else:
        tell(study, KINDS[MEASUREMENT.kind], json=json, to_draw=False)


def _source(
    typed: Sequence[str],
    fio: Path | None,
    application: str | None,
    replay: str | None,
    write_fio: Path | None,
    *,
    resume: bool,
) -> Sequence[str] | Path | None:
    """Return what says what to run; None where what is gone on with says it."""
    if resume and write_fio is not None:
        raise typer.BadParameter("--resume measures and --write-fio does not: leave one out")
    alone = resume and not typed and fio is None and application is None and replay is None
    return None if alone else one_of(typed, fio, application, replay)


def _write(
    path: Path,
    workloads: tuple[WorkloadAsked, ...],
    target: Target,
    *,
    fio: Path | None,
    application: str | None,
) -> None:
    """Write what would be run as fio's jobs."""
    if application is not None:
        write_application(path, workloads[0], target, DATA_NAME)
    else:
        write_workload(path, workloads, target, source=fio)


def _check(fio: Path | None, application: str | None, phase: int | None, *, typed: bool) -> None:
    """Refuse options that do not go together."""
    if fio is not None and typed:
        raise typer.BadParameter("--rate and --arrivals go with --workload: a job has its own")
    if application is not None and typed:
        raise typer.BadParameter(
            "--rate and --arrivals go with --workload: an application has its own pace"
        )
    if phase is not None and application is None:
        raise typer.BadParameter("--phase is one of an application's: add --application A")


def _check_replay(
    replay: str | None,
    application: str | None,
    others: Mapping[str, object],
    *,
    at_times: bool | None,
    engine: str,
) -> None:
    """Refuse options that do not go with a replay, and what does not go without."""
    if replay is None:
        if at_times is not None and application is None:
            raise typer.BadParameter(
                "--at-times and --as-fast are of requests that were made: add --replay TRACE or "
                "--application A"
            )
        return
    given = [name for name, value in others.items() if value is not None]
    given += [f"--engine {engine}"] if engine != "leadline" else []
    if given:
        raise typer.BadParameter(
            f"{join_words(given)} does not go with --replay, whose requests are the trace's: leave "
            "it out"
        )


def _workloads(
    source: Sequence[str] | Path | None,
    target: Target,
    *,
    access: Access,
    seconds: float | None,
    runs: int | None,
    arrivals: Arrivals,
    files: bool,
) -> tuple[WorkloadAsked, ...]:
    """What to run; of a fio job the command's own choices go over the job's."""
    if source is None:
        return ()
    if not isinstance(source, Path):
        typed = read_words(source, USUAL)
        print_words(typed)
        planned = plan_words(
            typed, access, arrivals=arrivals, seconds=seconds, runs=runs, files=files
        )
        return (planned,)
    read = read_file(source, tell=True, direct=access.direct)
    jobs = read if files else [without_files(job, target) for job in read]
    return plan_jobs(jobs, target, access, seconds=seconds, runs=runs, files=files)


def _arrivals(rate_per_s: float | None, kind: str | None) -> Arrivals:
    if kind not in (None, "poisson", "constant"):
        raise typer.BadParameter(f"--arrivals is poisson or constant, not {kind!r}")
    if rate_per_s is None:
        if kind is not None:
            raise typer.BadParameter(f"--arrivals {kind} needs a rate: add --rate 2000")
        return Arrivals()
    return Arrivals("constant" if kind == "constant" else "poisson", rate_per_s)


def _kept_options(
    begun: MeasurementStart, asked: MeasurementAsked, typed: dict[str, Any]
) -> dict[str, tuple[bool, str]]:
    """Return of each option whether all workloads began with it, and what they began with.

    Args:
        begun: what goes on.
        asked: what was typed of the whole.
        typed: what was typed of every workload.

    """
    kept, each = begun.asked or asked, begun.workloads
    options: dict[str, tuple[Any, list[Any], Callable[[Any], str]]] = {
        "seconds": (typed["seconds"], [work.seconds for work in each], format_seconds),
        "runs": (typed["runs"], [work.runs for work in each], str),
        "rate": (typed["rate"], [work.arrivals.rate_per_s for work in each], "{:g}".format),
        "arrivals": (typed["arrivals"], [work.arrivals.kind for work in each], str),
        "placement": (typed["placement"], [work.access.placement for work in each], str),
        "cache_limit": (
            typed["cache_limit"] or None,
            [work.access.cache_limit_bytes for work in each],
            format_bytes,
        ),
        "accuracy": (asked.accuracy, [kept.accuracy], format_percent),
        "precondition": (asked.precondition_bytes_max, [kept.precondition_bytes_max], format_bytes),
        "max_bytes": (asked.max_bytes, [kept.max_bytes], format_bytes),
        "engine": (asked.engine, [kept.engine], str),
        "seed": (asked.seed, [kept.seed], str),
    }
    return {
        name: (set(before) == {now}, _said(before, say))
        for name, (now, before, say) in options.items()
    }


def _said(values: Sequence[Any], say: Callable[[Any], str]) -> str:
    return join_words(
        ["without it" if value is None else say(value) for value in dict.fromkeys(values)]
    )


def _tell_plan(start: MeasurementStart, before: Measured | None) -> None:
    """Say what runs, where that is not what was just typed."""
    workloads = start.workloads
    if before is None and len(workloads) == 1:
        return
    kept = f", {format_count(before.runs_kept, 'run')} kept from before" if before else ""
    runs = format_count(sum(each.runs for each in workloads), "run")
    talk(
        f"measurement {start.study_id[:8]} of {start.system}: {runs} of "
        f"{format_count(len(workloads), 'workload')}{kept}"
    )


class _Teller(Teller):
    """Tells of every workload; what was measured is told, whatever became of the next one."""

    def __init__(self, context: typer.Context, asked: MeasurementAsked, *, json: bool) -> None:
        super().__init__(_tell_plan)
        self._context, self._asked, self._json = context, asked, json

    def begun(self, start: MeasurementStart, kept: Measured | None) -> None:
        if kept is not None:
            typed = self._context.params
            print_ignored_options(self._context, _kept_options(start, self._asked, typed))
        super().begun(start, kept)

    def ended(self, item: Measured) -> None:
        planned, done = len(item.start.workloads), len(item.points)
        if planned > 1:
            point = item.points[-1]
            name = item.names[-1] or format_workload(point.workload)
            talk(
                f"  {done:>2} of {planned}  [{name}]: "
                f"{format_rate_ci(point.result.throughput_mb_s)}"
            )

    def stopped(self, store: Store, start: MeasurementStart, error: BaseException) -> None:
        with suppress(StoreError):  # refused before anything was begun
            study = load_measured(store, start.study_id)
            if study.points:
                tell(study, KINDS[MEASUREMENT.kind], json=self._json, to_draw=False)
            if study.status is not Status.DONE:
                planned = sum(each.runs for each in start.workloads)
                own, options = start.study_id, resume_options(error)
                talk(format_kept(study.runs_kept, planned, own, what="runs", options=options))
