"""The plan of a survey: its ranges, its stages, its number of points; fixed before it starts.

The number of points is decided by the budget alone, never by what is found on the way: stages
that turn out to need fewer points leave them to the families of curves. So the plan that is
printed is the plan that runs, but for learning, which ends once it has nothing to gain. Curves
take at most CP94's 84 points, and on a simulated system the whole survey does; on a real target
learning may add to them.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

from leadline.engine import (
    LAYOUT_BYTES_PER_S,
    Engine,
    Limits,
    NothingCompleted,
    Target,
    open_engine,
)
from leadline.errors import LeadlineError
from leadline.record import PROCESSES_MAX, Plan, PlanStage, Workload
from leadline.record.survey import Curves
from leadline.studies.memory import LAYOUT_SHARE, MEMORY_FACTOR
from leadline.units import format_bytes, format_seconds

POINTS_MAX = 84
"""CP94 §9: the SPARCstation's survey took 84 points."""

RESERVED_75 = 28
"""Five new points of each of the five curves at the 75% point, itself read three times."""
POINTS_MIN = 34
FAMILIES_FIRST = 18
"""Points that families get before the curve over unique_bytes has more than its least: both ends of
each curve in two regions."""
CURVE_POINTS_FIRST = 46
"""Points that go onto curves before any is learned from: both ends of each curve in two regions."""
PAPER_SCOUT, PAPER_CURVE, PAPER_FAMILY = 12, 16, 29
"""CP94 footnote 6: 20 points over unique_bytes, both ends and two focal points among them, and in
each region 10 over sizes and the two fractions and 2 over processes, which share the focal one.
What is scouted comes beside them."""
FAMILIES_OF_SIX = 50
"""Six points on each of four curves in two regions (CP94 section 6), and every focal point five
times: they share their readings."""
SIX_POINTS_FROM = 80
"""A plan of so many points on curves gives each six in two regions."""
LEARNING_POINTS_MIN = 52
"""A plan of fewer points keeps all of them for the curves: it has none to spare for learning."""
POINTS_MAX_LEARNING = 140
"""With learning on a real target, where more points cost time and no claim of CP94's. Both kinds
together: a small share for learning reaches fewer, for curves stop at POINTS_MAX."""
SECONDS_PER_POINT_WANTED = 2.6
SECONDS_PER_POINT_LEARNING = 4.0
"""A plan that learns takes longer readings rather than more than it can make use of."""
SECONDS_PER_POINT_MIN = 0.8

BLOCK_BYTES = 4096
"""Every unique_bytes is a multiple of this, so that direct I/O can touch all of it."""

SIZE_MEAN_MIN = 4096
SIZE_MEAN_MAX = 2 * 2**20
UNIQUE_BYTES_MIN = 256 * 2**10


RANGE_FACTOR_MIN = 8
"""A curve over unique_bytes shorter than this factor cannot show a boundary and two plateaus."""


class PlanRefused(LeadlineError):
    """No sensible survey fits; the message says which limit to change, and how far."""

    exit_code = 2


