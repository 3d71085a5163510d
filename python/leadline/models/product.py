"""The product model: measured curves multiplied (CP94 §9)."""

from __future__ import annotations

import itertools
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from leadline.models.model import Expected, PredictionRefused, sample_of
from leadline.models.ranges import Ranges
from leadline.record import Curve, CurvePoint, Measurement, Region, Survey, Workload
from leadline.stats import Noise, pooled_noise

# One measured curve as a function between its points, with the weight of every point.
#
# How throughput goes between two points is physics, not taste, and it matters where points are far
# apart:
#
#     logarithmic  ln throughput is straight over ln x: unique_bytes, process_num
#     mixed        time per byte is straight over x: read_frac, seq_frac. A fraction of the requests
#                  takes one time and the rest another, so their mean time is a weighted mean
#     per request  time per request is straight over x: size_mean. A request costs a fixed time and
#                  a time for each byte
#
# Beyond its ends a curve stays at the end's value.

Floats = NDArray[np.float64]
Indices = NDArray[np.intp]

Between = Literal["logarithmic", "mixed", "per request"]

BETWEEN: dict[str, Between] = {
    "unique_bytes": "logarithmic",
    "size_mean": "per request",
    "read_frac": "mixed",
    "seq_frac": "mixed",
    "process_num": "logarithmic",
}


@dataclass(frozen=True)
class CurveLine:
    """A curve over nodes (workloads measured), which other curves may share."""

    between: Between
    x: Floats
    """Where its points lie, ascending, one or more."""
    nodes: Indices
    """Which node stands at each."""
    alone: tuple[float, int] | None = None
    """An x that holds for itself only, and its node."""

    def read(self, values: Floats, node_ln_mb_s: Floats) -> tuple[Floats, Floats]:
        """Read the curve.

        Args:
            values: where, (workloads,).
            node_ln_mb_s: ln throughput at every node, (nodes,).

        Returns:
            ln throughput (workloads,), and its derivative by each node's, (workloads, nodes).

        """
        x = np.clip(values, self.x[0], self.x[-1])
        right = np.clip(np.searchsorted(self.x, x), min(1, self.x.size - 1), self.x.size - 1)
        left = np.maximum(right - 1, 0)
        share = self._share(x, left, right)
        ends = (self.nodes[left], self.nodes[right])
        shares = (1.0 - share, share)
        if self.between == "logarithmic":
            found = shares[0] * node_ln_mb_s[ends[0]] + shares[1] * node_ln_mb_s[ends[1]]
            parts = shares
        else:
            times = [
                s * self._time(at, node_ln_mb_s)
                for s, at in zip(shares, (left, right), strict=True)
            ]
            whole = times[0] + times[1]
            found = -np.log(whole) + (np.log(x) if self.between == "per request" else 0.0)
            parts = (times[0] / whole, times[1] / whole)
        weights = np.zeros((values.size, node_ln_mb_s.size))
        rows = np.arange(values.size)
        for node, part in zip(ends, parts, strict=True):
            np.add.at(weights, (rows, node), part)
        return self._alone_read(values, node_ln_mb_s, found, weights)

    def embedded(self) -> dict[str, Any]:
        """Return it as plain JSON values, see `ProductModel.embedded`."""
        return {
            "between": self.between,
            "x": self.x.tolist(),
            "nodes": self.nodes.tolist(),
            "alone": None if self.alone is None else list(self.alone),
        }

    def _share(self, x: Floats, left: Indices, right: Indices) -> Floats:
        """How far x lies from its left point to its right one, 0 to 1."""
        if self.x.size == 1:
            return np.zeros(x.size)
        if self.between == "logarithmic":
            return np.asarray(np.log(x / self.x[left]) / np.log(self.x[right] / self.x[left]))
        return np.asarray((x - self.x[left]) / (self.x[right] - self.x[left]))

    def _time(self, at: Indices, node_ln_mb_s: Floats) -> Floats:
        """Time per byte at points of the curve, or per request."""
        per_byte = np.exp(-node_ln_mb_s[self.nodes[at]])
        return np.asarray(per_byte * self.x[at] if self.between == "per request" else per_byte)

    def _alone_read(
        self, values: Floats, node_ln_mb_s: Floats, found: Floats, weights: Floats
    ) -> tuple[Floats, Floats]:
        if self.alone is not None:
            at, node = self.alone
            exactly = values == at
            found[exactly] = node_ln_mb_s[node]
            weights[exactly] = 0.0
            weights[exactly, node] = 1.0
        return found, weights


