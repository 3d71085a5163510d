"""`leadline characterize`: what is this application's I/O like, by a trace or as it runs?"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import msgspec
import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from leadline.engine import Target
from leadline.fio import FioJobRefused, FioRun
from leadline.fio.write_streams import write_streams
from leadline.lazy_import import late
from leadline.models.application.predicted import predict_application
from leadline.models.predictor import Predictor
from leadline.outputs import write_whole
from leadline.record import Access
from leadline.record.application import APPLICATION, Application
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.measurement import MEASUREMENT, Measured, WorkloadAsked
from leadline.store import Store
from leadline.studies.application.capture import (
    Watched,
    beside,
    characterize_running,
    format_beside,
)
from leadline.studies.application.characterize import characterize_trace, load_application
from leadline.studies.application.synthetic import Synthetic, longest_run_s, synthetic_of
from leadline.studies.application.trace import TraceRefused, TraceStopped
from leadline.studies.measurement.plan import (
    ACCURACY,
    SECONDS,
    MeasurementRefused,
    limits_of,
    plan_workload,
)
from leadline.studies.measurement.replay import plan_steps
from leadline.studies.prediction.text import render_application, sentences_of
from leadline.studies.registry import KINDS
from leadline.terminal.context import Context
from leadline.terminal.options import (
    Force,
    Json,
    Name,
    new_file,
    positive_seconds,
    reader,
    with_group,
)
from leadline.terminal.talk import console, put_json, show, talk
from leadline.terminal.tell import draw, require_output, tell
from leadline.units import format_bytes

# `leadline measure TARGET --application A`: a phase of an application, run as its streams.


def plan_application(
    store: Store,
    ref: str,
    phase: int | None,
    target: Target,
    access: Access,
    *,
    at_times: bool | None,
    as_streams: bool,
    seconds: float | None,
    runs: int | None,
) -> tuple[WorkloadAsked, ...]:
    """Return what of an application is measured; a choice of the command goes over its own.

    In a directory that is reached as it did, all its requests, where its description keeps them: at
    their times, if it has them, for what the program did in between is not the storage's.
    Else a phase as streams: in a directory, where no seconds are asked for, each run is the whole
    phase, and anywhere else its steady state for so many seconds.

    Raises:
        StoreError: there is no such application.
        SyntheticRefused: it has no such phase.
        MeasurementRefused: its requests have no times to wait for, or cannot be made again.

    """
    described = load_application(store, ref)
    steps = described.found.steps
    as_it_did = access.backend in ("", "pread") and not (access.direct or access.waits)
    as_it_did &= not as_streams
    if phase is None and seconds is None and target.has_files and as_it_did and steps:
        paced = steps.replay.times if at_times is None else at_times
        planned = plan_steps(steps.replay, access, at_times=paced, runs=runs)
        return (msgspec.structs.replace(planned, application_id=described.start.study_id),)
    if at_times is not None:
        raise MeasurementRefused(
            "--at-times and --as-fast are of an application's own requests, in a directory, where "
            "its description keeps them: leave it out, or --phase, --seconds, --direct and --sync"
        )
    found = synthetic_of(described, phase)
    whole = target.has_files and seconds is None
    keeps = access.waits or not target.has_device
    own = access if keeps else msgspec.structs.replace(access, sync=found.sync)
    planned = plan_workload(
        found.workload, own, arrivals=found.arrivals, seconds=seconds, runs=runs
    )
    if whole:
        longest_s = planned.runs * longest_run_s(found.phase)
        planned = msgspec.structs.replace(
            planned, seconds=longest_s, requests=found.phase.requests, begins_cold=found.begins_cold
        )
    return (
        msgspec.structs.replace(
            planned,
            streams=found.streams,
            findings=found.losses_of(whole=whole),
            application_id=described.start.study_id,
            phase=found.phase.order,
        ),
    )


def print_application(store: Store, study: Measured, *, json: bool) -> None:
    """Tell a measurement of an application, and how it stands beside the description."""
    (asked,) = study.start.workloads
    if asked.replay is not None:
        tell(study, KINDS[MEASUREMENT.kind], json=json, to_draw=False)
        return
    described, found = _described(store, asked)
    document: dict[str, Any] = msgspec.to_builtins(KINDS[MEASUREMENT.kind].document(study))
    both = beside(described, found, study.points[0])
    if json:
        put_json(document | {"beside": both, "application": described.start.study_id})
        return
    tell(study, KINDS[MEASUREMENT.kind], json=False, to_draw=False)
    show("")
    for sentence in format_beside(both):
        show(sentence)


def _described(store: Store, asked: WorkloadAsked) -> tuple[Application, Synthetic]:
    described = load_application(store, asked.application_id or "")
    return described, synthetic_of(described, None if asked.phase is None else asked.phase + 1)


def write_application(path: Path, asked: WorkloadAsked, target: Target, filename: str) -> None:
    """Write an application's streams as fio jobs.

    Raises:
        FioJobRefused: the file cannot be written, or fio cannot do this.

    """
    seconds = asked.seconds if asked.requests is None else SECONDS
    run = FioRun(
        filename=f"{target.path}/{filename}" if target.path else filename,
        **asked.access.over(Access(backend="pread")).stored_in(FioRun),
        arrivals=asked.arrivals,
        seconds=seconds,
        ramp_s=limits_of(seconds, ACCURACY).warm_up_s_max,
    )
    text = write_streams(asked.workload, asked.streams, run, losses=asked.findings)
    try:
        write_whole(path, text)
    except OSError as error:
        raise FioJobRefused(
            f"{path} cannot be written: {error.strerror}; give another file"
        ) from error
    talk(f"wrote {path}; run it with: fio {path} (it makes {run.filename} and leaves it there)")


# `leadline predict S --application A`: how long would this application take there?

# It loads Altair, which few commands need.
save_application_prediction = late("leadline.studies.prediction.page:save_application_prediction")


def answer(
    store: Store,
    predictor: Predictor,
    ref: str,
    traced_on: Predictor | None = None,
    *,
    json: bool,
    output: Path | None = None,
) -> None:
    """Predict a stored application, tell it, and draw it where that is asked.

    Raises:
        StoreError: there is no such application.
        PredictionRefused: the survey is not finished.

    """
    found = predict_application(load_application(store, ref), predictor, traced_on)
    if json:
        put_json(application_document(found))
    else:
        show(render_application(found))
    if output is not None:
        save_application_prediction(found, output, application_document(found))
        talk(f"wrote {output}")


def application_document(found: ApplicationPrediction) -> dict[str, Any]:
    """Return a prediction's fields, what follows from them, and the sentences."""
    document: dict[str, Any] = msgspec.to_builtins(found)
    return document | {"in_io": found.in_io, "sentences": list(sentences_of(found))}


