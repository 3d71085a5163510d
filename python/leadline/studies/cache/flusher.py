"""What writeback costs: the rate of cached writes while it works against while it rests.

Writeback is the kernel's writing out of dirty cached data behind a program's back. CP93
section 4.2 found one that slowed writes by a factor of 4. Two ways to see it:

dirty limits  As root, the kernel's limits of dirty data are set so that writeback rests (nothing
              is written before half of memory is dirty, and no timer wakes it) or so that it works
              all the time (some MiB wake it), while the writer itself is never held back. Runs
              alternate; each pair gives a ratio.
windows       Otherwise one long run at the limits as they are: moments in which the device wrote
              against moments in which it did not. Neighbouring stretches give the pairs, so that a
              slow change of the machine is in neither.

That writeback rested or worked is not believed but seen, in the bytes that the device wrote per
byte asked. Other programs' writes are counted there too: where resting and working are not far
apart, the answer is "inconclusive".
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

import msgspec

from leadline.engine import Engine, Limits, NothingCompleted, Target, available_memory_bytes
from leadline.machine.device_writes import watched_device
from leadline.machine.dirty_limits import (
    DirtyLimits,
    DirtyLimitsRefused,
    varied_dirty_limits,
    why_not,
)
from leadline.record import EngineResult, Interval, Workload, derive_seed
from leadline.record.wording import format_rate_ci, format_share
from leadline.record.writes import FlusherCost
from leadline.stats.intervals import pooled_noise, reading_interval
from leadline.units import format_percent, format_seconds

PAIRS = 6
RUN_S = 1.5
"""Length of one run of a pair; shorter ones hold too few turns of writeback."""
WINDOW_S = 70.0
"""Two turns of writeback that writes what is thirty seconds old, as Linux does."""
WAKE_BYTES = 4 * 2**20
"""Dirty data that wakes writeback where it is to work all the time."""
REST_SHARE, HOLD_SHARE = 0.5, 0.8
"""Shares of memory below which a resting writeback writes nothing, and no writer is held back."""
APART_MIN = 4.0
"""Times more that the device must have written while writeback worked than while it rested."""
WORKS_MIN, RESTS_MAX = 0.25, 0.05
"""Shares of the busiest window's device rate from which it works, and up to which it rests."""
PEAK_MIN_BYTES = 4 * 2**20
"""Less than this in every window is the file system's own journal, not writeback."""
SLIGHT = 0.05
"""A cost that is surely below this does not slow."""

Method = Literal["dirty limits", "windows"]


@dataclass(frozen=True)
class Window:
    """What was asked and what the device wrote in a short stretch of time."""

    seconds: float
    asked_bytes: float
    device_bytes: float


@dataclass(frozen=True)
class Pair:
    """A stretch in which writeback rested and a neighbour in which it worked."""

    resting: Window
    working: Window


def measure_flusher(
    engine: Engine, target: Target, workload: Workload, *, seed: int = 1, pairs: int = PAIRS
) -> tuple[FlusherCost, tuple[EngineResult, ...]]:
    """Measure what writeback costs writes that fit the cache.

    Args:
        engine: the opened target; its writes must be buffered and wait for nothing.
        target: the same target.
        workload: writes only, of data that fits the cache well (an eighth of memory at most).
        seed: decides addresses.
        pairs: pairs of runs, where the dirty limits may be varied.

    Returns:
        What was found, and every run that it rests on, in order.

    Raises:
        PointFailed: a run met an I/O error.
        TargetRefused: the workload does not fit.
        EngineFault: the engine died, hung or spoke nonsense.

    """
    if engine.virtual:
        if "flusher" not in (target.profile or {}):
            return _unknown(workload, "windows", "the simulated system has no writeback"), ()
        return _virtual_windows(engine, workload, seed)
    memory_bytes = available_memory_bytes()
    if why_not() is not None or memory_bytes is None:
        return _by_windows(engine, target, workload, seed)
    try:
        return _by_limits(engine, workload, seed, pairs, memory_bytes)
    except DirtyLimitsRefused as refusal:  # another Leadline has them just now
        return _unknown(workload, "dirty limits", str(refusal)), ()
    except NothingCompleted:
        # Whose stall it was is not known: without this pair the cost would look smaller than it is.
        reason = f"a write took longer than a whole run of {format_seconds(RUN_S)}"
        return _unknown(workload, "dirty limits", reason), ()


