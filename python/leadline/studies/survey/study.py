"""A survey as it is asked for: begun, run, kept and loaded."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from leadline.engine import Engine, Progress, Simulated, Target, Wear, bytes_written
from leadline.record import Measurement, Survey, SurveyStart, Workload
from leadline.record.finding import Finding
from leadline.record.survey import SURVEY, Curves
from leadline.store import Keeper, Store
from leadline.studies.conduct import Begun, OnProgress, PointStudy, Reached
from leadline.studies.loop import measure_points
from leadline.studies.memory import choose_cache_limit
from leadline.studies.pace import Pace
from leadline.studies.resume import kept_when_stopped
from leadline.studies.survey.explain import explain, explain_told
from leadline.studies.survey.plan import PlanRefused, make_plan, require_fit
from leadline.studies.survey.strategy import ResumeMismatch, Surveyor

# The record that decides a survey, made before its first point.

BUDGET_S = 600.0
VIRTUAL_BUDGET_S = 14 * 3600.0
"""Virtual time is free; the paper's own surveys took 14 hours (CP94 §9)."""
LEARN_FRAC = 0.4
"""Curves alone leave interactions unseen: bench/prediction.py has the errors with and without."""


@dataclass(frozen=True)
class SurveyOptions:
    """The options that decide a new survey."""

    system: str
    budget_s: float
    max_bytes: int | None
    seed: int
    accuracy: float = 0.0
    """What ends a point early, as a share; 0 where all windows are alike, so that a system that
    takes turns of seconds (writeback and the writers it holds up) shows each point as many."""
    focal_mode: str = "middle"
    precondition_bytes_max: int | None = None
    learn_frac: float = 0.0
    """Share of the points that go where predictions gain most."""
    written_bytes_max: int | None = None
    """Most bytes to write in all; `max_bytes` is what lies there at one time."""
    needed: tuple[Workload, ...] = ()
    """What applications need to be known."""
    curves: Curves = "even"


def usual_budget_s(target: Target) -> float:
    """Time of a survey when nobody says how much."""
    return VIRTUAL_BUDGET_S if target.virtual_time else BUDGET_S


def begin_survey(
    engine: Engine,
    target: Target,
    asked: SurveyOptions,
    *,
    study_id: str | None = None,
    findings: tuple[Finding, ...] = (),
) -> SurveyStart:
    """Plan a survey of an opened target and record everything that decides it.

    Args:
        engine: the opened target.
        target: what was opened.
        asked: the options.
        study_id: its id; by default a new one.
        findings: what was found before the first point.

    Raises:
        PlanRefused: no sensible survey fits the budget or the room, or the target cannot obey
            an option.
        TargetRefused: laying out the data alone would write more than may be written.
        EngineFault: the engine died, hung or spoke nonsense.

    """
    plan = make_plan(
        budget_s=asked.budget_s,
        capacity_bytes=engine.capacity_bytes,
        max_bytes=asked.max_bytes,
        memory_bytes=engine.memory_bytes,
        l3_cache_bytes=engine.l3_cache_bytes,
        process_num_max=engine.process_num_max,
        virtual=engine.virtual,
        focal_mode=asked.focal_mode,
        learn_frac=asked.learn_frac,
        needed=bool(asked.needed),
        curves=asked.curves,
    )
    if asked.precondition_bytes_max is not None and engine.virtual:
        raise PlanRefused(
            "--precondition writes to a real device; a simulated system has none: leave it out"
        )
    Wear(asked.written_bytes_max).require_layout(
        plan.layout_bytes, asked.precondition_bytes_max or 0
    )
    require_fit(engine, target, plan, asked.seed)
    engine.prepare()
    call_us = engine.time_calls()
    return SurveyStart(
        study_id=study_id or uuid.uuid4().hex,
        system=asked.system,
        target=target.text,
        seed=asked.seed,
        started_at=datetime.now(UTC).isoformat(),
        focal_mode=asked.focal_mode,
        **engine.access.stored_in(SurveyStart),
        accuracy=asked.accuracy,
        plan=plan,
        facts=dict(engine.facts),
        precondition_bytes_max=asked.precondition_bytes_max,
        written_bytes_max=asked.written_bytes_max,
        findings=findings,
        system_profile=target.profile,
        needed=asked.needed,
        call_us=call_us,
    )


# A stored survey, as it is told.


def load_survey(store: Store, ref: str) -> tuple[Survey, tuple[Measurement, ...]]:
    """Return a survey and its points; an unfinished one is explained from what it has.

    Raises:
        StoreError: no survey, or several, go by this reference.

    """
    found = store.find(ref, SURVEY)
    points = store.items(found.start.study_id)
    return found.answer or explain(found.start, points), points