class Files(NamedTuple):
    """What is written, beside the store."""

    output: Path | None = None
    keep_trace: Path | None = None


NOTHING = Files()
NOBODY = Watched()


def _new_files(
    *, output: Path | None = None, keep_trace: Path | None = None, force: bool = False
) -> Files:
    return Files(new_file(output, force=force), new_file(keep_trace, force=force))


def _written(help_: str, *names: str) -> Any:
    return Annotated[Path | None, typer.Option(*names, metavar="FILE", help=help_)]


def _option(kind: Any, help_: str, **more: Any) -> Any:
    return Annotated[kind, typer.Option(help=help_, **more)]


_WATCHING: dict[str, tuple[Any, Any]] = {
    "pid": (
        _option(int | None, "Watch a running process and what it starts.", min=1, metavar="P"),
        None,
    ),
    "cgroup": (_option(str | None, "Watch all processes of a control group.", metavar="DIR"), None),
    "seconds": (
        _option(
            float | None,
            "With --pid and --cgroup: for so long.  [default: until Ctrl-C]",
            parser=reader(positive_seconds),
            metavar="TIME",
        ),
        None,
    ),
    "way": (
        _option(
            str | None,
            "How calls are seen: by BPF (root), or by stopping the program at each; the first that "
            "is allowed.",
            metavar="bpf|ptrace",
        ),
        None,
    ),
    "keep_paths": (
        Annotated[bool, typer.Option("--keep-paths", help="Tell files by path; else by a hash.")],
        False,
    ),
    "keep_command": (
        Annotated[
            bool,
            typer.Option(
                "--keep-command",
                help="Store the command's words as well; else its program and a hash of them.",
            ),
        ],
        False,
    ),
    "perturbation": (
        _option(
            int,
            "Run the command in so many pairs, watched and not, in turns, to say how much longer "
            "it takes when watched. Not for a command that changes what it finds.",
            min=0,
            metavar="PAIRS",
        ),
        0,
    ),
}


def _watched(**asked: Any) -> Watched:
    process, group, pairs = asked.pop("pid"), asked.pop("cgroup"), asked.pop("perturbation")
    return Watched(process=process, group=group, pairs=pairs, **asked)