# Whether the reading at seq_frac = 1 belongs to its curve.
#
# At seq_frac = 1 exactly every process walks round its data and never jumps: a whole-pass cyclic
# scan, of which an LRU cache smaller than the data keeps nothing, while at 0.99 the jumps make
# it as good as ever. So the curve may step there, by the whole worth of the cache, and a line
# from 0.75 to 1 would carry the step into workloads that have none. Time per byte is straight over
# seq_frac up to there (a share of the requests is positioned, the rest is not), so the points
# below 1 tell what the curve would reach: a reading at 1 that noise cannot explain by it is kept
# for seq_frac = 1 alone.


SIGMAS = 3.0
"""From how many standard deviations a reading at 1 stands alone."""

SD_MIN = 0.01
"""A line is not drawn truer than this, however steady the readings: nothing is quite straight."""

POINTS_BELOW_MIN = 3
"""A line through two points has nothing to be judged by."""


def reached_at_one(x: Floats, ln_mb_s: Floats, variance: Floats) -> tuple[float, float] | None:
    """Return (ln MB/s, variance) that the points below 1 lead to, if the reading at 1 is not it.

    Args:
        x: seq_frac of the curve's points, ascending.
        ln_mb_s: ln throughput there.
        variance: of each of them.

    Returns:
        None when the curve has no point at 1, too few below, or none that stands alone.

    """
    if x.size <= POINTS_BELOW_MIN or x[-1] != 1.0:
        return None
    variance = np.maximum(variance, SD_MIN**2)
    time = np.exp(-ln_mb_s[:-1])
    weight = 1.0 / (variance[:-1] * time**2)
    design = np.column_stack([np.ones(x.size - 1), x[:-1]])
    covariance = np.linalg.inv(design.T @ (design * weight[:, None]))
    at_one = np.ones(2)
    reached = float(at_one @ covariance @ (design.T @ (weight * time)))
    if reached <= 0.0:
        return None
    reached_variance = float(at_one @ covariance @ at_one) / reached**2
    ln_reached = -math.log(reached)
    sd = math.sqrt(reached_variance + float(variance[-1]))
    if abs(ln_reached - float(ln_mb_s[-1])) <= SIGMAS * sd:
        return None
    return ln_reached, reached_variance


# The product of single-parameter curves (CP94 §9, Fig. 11).
#
#     throughput(U, S, R, Q, P) = curve_U(U) x product over X in S, R, Q, P of curve_X(X) / focal
#
# with the family of the region that holds U. How a curve goes between its points, and what becomes
# of a reading at seq_frac = 1, is said above.
#
# The divisor is the pooled focal throughput of the region: a single noisy focal reading would be
# in every ratio at once. Each workload measured counts once, with the sum of its weights over
# all curves, so what the curves share (the focal point lies on all five) is counted right:
# variance = sum of weight^2 x variance of that workload's mean.
#
# What the product cannot see is how parameters act on each other. Where one of two makes no
# difference there is nothing to act on, so that error is taken to grow with the lesser of each two
# effects, an effect being the ln ratio of a curve to the focal point beyond what noise could make:
# variance = interaction^2 x the sum over pairs of min(effect, effect)^2. How strongly is taken from
# simulated machines first and then corrected by the survey's own readings far off the curves. In a
# boundary zone neither region's family is right, and half of how far the two disagree is added.


MULTIPLIED = ("size_mean", "read_frac", "process_num", "seq_frac")
"""The parameters whose curves multiply; unique_bytes has a curve of absolute throughput."""

INTERACTION = 0.66
"""Standard deviation of ln throughput per lesser effect, from random workloads on the simulated
machines of the paper: 90% intervals cover 87 to 94% on each (docs/concepts/prediction.md)."""

INTERACTION_WEIGHT = 2.0
"""How much min(effect, effect)^2 the survey's own readings off the curves must show, summed, to
count as much as INTERACTION; the points that a survey learns from show about 0.3 each."""

OFF_FOCAL_MIN = 3
"""Parameters off the focal point in a reading that says how they act on each other."""

SIGMAS_MAX = 4.0
"""A reading off the curves counts as no farther from the product than this."""

BOUNDARY = 0.5
"""Standard deviation in a boundary zone, per ln ratio between the two families that meet there."""

NOISE_SDS = 3.0
"""An effect counts from as many of its own standard deviations on."""


class NoFamilies(PredictionRefused):
    """The survey has no region with a family of curves: nothing to multiply."""


@dataclass(frozen=True)
class _Part:
    """One region's factors."""

    region: Region
    focal_node: int
    lines: dict[str, CurveLine]
    noise_ln_sd: float


