"""What a request costs at each level of a surveyed hierarchy, asked of the survey's model.

The model knows workloads over U bytes; of the survey's own requests a cache of C bytes misses
1 - C / U. Asked in every region, for one kind of request, it says T_0 within the first cache, and
T_k = T_0 + sum over boundaries j <= k of miss_j(U_k) D_j: solved for the D_j, what a miss of each
boundary adds. Requests that miss m_j then take T_0 + sum m_j D_j, which is a weighted mean of the
T_k with weights that do not depend on them.
"""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.optimize import least_squares, nnls

from leadline.models.model import Floats
from leadline.models.operation_time import PAGE_BYTES
from leadline.models.predictor import Predictor
from leadline.models.ranges import BOUNDARY_ZONE_ABOVE, BOUNDARY_ZONE_BELOW, SIZE_SHARE_MAX
from leadline.record import Measurement, Workload
from leadline.record.finding import Finding
from leadline.units import format_bytes

MOSTLY_MISSED = 4.0
"""Bytes over those of a cache: so many are missed by three quarters."""
FRACTION_BESIDE = 0.1
"""A share of the requests that is no farther from what was surveyed is not told of."""


class RequestKind(NamedTuple):
    """Requests of one kind."""

    size_mean: float
    write: bool
    seq_frac: float
    at_once: float


class Cost(NamedTuple):
    """Seconds of one request of a kind at each place, while others are outstanding, too."""

    seconds: Floats
    """(places,)"""
    ln_sd: Floats
    """(places,)"""
    cpu_s: Floats
    """Of the seconds, those of a processor, (places,)."""
    misses: Floats
    """What the survey's own requests miss there, (places, boundaries)."""

    def at(self, misses: Floats) -> tuple[float, float]:
        """Return seconds of a request, and their standard deviation, where so much is missed.

        Errors of the places count as one error: they are readings of one system, by one model.

        Args:
            misses: of each boundary, (boundaries,).

        """
        shares = self._shares(misses)
        seconds = max(float(shares @ self.seconds), float(self.seconds.min()))
        return seconds, float(np.abs(shares * self.seconds) @ self.ln_sd)

    def cpu_at(self, misses: Floats) -> float:
        """Return seconds of a processor that a request takes, where so much is missed."""
        return max(float(self._shares(misses) @ self.cpu_s), 0.0)

    def _shares(self, misses: Floats) -> Floats:
        """How much of each place there is in requests that miss so much, (places,)."""
        shares = np.zeros(self.seconds.size)
        if misses.size:
            shares[1:] = np.linalg.solve(self.misses[1:].T, misses)
        shares[0] = 1.0 - shares[1:].sum()
        return shares


