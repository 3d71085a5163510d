"""`leadline measure TARGET --application A`: a phase of an application, run as its streams."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import typer

from leadline.engine import Target
from leadline.fio import FioJobRefused, FioRun
from leadline.fio.write_streams import write_streams
from leadline.late import late
from leadline.models import Predictor
from leadline.models.application import predict_application
from leadline.outputs import write_whole
from leadline.record import Access
from leadline.record.application import Application
from leadline.record.application.prediction import ApplicationPrediction
from leadline.record.measurement import MEASUREMENT, Measured, WorkloadAsked
from leadline.store import Store
from leadline.studies.application import load_application
from leadline.studies.application.capture import beside, say_beside
from leadline.studies.application.synthetic import Synthetic, longest_run_s, synthetic_of
from leadline.studies.measurement import plan_workload
from leadline.studies.measurement.plan import ACCURACY, SECONDS, limits_of
from leadline.studies.prediction.text import render_application, sentences_of
from leadline.studies.registry import KINDS
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.tell import tell


def plan_application(
    store: Store,
    ref: str,
    phase: int | None,
    target: Target,
    access: Access,
    *,
    seconds: float | None,
    runs: int | None,
) -> tuple[WorkloadAsked, ...]:
    """Return a phase as what is measured; a choice of the command goes over the application's.

    In a directory, where no seconds are asked for, each run is the whole phase; else it goes on in
    its steady state for so many seconds.

    Raises:
        StoreError: there is no such application.
        SyntheticRefused: it has no such phase.

    """
    described = load_application(store, ref)
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


def tell_application(store: Store, study: Measured, *, json: bool) -> None:
    """Tell a measurement of an application, and how it stands beside the description."""
    (asked,) = study.start.workloads
    described, found = _described(store, asked)
    document: dict[str, Any] = msgspec.to_builtins(KINDS[MEASUREMENT.kind].document(study))
    both = beside(described, found, study.points[0])
    if json:
        put_json(document | {"beside": both, "application": described.start.study_id})
        return
    tell(study, KINDS[MEASUREMENT.kind], json=False, to_draw=False)
    show("")
    for sentence in say_beside(both):
        show(sentence)


def _described(store: Store, asked: WorkloadAsked) -> tuple[Application, Synthetic]:
    described = load_application(store, asked.application_id or "")
    return described, synthetic_of(described, None if asked.phase is None else asked.phase + 1)


def write_application(path: Path, asked: WorkloadAsked, target: Target, filename: str) -> None:
    """Write an application's streams as fio jobs.

    Raises:
        FioJobRefused: the file cannot be written, or fio cannot do this.

    """
    for said in asked.access.beyond(*FioRun.__struct_fields__):
        raise typer.BadParameter(f"--{said} does not go with --write-fio: leave it out")
    seconds = asked.seconds if asked.requests is None else SECONDS
    run = FioRun(
        filename=f"{target.path}/{filename}" if target.path else filename,
        backend=asked.access.backend or "pread",
        direct=asked.access.direct,
        sync=asked.access.sync,
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
    store: Store, predictor: Predictor, ref: str, *, json: bool, output: Path | None = None
) -> None:
    """Predict a stored application, tell it, and draw it where that is asked.

    Raises:
        StoreError: there is no such application.
        PredictionRefused: the survey is not finished.

    """
    found = predict_application(load_application(store, ref), predictor)
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
