"""The product of single-parameter curves (CP94 §9, Fig. 11).

    throughput(U, S, R, Q, P) = curve_U(U) x product over X in S, R, Q, P of curve_X(X) / focal

with the family of the region that holds U. Between measured points ln throughput is a straight
line over ln x, or over x for fractions; beyond them it stays at the end's value.

The divisor is the pooled focal throughput of the region: a single noisy focal reading would be
in every ratio at once. The whole prediction is a weighted sum of the logarithms of measured
throughputs, each workload measured counting once with the sum of its weights. So what the curves
share (the focal point, on all five of them) is counted right: variance = sum of weight^2 x
variance of that workload's mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from leadline.errors import LeadlineError
from leadline.predict.model import Expected
from leadline.record import Curve, CurvePoint, Measurement, Region, Survey, Workload
from leadline.stats import Noise, pooled_noise, student_t

Floats = NDArray[np.float64]

MULTIPLIED = ("size_mean", "read_frac", "process_num", "seq_frac")
"""The parameters whose curves multiply; unique_bytes has a curve of absolute throughput."""

FRACTIONS = ("read_frac", "seq_frac")

INTERACTION_LN_SD = 0.08
"""Standard deviation of ln throughput that the product cannot see, off the curves."""


class NoFamilies(LeadlineError):
    """The survey has no region with a family of curves: nothing to multiply."""

    exit_code = 2


@dataclass(frozen=True)
class _Line:
    """A curve as places on its axis and the nodes (workloads measured) there."""

    places: Floats
    nodes: NDArray[np.intp]
    log: bool

    def add_weights(self, weights: Floats, values: Floats) -> None:
        """Add to `weights` (workloads, nodes) the line's at `values` (workloads,)."""
        x = np.log(values) if self.log else values
        x = np.clip(x, self.places[0], self.places[-1])
        rows = np.arange(x.size)
        right = np.clip(np.searchsorted(self.places, x), 1, max(1, self.places.size - 1))
        if self.places.size == 1:
            weights[rows, self.nodes[0]] += 1.0
            return
        gap = self.places[right] - self.places[right - 1]
        share = (x - self.places[right - 1]) / gap
        weights[rows, self.nodes[right - 1]] += 1.0 - share
        weights[rows, self.nodes[right]] += share


@dataclass(frozen=True)
class _Part:
    """One region's factors."""

    region: Region
    focal_node: int
    lines: dict[str, _Line]
    noise_ln_sd: float