def make_plan(
    *,
    budget_s: float,
    capacity_bytes: int,
    max_bytes: int | None,
    memory_bytes: int | None,
    l3_cache_bytes: int | None,
    process_num_max: int,
    virtual: bool,
    focal_mode: str = "middle",
    learn_frac: float = 0.0,
    needed: bool = False,
    curves: Curves = "even",
) -> Plan:
    """Lay out a survey within a budget.

    Args:
        budget_s: hard cap on the whole survey; virtual seconds on a simulated system.
        capacity_bytes: most data the target may hold (free space above the floor).
        max_bytes: the user's own cap on data written, or None.
        memory_bytes: memory that can hold page cache (the cgroup's cap when there is one); None
            where no cache lies before the target.
        l3_cache_bytes: the processor's last cache; data that fits it measures the processor.
        process_num_max: most workers at once worth trying; no more than a workload may have.
        virtual: whether time costs nothing (a simulated system).
        focal_mode: "middle" (CP94 §8) or "75%" (CP94 §7).
        learn_frac: most of the points that the budget allows, as a share, that may go where
            predictions gain most, instead of onto curves; none when the budget is small or the
            mode has no regions.
        needed: whether an application's kinds of requests are known; points that learn are then
            worth more than the last ones of a curve, in a small budget too.
        curves: "paper" gives each curve the points of CP94's footnote 6, and learns nothing.

    Raises:
        PlanRefused: the budget, or the room for data, is too small for any survey.

    """
    _refuse_tiny_budget(budget_s, PAPER_POINTS if curves == "paper" else POINTS_MIN)
    if not virtual:
        capacity_bytes = min(capacity_bytes, int(LAYOUT_SHARE * budget_s * LAYOUT_BYTES_PER_S))
    low, high = _unique_bytes_range(capacity_bytes, max_bytes, memory_bytes, l3_cache_bytes)
    low, high = -(-low // BLOCK_BYTES) * BLOCK_BYTES, high // BLOCK_BYTES * BLOCK_BYTES
    layout_s = 0.0 if virtual else high / LAYOUT_BYTES_PER_S
    revised = focal_mode != "75%"
    measuring_s = budget_s * 0.97 - layout_s
    learn_frac = learn_frac if revised else 0.0
    on_curves, learning = _points(measuring_s, learn_frac, virtual=virtual, needed=needed)
    if curves == "paper":
        stages = _stages_of(PAPER_SCOUT, PAPER_CURVE, 2 * PAPER_FAMILY, 0, curves)
    else:
        stages = _stages(on_curves, learning) if revised else _stages_75(on_curves)
    points = sum(stage.points for stage in stages)
    point_s = measuring_s / points
    return Plan(
        stages=stages,
        budget_s=budget_s,
        expected_s=min(budget_s, layout_s + point_s * points),
        point_s=point_s,
        layout_bytes=0 if virtual else high,
        unique_bytes_min=low,
        unique_bytes_max=high,
        size_mean_min=SIZE_MEAN_MIN,
        size_mean_max=SIZE_MEAN_MAX,
        process_num_max=min(process_num_max, PROCESSES_MAX),
        curves=curves,
    )


def _points(
    measuring_s: float, learn_frac: float, *, virtual: bool, needed: bool
) -> tuple[int, int]:
    """Points on curves, and points for learning."""
    if learn_frac > 0:
        most = POINTS_MAX if virtual else POINTS_MAX_LEARNING
        points = min(most, int(measuring_s / SECONDS_PER_POINT_LEARNING))
        if points >= LEARNING_POINTS_MIN:
            learning = round(points * learn_frac)
            on_curves = min(POINTS_MAX, max(CURVE_POINTS_FIRST, points - learning))
            return on_curves, min(learning, points - on_curves)
    points = int(measuring_s / SECONDS_PER_POINT_WANTED)
    if needed and learn_frac > 0 and points > POINTS_MIN:
        learning = min(points - POINTS_MIN, round(points * learn_frac))
        return min(POINTS_MAX, points - learning), learning
    return max(POINTS_MIN, min(POINTS_MAX, points)), 0


def _refuse_tiny_budget(budget_s: float, points: int) -> None:
    measuring_s = points * SECONDS_PER_POINT_MIN
    least_s = measuring_s / (0.97 - LAYOUT_SHARE)
    if budget_s < least_s:
        raise PlanRefused(
            f"a budget of {format_seconds(budget_s)} is too small: measuring {points} points "
            f"takes {format_seconds(measuring_s)}, writing the data comes before that. Give "
            f"--budget {round(least_s * 1.2)}s or more."
        )


def _unique_bytes_range(
    capacity_bytes: int, max_bytes: int | None, memory_bytes: int | None, l3_bytes: int | None
) -> tuple[int, int]:
    """Range of unique_bytes: above the processor's cache, to past what memory can hold."""
    high = capacity_bytes if max_bytes is None else min(capacity_bytes, max_bytes)
    if memory_bytes is not None:
        high = min(high, MEMORY_FACTOR * memory_bytes)
    # Twice the processor's cache, so that a level of the *storage* hierarchy comes first; but a
    # small memory cap, or a small file system in memory, must leave a plateau above it.
    room = high if memory_bytes is None else memory_bytes
    low = max(UNIQUE_BYTES_MIN, min(2 * (l3_bytes or 0), room // 8))
    if high < RANGE_FACTOR_MIN * low:
        raise PlanRefused(
            f"only {format_bytes(high)} may be used on the target and a survey here starts at "
            f"{format_bytes(low)}: give --max-bytes {format_bytes(RANGE_FACTOR_MIN * low)} or "
            "more, free some space, lower --cache-limit, or raise --budget."
        )
    return low, high


ENDS, CLOSING = 4, 2
"""Readings of both ends of unique_bytes, at the beginning and at the end."""
PAPER_POINTS = PAPER_SCOUT + ENDS + PAPER_CURVE + 2 * PAPER_FAMILY + CLOSING


def _stages(points: int, learning: int) -> tuple[PlanStage, ...]:
    scout = 18 if points >= 70 else 12 if points >= 45 else 8
    if points >= SIX_POINTS_FROM:
        scout = 12
    curve = max(7, min(round(points / 4.7), points - scout - ENDS - CLOSING - FAMILIES_FIRST))
    if points >= SIX_POINTS_FROM:
        curve = points - scout - ENDS - CLOSING - FAMILIES_OF_SIX
    return _stages_of(scout, curve, points - scout - ENDS - curve - CLOSING, learning)


def _stages_of(
    scout: int, curve: int, families: int, learning: int, curves: Curves = "even"
) -> tuple[PlanStage, ...]:
    learned = PlanStage(
        "learning", learning, "where predictions gain most; ends when they are good"
    )
    return (
        PlanStage("scout", scout, "coarse size and process curves at both ends: the focal vector"),
        PlanStage("ends", ENDS, "both ends of unique_bytes, twice: noise and contrast"),
        PlanStage("unique_bytes", curve, "where it falls steepest: boundaries between levels"),
        PlanStage("families", families, _of_families(families, curves)),
        *((learned,) if learning else ()),
        PlanStage("closing", CLOSING, "both ends once more: drift"),
    )


def _of_families(points: int, curves: Curves) -> str:
    """Say what the families are, and how many points of a curve two regions leave."""
    counts = curve_shares(points // 2, curves)
    few = ("focal", "process_num") if curves == "paper" else ("focal",)
    each = 1 + min(count for name, count in counts.items() if name not in few)
    return f"four curves per region, of {each} points in two regions; focal points repeated"


def reserved_75(points: int) -> int:
    """Points that stay for the final curves of the 75% version; a third of a small survey."""
    return min(RESERVED_75, points // 3)


def _stages_75(points: int) -> tuple[PlanStage, ...]:
    """Say what the stages are; how many points each takes is found on the way."""
    reserved = reserved_75(points)
    return (
        PlanStage(
            "75% point",
            points - reserved,
            "rounds over all five until nothing moves, then its curves",
        ),
        PlanStage("final curves", reserved, "points kept for the five curves at the vector found"),
    )


# Where to put the points of a curve, and how many each curve gets.

CURVE_WEIGHTS = {
    "focal": 4.0,
    "size_mean": 5.0,
    "read_frac": 5.0,
    "seq_frac": 5.0,
    "process_num": 5.0,
}
CURVE_ENDS = {"focal": 1, "process_num": 2, "size_mean": 2, "read_frac": 2, "seq_frac": 2}
"""Fewest points of each in a region: a curve without one of its ends says nothing beyond the other,
and a prediction there would be a guess."""


PAPER_WEIGHTS = {
    "focal": 1.0,
    "size_mean": 9.0,
    "read_frac": 9.0,
    "seq_frac": 9.0,
    "process_num": 1.0,
}
"""CP94 footnote 6; the focal point is one more of each."""
PAPER_ENDS = CURVE_ENDS | {"process_num": 1}


def curve_shares(points: int, curves: Curves = "even") -> dict[str, int]:
    """Split a region's points among its four curves and `focal`, the point that they share."""
    if curves == "paper":
        return share(points, PAPER_WEIGHTS, PAPER_ENDS)
    return share(points, CURVE_WEIGHTS, CURVE_ENDS)


def spread(
    low: float,
    high: float,
    anchors: Iterable[float],
    count: int,
    *,
    log: bool,
    low_first: bool = False,
) -> list[float]:
    """Choose `count` new x in [low, high]: the ends first, then the middle of the widest gap.

    Args:
        low: least x.
        high: greatest x.
        anchors: x that are measured anyway (the focal point).
        count: how many to add.
        log: whether distance is a ratio rather than a difference.
        low_first: whether the low end comes before the high one, where there is room for one.

    """
    to, back = (math.log, math.exp) if log else (float, float)
    taken = sorted(to(min(max(x, low), high)) for x in anchors)
    ends = (to(low), to(high)) if low_first else (to(high), to(low))
    chosen: list[float] = []
    for _ in range(count):
        new = _widest_gap(ends, taken)
        if new is None:
            break
        taken = sorted([*taken, new])
        chosen.append(min(max(back(new), low), high))
    return chosen


def _widest_gap(ends: tuple[float, float], taken: list[float]) -> float | None:
    close = abs(ends[0] - ends[1]) * 1e-9
    for end in ends:
        if not any(abs(end - x) <= close for x in taken):
            return end
    gaps = [(right - left, -left) for left, right in itertools.pairwise(taken)]
    if not gaps or max(gaps)[0] <= close:
        return None
    width, minus_left = max(gaps)
    return -minus_left + width / 2


def share(total: int, weights: Mapping[str, float], least: Mapping[str, int]) -> dict[str, int]:
    """Split `total` points by weight; largest remainders, ties to the first named.

    None gets fewer than its `least`; where there are not enough for all of those, they are dealt
    out one by one.
    """
    if sum(least.values()) >= total:
        rounds = range(max(least.values(), default=0))
        owed = [name for turn in rounds for name, own in least.items() if own > turn]
        return {name: owed[:total].count(name) for name in weights}
    open_ = dict(weights)
    counts = dict.fromkeys(weights, 0)
    while True:
        found = _by_weight(total - sum(counts.values()), open_)
        short = [name for name, count in found.items() if count < least[name]]
        if not short:
            return counts | found
        for name in short:
            counts[name] = least[name]
            del open_[name]


def _by_weight(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    whole = sum(weights.values())
    exact = {name: total * weight / whole for name, weight in weights.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts


# Whether a survey's slowest requests fit its budget, found out before it starts.

LARGE_REQUESTS = 14
"""A survey waits for about so many of its largest requests one by one before it knows how large
they may be: of four slow systems none with a budget of so many ended early, one with 13 did."""
ROOMY_POINT_S = 20.0
"""Points of this length hold many requests of anything that answers within seconds."""

TRIAL_S = 600.0
"""Virtual time is free."""


def require_fit(engine: Engine, target: Target, plan: Plan, seed: int) -> None:
    """Try one of the slowest workloads, and refuse a budget that such requests would use up.

    On a simulated system alone, where another one of the same kind is tried: on a real one the
    trial would have to write all the data first, which is the survey's own first cost. There the
    scouting ends its ranges where requests get too slow.

    Raises:
        PlanRefused: the budget is too short; the message says how long it must be.

    """
    if not engine.virtual or plan.point_s >= ROOMY_POINT_S:
        return
    workload = Workload(unique_bytes=plan.unique_bytes_max, size_mean=plan.size_mean_max)
    limits = Limits(
        warm_up_s_max=0.0,
        warm_up_s_min=0.0,
        measure_s_min=TRIAL_S,
        measure_s_max=TRIAL_S,
        accuracy=0.0,
        total_s_max=2 * TRIAL_S,
    )
    with open_engine(target, engine.access, run_seed=seed) as another:
        try:
            result = another.run(workload, seed=seed, limits=limits)
        except NothingCompleted:
            request_s = TRIAL_S
        else:
            request_s = workload.size_mean / (1e6 * result.throughput_mb_s.value)
    if LARGE_REQUESTS * request_s > plan.budget_s:
        raise PlanRefused(
            f"a request of {format_bytes(plan.size_mean_max)} on "
            f"{format_bytes(plan.unique_bytes_max)} takes {format_seconds(request_s)} here: "
            f"{plan.points} points do not fit {format_seconds(plan.budget_s)}. Give --budget "
            f"{round(1.2 * LARGE_REQUESTS * request_s)}s or more."
        )
