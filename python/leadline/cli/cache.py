"""`leadline cache TARGET`: how large is the file cache, and what does it do with writes?"""

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
    Name,
    Seed,
    TargetArgument,
    capped,
    duration,
    same_access,
    with_access,
)
from leadline.cli.progress import progress_bar, tell_plan
from leadline.cli.talk import talk, tell_findings
from leadline.cli.tell import tell
from leadline.engine import Engine, Stopped, Target, open_engine, preflight, room_findings
from leadline.errors import LeadlineError
from leadline.record import Access, CacheStart, CacheStudy, Measurement
from leadline.record.file_cache import CACHE
from leadline.report.kinds import KINDS
from leadline.store import Store
from leadline.studies.cache import (
    CACHE_LIMIT_MOST,
    CacheAsked,
    CacheStudyRefused,
    begin_study,
    run_study,
    usual_budget_s,
)
from leadline.studies.cache.stored import load_study
from leadline.studies.resume import find_unfinished, resume_options, say_kept
from leadline.studies.survey import choose_cache_limit
from leadline.units import format_bytes, format_seconds

_Budget = Annotated[
    float | None,
    duration(
        "It ends within this time, e.g. 90s or 5m.  [default: 5m; of a simulated system 10h of "
        "its own time]"
    ),
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
    access: Access,
    seed: Seed = 1,
    sizes_only: Annotated[
        bool, typer.Option("--sizes-only", help="Leave out the disciplines and the flusher.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this system's unfinished study.")
    ] = False,
    json: Json = False,
) -> None:
    """Find the file cache: its size for reads and for writes, and its write policy.

    Example: leadline cache /data --cache-limit 512MiB
    """
    chosen = Target.parse(target)
    asked = CacheAsked(
        name or chosen.name, budget or usual_budget_s(chosen), seed, write_costs=not sizes_only
    )
    own: Context = context.obj
    store = own.open_store()
    earlier = find_unfinished(store, CACHE, asked.system, chosen.text).start if resume else None
    if earlier is not None:
        # What decided the study decides it still.
        access, seed = same_access(earlier, access, context, "cache study"), earlier.seed
    else:
        if chosen.path is not None:
            cache_limit = choose_cache_limit(
                Path(chosen.path), cache_limit, asked.budget_s, talk, most_bytes=CACHE_LIMIT_MOST
            )
        access = capped(access, cache_limit)
    with open_engine(chosen, access, max_bytes=max_bytes, run_seed=seed) as engine:
        found = (*preflight(chosen, engine.facts), *room_findings(engine, max_bytes))
        findings = tell_findings(found)
        start = earlier or begin_study(engine, chosen, asked, findings=findings)
        points = store.items(start.study_id)
        if earlier is None:
            store.begin(CACHE, start)
        _tell_plan(start, points)
        study = _run(engine, chosen, store, start, points, budget_s=budget if earlier else None)
    tell(study, KINDS[CACHE.kind], json=json)


def _tell_plan(start: CacheStart, points: Sequence[Measurement]) -> None:
    plan = start.plan
    tell_plan(
        start,
        points,
        begun=f"cache study {start.study_id[:8]} of {start.system} ({start.target}), "
        f"{start.access.discipline}",
        planned=f" of {format_bytes(plan.size_mean)} requests from "
        f"{format_bytes(plan.unique_bytes_min)} to {format_bytes(plan.unique_bytes_max)}, about "
        f"{format_seconds(plan.point_s)} each at most",
    )
    if plan.writes_s:
        talk(f"  then at most {format_seconds(plan.writes_s)} for the disciplines and the flusher")


def _run(
    engine: Engine,
    target: Target,
    store: Store,
    start: CacheStart,
    points: Sequence[Measurement],
    *,
    budget_s: float | None,
) -> CacheStudy:
    try:
        with progress_bar(start.plan.points, simulated=start.simulated) as on_progress:
            return run_study(
                engine, target, store, start, points, budget_s=budget_s, on_progress=on_progress
            )
    except CacheStudyRefused:
        raise
    except (Stopped, LeadlineError, KeyboardInterrupt) as error:
        kept = store.items(start.study_id)
        options = resume_options(error)
        talk(say_kept(len(kept), start.plan.points, start.study_id, options=options))
        if kept:
            for sentence in load_study(store, start.study_id).cache.sentences:
                talk(sentence)
        raise