class ProductModel:
    """CP94's model: see the module's first lines.

    Attributes:
        name: "product".
        n: readings it rests on.
        df: degrees of freedom of the survey's replicates.

    """

    name = "product"
    knows_pages = False

    def __init__(self, survey: Survey, points: Sequence[Measurement]) -> None:
        if not survey.families or not points:
            raise NoFamilies(
                "this survey has no family of curves yet, so there is nothing to predict from; "
                "finish it: leadline survey TARGET --resume"
            )
        noise = _noise(points)
        self.df = noise.df
        self._noise_ln_sd = region_noise(survey, points)
        self._point_variances = point_variances(survey, self._noise_ln_sd)
        self._nodes: dict[tuple[str, ...], int] = {}
        self._ln_mb_s: list[float] = []
        self._variance: list[float] = []
        self._readings = 0
        self._unique_bytes = self._line(survey.unique_bytes_curve)
        self._parts = tuple(
            self._part(survey, region)
            for region in survey.regions
            if any(family.region == region.index for family in survey.families)
        )
        self._boundary_zones = self._zones_between(survey)
        self.n = self._readings
        self._interaction = INTERACTION
        self._interaction = self._learned_interaction(survey, points)

    def expect(self, workloads: Sequence[Workload]) -> Expected:
        """Return what is expected of each workload, by the region next to its unique_bytes."""
        count = len(workloads)
        values = {p: _values(workloads, p) for p in ("unique_bytes", *MULTIPLIED)}
        ln_mb_s, variance, noise = np.zeros(count), np.zeros(count), np.zeros(count)
        parts = self._part_of(values["unique_bytes"])
        for index, part in enumerate(self._parts):
            chosen = np.flatnonzero(parts == index)
            own = {parameter: at[chosen] for parameter, at in values.items()}
            ln_mb_s[chosen], variance[chosen] = self._in_part(part, own)
            noise[chosen] = part.noise_ln_sd
        for zone, below, above in self._boundary_zones:
            low, high = zone
            inside = (low <= values["unique_bytes"]) & (values["unique_bytes"] <= high)
            own = {parameter: at[inside] for parameter, at in values.items()}
            apart = self._in_part(self._parts[below], own)[0]
            apart -= self._in_part(self._parts[above], own)[0]
            variance[inside] += (BOUNDARY * apart) ** 2
        return Expected(ln_mb_s=ln_mb_s, ln_sd=np.sqrt(variance), noise_ln_sd=noise)

    def _in_part(self, part: _Part, values: dict[str, Floats]) -> tuple[Floats, Floats]:
        """Return ln MB/s and its variance for workloads of one region, (workloads,) each."""
        node_ln, node_variance = np.asarray(self._ln_mb_s), np.asarray(self._variance)
        ln_mb_s = np.full(values["unique_bytes"].size, node_ln[part.focal_node])
        weights = np.zeros((ln_mb_s.size, node_ln.size))
        weights[:, part.focal_node] = 1.0
        effects = []
        for parameter, line in (("unique_bytes", self._unique_bytes), *part.lines.items()):
            read, own = line.read(values[parameter], node_ln)
            own[:, part.focal_node] -= 1.0
            change = read - node_ln[part.focal_node]
            ln_mb_s += change
            weights += own
            if parameter in MULTIPLIED:
                by_noise = NOISE_SDS**2 * (own**2 @ node_variance)
                effects.append(np.maximum(0.0, change**2 - by_noise))
        together = np.zeros(ln_mb_s.size)
        for one, other in itertools.combinations(effects, 2):
            together += np.minimum(one, other)
        return ln_mb_s, weights**2 @ node_variance + self._interaction**2 * together

    def embedded(self) -> dict[str, Any]:
        """Return all a browser needs to predict the same, as plain JSON values.

        `nodes.ln_mb_s[i]`, `nodes.variance[i]`: what was measured. `unique_bytes` and each
        `regions[].curves[parameter]` are curves {"between", "x", "nodes", "alone"}: ascending x,
        the node at each, how to go between two (see above), and an
        [x, node] that holds for exactly that x, or null.

        Reading a curve at a value gives ln MB/s and weights on nodes. Clip the value to x's ends;
        find the points left and right of it; share s = (value - left) / (right - left), of
        logarithms when "logarithmic". Then the weights are 1 - s and s, and ln MB/s their sum
        over the nodes'; but for "mixed" and "per request" let t = exp(-ln MB/s) of a node, for
        "per request" times its x: the weights are (1 - s) x t_left and s x t_right, each over
        their sum, and ln MB/s = -ln(sum), for "per request" + ln(clipped value).

        For a workload take the last of `regions` whose `low_bytes` is below its unique_bytes (or
        the first). Start with ln MB/s of `focal_node` and weight 1 on it. For unique_bytes and
        each curve: change = the curve's ln MB/s - that of `focal_node`; own = its weights, less
        1 on `focal_node`; add both. For each curve but unique_bytes: effect2 = max(0, change^2 -
        `noise_sds`^2 x sum of own^2 x variance). The variance of ln MB/s is the sum of weight^2 x
        variance + `interaction`^2 x the sum over pairs of these curves of the lesser effect2; a
        run scatters by the region's `noise_ln_sd` beside. For each of `boundary_zones`
        {"low_bytes", "high_bytes", "below", "above"} that holds its unique_bytes, both ends
        included, the variance grows by (`boundary` x (ln MB/s with `regions[below]` - with
        `regions[above]`))^2.
        Intervals: value x exp(+-t(df) x sd).
        """
        return {
            "kind": self.name,
            "n": self.n,
            "df": self.df,
            "interaction": self._interaction,
            "noise_sds": NOISE_SDS,
            "boundary": BOUNDARY,
            "boundary_zones": [
                {"low_bytes": zone[0], "high_bytes": zone[1], "below": below, "above": above}
                for zone, below, above in self._boundary_zones
            ],
            "nodes": {"ln_mb_s": self._ln_mb_s, "variance": self._variance},
            "unique_bytes": self._unique_bytes.embedded(),
            "regions": [
                {
                    "index": part.region.index,
                    "name": part.region.name,
                    "low_bytes": part.region.low_bytes,
                    "high_bytes": part.region.high_bytes,
                    "focal_node": part.focal_node,
                    "noise_ln_sd": part.noise_ln_sd,
                    "curves": {p: line.embedded() for p, line in part.lines.items()},
                }
                for part in self._parts
            ],
        }

    def _zones_between(self, survey: Survey) -> tuple[tuple[tuple[float, float], int, int], ...]:
        """Boundary zones with the parts below and above them, where both were surveyed."""
        places = {part.region.index: place for place, part in enumerate(self._parts)}
        return tuple(
            (zone, places[index], places[index + 1])
            for index, zone in enumerate(Ranges(survey).boundary_zones)
            if index in places and index + 1 in places
        )

    def _learned_interaction(self, survey: Survey, points: Sequence[Measurement]) -> float:
        """INTERACTION, corrected by readings far off the curves.

        The scouting varies one or two parameters at once, and never the fractions: it would make
        any system look like a product.
        """
        ranges = Ranges(survey)
        off = [p for p in points if p.result.admissible and ranges.holds(p.workload)]
        off = [p for p in off if self._off_focal(p.workload) >= OFF_FOCAL_MIN]
        if not off:
            return INTERACTION
        found = self.expect([point.workload for point in off])
        self._interaction = 0.0
        certain = self.expect([point.workload for point in off]).ln_sd ** 2 + found.noise_ln_sd**2
        together = (found.ln_sd**2 + found.noise_ln_sd**2 - certain) / INTERACTION**2
        readings = np.log([max(p.result.throughput_mb_s.value, 1e-6) for p in off])
        most = SIGMAS_MAX**2 * (certain + INTERACTION**2 * together)
        squares = np.minimum((readings - found.ln_mb_s) ** 2, most) - certain
        learned = INTERACTION_WEIGHT * INTERACTION**2 + max(0.0, float(squares.sum()))
        return math.sqrt(learned / (INTERACTION_WEIGHT + float(together.sum())))

    def _off_focal(self, workload: Workload) -> int:
        """How many of the multiplied parameters differ from the focal point's."""
        part = self._parts[int(self._part_of(_values([workload], "unique_bytes"))[0])]
        focal = part.region.focal
        return sum(getattr(workload, name) != getattr(focal, name) for name in MULTIPLIED)

    # ---- from the survey's record -----------------------------------------------------------

    def _part(self, survey: Survey, region: Region) -> _Part:
        family = next(item for item in survey.families if item.region == region.index)
        lines = {
            parameter: self._line(curve)
            for parameter in MULTIPLIED
            if (curve := family.curve(parameter)) is not None
        }
        noise_ln_sd = self._noise_ln_sd[region.index]
        return _Part(
            region=region,
            focal_node=self._focal_node(region, family.curves, noise_ln_sd),
            lines=lines,
            noise_ln_sd=noise_ln_sd,
        )

    def _focal_node(self, region: Region, curves: Sequence[Curve], noise_ln_sd: float) -> int:
        """The node of the pooled focal readings, which lies on every curve of the family."""
        for curve in curves:
            at = float(getattr(region.focal, curve.parameter))
            for point in curve.points:
                if point.x == at:
                    return self._node(point)
        pooled = region.throughput_mb_s
        return self._add_node(math.log(pooled.value), noise_ln_sd**2 / max(1, pooled.n))

    def _line(self, curve: Curve) -> CurveLine:
        x = np.asarray([point.x for point in curve.points], dtype=np.float64)
        nodes = np.asarray([self._node(point) for point in curve.points], dtype=np.intp)
        alone = None
        if curve.parameter == "seq_frac":
            reached = reached_at_one(
                x, np.asarray(self._ln_mb_s)[nodes], np.asarray(self._variance)[nodes]
            )
            if reached is not None:
                alone = (1.0, int(nodes[-1]))
                nodes[-1] = self._add_node(*reached)
        return CurveLine(BETWEEN[curve.parameter], x, nodes, alone)

    def _node(self, point: CurvePoint) -> int:
        """The place of a measured workload among the nodes; a new one when first met."""
        if point.point_ids not in self._nodes:
            ln_mb_s = math.log(point.throughput_mb_s.value)
            self._nodes[point.point_ids] = self._add_node(
                ln_mb_s, self._point_variances[point.point_ids]
            )
            self._readings += point.throughput_mb_s.n
        return self._nodes[point.point_ids]

    def _add_node(self, ln_mb_s: float, variance: float) -> int:
        self._ln_mb_s.append(ln_mb_s)
        self._variance.append(variance)
        return len(self._ln_mb_s) - 1

    def _part_of(self, unique_bytes: Floats) -> NDArray[np.intp]:
        """Index of the part whose region holds each unique_bytes, or lies next to it."""
        lows = np.asarray([part.region.low_bytes for part in self._parts[1:]], dtype=np.float64)
        return np.searchsorted(lows, unique_bytes, side="left").astype(np.intp)


