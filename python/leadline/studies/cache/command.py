"""`leadline cache TARGET`: how large is the page cache, and what does it do with writes?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from leadline.engine import Target
from leadline.record import Access, CacheStart, Measurement
from leadline.record.file_cache import CACHE
from leadline.studies.cache.study import CacheOptions, FileCacheStudy, load_study, usual_budget_s
from leadline.studies.conduct import Reached, conduct
from leadline.studies.registry import KINDS
from leadline.terminal.context import Context
from leadline.terminal.options import (
    CacheLimit,
    Json,
    MaxBytes,
    Name,
    Seed,
    TargetArgument,
    duration,
    given_access,
    with_access,
)
from leadline.terminal.progress import print_plan
from leadline.terminal.talk import talk
from leadline.terminal.tell import tell
from leadline.terminal.watch import PointsTeller
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
        bool, typer.Option("--sizes-only", help="Leave out the write modes and writeback.")
    ] = False,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with this system's unfinished study.")
    ] = False,
    json: Json = False,
) -> None:
    """Measure page-cache capacity for reads and writes, and the write policy.

    Example: leadline cache /data --cache-limit 512MiB
    """
    chosen = Target.parse(target)
    asked = CacheOptions(
        name or chosen.name, budget or usual_budget_s(chosen), seed, write_costs=not sizes_only
    )
    reached = Reached(
        target=chosen,
        access=access,
        given=given_access(context),
        cache_limit_bytes=cache_limit,
        max_bytes=max_bytes,
    )
    own: Context = context.obj
    watcher = PointsTeller(_tell_plan, lambda store, ref: load_study(store, ref).cache.sentences)
    study = FileCacheStudy(reached, asked, budget)
    found = conduct(study, own.open_store(), watcher, resume=resume)
    tell(found, KINDS[CACHE.kind], json=json)


def _tell_plan(start: CacheStart, points: Sequence[Measurement]) -> None:
    plan = start.plan
    print_plan(
        start,
        points,
        begun=f"cache study {start.study_id[:8]} of {start.system} ({start.target}), "
        f"{start.access.discipline}",
        planned=f" of {format_bytes(plan.size_mean)} requests from "
        f"{format_bytes(plan.unique_bytes_min)} to {format_bytes(plan.unique_bytes_max)}, about "
        f"{format_seconds(plan.point_s)} each at most",
    )
    if plan.writes_s:
        talk(f"  then at most {format_seconds(plan.writes_s)} for the write modes and writeback")
