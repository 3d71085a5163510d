"""`leadline predict S`: how fast would this workload be?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
import typer

from leadline.fio import FioWorkload
from leadline.fio.write import ENGINES
from leadline.lazy_import import late
from leadline.models.model import PredictionRefused
from leadline.models.predictor import (
    DEFAULT_MODEL,
    MODELS,
    NAMED,
    Predictor,
    iops_of,
    response_us_of,
)
from leadline.record import Access, Prediction, Survey, SurveyStart, Workload
from leadline.record.finding import Finding
from leadline.record.survey import SURVEY
from leadline.studies.application.command import answer
from leadline.studies.measurement.command import FioFile, read_file, read_workload
from leadline.studies.prediction.text import Predicted, render_predictions
from leadline.studies.survey.study import load_survey
from leadline.terminal.bundles import imported
from leadline.terminal.context import Context
from leadline.terminal.options import Json, Ref, with_output
from leadline.terminal.talk import put_json, show, talk
from leadline.terminal.tell import format_study, require_directory

# They load Altair, which few commands need.
save_predictions = late("leadline.studies.prediction.page:save_predictions")
require_prediction_format = late("leadline.studies.prediction.page:require_prediction_format")


_Application = Annotated[
    str | None,
    typer.Option(
        metavar="A",
        help="How long this application would take, that `leadline characterize` described: "
        "its id or the first letters of it, or its name.",
    ),
]
_TracedOn = Annotated[
    str | None,
    typer.Option(
        "--traced-on",
        metavar="SURVEY",
        help="With --application: the survey of the system where it was traced. What it took "
        "there over what is predicted there scales the answer.",
    ),
]


@with_output("Also draw them: .html, .svg, .png or .pdf.")
def command(
    context: typer.Context,
    *,
    survey: Ref,
    words: Annotated[
        list[str] | None,
        typer.Argument(metavar="k=v…", help="A workload, as `leadline measure` takes it."),
    ] = None,
    workload: Annotated[
        list[str] | None,
        typer.Option(
            metavar="k=v,…",
            help="unique_bytes=2GiB,size_mean=32KiB,read_frac=0.8,seq_frac=0.1,process_num=4; "
            "may be given several times.",
        ),
    ] = None,
    named: Annotated[
        bool, typer.Option("--named", help=f"The paper's workloads: {', '.join(NAMED)}.")
    ] = False,
    fio: FioFile = None,
    application: _Application = None,
    traced_on: _TracedOn = None,
    model: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help=f"One of {', '.join(MODELS)}.  [default: {DEFAULT_MODEL}]"
        ),
    ] = None,
    extrapolate: Annotated[
        bool, typer.Option("--extrapolate", help="Guess beyond what was surveyed, and say so.")
    ] = False,
    output: Path | None = None,
    json: Json = False,
) -> None:
    """Predict workloads from a stored survey, without measuring.

    Of several, those that were not surveyed are named; the command fails when that is all of them.

    Example: leadline predict data bs=64k rw=randread size=2g
    """
    typed = [",".join(words)] if words else []
    asked = [(text, read_workload(text)) for text in [*typed, *(workload or ())]]
    own: Context = context.obj
    survey = imported(own, survey)
    _require_output(output)
    if application is not None:
        if asked or named or fio:
            raise typer.BadParameter(ALONE)
        store = own.read_store()

        def fitted(ref: str) -> Predictor:
            return Predictor(*load_survey(store, ref), model=model, extrapolate=extrapolate)

        there = None if traced_on is None else fitted(imported(own, traced_on))
        answer(store, fitted(survey), application, there, json=json, output=output)
        return
    if traced_on is not None:
        raise typer.BadParameter("--traced-on scales the prediction of an --application: give one")
    found = _workloads(own, survey, asked, fio, named=named, model=model, extrapolate=extrapolate)
    if json:
        put_json(found.document)
    else:
        _tell(found)
    if output is not None and found.predictions:
        save_predictions(found, output)
        talk(f"wrote {output}")
    if not found.predictions:
        raise typer.Exit(PredictionRefused.exit_code)


ALONE = (
    "an application is predicted by itself: leave out --workload, --fio and --named, or "
    "--application"
)


def _require_output(path: Path | None) -> None:
    if path is not None:
        require_directory(path)
        require_prediction_format(path)


def _workloads(
    own: Context,
    survey: str,
    asked: Sequence[tuple[str, Workload]],
    fio: Path | None,
    *,
    named: bool,
    model: str | None,
    extrapolate: bool,
) -> Predicted:
    """Predict workloads of every origin."""
    jobs = read_file(fio, tell=False) if fio else ()
    if not asked and not named and not jobs:
        raise typer.BadParameter(
            "nothing to predict: give a workload (bs=64k rw=randread size=2g), --workload k=v,…, "
            "--fio JOB.fio, --application A, or --named"
        )
    found, points = load_survey(own.read_store(), survey)
    predictor = Predictor(found, points, model=model, extrapolate=extrapolate)
    predictions = list(predictor.predict_all([item for _, item in asked]))
    names = [f"workload {index}" for index in range(1, len(asked) + 1)]
    refused: dict[str, str] = {}
    for job in jobs:
        try:
            predictions.append(_of_job(predictor, job))
            names.append(job.name)
        except PredictionRefused as reason:
            if len(jobs) == 1:
                raise PredictionRefused(f"{fio}: [{job.name}]: {reason}") from reason
            refused[job.name] = str(reason)
    for name, item in NAMED.items() if named else ():
        try:
            predictions.append(predictor.predict(item))
            names.append(name)
        except PredictionRefused as reason:
            refused[name] = str(reason)
    document = predictions_document(found, names, predictions, refused)
    return Predicted(found, tuple(names), tuple(predictions), refused, document)


def _tell(found: Predicted) -> None:
    if found.predictions:
        show(f"predicted from {format_study(SURVEY.said, found.survey.start)}\n")
        show(render_predictions(found))
    for name, said in found.refused.items():
        talk(f"{name}: {said}")


def _of_job(predictor: Predictor, job: FioWorkload) -> Prediction:
    """Predict a fio job; what of it differs from the survey is added to its findings."""
    start = predictor.survey.start
    extra = list(job.findings)
    _require_alike(job, start)
    prediction = predictor.predict(job.workload)
    if start.backend not in ("simulated", job.access.backend):
        ways = {"job_backend": job.access.backend, "survey_backend": start.backend}
        extra.append(Finding.of("not_surveyed", **ways))
    rate_per_s = job.arrivals.rate_per_s
    if rate_per_s is not None and rate_per_s < iops_of(prediction).value:
        extra.append(Finding.of("job_asks_less", rate_per_s=rate_per_s))
    return msgspec.structs.replace(prediction, findings=(*prediction.findings, *extra))


def _require_alike(job: FioWorkload, start: SurveyStart) -> None:
    """Refuse a job whose requests go past the cache, or wait, as none of the survey's did.

    Raises:
        PredictionRefused: the survey knows nothing of such requests.

    """
    by = start.access
    one_way = {} if start.backend in ENGINES else {"direct": by.direct}
    waits = job.access.sync if job.workload.read_frac < 1 else by.sync
    asked = msgspec.structs.replace(job.access, backend="", sync=waits, **one_way)
    surveyed = msgspec.structs.replace(Access().over(by), backend="")
    if asked == surveyed:
        return
    options = "".join(f" --{said}" for said in asked.beyond())
    raise PredictionRefused(
        f"the job's requests are {asked.discipline} and the survey's were {surveyed.discipline}: "
        "how fast those were says nothing of these; survey them: "
        f"leadline survey {start.target}{options}"
    )


def predictions_document(
    survey: Survey,
    names: Sequence[str],
    predictions: Sequence[Prediction],
    refused: Mapping[str, str],
) -> dict[str, Any]:
    """The keys DESIGN.md promises for `predict --json`, under `predictions`, one for each.

    A single prediction's keys stand at the top as well, for who asked one question. `refused` has
    the named workloads that lie outside what was surveyed, and why.
    """
    rows = [
        {"name": name, **prediction_document(survey, prediction)}
        for name, prediction in zip(names, predictions, strict=True)
    ]
    first = rows[0] if len(rows) == 1 else {}
    return {
        **first,
        "system": survey.start.system,
        "survey": survey.start.study_id,
        "predictions": rows,
        "refused": [{"name": name, "reason": reason} for name, reason in refused.items()],
    }


def prediction_document(survey: Survey, prediction: Prediction) -> dict[str, Any]:
    """One prediction with what follows from it."""
    regions = {region.index: region.name for region in survey.regions}
    return {
        "workload": prediction.workload,
        "throughput_mb_s": prediction.throughput_mb_s,
        "run_throughput_mb_s": prediction.run_throughput_mb_s,
        "iops": iops_of(prediction),
        "response_us": response_us_of(prediction),
        "region": prediction.region,
        "region_name": None if prediction.region is None else regions[prediction.region],
        "model": prediction.model,
        "extrapolated": prediction.extrapolated,
        "findings": [each.document() for each in prediction.findings],
    }
