"""`leadline survey TARGET`: how does this storage system behave?"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from leadline.engine import Target
from leadline.fio.read import FioWorkload
from leadline.models.application.predicted import needed_of
from leadline.record import Access, Measurement, Plan, SurveyStart, Workload
from leadline.record.access import NO_SYNC
from leadline.record.survey import SURVEY, Curves
from leadline.record.wording import format_count
from leadline.store import Store
from leadline.studies.application.characterize import load_application
from leadline.studies.application.synthetic import sync_of
from leadline.studies.conduct import Reached, conduct
from leadline.studies.measurement.command import read_file
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
_Points = Annotated[
    Curves,
    typer.Option(help="As many on each curve, or those of CP94's footnote 6, and none to learn."),
]
_ForFio = Annotated[
    Path | None,
    typer.Option(
        metavar="JOBS.fio",
        help="Reach storage as these jobs do, so that `predict --fio` knows them.  [default: none]",
        show_default=False,
    ),
]
_For = Annotated[
    list[str] | None,
    typer.Option(
        "--for",
        metavar="APPLICATION",
        help="Put some points where `predict --application` will ask of this one, and sync as "
        "often as it does; more than once for several.  [default: none]",
        show_default=False,
    ),
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
    points: _Points = "even",
    for_fio: _ForFio = None,
    for_application: _For = None,
    resume: _Resume = False,
    json: Json = False,
) -> None:
    """Survey a storage system: its levels, and throughput by workload.

    Example: leadline survey /data --budget 5m
    """
    if focal not in ("middle", "75%"):
        raise typer.BadParameter(f"--focal is middle or 75%, not {focal!r}")
    if for_fio and for_application:
        raise typer.BadParameter("a survey is for jobs or for an application: leave one out")
    if points == "paper" and focal != "middle":
        raise typer.BadParameter("--points paper has the focal points of --focal middle")
    if points == "paper" and for_application:
        raise typer.BadParameter("--points paper has no points to spare for --for: leave one out")
    chosen = Target.parse(target)
    own: Context = context.obj
    jobs = read_file(for_fio, tell=False) if for_fio else ()
    needed, way = _needed(own, for_application) if for_application else ((), _way_of(jobs, chosen))
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
        needed,
        points,
    )
    reached = Reached(
        target=chosen,
        access=access.over(way),
        given=given_access(context),
        cache_limit_bytes=cache_limit,
        max_bytes=max_bytes,
    )
    store, study = own.open_store(), SurveyStudy(reached, asked, budget)
    watcher = PointsTeller(partial(_tell_plan, study, jobs=jobs, resume=resume), _sentences)
    survey = conduct(study, store, watcher, resume=resume)
    told = StoredSurvey(survey, store.items(survey.start.study_id))
    tell(told, KINDS[SURVEY.kind], json=json)


def _needed(own: Context, refs: Sequence[str]) -> tuple[tuple[Workload, ...], Access]:
    """Return what applications need to be known, and how they make their writes safe."""
    described = [load_application(own.read_store(), ref) for ref in refs]
    synced = max((phase for each in described for phase in each.phases), key=lambda it: it.syncs)
    kinds = dict.fromkeys(kind for each in described for kind in needed_of(each))
    return tuple(kinds), Access(sync=sync_of(synced, synced.workload.read_frac))


def _way_of(jobs: Sequence[FioWorkload], target: Target) -> Access:
    """Return how all jobs reach their data; as usual without any.

    Raises:
        BadParameter: two differ, and a survey reaches storage in one way.

    """
    writers = [job.access.sync for job in jobs if job.workload.read_frac < 1]
    backends = {job.access.backend for job in jobs}
    common = {"backend": backends.pop() if len(backends) == 1 else ""}
    ways: dict[Access, str] = {}
    for job in jobs:
        reads = {"sync": writers[0] if writers else NO_SYNC} if job.workload.read_frac == 1 else {}
        ways.setdefault(msgspec.structs.replace(job.access, **common, **reads), job.name)
    if len(ways) > 1:
        (one, first), (other, second), *_ = ways.items()
        raise typer.BadParameter(
            f"--for-fio: the requests of [{first}] are {one.discipline}, those of [{second}] "
            f"{other.discipline}, and a survey has one way; give each a file of its own"
        )
    way = next(iter(ways), Access())
    return way if target.has_files else Access(sync=way.sync)


def _beyond(plan: Plan, job: FioWorkload) -> str:
    """Say why the plan will not reach a job; nothing if it will."""
    data, at_once = job.workload.unique_bytes, job.workload.process_num * job.workload.queue_depth
    if not plan.unique_bytes_min <= data <= plan.unique_bytes_max:
        return f"[{job.name}] touches {format_bytes(data)}, which is not surveyed; see --max-bytes"
    if at_once > plan.process_num_max:
        most = plan.process_num_max
        return f"[{job.name}] has {at_once} requests outstanding; at most {most} are surveyed"
    return ""


def _sentences(store: Store, study_id: str) -> Sequence[str]:
    return load_survey(store, study_id)[0].sentences


def _tell_plan(
    study: SurveyStudy,
    start: SurveyStart,
    points: Sequence[Measurement],
    *,
    jobs: Sequence[FioWorkload],
    resume: bool,
) -> None:
    plan = start.plan
    notes = [said for job in jobs if (said := _beyond(plan, job))]
    if start.needed:
        kinds = format_count(len(start.needed), "kind")
        learning = sum(stage.points for stage in plan.stages if stage.name == "learning")
        notes.append(
            f"half of {format_count(learning, 'learning point')} goes to "
            f"{kinds} of requests of what it is for"
            if learning
            else "--for adds no points: this plan learns none; raise --budget or --learn"
        )
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