def _by_limits(
    engine: Engine, workload: Workload, seed: int, pairs: int, memory_bytes: int
) -> tuple[FlusherCost, tuple[EngineResult, ...]]:
    limits = Limits(
        warm_up_s_max=RUN_S / 2,
        measure_s_min=RUN_S,
        measure_s_max=RUN_S,
        accuracy=0.0,
        total_s_max=120.0,
    )
    engine.prepare()
    found, results = [], []
    with varied_dirty_limits() as dirty:
        for number in range(pairs):
            at: dict[bool, EngineResult] = {}
            # Turns change places, so that a slow change of the machine favours neither.
            for works in (False, True) if number % 2 == 0 else (True, False):
                with _flusher(dirty, memory_bytes, works=works):
                    at[works] = engine.run(workload, seed=derive_seed(seed, number), limits=limits)
                results.append(at[works])
            found.append((_window_of(at[False]), _window_of(at[True])))
    known = [Pair(rested, worked) for rested, worked in found if rested and worked]
    if len(known) < len(found):
        reason = "the bytes that the device wrote cannot be seen from here"
        return _unknown(workload, "dirty limits", reason), tuple(results)
    return cost_of_pairs(workload, known, "dirty limits"), tuple(results)


@contextmanager
def _flusher(dirty: DirtyLimits, memory_bytes: int, *, works: bool) -> Iterator[None]:
    """Let it rest, or work all the time, until the block ends.

    `memory_bytes` is the machine's, as the limits are; a memory cgroup gets its share of them.
    """
    dirty.put(dirty_bytes=round(HOLD_SHARE * memory_bytes))
    if works:
        dirty.put(dirty_background_bytes=WAKE_BYTES)
    else:
        dirty.put(
            dirty_background_bytes=round(REST_SHARE * memory_bytes), dirty_writeback_centisecs=0
        )
    try:
        yield
    finally:
        dirty.put_back()


def _window_of(result: EngineResult) -> Window | None:
    if result.device_bytes is None:
        return None
    return Window(result.wall_s, result.workload_bytes.write, result.device_bytes.write)


def _by_windows(
    engine: Engine, target: Target, workload: Workload, seed: int
) -> tuple[FlusherCost, tuple[EngineResult, ...]]:
    limits = Limits(
        warm_up_s_max=2.0,
        measure_s_min=WINDOW_S,
        measure_s_max=WINDOW_S,
        accuracy=0.0,
        total_s_max=WINDOW_S + 120.0,
    )
    opened_s: list[float] = []

    def on_event(event: dict[str, Any]) -> None:
        if event.get("event") == "phase" and event.get("phase") == "measure":
            opened_s.append(time.monotonic())

    engine.prepare()
    with watched_device(target.path or "/") as writes:
        result = engine.run(workload, seed=seed, limits=limits, on_event=on_event)
    if writes is None or not opened_s:
        reason = "no block device under the target can be watched"
        return _unknown(workload, "windows", reason), (result,)
    windows = [
        Window(slice_.seconds, slice_.bytes, writes.between(begin, begin + slice_.seconds))
        for slice_ in result.intervals
        for begin in [opened_s[0] + slice_.start_s]
    ]
    return cost_of_windows(workload, windows), (result,)


def _virtual_windows(
    engine: Engine, workload: Workload, seed: int
) -> tuple[FlusherCost, tuple[EngineResult, ...]]:
    """Short runs one after the other: virtual time costs nothing, and each tells its bytes."""
    limits = Limits(
        warm_up_s_max=0.05, measure_s_min=0.5, measure_s_max=0.5, accuracy=0.0, total_s_max=60.0
    )
    results = [
        engine.run(workload, seed=derive_seed(seed, number), limits=limits)
        for number in range(round(2 * WINDOW_S))
    ]
    windows = [window for window in map(_window_of, results) if window is not None]
    return cost_of_windows(workload, windows), tuple(results)


def cost_of_windows(workload: Workload, windows: Sequence[Window]) -> FlusherCost:
    """Tell the cost from windows in the order of time; pure.

    Windows in which the device wrote little but not nothing belong to neither side. Neighbours of
    one kind make a stretch, less its first and last where it has three or more: they may hold the
    edge. The stretches are paired in the order of time, each used once, so that no two ratios
    share a reading.
    """
    peak = max(windows, key=_device_rate, default=None)
    if peak is None or peak.device_bytes < min(PEAK_MIN_BYTES, peak.asked_bytes / 2):
        reason = "writeback did not work while it was watched"
        return _unknown(workload, "windows", reason)
    stretches: list[tuple[bool, list[Window]]] = []
    for window in windows:
        share = _device_rate(window) / _device_rate(peak)
        if RESTS_MAX < share < WORKS_MIN:
            continue
        works = share >= WORKS_MIN
        if stretches and stretches[-1][0] == works:
            stretches[-1][1].append(window)
        else:
            stretches.append((works, [window]))
    inner = [_joined(part[1:-1] if len(part) > 2 else part) for _, part in stretches]
    first_works = bool(stretches) and stretches[0][0]
    pairs = [
        Pair(*((other, one) if first_works else (one, other)))
        for one, other in zip(inner[::2], inner[1::2], strict=False)
    ]
    return cost_of_pairs(workload, pairs, "windows")


