"""The plan of a cache study: its ranges and its number of points, fixed before it starts."""

from __future__ import annotations

from leadline.engine import LAYOUT_BYTES_PER_S
from leadline.record import CachePlan, PlanStage
from leadline.studies.cache.errors import CacheStudyRefused
from leadline.units import format_bytes, format_seconds

SIZE_MEAN = 32 * 1024
"""CP93 compares its systems at 32 KB (Figs. 2, 3 and 5)."""
BLOCK_BYTES = 4096
UNIQUE_BYTES_MIN = 256 * 2**10
LAYOUT_SHARE = 0.2
"""Most of the budget that may go into writing data before the first point."""
MEMORY_FACTOR = 4
"""Past four times the memory three of four random requests miss any cache in it: enough to see
its border. A survey goes further, because it is to see what lies behind as well."""
RANGE_FACTOR_MIN = 8
"""A curve shorter than this factor cannot show a border and two plateaus."""

ENDS = 8
"""Both ends of both curves, twice."""
POLICY = 12
"""Reads and writes within the cache and beyond it, three times each."""
WRITES_S = 80.0
"""Kept for the disciplines and the flusher, each of which takes some thirty seconds."""
WRITES_BUDGET_S_MIN = 180.0
"""A smaller budget goes to the sizes and the policy alone."""
SIZES_MIN, SIZES_MAX = 20, 32
SECONDS_PER_POINT_WANTED = 4.0
SECONDS_PER_POINT_MIN = 0.8


def make_plan(
    *,
    budget_s: float,
    capacity_bytes: int,
    memory_bytes: int | None,
    l3_cache_bytes: int | None,
    virtual: bool,
    write_costs: bool = True,
) -> CachePlan:
    """Lay out a study within a budget.

    Args:
        budget_s: hard cap on the whole study; virtual seconds on a simulated system.
        capacity_bytes: most data the target may hold, the user's own cap included.
        memory_bytes: memory that can hold file cache (the cgroup's cap when there is one).
        l3_cache_bytes: the processor's last cache; data that fits it measures the processor.
        virtual: whether time costs nothing (a simulated system).
        write_costs: whether to keep time for the disciplines and the flusher.

    Raises:
        CacheStudyRefused: the budget, or the room for data, is too small.

    """
    least_s = (ENDS + POLICY + SIZES_MIN) * SECONDS_PER_POINT_MIN / (0.97 - LAYOUT_SHARE)
    if budget_s < least_s:
        raise CacheStudyRefused(
            f"a budget of {format_seconds(budget_s)} is too small to measure "
            f"{ENDS + POLICY + SIZES_MIN} points; give --budget {round(1.2 * least_s)}s or more"
        )
    if not virtual:
        capacity_bytes = min(capacity_bytes, int(LAYOUT_SHARE * budget_s * LAYOUT_BYTES_PER_S))
    low, high = _range(capacity_bytes, memory_bytes, l3_cache_bytes)
    layout_s = 0.0 if virtual else high / LAYOUT_BYTES_PER_S
    writes_s = WRITES_S if write_costs and budget_s >= WRITES_BUDGET_S_MIN else 0.0
    measuring_s = 0.97 * budget_s - layout_s - writes_s
    wanted = int(measuring_s / SECONDS_PER_POINT_WANTED) - ENDS - POLICY
    sizes = max(SIZES_MIN, min(SIZES_MAX, wanted - wanted % 2))
    return CachePlan(
        stages=(
            PlanStage("ends", ENDS, "reads and writes at both ends, twice: noise and contrast"),
            PlanStage("sizes", sizes, "reads and writes apart, where they fall: two borders"),
            PlanStage("policy", POLICY, "within the cache and beyond it: what happens to writes"),
        ),
        budget_s=budget_s,
        writes_s=writes_s,
        point_s=measuring_s / (ENDS + sizes + POLICY),
        layout_bytes=0 if virtual else high,
        unique_bytes_min=low,
        unique_bytes_max=high,
        size_mean=min(SIZE_MEAN, max(BLOCK_BYTES, low // 4 // BLOCK_BYTES * BLOCK_BYTES)),
    )


def _range(capacity_bytes: int, memory_bytes: int | None, l3_bytes: int | None) -> tuple[int, int]:
    """Range of unique_bytes: above the processor's cache, to past what memory can hold."""
    low, high = UNIQUE_BYTES_MIN, capacity_bytes
    if memory_bytes is not None:
        high = min(high, MEMORY_FACTOR * memory_bytes)
        low = max(low, min(2 * (l3_bytes or 0), memory_bytes // 8))
    low, high = -(-low // BLOCK_BYTES) * BLOCK_BYTES, high // BLOCK_BYTES * BLOCK_BYTES
    if high < RANGE_FACTOR_MIN * low:
        raise CacheStudyRefused(
            f"only {format_bytes(high)} may be used on the target and this study starts at "
            f"{format_bytes(low)}: give --max-bytes {format_bytes(RANGE_FACTOR_MIN * low)} or "
            "more, free some space, lower --cache-limit, or raise --budget"
        )
    return low, high
