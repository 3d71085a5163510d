"""The better self-scaling benchmark (CP94 §8): families of curves, focal points in the middle.

The focal vector's size_mean and process_num are common to all regions, as in the paper's
Figs. 7 and 18-22, so that the curve over unique_bytes passes through every region's focal point.
They depend on each other: they are iterated to a fixed point on a coarse scouting of both ends
of unique_bytes, and the families measured afterwards confirm them or say they were not settled.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from leadline.engine import MEASURE_SHARE
from leadline.models.joint import JointModel, fit_joint
from leadline.models.learning import BATCH, Box, enough, next_points
from leadline.models.model import sample_of
from leadline.record import PARAMETERS, PROCESSES_MAX, Measurement, Plan, Workload
from leadline.record.workload import FRACTIONS
from leadline.stats import half_way_x, next_unique_bytes, still_rising
from leadline.studies.hit_ratio import telling_place, throughput
from leadline.studies.survey.boundaries import Decided, SurveyReadings, curve_of, decide, value
from leadline.studies.survey.plan import curve_shares, spread

CLOSING = 4
"""So many of the last readings over unique_bytes go where lookups tell most of the page cache's
size, while too few lie there."""

SCOUT_NOISE_FRAC = 0.05
"""Run-to-run noise assumed of the coarse curves, which have no replicates of their own."""

RANGE_EXTENSION = 4.0
"""A range whose end still gains is made longer by this factor (CP94 §8: until it stops rising)."""

REQUESTS_PER_WINDOW = 2.0
"""A window that is shorter than so many of the largest requests measures where it was cut."""

REGION_SPAN = 3.0
"""The last region is taken to end at this many times its boundary, so its middle is at twice that:
near what CP93 chose (Table 2)."""

Script = Generator[tuple[str, Workload] | None, None, None]
"""Of (stage, workload) of the next point; None before a decision that takes thought: it need not
be taken before the point is wanted."""


@dataclass(frozen=True)
class RegionBounds:
    """One region and the unique_bytes at its focal point."""

    low_bytes: int
    high_bytes: int
    focal_bytes: int


class MiddleStrategy:
    """Decides the points of the revised benchmark; see the module's first lines.

    Attributes:
        focal: the focal vector; its unique_bytes is a region's, never the vector's own.
        tops: where the ranges of size_mean and process_num end; past the plan's own while
            performance still rose there.
        decided: the boundaries once unique_bytes has been measured, else None.
        regions: what the families were measured for.

    """

    def __init__(
        self,
        plan: Plan,
        seed: int,
        readings: SurveyReadings,
        recorded: Sequence[Measurement] = (),
        *,
        memory_bytes: int | None = None,
        processors: float | None = None,
        needed: Sequence[Workload] = (),
        at_once_bytes: float = math.inf,
        paged: bool = False,
    ) -> None:
        """Begin a script.

        Args:
            plan: stages and ranges.
            seed: of the order of points and of what learning chooses from.
            readings: what was told so far; grows while the script runs.
            recorded: the points that will be told first, in order, because they were stored.
            memory_bytes: memory that can hold page cache, where it is known.
            processors: of the machine, where they are known.
            needed: an application's kinds of requests.
            at_once_bytes: most bytes of requests at one time in a point that learns.
            paged: whether requests go through a page cache.

        """
        self.plan = plan
        self.seed = seed
        self.readings = readings
        self.recorded = recorded
        self.memory_bytes = memory_bytes
        self.processors = processors
        self.needed = needed
        self.at_once_bytes = at_once_bytes
        self.paged = paged
        self.focal = START
        self.tops = {
            "size_mean": float(plan.size_mean_max),
            "process_num": float(plan.process_num_max),
        }
        self.decided: Decided | None = None
        self.regions: tuple[RegionBounds, ...] = ()
        self._random = random.Random(seed)  # noqa: S311 - order of points, not a secret

    def script(self) -> Script:
        """Yield (stage, workload) for every point of the plan, in order."""
        yield from self._scout()
        yield from self._ends("ends", (0, 1, 1, 0))
        yield from self._unique_bytes()
        yield from self._families()
        yield from self._learning()
        yield from self._ends("closing", (1, 0))

    def focal_in(self, region: RegionBounds) -> Workload:
        """Focal vector of one region."""
        return self.focal.with_value("unique_bytes", region.focal_bytes)

    def _count(self, stage: str) -> int:
        return sum(item.points for item in self.plan.stages if item.name == stage)

    # ---- the focal vector -------------------------------------------------------------------

    def _scout(self) -> Script:
        """Iterate size_mean and process_num to a fixed point, each on a coarse curve at both ends.

        The step limit is what the stage's points allow: size, processes, size again.
        """
        total = self._count("scout")
        xs_count = 3 if total >= 12 else 2
        for step in range(total // (2 * xs_count)):
            parameter = ("size_mean", "process_num")[step % 2]
            curves = [self._coarse_curve(parameter, end, xs_count) for end in self._end_values()]
            grid = [workload for curve in curves for workload in curve]
            self._random.shuffle(grid)
            for workload in grid:
                yield "scout", workload
            curves_found = self._curves_at_ends(parameter)
            if any(still_rising(xs, ys, SCOUT_NOISE_FRAC) for xs, ys in curves_found):
                self.tops[parameter] = self._extended_top(parameter)
            self.tops["size_mean"] = min(self.tops["size_mean"], self._size_in_time())
            found = half_way_of(curves_found, parameter)
            self.focal = self.focal.with_value(parameter, found)

    def _size_in_time(self) -> float:
        """Largest mean size of which the slow end completes a few in the window of one point.

        By the rate of the largest that was tried there: a slow disk in a short survey would spend
        it on waiting for single requests.
        """
        largest = max(
            (p for p in self.readings.all if p.workload.unique_bytes == self._end_values()[1]),
            key=lambda point: point.workload.size_mean,
        )
        window_s = MEASURE_SHARE * self.plan.point_s
        size = 1e6 * throughput(largest) * window_s / REQUESTS_PER_WINDOW
        return max(4.0 * self.plan.size_mean_min, float(size // 512 * 512))

    def _end_values(self) -> tuple[int, int]:
        return self.plan.unique_bytes_min, self.plan.unique_bytes_max

    def _coarse_curve(self, parameter: str, end: int, count: int) -> list[Workload]:
        at_end = self.focal.with_value("unique_bytes", end)
        if parameter == "process_num":
            low, high = 1.0, self.tops["process_num"]
        else:
            low, high = float(self.plan.size_mean_min), self._size_max(end)
        known = [value(point, parameter) for point in self.readings.along(parameter, at_end)]
        xs = spread(low, high, known, count, log=True)
        xs += [low] * (count - len(xs))
        return [at_end.with_value(parameter, snap(x, parameter)) for x in xs]

    def _extended_top(self, parameter: str) -> float:
        if parameter == "size_mean":
            return RANGE_EXTENSION * self.plan.size_mean_max
        return min(RANGE_EXTENSION * self.plan.process_num_max, float(PROCESSES_MAX))

    def _curves_at_ends(self, parameter: str) -> list[tuple[list[float], list[float]]]:
        """The coarse curve of one parameter at each end of unique_bytes."""
        ends = [self.focal.with_value("unique_bytes", end) for end in self._end_values()]
        return [curve_of(self.readings.along(parameter, end), parameter) for end in ends]

    def _size_max(self, unique_bytes: int) -> float:
        """Largest mean size worth asking of a region: a request must not span the region."""
        return max(self.plan.size_mean_min * 4, min(self.tops["size_mean"], unique_bytes // 4))

    # ---- the unique_bytes curve and its regions ---------------------------------------------

    def _ends(self, stage: str, order: tuple[int, ...]) -> Script:
        for index in order:
            yield stage, self.focal.with_value("unique_bytes", self._end_values()[index])

    def _unique_bytes(self) -> Script:
        count = self._count("unique_bytes")
        for left in range(count, 0, -1):
            x = self._next_unique_bytes(left)
            yield "unique_bytes", self.focal.with_value("unique_bytes", _whole_blocks(x))
        self.decided = decide(
            self.readings.along("unique_bytes", self.focal),
            seed=self.seed,
            memory_bytes=self.memory_bytes,
        )
        ends = [boundary.bytes.value for boundary in self.decided.boundaries]
        self.regions = region_bounds(ends, self.plan)

    def _next_unique_bytes(self, left: int) -> float:
        points = self.readings.along("unique_bytes", self.focal)
        telling = telling_place(points, self.plan.unique_bytes_max) if left <= CLOSING else None
        if telling is not None:
            return telling
        readings = [(value(point, "unique_bytes"), throughput(point)) for point in points]
        return next_unique_bytes(readings, *self._end_values(), left)

    # ---- the families -----------------------------------------------------------------------

    def _families(self) -> Script:
        total = self._count("families")
        count = len(self.regions)
        per_region = [total // count + (index < total % count) for index in range(count)]
        singles: list[Workload] = []
        focals: list[Workload] = []
        for region, points in zip(self.regions, per_region, strict=True):
            curves, repeats = self._family(region, points)
            singles += curves
            focals += [self.focal_in(region)] * repeats
        self._random.shuffle(singles)
        for workload in interleave(singles, _round_robin(focals)):
            yield "families", workload

    def _family(self, region: RegionBounds, points: int) -> tuple[list[Workload], int]:
        """Workloads of the four curves of one region, and how often its focal point repeats."""
        counts = curve_shares(points, self.plan.curves)
        focal = self.focal_in(region)
        workloads: list[Workload] = []
        for parameter in PARAMETERS[1:]:
            low, high = self.parameter_range(parameter, region)
            at = float(getattr(focal, parameter))
            xs = spread(
                low,
                high,
                (at,),
                counts[parameter],
                log=(parameter in ("size_mean", "process_num", "unique_bytes")),
                # Of one end alone: more workloads have one process than the most.
                low_first=parameter == "process_num" and counts[parameter] == 1,
            )
            for x in xs:
                workload = focal.with_value(parameter, snap(x, parameter))
                if workload != focal and workload not in workloads:
                    workloads.append(workload)
        return workloads, points - len(workloads)

    def parameter_range(self, parameter: str, region: RegionBounds) -> tuple[float, float]:
        """Range of a curve in a region; the focal value always lies inside."""
        if parameter in FRACTIONS:
            return 0.0, 1.0
        focal = float(getattr(self.focal, parameter))
        if parameter == "process_num":
            return 1.0, max(focal, self.tops["process_num"])
        high = self._size_max(region.focal_bytes)
        return float(min(self.plan.size_mean_min, focal)), float(max(high, focal))

    # ---- learning ---------------------------------------------------------------------------

    def _learning(self) -> Script:
        """Measure where predictions gain most, until they are as good as a run of one's own.

        What was learned before is what the record says: a model's arithmetic differs between
        processors in its last digits, and the best of many candidates with them. No model is
        fitted until a point is wanted that the record does not have; then those of the batches
        before are fitted too, each starts from the last, so that a resumed survey asks what it
        would have asked.
        """
        left = self._count("learning")
        model: JointModel | None = None
        fits_owed: list[int] = []
        while left > 0:
            size = min(BATCH, left)
            before = len(self.readings.all)
            fits_owed.append(before)
            known = self._recorded_learning(size)
            for workload in known:
                yield "learning", workload
            if len(known) < size:
                if len(self.recorded) > len(self.readings.all):
                    return
                yield None
                model = self._fitted(fits_owed, model)
                fits_owed = []
                seed = self.seed + before
                if not known and enough(model, self._box(), seed):
                    return
                points = self.readings.all[:before]
                needed = self._needed()
                batch = next_points(model, points, self._box(), size, seed, needed=needed)
                for workload in batch[len(known) :]:
                    yield "learning", workload
            left -= size

    def _needed(self) -> list[Workload]:
        """What an application needs to be known, in every region, as far as a survey goes."""
        return list(
            dict.fromkeys(
                self._box().nearest(msgspec.structs.replace(each, unique_bytes=region.focal_bytes))
                for each in self.needed
                for region in self.regions
            )
        )

    def _recorded_learning(self, most: int) -> list[Workload]:
        """Learning points at the head of what is still to be told, as far as the plan has them."""
        head = self.recorded[len(self.readings.all) :][:most]
        box = self._box()
        learned = itertools.takewhile(
            lambda point: point.stage == "learning" and box.holds(point.workload), head
        )
        return [point.workload for point in learned]

    def _fitted(self, counts: Sequence[int], model: JointModel | None) -> JointModel:
        """Fit the model of so many first points, each from the one before."""
        boundaries = self.decided.boundaries if self.decided else ()
        for count in counts:
            points = self.readings.all[:count]
            sample = sample_of(points, boundaries, self.processors, paged=self.paged)
            model = fit_joint(sample, model)
        assert model is not None  # noqa: S101 - a fit is asked for only where one is owed
        return model

    def _box(self) -> Box:
        plan = self.plan
        return Box(
            (plan.unique_bytes_min, plan.unique_bytes_max),
            (plan.size_mean_min, self.tops["size_mean"]),
            (1.0, self.tops["process_num"]),
            self.at_once_bytes,
            self.paged,
        )


def region_bounds(ends_bytes: Sequence[float], plan: Plan) -> tuple[RegionBounds, ...]:
    """Cut unique_bytes at the boundaries; each focal point is the middle of its region.

    The last region has no upper boundary: its middle is taken as if it ended a factor of
    `REGION_SPAN` past the last one, so that a huge disk does not push the focal point to where
    no cache is left to see (the paper's disk points lie at about twice the boundary).
    """
    edges = [plan.unique_bytes_min, *map(round, ends_bytes)]
    bounds = []
    for index, low in enumerate(edges):
        last = index == len(edges) - 1
        high = plan.unique_bytes_max if last else edges[index + 1]
        reach = min(high, REGION_SPAN * low) if last and index > 0 else high
        bounds.append(RegionBounds(low, high, _whole_blocks((low + reach) / 2)))
    return tuple(bounds)


def interleave(singles: list[Workload], repeats: list[Workload]) -> list[Workload]:
    """Spread the repeats evenly among the singles, one at the start and one at the end."""
    if not repeats:
        return singles
    places = np.linspace(0, len(singles), len(repeats)).round().astype(int)
    merged: list[Workload] = []
    start = 0
    for place, repeat in zip(places.tolist(), repeats, strict=True):
        merged += singles[start:place]
        merged.append(repeat)
        start = place
    return merged + singles[start:]


def _round_robin(focals: list[Workload]) -> list[Workload]:
    """Order the focal repeats so that each region's are spread over the whole stage."""
    lanes: dict[Workload, list[Workload]] = {}
    for focal in focals:
        lanes.setdefault(focal, []).append(focal)
    rounds = itertools.zip_longest(*lanes.values())
    return [focal for turn in rounds for focal in turn if focal is not None]


def _whole_blocks(x: float) -> int:
    return max(4096, round(x / 4096) * 4096)


# Focal values of sizes and processes: half-way between the least and the most (CP94 section 8).

FLAT_GAIN = 1.15
"""A curve whose best is less than this factor above its worst has no half-way point to find."""

START = Workload(unique_bytes=2**20, size_mean=32768)
"""Where the search for the focal vector begins; unique_bytes is replaced at once."""


def half_way_of(curves: list[tuple[list[float], list[float]]], parameter: str) -> float:
    """Focal value of one parameter: the half-way values' geometric mean over both ends.

    As it is, not rounded to a grid: it differs a little between two surveys
    of one system, whose focal throughputs are then brought to one workload by their models.
    """
    found = [half_way(xs, ys, float(getattr(START, parameter))) for xs, ys in curves]
    return snap(math.sqrt(math.prod(found)), parameter)


def half_way(xs: list[float], ys: list[float], fallback: float) -> float:
    """Half-way x of a curve (CP94 §8); the fallback when the curve is flat."""
    if max(ys) < FLAT_GAIN * min(ys):
        return fallback
    return half_way_x(xs, ys, log=True)


def snap(x: float, parameter: str) -> float:
    """Round a value of a curve to whole sectors, processes or thousandths."""
    if parameter == "size_mean":
        return float(max(512, round(x / 512) * 512))
    if parameter == "process_num":
        return float(max(1, round(x)))
    return round(x, 3)