@with_group("watching", _WATCHING, _watched)
@with_group(
    "files",
    {
        "output": (_written(".html, .svg, .png or .pdf", "-o", "--output"), None),
        "keep_trace": (_written("What is seen, for --trace to read again.", "--keep-trace"), None),
        "force": (Force, False),
    },
    _new_files,
)
def command(
    context: typer.Context,
    command: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[-- COMMAND...]",
            help="A command to run and watch, with all that it starts. It keeps the terminal, and "
            "its own exit code is told: Leadline's is 0 where the description is whole.",
        ),
    ] = None,
    *,
    trace: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help="A trace: fio's iolog, blktrace, blkparse, strace, Darshan DXT, or the CSV of MSR "
            "Cambridge, Alibaba or Tencent; - for standard input.",
        ),
    ] = None,
    watching: Watched = NOBODY,
    files: Files = NOTHING,
    name: Name = None,
    json: Json = False,
) -> None:
    """Characterize an application's I/O, from a trace or as it runs.

    Example: leadline characterize --trace io.log -o page.html
    """
    own: Context = context.obj
    kind = KINDS[APPLICATION.kind]
    asked = msgspec.structs.replace(
        watching, command=tuple(command or ()), keep_trace=files.keep_trace
    )
    _require_one(asked, trace)
    require_output(files.output, kind)
    store = own.open_store()
    study = _of_running(asked, store, name) if trace is None else _of_trace(trace, store, name)
    tell(study, kind, json=json, to_draw=files.output is None)
    if files.output is not None:
        draw(store, study, kind, files.output, ())
    capture = study.start.capture
    if not study.predictable or (capture is not None and capture.ended and capture.stopped):
        raise typer.Exit(TraceStopped.exit_code)


def _require_one(asked: Watched, trace: str | None) -> None:
    """Refuse anything but one source, and options that do not go with it.

    Raises:
        TraceRefused: what does not go together.

    """
    sources = (bool(asked.command), trace is not None, asked.process is not None, bool(asked.group))
    if sum(sources) != 1:
        raise TraceRefused(
            "give one thing to characterise: `-- COMMAND`, --pid P, --cgroup DIR or --trace FILE"
        )
    if asked.way not in (None, "bpf", "ptrace"):
        raise TraceRefused(f"--way {asked.way}: bpf or ptrace")
    alone = {
        "--perturbation": asked.pairs and not asked.command,
        "--seconds": asked.seconds is not None and (bool(asked.command) or trace is not None),
        "--keep-trace": asked.keep_trace is not None and trace is not None,
        "--keep-paths": asked.keep_paths and trace is not None,
        "--way": asked.way is not None and trace is not None,
    }
    instead = {
        "--perturbation": "goes with a command, which is run again; leave it out",
        "--seconds": "goes with --pid and --cgroup; a command ends by itself, or by `timeout 10s`",
    }
    for option, wrong in alone.items():
        if wrong:
            raise TraceRefused(
                f"{option} {instead.get(option, 'is for what runs, not for a trace; leave it out')}"
            )


def _of_trace(trace: str, store: Store, name: str | None) -> Application:
    try:
        with _progress("reading") as (say, on_read):
            return characterize_trace(
                trace,
                store,
                name=name,
                on_bytes=lambda read: say(f"reading, {format_bytes(read)}"),
                on_read=on_read,
            )
    except KeyboardInterrupt as stopped:
        raise TraceStopped(
            "stopped early; a description is kept only when it is whole: start it again"
        ) from stopped


def _of_running(asked: Watched, store: Store, name: str | None) -> Application:
    begun = False

    def heard(requests: int, moved: int) -> None:
        nonlocal begun
        if not begun and not asked.command:
            talk(f"watching {asked.said}")  # whatever it does from now on is seen
        begun = True
        say(f"watching, {requests:,} requests, {format_bytes(moved)}")

    try:
        with _progress("watching", quiet=bool(asked.command)) as (say, on_seen):
            return characterize_running(asked, store, name=name, on_requests=heard, on_seen=on_seen)
    except KeyboardInterrupt as stopped:
        raise TraceStopped(
            "stopped while it was described, and nothing is kept: run it again"
        ) from stopped


@contextmanager
def _progress(
    begun: str, *, quiet: bool = False
) -> Iterator[tuple[Callable[[str], None], Callable[[], None]]]:
    """Show how far it is while the body runs; `quiet` until it describes.

    A command has the terminal for itself.
    """
    columns = (SpinnerColumn(), TextColumn("{task.description}", markup=False), TimeElapsedColumn())
    bar = Progress(*columns, console=console(), transient=True)
    task = bar.add_task(begun, total=None)

    def describing() -> None:
        bar.update(task, description="describing")
        bar.start()

    if not quiet:
        bar.start()
    try:
        yield (lambda said: bar.update(task, description=said)), describing
    finally:
        bar.stop()
