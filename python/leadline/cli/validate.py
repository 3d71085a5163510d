"""`leadline validate S`: how good are the predictions of this survey?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.load import surveyed_target
from leadline.cli.options import Json, Ref, Seed, duration, tell_in_vain
from leadline.cli.progress import progress_bar, tell_plan
from leadline.cli.talk import talk, tell_findings
from leadline.cli.tell import tell
from leadline.engine import Engine, Stopped, open_engine, preflight
from leadline.errors import LeadlineError
from leadline.predict import DEFAULT_MODEL, MODELS
from leadline.record import Measurement, Status, Survey, Validation, ValidationStart
from leadline.record.validation import VALIDATION
from leadline.report.kinds import KINDS
from leadline.store import Store
from leadline.studies.resume import find_unfinished
from leadline.studies.survey.stored import load_survey
from leadline.studies.validation import (
    Asked,
    ValidationRefused,
    begin_validation,
    explain_validation,
    measure_validation,
    require_as_surveyed,
)
from leadline.units import format_seconds

_Seconds = Annotated[
    float | None,
    duration("Time of one reading, at most, e.g. 2s.  [default: as the survey's points had]"),
]
_Budget = Annotated[
    float | None,
    duration("It ends within this time, e.g. 10m.  [default: what all readings need, and a tenth]"),
]

_Rivals = Annotated[
    bool | None,
    typer.Option(
        "--rivals/--no-rivals",
        help="Measure an orthogonal sample of the survey's cost and of twice that as well; "
        "the default on a simulated system.",
        show_default=False,
    ),
]


def command(
    context: typer.Context,
    *,
    survey: Ref,
    count: Annotated[
        int, typer.Option(min=1, max=10_000, help="Random workloads; each is measured twice.")
    ] = 100,
    seed: Seed = 1,
    seconds: _Seconds = None,
    budget: _Budget = None,
    rivals: _Rivals = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this survey's unfinished validation.")
    ] = False,
    model: Annotated[
        str | None,
        typer.Option(metavar="M", help=f"The model of the headline (default: {DEFAULT_MODEL})."),
    ] = None,
    json: Json = False,
) -> None:
    """Measure random workloads and hold them against what the survey's models predict.

    Example: leadline validate data --count 20
    """
    if model is not None and model not in MODELS:
        raise typer.BadParameter(f"--model is one of {', '.join(MODELS)}, not {model!r}")
    own: Context = context.obj
    store = own.open_store()
    found, survey_points = load_survey(store, survey)
    _require_finished(found)
    target = surveyed_target(found)
    start = found.start
    earlier = None
    if resume:
        earlier = find_unfinished(
            store, VALIDATION, start.system, start.target, parent=start.study_id
        ).start
    virtual = target.virtual_time
    asked = Asked(count, seed, seconds, budget, rivals=virtual if rivals is None else rivals)
    with open_engine(
        target,
        start.access,
        max_bytes=start.plan.unique_bytes_max,
        run_seed=earlier.seed if earlier else seed,
    ) as engine:
        findings = tell_findings(preflight(target, engine.facts))
        if earlier:
            require_as_surveyed(engine, found, earlier.ranges)
            tell_in_vain(context, _kept_options(earlier, asked))
        begun = earlier or begin_validation(engine, found, survey_points, asked, findings=findings)
        explained = partial(explain_validation, begun, found, survey_points, model=model)
        points = store.items(begun.study_id)
        if earlier is None:
            store.begin(VALIDATION, begun)
        _tell_plan(begun, points)
        try:
            measured = _run(engine, store, begun, points, budget_s=budget if earlier else None)
        except (Stopped, LeadlineError, KeyboardInterrupt):
            _tell_kept(store, begun, explained)
            raise
    validation = explained(measured)
    store.end(begun.study_id, validation, validation.status)
    tell(validation, KINDS[VALIDATION.kind], json=json)


def _require_finished(survey: Survey) -> None:
    if survey.status is not Status.DONE:
        raise ValidationRefused(
            f"survey {survey.start.study_id[:8]} is not finished, and what it predicts would "
            f"change: leadline survey {survey.start.target} --name {survey.start.system} --resume"
        )


def _kept_options(earlier: ValidationStart, asked: Asked) -> dict[str, tuple[bool, str]]:
    rivals = bool(earlier.plan.grids)
    return {
        "count": (asked.count == earlier.count, str(earlier.count)),
        "seed": (asked.seed == earlier.seed, str(earlier.seed)),
        "seconds": (asked.seconds == earlier.plan.point_s, format_seconds(earlier.plan.point_s)),
        "rivals": (asked.rivals == rivals, "with them" if rivals else "without them"),
    }


def _tell_plan(start: ValidationStart, points: Sequence[Measurement]) -> None:
    tell_plan(
        start,
        points,
        begun=f"validation {start.study_id[:8]} of survey {start.parent[:8]} "
        f"({start.system}, {start.target})",
        planned=f", {format_seconds(start.plan.point_s)} each at most",
        widths=(15, 4),
    )


def _run(
    engine: Engine,
    store: Store,
    start: ValidationStart,
    points: Sequence[Measurement],
    *,
    budget_s: float | None,
) -> tuple[Measurement, ...]:
    with progress_bar(start.plan.points, simulated=start.simulated) as on_progress:
        return measure_validation(
            engine, store, start, points, budget_s=budget_s, on_progress=on_progress
        )


def _tell_kept(
    store: Store, start: ValidationStart, explained: Callable[[Sequence[Measurement]], Validation]
) -> None:
    """Say what is kept and how to go on, then what it tells so far.

    Whatever goes wrong here, why the validation stopped is what the caller must hear.
    """
    with suppress(Exception):
        kept = store.items(start.study_id)
        talk(
            f"{len(kept)} of {start.plan.points} points are kept as {start.study_id[:8]}; "
            f"leadline validate {start.parent[:8]} --resume goes on"
        )
        told = explained(kept)
        store.end(start.study_id, told, Status.STOPPED)
        talk("\n".join(told.sentences))
