"""The record that decides a survey, made before its first point."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from datetime import UTC, datetime

from leadline.engine import Engine, Target
from leadline.record import SurveyStart
from leadline.survey.plan import PlanRefused, make_plan


@dataclass(frozen=True)
class Asked:
    """The options that decide a new survey."""

    system: str
    budget_s: float
    max_bytes: int | None
    seed: int
    accuracy: float
    focal_mode: str
    precondition_bytes_max: int | None = None
    learn_frac: float = 0.0
    """Share of the points that go where predictions gain most."""


def begin_survey(
    engine: Engine,
    target: Target,
    asked: Asked,
    *,
    survey_id: str | None = None,
    warnings: tuple[str, ...] = (),
) -> SurveyStart:
    """Plan a survey of an opened target and record everything that decides it.

    Args:
        engine: the opened target.
        target: what was opened.
        asked: the options.
        survey_id: its id; by default a new one.
        warnings: what was found before the first point.

    Raises:
        PlanRefused: no sensible survey fits the budget or the room, or the target cannot obey
            an option.
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
    engine.prepare()
    return SurveyStart(
        survey_id=survey_id or uuid.uuid4().hex,
        system=asked.system,
        target=target.text,
        seed=asked.seed,
        started_at=datetime.now(UTC).isoformat(),
        focal_mode=asked.focal_mode,
        backend=engine.backend,
        direct=engine.direct,
        cache_limit_bytes=engine.cache_limit_bytes,
        accuracy=asked.accuracy,
        plan=plan,
        facts=dict(engine.facts),
        precondition_bytes_max=asked.precondition_bytes_max,
        warnings=warnings,
        system_profile=target.profile,
    )