def wear_before(store: Store, start: SurveyStart, bytes_max: int | None) -> Wear:
    """Return the count of what an unfinished survey wrote, with its limit or a new one."""
    answer = store.find(start.study_id, SURVEY).answer
    points = sum(bytes_written(point.result) for point in store.items(start.study_id))
    return Wear(
        bytes_max or start.written_bytes_max, max(points, answer.written_bytes if answer else 0)
    )


def surveyed_target(survey: Survey) -> Target:
    """Return the target of a survey; of a simulated one the very system that was surveyed.

    Raises:
        TargetRefused: it cannot be used now.

    """
    start = survey.start
    if start.system_profile is not None:
        return Simulated(text=start.target, profile=start.system_profile)
    return Target.parse(start.target)


# Run a survey: ask, measure, store, tell; within the budget, whatever happens.


def run_survey(
    engine: Engine,
    store: Keeper,
    start: SurveyStart,
    points: Sequence[Measurement] = (),
    *,
    budget_s: float | None = None,
    wear: Wear | None = None,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Survey:
    """Measure every point still missing and return the explained survey.

    Every point is durable in the store before the next one starts. On any exception the stored
    points remain, and the survey can be resumed by passing them as `points`.

    Args:
        engine: the opened target.
        store: where the points go; the survey was begun in it.
        start: what decides the survey.
        points: what was measured in earlier sittings.
        budget_s: hard cap on all sittings together; None is the plan's.
        wear: what the engine counts its writes with; kept with the answer.
        on_progress: told before each point.

    Raises:
        BudgetSpent: the budget ended early, or all that may be written is; the points so far are
            stored.
        PointFailed: the storage failed while measuring.
        ResumeMismatch: `points` are not those of this survey.

    """
    surveyor = Surveyor(start, points)

    def stopped() -> Survey:
        found = explain_told(surveyor)
        written = max(found.written_bytes, wear.written_bytes if wear else 0)
        return msgspec.structs.replace(found, written_bytes=written)

    with kept_when_stopped(store, start.study_id, stopped):
        wall_s = measure_points(
            engine,
            store,
            start,
            surveyor,
            pace_of(start, budget_s),
            on_progress=on_progress,
            precondition_bytes_max=start.precondition_bytes_max,
        )
    survey = explain_told(surveyor, wall_s=wall_s)
    store.end(start.study_id, survey, survey.status)
    return survey


def pace_of(start: SurveyStart, budget_s: float | None = None) -> Pace:
    """How a survey's budget, or another one, is shared among its points."""
    return Pace(budget_s or start.plan.budget_s, start.plan.points, start.accuracy)


# A survey as requested.


class SurveyStudy(PointStudy[SurveyStart]):
    """A survey, begun or gone on with."""

    records = SURVEY
    mismatches = (ResumeMismatch,)

    def __init__(self, reached: Reached, asked: SurveyOptions, budget_s: float | None) -> None:
        """Take what was asked for; `budget_s` is what was said of it, None where nothing was."""
        super().__init__(reached, asked.system, asked.seed)
        self.asked, self._budget_s = asked, budget_s
        self.counted = Wear(asked.written_bytes_max)
        """Bytes written so far, those of earlier sittings too."""

    def cache_limit_bytes(self, say: Callable[[str], None]) -> int | None:
        """Cap memory so that the budget reaches the disk."""
        path, limit = self.reached.target.path, self.reached.cache_limit_bytes
        if path is None:
            return limit
        most = self.reached.max_bytes
        return choose_cache_limit(Path(path), limit, self.asked.budget_s, say, max_bytes=most)

    def wear(self, store: Store, earlier: Begun[SurveyStart] | None) -> Wear:
        """Count on from what earlier sittings wrote."""
        if earlier is not None:
            limit = self.asked.written_bytes_max
            self.counted = wear_before(store, earlier.start, limit)
        return self.counted

    def begin(self, opened: Engine, findings: tuple[Finding, ...]) -> SurveyStart:
        """Plan it."""
        return begin_survey(opened, self.reached.target, self.asked, findings=findings)

    def measure(
        self,
        opened: Engine,
        store: Store,
        start: SurveyStart,
        points: Sequence[Measurement],
        on_progress: OnProgress,
    ) -> Survey:
        """Measure the points that are missing, in the budget that was said, or the plan's."""
        return run_survey(
            opened,
            store,
            start,
            points,
            budget_s=self._budget_s,
            wear=self.counted,
            on_progress=on_progress,
        )
