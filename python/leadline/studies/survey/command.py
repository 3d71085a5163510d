"""`leadline survey TARGET`: how does this storage system behave?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

import typer

from leadline.engine import Target
from leadline.record import Access, Measurement, SurveyStart
from leadline.record.survey import SURVEY
from leadline.store import Store
from leadline.studies.conduct import Reached, conduct
from leadline.studies.registry import KINDS
from leadline.studies.survey.plan import BLOCK_BYTES
from leadline.studies.survey.study import (
    LEARN_FRAC,
    SurveyOptions,
    SurveyStudy,
    load_survey,
    usual_budget_s,
)
from leadline.studies.survey.text import StoredSurvey
from leadline.terminal.context import Context
from leadline.terminal.options import (
    CacheLimit,
    Json,
    MaxBytes,
    MaxWritten,
    Name,
    Precondition,
    Seed,
    TargetArgument,
    duration,
    given_access,
    share_between,
    with_access,
)
from leadline.terminal.progress import print_plan
from leadline.terminal.tell import tell
from leadline.terminal.watch import PointsTeller
from leadline.units import format_bytes, format_seconds

_Budget = Annotated[
    float | None,
    duration(
        "It ends within this time, e.g. 90s or 5m.  [default: 10m; of a simulated system 14h of "
        "its own time]"
    ),
]
_Accuracy = Annotated[
    float | None,
    typer.Option(
        parser=share_between(0.001, 0.5),
        metavar="SHARE",
        help="A point ends as soon as ± this is reached, e.g. 1%, instead of with all windows "
        "alike.  [default: alike; 0.001 to 0.5]",
    ),
]
_Focal = Annotated[str, typer.Option(metavar="middle|75%", help="CP94 §8's focal points, or §7's.")]
_Learn = Annotated[
    float,
    typer.Option(min=0.0, max=0.6, help="Share of the points put where predictions gain most."),
]
_Resume = Annotated[
    bool, typer.Option("--resume", help="Go on with this system's unfinished survey.")
]


@with_access
def command(
    context: typer.Context,
    *,
    target: TargetArgument,
    name: Name = None,
    budget: _Budget = None,
    cache_limit: CacheLimit = None,
    max_bytes: MaxBytes = None,
    max_written: MaxWritten = None,
    access: Access,
    precondition: Precondition = None,
    seed: Seed = 1,
    accuracy: _Accuracy = None,
    focal: _Focal = "middle",
    learn: _Learn = LEARN_FRAC,
    resume: _Resume = False,
    json: Json = False,
) -> None:
    """Survey a storage system: its levels, and throughput by workload.

    Example: leadline survey /data --budget 5m
    """
    if focal not in ("middle", "75%"):
        raise typer.BadParameter(f"--focal is middle or 75%, not {focal!r}")
    chosen = Target.parse(target)
    asked = SurveyOptions(
        name or chosen.name,
        budget or usual_budget_s(chosen),
        max_bytes,
        seed,
        accuracy or 0.0,
        focal,
        precondition,
        learn,
        max_written,
    )
    reached = Reached(
        target=chosen,
        access=access,
        given=given_access(context),
        cache_limit_bytes=cache_limit,
        max_bytes=max_bytes,
    )
    own: Context = context.obj
    store, study = own.open_store(), SurveyStudy(reached, asked, budget)
    watcher = PointsTeller(partial(_tell_plan, study, resume=resume), _sentences)
    survey = conduct(study, store, watcher, resume=resume)
    told = StoredSurvey(survey, store.items(survey.start.study_id))
    tell(told, KINDS[SURVEY.kind], json=json)


def _sentences(store: Store, study_id: str) -> Sequence[str]:
    return load_survey(store, study_id)[0].sentences


def _tell_plan(
    study: SurveyStudy, start: SurveyStart, points: Sequence[Measurement], *, resume: bool
) -> None:
    plan, notes = start.plan, []
    max_bytes, wear = study.asked.max_bytes, study.counted
    most = plan.unique_bytes_max
    if not resume and max_bytes is not None and most < max_bytes // BLOCK_BYTES * BLOCK_BYTES:
        notes.append(
            f"--max-bytes {format_bytes(max_bytes)} is more than is laid out: "
            f"{format_bytes(most)} is past what memory holds, or as much as a "
            "fifth of the budget can write, or all that the target has"
        )
    if wear.bytes_max is not None:
        before = f", {format_bytes(wear.written_bytes)} of it before" if wear.written_bytes else ""
        notes.append(f"writes at most {format_bytes(wear.bytes_max)} in all{before}")
    if not points and start.precondition_bytes_max:
        notes.append(
            f"before the first point at most {format_bytes(start.precondition_bytes_max)} are "
            "written to precondition the device; that takes its own time, beside the budget"
        )
    print_plan(
        start,
        points,
        begun=f"survey {start.study_id[:8]} of {start.system} ({start.target})",
        planned=f" from {format_bytes(plan.unique_bytes_min)} to "
        f"{format_bytes(plan.unique_bytes_max)}, about {format_seconds(plan.point_s)} each at most",
        note="\n".join(notes),
    )