class ProductModel:
    """CP94's model: see the module's first lines.

    Attributes:
        name: "product".
        n: readings it rests on.
        df: degrees of freedom of the survey's replicates.

    """

    name = "product"

    def __init__(self, survey: Survey, points: Sequence[Measurement]) -> None:
        noise = _noise(points)
        self.df = noise.df
        self._quantile = student_t(noise.df)
        self._noise_ln_sd = noise.sd_frac
        self._nodes: dict[tuple[str, ...], int] = {}
        self._ln_mb_s: list[float] = []
        self._variance: list[float] = []
        self._readings = 0
        self._unique_bytes = self._line(survey.unique_bytes_curve)
        self._parts = tuple(
            self._part(survey, region) for region in survey.regions
            if any(family.region == region.index for family in survey.families)
        )  # fmt: skip
        if not self._parts:
            raise NoFamilies(
                "this survey has no family of curves yet, so there is nothing to predict from; "
                "finish it: leadline survey TARGET --resume"
            )
        self.n = self._readings

    def expect(self, workloads: Sequence[Workload]) -> Expected:
        """Return what is expected of each workload, by the region next to its unique_bytes."""
        weights = np.zeros((len(workloads), len(self._ln_mb_s)))
        values = {p: _values(workloads, p) for p in ("unique_bytes", *MULTIPLIED)}
        self._unique_bytes.add_weights(weights, values["unique_bytes"])
        parts = self._part_of(values["unique_bytes"])
        noise = np.zeros(len(workloads))
        for index, part in enumerate(self._parts):
            chosen = np.flatnonzero(parts == index)
            own = weights[chosen]
            for parameter, line in part.lines.items():
                line.add_weights(own, values[parameter][chosen])
                own[:, part.focal_node] -= 1.0
            weights[chosen] = own
            noise[chosen] = part.noise_ln_sd
        variance = weights**2 @ np.asarray(self._variance) + INTERACTION_LN_SD**2
        return Expected(
            ln_mb_s=weights @ np.asarray(self._ln_mb_s),
            ln_sd=np.sqrt(variance),
            noise_ln_sd=noise,
        )

    def embedded(self) -> dict[str, Any]:
        """Return all a browser needs to predict the same, as plain JSON values.

        `nodes.ln_mb_s[i]`, `nodes.variance[i]`: the workloads measured. `unique_bytes` and each
        `regions[].curves[parameter]` are {"places", "nodes", "log"}: places on the axis (ln x when
        `log`), and which node stands at each. For a workload: start with the two weights by which
        `unique_bytes` interpolates at its U; take the last region whose `low_bytes` is below U
        (or the first); for each of its curves add the two weights at X and take 1 from
        `focal_node`. Then ln MB/s = sum of weight x ln_mb_s, and variance = sum of weight^2 x
        variance + `interaction_ln_sd`^2; a run scatters by the region's `noise_ln_sd` beside.
        """
        return {
            "kind": self.name,
            "n": self.n,
            "df": self.df,
            "interaction_ln_sd": INTERACTION_LN_SD,
            "nodes": {"ln_mb_s": self._ln_mb_s, "variance": self._variance},
            "unique_bytes": _embedded_line(self._unique_bytes),
            "regions": [
                {
                    "index": part.region.index,
                    "name": part.region.name,
                    "low_bytes": part.region.low_bytes,
                    "high_bytes": part.region.high_bytes,
                    "focal_node": part.focal_node,
                    "noise_ln_sd": part.noise_ln_sd,
                    "curves": {p: _embedded_line(line) for p, line in part.lines.items()},
                }
                for part in self._parts
            ],
        }

    # ---- from the survey's record -----------------------------------------------------------

    def _part(self, survey: Survey, region: Region) -> _Part:
        family = next(item for item in survey.families if item.region == region.index)
        lines = {
            parameter: self._line(curve)
            for parameter in MULTIPLIED
            if (curve := family.curve(parameter)) is not None
        }
        return _Part(
            region=region,
            focal_node=self._focal_node(region, family.curves),
            lines=lines,
            noise_ln_sd=survey.noise_frac.get(region.name, self._noise_ln_sd),
        )

    def _focal_node(self, region: Region, curves: Sequence[Curve]) -> int:
        """The node of the pooled focal readings, which lies on every curve of the family."""
        for curve in curves:
            at = float(getattr(region.focal, curve.parameter))
            for point in curve.points:
                if point.x == at:
                    return self._node(point)
        raise NoFamilies(
            f"the focal point of region {region.name!r} was not measured, so its curves have no "
            "common level; survey it again"
        )

    def _line(self, curve: Curve) -> _Line:
        log = curve.parameter not in FRACTIONS
        xs = np.asarray([point.x for point in curve.points], dtype=np.float64)
        return _Line(
            places=np.log(xs) if log else xs,
            nodes=np.asarray([self._node(point) for point in curve.points], dtype=np.intp),
            log=log,
        )

    def _node(self, point: CurvePoint) -> int:
        """The place of a measured workload among the nodes; a new one when first met."""
        if point.point_ids not in self._nodes:
            self._nodes[point.point_ids] = len(self._ln_mb_s)
            interval = point.throughput_mb_s
            self._ln_mb_s.append(math.log(interval.value))
            self._variance.append(self._variance_of(point))
            self._readings += interval.n
        return self._nodes[point.point_ids]

    def _variance_of(self, point: CurvePoint) -> float:
        """Variance of ln(mean): from the point's own interval, which holds every kind of noise."""
        interval = point.throughput_mb_s
        if interval.low is None or interval.high is None:
            return self._noise_ln_sd**2 / max(1, interval.n)
        return float((math.log(interval.high / interval.low) / 2 / self._quantile) ** 2)

    def _part_of(self, unique_bytes: Floats) -> NDArray[np.intp]:
        """Index of the part whose region holds each unique_bytes, or lies next to it."""
        lows = np.asarray([part.region.low_bytes for part in self._parts[1:]], dtype=np.float64)
        return np.searchsorted(lows, unique_bytes, side="left").astype(np.intp)


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


def _embedded_line(line: _Line) -> dict[str, Any]:
    return {"places": line.places.tolist(), "nodes": line.nodes.tolist(), "log": line.log}
