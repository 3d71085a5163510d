"""A study of a page cache: begun, run, kept and loaded."""

from __future__ import annotations

import contextlib
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from leadline.engine import Engine, Limits, NothingCompleted, Progress, Target
from leadline.record import CacheStart, CacheStudy, Measurement, Status, Workload
from leadline.record.file_cache import CACHE
from leadline.record.finding import Finding
from leadline.store import Keeper, Store
from leadline.studies.cache.explain import explain_study
from leadline.studies.cache.plan import CacheStudyRefused, Questions, make_plan
from leadline.studies.cache.write_costs import measure_write_costs
from leadline.studies.conduct import OnProgress, PointStudy, Reached
from leadline.studies.loop import measure_points
from leadline.studies.memory import choose_cache_limit, memory_bytes_of
from leadline.studies.pace import Pace
from leadline.studies.resume import kept_when_stopped
from leadline.studies.script import PointRequest

# A study of a page cache, as it is told.


def load_study(store: Store, ref: str) -> CacheStudy:
    """Return a stored study; an unfinished one is explained from what it has.

    Raises:
        StoreError: no study, or several, go by this reference.

    """
    found = store.find(ref, CACHE)
    return found.answer or explain_study(found.start, store.items(found.start.study_id))


# A cache study: ask, measure, store, tell; within the budget, whatever happens.

BUDGET_S = 300.0
FILL_SIZE = 2**18
FILL_BYTES_PER_S = 500e6
FILL_S_MIN = 0.05
"""A shorter pass holds too few requests, and the engine takes none below 10 ms."""
FILL_SHARE_MAX = 0.3
"""A pass that fills the cache takes no more than this share of a point's time."""
LAYOUT_S_MAX = 120.0
"""The first pass writes the data before it begins."""
VIRTUAL_BUDGET_S = 10 * 3600.0
"""Virtual time is free; an old disk needs its ten minutes a point (CP94 section 6)."""

CACHE_LIMIT_MOST = 512 * 2**20
"""A cap that Leadline chooses: a larger cache does not fill within a point's few seconds."""


@dataclass(frozen=True)
class CacheOptions:
    """The options that decide a new study."""

    system: str
    budget_s: float
    seed: int
    accuracy: float = 0.02
    write_costs: bool = True
    """Whether the write modes and writeback are wanted as well."""


def usual_budget_s(target: Target) -> float:
    """Time of a study when nobody says how much."""
    return VIRTUAL_BUDGET_S if target.virtual_time else BUDGET_S


