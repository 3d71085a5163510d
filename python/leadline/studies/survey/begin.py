"""The record that decides a survey, made before its first point."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from leadline.engine import (
    CacheLimitRefused,
    Engine,
    Target,
    Wear,
    available_memory_bytes,
    is_in_memory,
    memory_cgroup,
)
from leadline.record import SurveyStart
from leadline.record.finding import Finding
from leadline.studies.survey.fits import require_fit
from leadline.studies.survey.plan import (
    BEYOND_CACHE_MIN,
    PlanRefused,
    advised_cache_limit,
    make_plan,
)
from leadline.units import format_bytes

BUDGET_S = 600.0
VIRTUAL_BUDGET_S = 14 * 3600.0
"""Virtual time is free; the paper's own surveys took 14 hours (CP94 §9)."""
LEARN_FRAC = 0.4
"""Curves alone leave interactions unseen: bench/prediction.py has the errors with and without."""


@dataclass(frozen=True)
class Asked:
    """The options that decide a new survey."""

    system: str
    budget_s: float
    max_bytes: int | None
    seed: int
    accuracy: float = 0.0
    """What ends a point early, as a share; 0 where all windows are alike, so that a system that
    takes turns of seconds (a flusher and the writers it holds up) shows each point as many."""
    focal_mode: str = "middle"
    precondition_bytes_max: int | None = None
    learn_frac: float = 0.0
    """Share of the points that go where predictions gain most."""
    written_bytes_max: int | None = None
    """Most bytes to write in all; `max_bytes` is what lies there at one time."""


def usual_budget_s(target: Target) -> float:
    """Time of a survey when nobody says how much."""
    return VIRTUAL_BUDGET_S if target.virtual_time else BUDGET_S


def begin_survey(
    engine: Engine,
    target: Target,
    asked: Asked,
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
    )


def choose_cache_limit(
    directory: Path,
    asked_bytes: int | None,
    budget_s: float,
    say: Callable[[str], None],
    *,
    most_bytes: int | None = None,
    max_bytes: int | None = None,
) -> int | None:
    """The memory cap to use: the user's, or one without which the disk could not be reached.

    A cap that Leadline chose itself is given up, in words, where the machine does not allow it;
    one that the user asked for never is.

    Args:
        directory: what is surveyed.
        asked_bytes: the user's cap; 0 is none at all, None leaves it to Leadline.
        budget_s: of the survey.
        say: is told what was chosen, and why.
        most_bytes: a cap that Leadline chooses is no larger than this.
        max_bytes: most data that may lie on the target.

    """
    if asked_bytes is not None:
        return asked_bytes or None
    if is_in_memory(directory):
        say("this file system is memory itself: no disk lies behind it, and memory is not capped")
        return None
    advised = advised_cache_limit(budget_s, available_memory_bytes() or 0, max_bytes)
    if advised is None:
        return None
    advised = min(advised, most_bytes or advised)
    try:
        with memory_cgroup(advised):
            pass
    except CacheLimitRefused as reason:
        say(
            f"the file cache keeps the machine's whole memory, so that the disk behind it may not "
            f"be reached: {reason}"
        )
        return None
    say(
        f"memory is capped at {format_bytes(advised)}, so that the disk behind the file cache is "
        "reached in time; --cache-limit SIZE chooses another cap, none leaves it out"
    )
    if max_bytes is not None and max_bytes < BEYOND_CACHE_MIN * advised:
        say(
            f"--max-bytes {format_bytes(max_bytes)} is less than {BEYOND_CACHE_MIN} x this cap: "
            "reads of the last level partly hit the page cache; "
            f"use --max-bytes {format_bytes(BEYOND_CACHE_MIN * advised)} or more"
        )
    return advised