@dataclass
class Levels:
    """A surveyed hierarchy: its boundaries, and where each of its levels is asked."""

    predictor: Predictor
    span_bytes: float
    """Of the application: as far as its own data reach, where the levels let it."""

    def __post_init__(self) -> None:
        """Find the levels, and begin with nothing found."""
        self.boundaries = [boundary.bytes for boundary in self.predictor.survey.boundaries]
        self._cpu = _cpu_by_level(
            self.predictor.points, [boundary.value for boundary in self.boundaries]
        )
        self.found = dict[Finding, None]()

    def costs(self, kinds: Sequence[RequestKind]) -> list[Cost]:
        """Return what each kind of request costs.

        Raises:
            PredictionRefused: the survey is not finished.

        """
        asked: list[Workload] = []
        plans = [self._plan(kind, asked) for kind in kinds]
        expected = self.predictor.predict_all(asked)
        for each in expected:
            for found in each.findings:
                if found.code == "extrapolated":
                    self.found[found] = None
        seconds = [
            w.size_mean / (1e6 * p.throughput_mb_s.value)
            for w, p in zip(asked, expected, strict=True)
        ]
        sds = [each.ln_sd for each in expected]
        return [
            _cost(plan, np.array(seconds), np.array(sds), self._cpu @ _cpu_terms(*kind[::2]))
            for kind, plan in zip(kinds, plans, strict=True)
        ]

    def _plan(self, kind: RequestKind, asked: list[Workload]) -> list[_Place]:
        """Put the workloads of a kind among those that are asked."""
        return [self._place(level, kind, asked) for level in range(len(self.boundaries) + 1)]

    def _place(self, level: int, kind: RequestKind, asked: list[Workload]) -> _Place:
        unique = self._unique_bytes(level, kind.size_mean)
        size, factor = self._size(unique, kind.size_mean)
        few, many, share = self._at_once(unique, kind.at_once)
        whole_pages = size == kind.size_mean and size % PAGE_BYTES == 0
        first = len(asked)
        asked += [
            Workload(
                unique_bytes=unique,
                size_mean=size,
                read_frac=self._fraction(unique, "read_frac", 0.0 if kind.write else 1.0),
                seq_frac=self._fraction(unique, "seq_frac", kind.seq_frac),
                process_num=processes,
                size_dist="fixed" if whole_pages else "normal",
            )
            for processes in (few, many)
        ]
        whole = kind.seq_frac ** (unique / size)
        misses = [
            whole * (c.value < unique) + (1 - whole) * max(0.0, 1 - c.value / unique)
            for c in self.boundaries
        ]
        return _Place(first, share, factor, np.array(misses))

    def _unique_bytes(self, level: int, size: float) -> int:
        """Where a level is asked: away from its ends, and as near as can be to the application."""
        spanned = self.predictor.ranges.unique_bytes
        least, most = spanned.low, spanned.high
        if level < len(self.boundaries):
            above = self.boundaries[level]
            most = min(most, BOUNDARY_ZONE_BELOW * (above.low or above.value))
        if level == 0:
            wanted = max(
                float(self.predictor.survey.regions[0].focal.unique_bytes), size / SIZE_SHARE_MAX
            )
        else:
            below = self.boundaries[level - 1]
            least = max(least, BOUNDARY_ZONE_ABOVE * (below.high or below.value))
            wanted = max(self.span_bytes, MOSTLY_MISSED * below.value)
        if least > most:
            return round(math.sqrt(least * most))
        return int(min(max(wanted, least), most))

    def _size(self, unique: int, size: float) -> tuple[int, float]:
        """Return the size that is asked, and how many times as long the request's own takes."""
        region = self.predictor.ranges.nearest_region(unique)
        if region is None:  # the predictor refuses, and says why
            return max(512, round(size)), 1.0
        span = self.predictor.ranges.of(region.index, "size_mean")
        high = min(span.high, max(SIZE_SHARE_MAX * unique, float(region.focal.size_mean)))
        asked = min(max(size, span.low, 512.0), high)
        if size > 1.001 * high:
            self._say(
                f"requests of {format_bytes(size)}; predicted as several of {format_bytes(high)}"
            )
        elif size < 0.999 * asked:
            self._say(
                f"requests of {format_bytes(size)}; each is predicted to take as long as one of "
                f"{format_bytes(asked)}"
            )
        return round(asked), max(1.0, size / asked)

    def _at_once(self, unique: int, at_once: float) -> tuple[int, int, float]:
        """Whole numbers of processes on both sides, and how far to go towards the greater."""
        region = self.predictor.ranges.nearest_region(unique)
        high = (
            1024.0 if region is None else self.predictor.ranges.of(region.index, "process_num").high
        )
        if at_once > 1.001 * high:
            self._say(f"{at_once:.3g} outstanding requests; predicted with {high:g}")
        held = min(max(1.0, at_once), high)
        few = math.floor(held)
        many = min(few + 1, math.floor(high))
        share = 0.0 if many == few else math.log(held / few) / math.log(many / few)
        return few, many, share

    def _fraction(self, unique: int, parameter: str, value: float) -> float:
        """Return the nearest share that was surveyed; a little beside it is taken as it is."""
        region = self.predictor.ranges.nearest_region(unique)
        if region is None:
            return min(1.0, max(0.0, value))
        nearest = self.predictor.ranges.of(region.index, parameter).nearest(value)
        if abs(nearest - value) > FRACTION_BESIDE:
            self._say(f"{parameter}={value:.3g}; predicted with {nearest:.3g}")
        return nearest

    def _say(self, what: str) -> None:
        self.found[Finding.of("predicted_beside", what=what)] = None


class _Place(NamedTuple):
    first: int
    """Of the two workloads asked."""
    share: float
    """Of the second."""
    factor: float
    misses: Floats


def _cpu_terms(size: float, seq_frac: float) -> Floats:
    """What a processor's time for a request is made of: the request, and its bytes by order."""
    return np.array([1.0, size * seq_frac, size * (1.0 - seq_frac)])


def _cpu_by_level(points: Sequence[Measurement], boundaries: Sequence[float]) -> Floats:
    """Return seconds of a processor for each of `_cpu_terms` at each level, (levels, terms).

    Least squares of logarithms, none below zero; zero where no point counted any.
    """
    found = np.zeros((len(boundaries) + 1, 3))
    rows: list[list[Floats]] = [[] for _ in found]
    for point in points:
        work, result = point.workload, point.result
        cpu_s = (
            (result.cpu_user + result.cpu_system)
            * work.size_mean
            / (1e6 * result.throughput_mb_s.value)
        )
        if cpu_s > 0:
            level = bisect.bisect(boundaries, work.unique_bytes)
            rows[level].append(_cpu_terms(work.size_mean, work.seq_frac) / cpu_s)
    for level, own in enumerate(rows):
        if own:
            found[level] = _fitted(np.array(own))
    return found


def _fitted(each: Floats) -> Floats:
    """Return what terms cost, none below zero, from terms over what they cost, (points, terms)."""
    start, _ = nnls(each, np.ones(len(each)))

    def off(logs: Floats) -> Floats:
        return np.asarray(np.log(each @ np.exp(logs)))

    return np.asarray(np.exp(least_squares(off, np.log(np.maximum(start, 1e-15))).x))


def _cost(plan: Sequence[_Place], seconds: Floats, sds: Floats, cpu_s: Floats) -> Cost:
    both = [
        (
            (1 - each.share) * np.log(seconds[each.first])
            + each.share * np.log(seconds[each.first + 1])
        )
        for each in plan
    ]
    sd = [(1 - each.share) * sds[each.first] + each.share * sds[each.first + 1] for each in plan]
    whole = np.exp(both) * np.array([each.factor for each in plan])
    return Cost(
        seconds=whole,
        ln_sd=np.array(sd),
        cpu_s=np.minimum(cpu_s, whole),
        misses=np.array([each.misses for each in plan]).reshape(len(plan), -1),
    )