def begin_study(
    engine: Engine,
    target: Target,
    asked: CacheOptions,
    *,
    study_id: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> CacheStart:
    """Plan a study of an opened target and record everything that decides it.

    Raises:
        CacheStudyRefused: no sensible study fits the budget or the room.
        EngineFault: the engine died, hung or spoke nonsense.

    """
    plan = make_plan(
        budget_s=asked.budget_s,
        capacity_bytes=engine.capacity_bytes,
        memory_bytes=engine.memory_bytes,
        l3_cache_bytes=engine.l3_cache_bytes,
        virtual=engine.virtual,
        write_costs=asked.write_costs,
    )
    engine.prepare()
    return CacheStart(
        study_id=study_id or uuid.uuid4().hex,
        system=asked.system,
        target=target.text,
        seed=asked.seed,
        started_at=datetime.now(UTC).isoformat(),
        **engine.access.stored_in(CacheStart),
        accuracy=asked.accuracy,
        plan=plan,
        facts=dict(engine.facts),
        memory_bytes=memory_bytes_of(engine.access.cache_limit_bytes, engine.facts, target.profile),
        system_profile=target.profile,
        findings=findings,
    )


def run_study(
    engine: Engine,
    target: Target,
    store: Keeper,
    start: CacheStart,
    points: Sequence[Measurement] = (),
    *,
    budget_s: float | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> CacheStudy:
    """Measure every point still missing and return the explained study.

    Every point is durable in the store before the next one starts. On any exception the stored
    points remain, and the study can be resumed by passing them as `points`.

    Args:
        engine: the opened target.
        target: the same, as it was spelled.
        store: where the points go; the study was begun in it.
        start: what decides the study.
        points: what was measured in earlier sittings.
        budget_s: hard cap on all sittings together; None is the plan's.
        on_progress: told before each point.

    Raises:
        BudgetSpent: the budget ended early; the points so far are stored.
        PointFailed: the storage failed while measuring.
        CacheStudyRefused: `points` are not those of this study.

    """
    end_s = budget_s or start.plan.budget_s
    questions = Questions(start, points)
    filled = _filling(engine, start)

    def stopped() -> CacheStudy:
        return msgspec.structs.replace(
            explain_study(start, questions.points), status=Status.STOPPED
        )

    with kept_when_stopped(store, start.study_id, stopped):
        points_s = measure_points(
            engine,
            store,
            start,
            questions,
            pace_of(start, end_s),
            on_progress=on_progress,
            before=filled,
        )
        opened_s = engine.clock_s
        study = explain_study(start, questions.points)
        left_s = end_s - points_s
        study = measure_write_costs(engine, target, study, left_s=left_s)
    study = msgspec.structs.replace(study, wall_s=points_s + engine.clock_s - opened_s)
    store.end(start.study_id, study, study.status)
    return study


class FileCacheStudy(PointStudy[CacheStart]):
    """A cache study as requested, begun or gone on with."""

    records = CACHE
    mismatches = (CacheStudyRefused,)

    def __init__(self, reached: Reached, asked: CacheOptions, budget_s: float | None) -> None:
        """Take what was asked for; `budget_s` is what was said of it, None where nothing was."""
        super().__init__(reached, asked.system, asked.seed)
        self.asked, self._budget_s = asked, budget_s

    def cache_limit_bytes(self, say: Callable[[str], None]) -> int | None:
        """Cap memory so that the budget reaches the disk and a point's time fills the cache."""
        path, limit = self.reached.target.path, self.reached.cache_limit_bytes
        if path is None:
            return limit
        budget_s, most = self.asked.budget_s, CACHE_LIMIT_MOST
        return choose_cache_limit(Path(path), limit, budget_s, say, most_bytes=most)

    def begin(self, opened: Engine, findings: tuple[Finding, ...]) -> CacheStart:
        """Plan it."""
        return begin_study(opened, self.reached.target, self.asked, findings=findings)

    def measure(
        self,
        opened: Engine,
        store: Store,
        start: CacheStart,
        points: Sequence[Measurement],
        on_progress: OnProgress,
    ) -> CacheStudy:
        """Measure the points that are missing, then the write modes and writeback."""
        return run_study(
            opened,
            self.reached.target,
            store,
            start,
            points,
            budget_s=self._budget_s,
            on_progress=on_progress,
        )


def pace_of(start: CacheStart, budget_s: float) -> Pace:
    """How a budget is shared among a study's points and the filling between them."""
    return Pace(
        budget_s - start.plan.writes_s,
        start.plan.points,
        start.accuracy,
        between=0.0 if start.system_profile is not None else FILL_SHARE_MAX,
    )


def _filling(engine: Engine, start: CacheStart) -> Callable[[PointRequest], None]:
    """Return what fills the cache before a point."""

    def fill(request: PointRequest) -> None:
        fill_cache(engine, request.workload, start, seed=request.seed)

    return fill


def fill_cache(engine: Engine, workload: Workload, start: CacheStart, *, seed: int) -> None:
    """Pass over the data once, in order, so that the cache holds what it can of this workload.

    Random requests leave holes for long: after as many bytes as there are, a third of them. While
    those fill, the kernel takes pages away from the workload before, and writes all dirty ones out.
    A simulated cache has no past. Nothing is measured here, so a pass in which no request ended, as
    on a disk that is busy for a moment, is no failure.

    Raises:
        PointFailed: the storage failed.

    """
    if engine.virtual or start.direct:
        return
    passing = msgspec.structs.replace(workload, size_mean=FILL_SIZE, seq_frac=1.0)
    wanted_s = min(workload.unique_bytes / FILL_BYTES_PER_S, FILL_SHARE_MAX * start.plan.point_s)
    seconds = max(FILL_S_MIN, wanted_s)
    limits = Limits(
        warm_up_s_max=0.0,
        measure_s_min=seconds,
        measure_s_max=seconds,
        accuracy=0.0,
        total_s_max=LAYOUT_S_MAX,
    )
    with contextlib.suppress(NothingCompleted):
        engine.run(passing, seed=seed, limits=limits)
