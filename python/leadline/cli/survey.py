"""`leadline survey TARGET`: how does this storage system behave?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from leadline.cli.context import Context
from leadline.cli.options import (
    CacheLimit,
    Json,
    MaxBytes,
    MaxWritten,
    Name,
    Precondition,
    Seed,
    TargetArgument,
    capped,
    duration,
    same_access,
    share_between,
    with_access,
)
from leadline.cli.progress import progress_bar, tell_plan
from leadline.cli.talk import talk, tell_findings
from leadline.cli.tell import tell
from leadline.engine import Engine, Stopped, Target, Wear, open_engine, preflight, room_findings
from leadline.errors import LeadlineError
from leadline.record import Access, Measurement, Survey, SurveyStart
from leadline.record.survey import SURVEY
from leadline.report.kinds import KINDS, StoredSurvey
from leadline.store import Store
from leadline.studies.resume import find_unfinished, resume_options, say_kept
from leadline.studies.survey import (
    LEARN_FRAC,
    Asked,
    ResumeMismatch,
    begin_survey,
    choose_cache_limit,
    run_survey,
    usual_budget_s,
)
from leadline.studies.survey.plan import BLOCK_BYTES
from leadline.studies.survey.stored import load_survey, wear_before
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
    """Find the levels of a storage hierarchy, and what each does well.

    Example: leadline survey /data --budget 5m
    """
    if focal not in ("middle", "75%"):
        raise typer.BadParameter(f"--focal is middle or 75%, not {focal!r}")
    chosen = Target.parse(target)
    budget_s = budget or usual_budget_s(chosen)
    asked = Asked(
        name or chosen.name,
        budget_s,
        max_bytes,
        seed,
        accuracy or 0.0,
        focal,
        precondition,
        learn,
        max_written,
    )
    own: Context = context.obj
    store = own.open_store()
    earlier, wear = None, Wear(max_written)
    if resume:
        stored = find_unfinished(store, SURVEY, asked.system, chosen.text)
        earlier, wear = stored.start, wear_before(store, stored, max_written)
    if earlier is not None:
        # What decided the survey decides it still; only its limits may be given again.
        seed = earlier.seed
        access = same_access(earlier, access, context, "survey")
    else:
        if chosen.path is not None:
            cache_limit = choose_cache_limit(
                Path(chosen.path), cache_limit, budget_s, talk, max_bytes=max_bytes
            )
        access = capped(access, cache_limit)
    with open_engine(chosen, access, max_bytes=max_bytes, wear=wear, run_seed=seed) as engine:
        found = (*preflight(chosen, engine.facts), *room_findings(engine, max_bytes))
        findings = tell_findings(found)
        start = earlier or begin_survey(engine, chosen, asked, findings=findings)
        points: tuple[Measurement, ...] = store.items(start.study_id)
        if earlier is None:
            store.begin(SURVEY, start)
        _tell_plan(start, points, None if earlier else max_bytes, wear)
        longer_s = budget if earlier else None
        survey = _run(engine, store, start, points, budget_s=longer_s, wear=wear)
    told = StoredSurvey(survey, store.items(start.study_id))
    tell(told, KINDS[SURVEY.kind], json=json)


def _tell_plan(
    start: SurveyStart, points: Sequence[Measurement], max_bytes: int | None, wear: Wear
) -> None:
    plan, notes = start.plan, []
    if max_bytes is not None and plan.unique_bytes_max < max_bytes // BLOCK_BYTES * BLOCK_BYTES:
        notes.append(
            f"--max-bytes {format_bytes(max_bytes)} is more than is laid out: "
            f"{format_bytes(plan.unique_bytes_max)} is past what memory holds, or as much as a "
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
    tell_plan(
        start,
        points,
        begun=f"survey {start.study_id[:8]} of {start.system} ({start.target})",
        planned=f" from {format_bytes(plan.unique_bytes_min)} to "
        f"{format_bytes(plan.unique_bytes_max)}, about {format_seconds(plan.point_s)} each at most",
        note="\n".join(notes),
    )


def _run(
    engine: Engine,
    store: Store,
    start: SurveyStart,
    points: Sequence[Measurement],
    *,
    budget_s: float | None,
    wear: Wear,
) -> Survey:
    try:
        with progress_bar(start.plan.points, simulated=start.simulated) as on_progress:
            return run_survey(
                engine, store, start, points, budget_s=budget_s, wear=wear, on_progress=on_progress
            )
    except ResumeMismatch:
        raise
    except (Stopped, LeadlineError, KeyboardInterrupt) as error:
        _tell_kept(store, start, resume_options(error))
        raise


def _tell_kept(store: Store, start: SurveyStart, options: str) -> None:
    kept = store.items(start.study_id)
    talk(say_kept(len(kept), start.plan.points, start.study_id, options=options))
    if kept:
        for sentence in load_survey(store, start.study_id)[0].sentences:
            talk(sentence)
