"""Buffered, `O_DSYNC`, `fsync` each n and direct writes of one workload, compared.

The four are what a program can choose between for its writes: the faster ones may lose what was
written when the machine stops. They run one after the other in passes on the same data file, in
the reverse order every other pass, so that each has a buffered neighbour; the ratio to that
neighbour holds nothing that disturbs both alike. Each job begins with the file's dirty data
written out, so that no write mode pays for the one before.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import msgspec
from msgspec.structs import replace

from leadline.engine import Engine, Limits, Target, TargetRefused, until_completed
from leadline.machine.dirty_limits import why_not
from leadline.record import Access, CacheStudy, EngineResult, Interval, Workload, derive_seed
from leadline.record.findings import Comparison
from leadline.record.wording import format_rate_ci, format_times
from leadline.record.writes import DisciplineRate, WriteDisciplines
from leadline.stats import pooled_noise, pooled_result
from leadline.stats.intervals import reading_interval
from leadline.studies.cache.flusher import PAIRS, WINDOW_S, measure_flusher
from leadline.studies.cache.flusher import RUN_S as FLUSHER_RUN_S
from leadline.studies.cache.plan import BLOCK_BYTES
from leadline.units import format_percent, format_seconds

FSYNC_EACH = 8
"""Writes from one fsync to the next, where nobody says otherwise: a small transaction."""
PASSES = 4
RUN_S = 1.0


BUFFERED = Access()


def plan_disciplines(fsync_each: int = FSYNC_EACH) -> tuple[Access, ...]:
    """Return the four ways to write, buffered first, which the others are compared with."""
    return (BUFFERED, Access(sync="dsync"), Access(sync=f"fsync={fsync_each}"), Access(direct=True))


@dataclass(frozen=True)
class Taken:
    """What one write mode gave: a result for every pass, or the reason why there is none."""

    discipline: Access
    results: tuple[EngineResult, ...]
    refused: str = ""


def measure_disciplines(
    engine: Engine, workload: Workload, *, passes: int = PASSES, run_s: float = RUN_S, seed: int = 1
) -> tuple[WriteDisciplines, tuple[Taken, ...]]:
    """Measure one write workload under every write mode, and compare.

    The engine is left with the write mode that it had. One that the target cannot do is kept with
    the reason and not tried again.

    Args:
        engine: the opened target.
        workload: writes only.
        passes: runs of each.
        run_s: length of one run.
        seed: decides addresses.

    Raises:
        PointFailed: a run met an I/O error.
        EngineFault: the engine died, hung or spoke nonsense.

    """
    asked = plan_disciplines()
    limits = Limits(
        warm_up_s_max=run_s,
        measure_s_min=run_s / 2,
        measure_s_max=run_s,
        accuracy=0.02,
        total_s_max=run_s + 120.0,
    )
    results: dict[Access, list[EngineResult]] = {each: [] for each in asked}
    refused: dict[Access, str] = {}
    before = engine.access
    engine.prepare()
    try:
        for turn in range(passes):
            for each in asked if turn % 2 == 0 else reversed(asked):
                if each in refused:
                    continue
                try:
                    engine.set_access(replace(before, sync=each.sync, direct=each.direct))
                    run = partial(engine.run, workload, seed=derive_seed(seed, turn))
                    result = until_completed(run, limits)
                except TargetRefused as refusal:
                    refused[each] = str(refusal)
                else:
                    results[each].append(result)
    finally:
        engine.set_access(before)
    taken = tuple(Taken(each, tuple(results[each]), refused.get(each, "")) for each in asked)
    return compare_disciplines(workload, taken), taken


def compare_disciplines(workload: Workload, taken: Sequence[Taken]) -> WriteDisciplines:
    """Compare the write modes with the first of them, pass by pass; pure."""
    base = taken[0].results
    rates = tuple(_rate(each, base if number else ()) for number, each in enumerate(taken))
    found = WriteDisciplines(
        workload=workload, passes=max(len(each.results) for each in taken), rates=rates
    )
    return replace(found, sentences=_sentences(found))


def _rate(taken: Taken, base: Sequence[EngineResult]) -> DisciplineRate:
    discipline, results = taken.discipline, taken.results
    if not results:
        return DisciplineRate(
            name=discipline.discipline,
            **discipline.stored_in(DisciplineRate),
            throughput_mb_s=None,
            latency_us_p50=None,
            latency_us_p99=None,
            against_buffered=None,
            device_reach=None,
            reasons=(taken.refused or "it was not run",),
        )
    pooled = pooled_result(results)
    latency = pooled.write.latency_us
    return DisciplineRate(
        name=discipline.discipline,
        **discipline.stored_in(DisciplineRate),
        throughput_mb_s=pooled.throughput_mb_s,
        latency_us_p50=latency.p50 if latency else None,
        latency_us_p99=latency.p99 if latency else None,
        against_buffered=_against(results, base),
        device_reach=_reach(pooled),
        reasons=pooled.reasons,
    )


def _against(results: Sequence[EngineResult], base: Sequence[EngineResult]) -> Interval | None:
    pairs = zip(results, base, strict=False)
    ratios = [a.throughput_mb_s.value / b.throughput_mb_s.value for a, b in pairs]
    if len(ratios) < 2:
        return None
    return reading_interval(ratios, None, pooled_noise([ratios]))


def _reach(result: EngineResult) -> float | None:
    asked = result.workload_bytes.write
    if result.device_bytes is None or asked == 0:
        return None
    return result.device_bytes.write / asked


def _sentences(found: WriteDisciplines) -> tuple[str, ...]:
    known = [rate for rate in found.rates if rate.throughput_mb_s is not None]
    told = [_sentence(rate) for rate in known if rate.against_buffered is not None]
    told += [f"{rate.name}: n.m.: {rate.reasons[0]}." for rate in found.rates if rate not in known]
    return tuple(told)


def _sentence(rate: DisciplineRate) -> str:
    ratio = rate.against_buffered
    assert ratio is not None and rate.throughput_mb_s is not None  # noqa: S101, PT018
    compared = Comparison(ratio.value, ratio.low, ratio.high)
    text = f"{rate.name} writes: {format_rate_ci(rate.throughput_mb_s)}"
    if compared.slower:
        text += f"; buffered {format_times(compared.inverse())} as fast"
    elif compared.faster:
        text += f", {format_times(compared)} as fast as buffered"
    else:
        text += "; no significant difference from buffered"
    return f"{text}{_reached(rate)}."


def _reached(rate: DisciplineRate) -> str:
    if rate.device_reach is None:
        return ""
    return f"; {format_percent(rate.device_reach)} of the bytes reached the device within the run"


def discipline_rows(found: WriteDisciplines) -> list[tuple[str, str, str, str, str]]:
    """Return a table's rows: write mode, rate, against buffered, p50 and p99, at the device."""
    return [_row(rate) for rate in found.rates]


