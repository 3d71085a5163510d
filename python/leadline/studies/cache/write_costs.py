"""The second half of a cache study: what the flusher costs, and the disciplines compared.

Both write one workload that fits the cache found, in the time that the plan kept for them.
"""

from __future__ import annotations

import msgspec

from leadline.engine import Engine, Target, TargetRefused
from leadline.machine.dirty_limits import why_not
from leadline.record import CacheStudy, Workload
from leadline.studies.cache.disciplines import PASSES, RUN_S, measure_disciplines, plan_disciplines
from leadline.studies.cache.flusher import PAIRS, WINDOW_S, measure_flusher
from leadline.studies.cache.flusher import RUN_S as FLUSHER_RUN_S
from leadline.studies.cache.plan import BLOCK_BYTES
from leadline.units import format_seconds

MEMORY_SHARE = 8
"""The writes touch at most this part of memory, so that a resting flusher may rest."""
PASSES_MIN, PAIRS_MIN = 2, 3
RUN_COST = 2.0
"""A run takes at most this many times its length: its warm-up, and writing out before it."""
WINDOW_EXTRA_S = 5.0


def measure_write_costs(
    engine: Engine, target: Target, study: CacheStudy, *, left_s: float
) -> CacheStudy:
    """Return the study with the flusher's cost and the disciplines, or why they are left out.

    Args:
        engine: the opened target.
        target: the same target.
        study: what was found of sizes and policy.
        left_s: time left of the budget, in seconds of the engine's clock.

    Raises:
        PointFailed: a run met an I/O error.
        EngineFault: the engine died, hung or spoke nonsense.

    """
    reason = _why_left_out(study)
    if reason:
        return msgspec.structs.replace(study, left_out=(reason,))
    workload, seed = _workload(study), study.start.seed
    left_out: list[str] = []
    opened_s = engine.clock_s
    passes = min(PASSES, int(left_s / 2 / (len(plan_disciplines()) * RUN_COST * RUN_S)))
    if engine.virtual or passes >= PASSES_MIN:
        found, _ = measure_disciplines(engine, workload, seed=seed, passes=max(passes, PASSES_MIN))
        study = msgspec.structs.replace(study, disciplines=found)
    else:
        left_out.append(_too_short("the disciplines", left_s))
    left_s -= engine.clock_s - opened_s
    pairs = min(PAIRS, int(left_s / (2 * RUN_COST * FLUSHER_RUN_S)))
    by_limits = not engine.virtual and why_not() is None
    enough = pairs >= PAIRS_MIN if by_limits else left_s >= WINDOW_S + WINDOW_EXTRA_S
    if engine.virtual or enough:
        try:
            cost, _ = measure_flusher(engine, target, workload, seed=seed, pairs=pairs)
            study = msgspec.structs.replace(study, flusher=cost)
        except TargetRefused as refusal:
            left_out.append(f"what the flusher costs: {refusal}")
    else:
        left_out.append(_too_short("what the flusher costs", left_s))
    return msgspec.structs.replace(study, left_out=tuple(left_out))


def _why_left_out(study: CacheStudy) -> str:
    start = study.start
    what = "the disciplines and what the flusher costs"
    if not start.plan.writes_s:
        return f"{what}: not asked for, or no time for them (--budget 3m or more has it)"
    if not start.access.buffered:
        return f"{what}: they compare with buffered writes; leave --sync and --direct out"
    return ""


def _too_short(what: str, left_s: float) -> str:
    return f"{what}: only {format_seconds(max(left_s, 0.0))} of the budget were left"


def _workload(study: CacheStudy) -> Workload:
    """Writes alone that fit the cache well, of the study's own requests."""
    plan, memory = study.start.plan, study.start.memory_bytes
    most = memory // MEMORY_SHARE if memory else plan.unique_bytes_max
    unique = min(study.cache.inside_bytes or plan.unique_bytes_min, most)
    return Workload(
        unique_bytes=max(4 * plan.size_mean, unique // BLOCK_BYTES * BLOCK_BYTES),
        size_mean=plan.size_mean,
        read_frac=0.0,
        seq_frac=0.0,
        size_dist="fixed",
    )