def cost_of_pairs(workload: Workload, pairs: Sequence[Pair], method: Method) -> FlusherCost:
    """Tell the cost from pairs of neighbouring stretches; pure."""
    whole = [pair for pair in pairs if _rate(pair.resting) > 0 and _rate(pair.working) > 0]
    if len(whole) < 2:
        kinds = "never changed between rest and work" if not whole else "changed only once"
        return _unknown(workload, method, f"writeback {kinds} while it was watched")
    resting, working = ([getattr(p, kind) for p in whole] for kind in ("resting", "working"))
    ratio = _interval([_rate(pair.working) / _rate(pair.resting) for pair in whole])
    assert ratio.low is not None and ratio.high is not None  # noqa: S101, PT018 - two or more
    cost = Interval(1 - ratio.value, 1 - ratio.high, 1 - ratio.low, ratio.n)
    reaches = (_reach(resting), _reach(working))
    found = FlusherCost(
        workload=workload,
        method=method,
        verdict="inconclusive",
        resting_mb_s=_interval([_rate(window) for window in resting]),
        working_mb_s=_interval([_rate(window) for window in working]),
        cost_frac=cost,
        resting_reach=reaches[0],
        working_reach=reaches[1],
    )
    if reaches[1] < APART_MIN * reaches[0]:
        reason = (
            f"the device wrote {format_percent(reaches[0])} of the bytes asked while writeback was "
            f"to rest and {format_percent(reaches[1])} while it was to work: too little apart, as "
            "where other programs write or every write goes to the disk"
        )
        return _said(msgspec.structs.replace(found, reason=reason))
    if cost.low is not None and cost.low > 0:
        return _said(msgspec.structs.replace(found, verdict="slows"))
    if cost.high is not None and cost.high < SLIGHT:
        return _said(msgspec.structs.replace(found, verdict="does not slow"))
    return _said(msgspec.structs.replace(found, reason="the runs scatter by more than it costs"))


def _unknown(workload: Workload, method: Method, reason: str) -> FlusherCost:
    return _said(
        FlusherCost(
            workload=workload,
            method=method,
            verdict="inconclusive",
            resting_mb_s=None,
            working_mb_s=None,
            cost_frac=None,
            resting_reach=None,
            working_reach=None,
            reason=reason,
        )
    )


def _said(found: FlusherCost) -> FlusherCost:
    return msgspec.structs.replace(found, sentence=_sentence(found))


def _sentence(found: FlusherCost) -> str:
    resting, working, cost = found.resting_mb_s, found.working_mb_s, found.cost_frac
    if resting is None or working is None or cost is None:
        return f"Writeback cost: inconclusive: {found.reason}."
    rates = (
        f"cached writes {format_rate_ci(working)} with writeback active, "
        f"{format_rate_ci(resting)} idle"
    )
    seen = (
        f"the device wrote {format_percent(found.working_reach or 0.0)} and "
        f"{format_percent(found.resting_reach or 0.0)} of the bytes asked"
    )
    if found.verdict == "slows":
        return f"Writeback cost: {format_share(cost)} of the rate; {rates} ({seen})."
    if found.verdict == "does not slow":
        return f"Writeback cost: not significant; {rates} ({seen})."
    return f"Writeback cost: inconclusive: {found.reason}; {rates} ({seen})."


def _interval(readings: Sequence[float]) -> Interval:
    return reading_interval(readings, None, pooled_noise([readings]))


def _rate(window: Window) -> float:
    return window.asked_bytes * 1e-6 / window.seconds if window.seconds > 0 else 0.0


def _device_rate(window: Window) -> float:
    return window.device_bytes / window.seconds if window.seconds > 0 else 0.0


def _reach(windows: Sequence[Window]) -> float:
    return sum(w.device_bytes for w in windows) / sum(w.asked_bytes for w in windows)


def _joined(parts: Sequence[Window]) -> Window:
    return Window(
        sum(part.seconds for part in parts),
        sum(part.asked_bytes for part in parts),
        sum(part.device_bytes for part in parts),
    )