HEADS = ("Writes", "Throughput", "Against buffered", "p50, p99", "Reached the device")
"""Heads of the columns of `discipline_rows`."""


def _row(rate: DisciplineRate) -> tuple[str, str, str, str, str]:
    if rate.throughput_mb_s is None:
        return (rate.name, "n.m.", "", "", rate.reasons[0] if rate.reasons else "")
    ratio = rate.against_buffered
    p50, p99 = rate.latency_us_p50, rate.latency_us_p99
    return (
        rate.name,
        format_rate_ci(rate.throughput_mb_s),
        format_times(Comparison(ratio.value, ratio.low, ratio.high)) if ratio is not None else "",
        "n.m." if p50 is None or p99 is None else f"{_time(p50)}, {_time(p99)}",
        "n.m." if rate.device_reach is None else format_percent(rate.device_reach),
    )


def _time(us: float) -> str:
    return format_seconds(us / 1e6)


# The second half of a cache study: what writeback costs, and the write modes compared.
#
# Both write one workload that fits the cache found, in the time that the plan kept for them.

MEMORY_SHARE = 8
"""The writes touch at most this part of memory, so that a resting writeback may rest."""
PASSES_MIN, PAIRS_MIN = 2, 3
RUN_COST = 2.0
"""A run takes at most this many times its length: its warm-up, and writing out before it."""
WINDOW_EXTRA_S = 5.0


def measure_write_costs(
    engine: Engine, target: Target, study: CacheStudy, *, left_s: float
) -> CacheStudy:
    """Return the study with writeback's cost and the write modes, or why they are left out.

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
        left_out.append(_too_short("the write modes", left_s))
    left_s -= engine.clock_s - opened_s
    pairs = min(PAIRS, int(left_s / (2 * RUN_COST * FLUSHER_RUN_S)))
    by_limits = not engine.virtual and why_not() is None
    enough = pairs >= PAIRS_MIN if by_limits else left_s >= WINDOW_S + WINDOW_EXTRA_S
    if engine.virtual or enough:
        try:
            cost, _ = measure_flusher(engine, target, workload, seed=seed, pairs=pairs)
            study = msgspec.structs.replace(study, flusher=cost)
        except TargetRefused as refusal:
            left_out.append(f"what writeback costs: {refusal}")
    else:
        left_out.append(_too_short("what writeback costs", left_s))
    return msgspec.structs.replace(study, left_out=tuple(left_out))


def _why_left_out(study: CacheStudy) -> str:
    start = study.start
    what = "the write modes and what writeback costs"
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