def region_noise(survey: Survey, points: Sequence[Measurement]) -> dict[int, float]:
    """Run-to-run noise by region, drawn towards the whole survey's where replicates are few."""
    noise = sample_of(points, survey.boundaries).noise
    last = len(noise.weights) - 1
    return {
        region.index: noise.overall_ln_sd * math.sqrt(noise.weights[min(region.index, last)])
        for region in survey.regions
    }


def point_variances(
    survey: Survey, noise_ln_sd: Mapping[int, float]
) -> dict[tuple[str, ...], float]:
    """Variance of ln throughput of every curve point's mean, by its point_ids.

    The noise of its region over its readings; more where its own interval is wider than is usual
    in the region, because its runs were less exact than the noise accounts for.
    """
    regions = {region.index: region for region in survey.regions}
    by_region: dict[int, list[CurvePoint]] = {index: [] for index in regions}
    for point in survey.unique_bytes_curve.points:
        last = survey.regions[-1].index
        held = next((r.index for r in survey.regions if point.x <= r.high_bytes), last)
        by_region[held].append(point)
    for family in survey.families:
        by_region[family.region] += [point for curve in family.curves for point in curve.points]
    variances = {}
    for index, points in by_region.items():
        ln_sd = noise_ln_sd[index]
        spreads = [_spread(point) for point in points]
        usual = statistics.median(spread for spread in spreads if spread) if any(spreads) else 0.0
        for point, spread in zip(points, spreads, strict=True):
            wider = max(1.0, spread / usual) if usual else 1.0
            variances[point.point_ids] = ln_sd**2 * wider / max(1, point.throughput_mb_s.n)
    return variances


def _spread(point: CurvePoint) -> float:
    """Squared width of the point's interval in logs, as if it were a single reading's."""
    interval = point.throughput_mb_s
    if not interval.low or not interval.high:
        return 0.0
    return math.log(interval.high / interval.low) ** 2 * interval.n


def _values(workloads: Sequence[Workload], parameter: str) -> Floats:
    return np.asarray([getattr(item, parameter) for item in workloads], dtype=np.float64)


def _noise(points: Sequence[Measurement]) -> Noise:
    """Run-to-run noise pooled over everything measured more than once."""
    groups: dict[Workload, list[float]] = {}
    for point in points:
        if point.result.admissible:
            groups.setdefault(point.workload, []).append(
                max(point.result.throughput_mb_s.value, 1e-6)
            )
    return pooled_noise([group for group in groups.values() if len(group) > 1])
