"""A cache study's plan, the questions it asks, and what it refuses."""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Sequence

from leadline.engine import LAYOUT_BYTES_PER_S
from leadline.errors import LeadlineError
from leadline.record import CachePlan, CacheStart, Measurement, PlanStage, Workload, derive_seed
from leadline.stats import next_unique_bytes
from leadline.studies.cache.sizes import kind_curve, nearest_boundary
from leadline.studies.hit_ratio import telling_place
from leadline.studies.script import PointRequest
from leadline.units import format_bytes, format_seconds

# What a cache study can refuse.


class CacheStudyRefused(LeadlineError):
    """No sensible study fits; the message says which limit to change."""

    exit_code = 2


# The plan of a cache study: its ranges and its number of points, fixed before it starts.

SIZE_MEAN = 32 * 1024
"""CP93 compares its systems at 32 KB (Figs. 2, 3 and 5)."""
BLOCK_BYTES = 4096
UNIQUE_BYTES_MIN = 256 * 2**10
LAYOUT_SHARE = 0.2
"""Most of the budget that may go into writing data before the first point."""
MEMORY_FACTOR = 4
"""Past four times the memory three of four random requests miss any cache in it: enough to see
its boundary. A survey goes further, because it is to see what lies behind as well."""
RANGE_FACTOR_MIN = 8
"""A curve shorter than this factor cannot show a boundary and two plateaus."""

ENDS = 8
"""Both ends of both curves, twice."""
POLICY = 12
"""Reads and writes within the cache and beyond it, three times each."""
WRITES_S = 80.0
"""Kept for the write modes and writeback, each of which takes some thirty seconds."""
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
        memory_bytes: memory that can hold page cache (the cgroup's cap when there is one).
        l3_cache_bytes: the processor's last cache; data that fits it measures the processor.
        virtual: whether time costs nothing (a simulated system).
        write_costs: whether to keep time for the write modes and writeback.

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
            PlanStage("sizes", sizes, "reads and writes apart, where they fall: two boundaries"),
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


# Which point a cache study measures next: asked for a point, told its measurement.
#
# No I/O, no clock, and only the study's seed to draw from: the same measurements always lead to the
# same questions, so a stopped study goes on where it was, by telling it the stored points again.

READS, WRITES = 1.0, 0.0
INSIDE = 0.25
"""The rates within the cache are taken at this share of the smaller size: far from the boundary,
and written over often enough for the bytes at the device to be a proof."""
OUTSIDE = 4.0
"""The rates beyond it at this many times the larger one, or where the range ends."""
CLOSING = 6
"""So many of the last readings of each kind first close in on the boundary of the page cache..."""
GAP = 1.06
"""...until the two readings around it differ by no more than this factor."""

Script = Generator[tuple[str, Workload], None, None]


class Questions:
    """Asks for points; `points` are those told so far, in order."""

    def __init__(self, start: CacheStart, recorded: Sequence[Measurement] = ()) -> None:
        """Begin a study, or take up a recorded one where it was left.

        Raises:
            CacheStudyRefused: a stored point is not the one this study would have asked for.

        """
        self.start = start
        self.points: list[Measurement] = []
        self._random = random.Random(start.seed)  # noqa: S311 - order of points, not a secret
        self._script = self._ask_all()
        self._pending = next(self._script, None)
        for point in recorded:
            self.tell(point)

    def ask(self) -> PointRequest | None:
        """Return the next point; None when the study is complete."""
        if self._pending is None:
            return None
        stage, workload = self._pending
        order = len(self.points)
        return PointRequest(order, stage, workload, derive_seed(self.start.seed, order))

    def tell(self, point: Measurement) -> None:
        """Take the measurement of the point last asked for.

        Raises:
            CacheStudyRefused: it answers another question.

        """
        if self._pending is None or self._pending[1] != point.workload:
            raise CacheStudyRefused(
                f"stored point {point.order} measured {point.workload}, but this version of "
                f"Leadline would have measured {self._pending and self._pending[1]}; start a new "
                "study instead of resuming this one"
            )
        self.points.append(point)
        self._pending = next(self._script, None)

    def _ask_all(self) -> Script:
        counts = {stage.name: stage.points for stage in self.start.plan.stages}
        plan = self.start.plan
        ends = (plan.unique_bytes_min, plan.unique_bytes_max)
        yield from self._shuffled("ends", ends, counts["ends"] // 4)
        for left in range(counts["sizes"] // 2, 0, -1):
            for kind in self._random.sample((READS, WRITES), 2):
                yield "sizes", self._at(self._next_place(kind, left), kind)
        yield from self._shuffled("policy", self._rate_places(), counts["policy"] // 4)

    def _shuffled(self, stage: str, places: Sequence[int], times: int) -> Script:
        """Every place with reads and with writes, `times` each, in an order drift cannot mimic."""
        for _ in range(times):
            turn = [self._at(place, kind) for place in places for kind in (READS, WRITES)]
            self._random.shuffle(turn)
            for workload in turn:
                yield stage, workload

    def _at(self, unique_bytes: float, kind: float) -> Workload:
        return Workload(
            unique_bytes=max(BLOCK_BYTES, round(unique_bytes / BLOCK_BYTES) * BLOCK_BYTES),
            size_mean=self.start.plan.size_mean,
            read_frac=kind,
            seq_frac=0.0,
            size_dist="fixed",
        )

    def _next_place(self, kind: float, left: int) -> float:
        plan = self.start.plan
        readings = kind_curve(self.points, kind, seed=self.start.seed, fit=False).readings
        if left <= CLOSING:
            gap = self._gap_around_boundary(kind)
            if gap is not None:
                return gap
        return next_unique_bytes(readings, plan.unique_bytes_min, plan.unique_bytes_max, left)

    def _gap_around_boundary(self, kind: float) -> float | None:
        """Where the boundary is narrowed or confirmed; None once it is both.

        The middle of the gap between readings in which it lies: where hits end at once, as under a
        scan, nothing else narrows it, and lower levels, whose boundaries are as steep, must not
        take all the readings. Then the reading just beyond it once more: a moment's disturbance
        there looks like a boundary. Where lookups tell the size, they do so from further on.
        """
        curve = kind_curve(self.points, kind, seed=self.start.seed)
        boundary = nearest_boundary(curve)
        if boundary is None:
            return None
        if curve.counted is not None:
            return telling_place(curve.points, self.start.plan.unique_bytes_max)
        places = [place for place, _ in curve.readings]
        below = max((x for x in places if x <= boundary.bytes.value), default=min(places))
        above = min((x for x in places if x > boundary.bytes.value), default=max(places))
        if above > GAP * below:
            return math.sqrt(below * above)
        return above if places.count(above) == 1 else None

    def _rate_places(self) -> tuple[int, int]:
        plan, seed = self.start.plan, self.start.seed
        curves = [kind_curve(self.points, kind, seed=seed) for kind in (READS, WRITES)]
        ends = [end for curve in curves if (end := nearest_boundary(curve))]
        if not ends:
            return plan.unique_bytes_min, plan.unique_bytes_max
        smaller = min(end.bytes.value for end in ends)
        # Lookups may tell a boundary where the rest of the curve shows none.
        shown = [boundary for curve in curves for boundary in curve.boundaries] or ends
        larger = max(boundary.bytes.value for boundary in shown)
        inside = max(INSIDE * smaller, plan.unique_bytes_min)
        return round(inside), round(min(OUTSIDE * larger, plan.unique_bytes_max))
