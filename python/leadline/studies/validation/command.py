"""`leadline validate S`: how good are the predictions of this survey?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from leadline.models.predictor import DEFAULT_MODEL, MODELS
from leadline.record import Measurement, ValidationStart
from leadline.record.validation import VALIDATION
from leadline.studies.conduct import conduct
from leadline.studies.registry import KINDS
from leadline.studies.survey.study import load_survey, surveyed_target
from leadline.studies.validation.plan import ValidationOptions
from leadline.studies.validation.run import ValidationStudy, explained_validation
from leadline.terminal.context import Context
from leadline.terminal.options import Json, Ref, Seed, duration, print_ignored_options
from leadline.terminal.progress import print_plan
from leadline.terminal.tell import tell
from leadline.terminal.watch import PointsTeller
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
    """Measure random workloads and score a survey's predictions.

    Example: leadline validate data --count 20
    """
    if model is not None and model not in MODELS:
        raise typer.BadParameter(f"--model is one of {', '.join(MODELS)}, not {model!r}")
    own: Context = context.obj
    store = own.open_store()
    found, points = load_survey(store, survey)
    virtual = surveyed_target(found).virtual_time
    asked = ValidationOptions(
        count, seed, seconds, budget, rivals=virtual if rivals is None else rivals
    )

    def told(start: ValidationStart, kept: Sequence[Measurement]) -> None:
        if resume:
            print_ignored_options(context, _kept_options(start, asked))
        _tell_plan(start, kept)

    watcher = PointsTeller(told, lambda store, ref: explained_validation(store, ref).sentences)
    study = ValidationStudy(found, points, asked, model)
    validation = conduct(study, store, watcher, resume=resume)
    tell(validation, KINDS[VALIDATION.kind], json=json)


def _kept_options(
    earlier: ValidationStart, asked: ValidationOptions
) -> dict[str, tuple[bool, str]]:
    rivals = bool(earlier.plan.grids)
    return {
        "count": (asked.count == earlier.count, str(earlier.count)),
        "seed": (asked.seed == earlier.seed, str(earlier.seed)),
        "seconds": (asked.seconds == earlier.plan.point_s, format_seconds(earlier.plan.point_s)),
        "rivals": (asked.rivals == rivals, "with them" if rivals else "without them"),
    }


def _tell_plan(start: ValidationStart, points: Sequence[Measurement]) -> None:
    print_plan(
        start,
        points,
        begun=f"validation {start.study_id[:8]} of survey {start.parent[:8]} "
        f"({start.system}, {start.target})",
        planned=f", {format_seconds(start.plan.point_s)} each at most",
        widths=(15, 4),
    )
