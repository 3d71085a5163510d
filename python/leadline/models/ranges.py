"""What a survey measured, and so where a model may speak: its ranges, regions and boundaries."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from leadline.record import PARAMETERS, Measurement, Region, Survey, Workload
from leadline.record.workload import FRACTIONS

SIZE_SHARE_MAX = 0.25
"""Largest mean size a survey asks for, as a share of unique_bytes: a request must not span the
data it is drawn from."""

BOUNDARY_ZONE_BELOW = 0.95
BOUNDARY_ZONE_ABOVE = 1.33
"""The zone of high error around a boundary, as factors of its interval. CP94 Fig. 24 left out 20 to
27 MB on a 21 MB cache and 3 to 4 MB on a 3 MB one: nearly all of it lies above the boundary."""


@dataclass(frozen=True)
class Span:
    """From the least to the greatest value measured of one parameter."""

    low: float
    high: float

    def holds(self, value: float) -> bool:
        """Whether a value lies inside, ends included."""
        return self.low <= value <= self.high

    def nearest(self, value: float) -> float:
        """Return the value itself, or the end it lies beyond."""
        return min(max(value, self.low), self.high)


@dataclass(frozen=True)
class Outside:
    """One value of a workload that was not measured."""

    parameter: str
    value: float
    span: Span
    region: str
    """Name of the region whose range it is; the survey's own for unique_bytes."""

    @property
    def ln_distance(self) -> float:
        """How far beyond the span, in natural logs; a fraction counts its distance itself."""
        end = self.span.nearest(self.value)
        if self.parameter in FRACTIONS:
            return abs(self.value - end)
        return abs(math.log(self.value / end))


class Ranges:
    """Where a survey measured.

    Attributes:
        unique_bytes, size_mean, process_num, read_frac, seq_frac: the hull over all regions.
        boundary_zones: (low, high) bytes of the zone of high error around each boundary.

    """

    def __init__(self, survey: Survey, points: Sequence[Measurement] = ()) -> None:
        """Find the ranges of a survey and its points.

        Args:
            survey: the explained survey.
            points: its measurements; those that lie on no curve widen the ranges, too.

        """
        self._regions = survey.regions
        self._measured = {
            region.index: [
                point.workload
                for point in points
                if region.low_bytes < point.workload.unique_bytes <= region.high_bytes
            ]
            for region in survey.regions
        }
        self._families = {family.region: family for family in survey.families}
        bytes_ = [point.x for point in survey.unique_bytes_curve.points]
        self.unique_bytes = Span(min(bytes_), max(bytes_)) if bytes_ else Span(math.inf, -math.inf)
        spans = {p: [self.of(region.index, p) for region in self._surveyed()] for p in PARAMETERS}
        self.size_mean = _hull(spans["size_mean"])
        self.process_num = _hull(spans["process_num"])
        self.read_frac = _hull(spans["read_frac"])
        self.seq_frac = _hull(spans["seq_frac"])
        self.boundary_zones = tuple(
            (
                BOUNDARY_ZONE_BELOW * _known(boundary.bytes.low, boundary.bytes.value),
                BOUNDARY_ZONE_ABOVE * _known(boundary.bytes.high, boundary.bytes.value),
            )
            for boundary in survey.boundaries
        )

    def of(self, region: int, parameter: str) -> Span:
        """Return the range measured of one parameter in one region."""
        focal = next(item.focal for item in self._regions if item.index == region)
        at = float(getattr(focal, parameter))
        family = self._families.get(region)
        curve = family.curve(parameter) if family else None
        xs = [at] + ([point.x for point in curve.points] if curve else [])
        xs += [float(getattr(each, parameter)) for each in self._measured[region]]
        return Span(min(xs), max(xs))

    def region_of(self, unique_bytes: float) -> Region | None:
        """Return the region that holds so many bytes; None outside all of them.

        An unfinished survey has no region yet where its focal point was not read: such bytes lie
        in none, though the curve over `unique_bytes` went there.
        """
        region = self.nearest_region(unique_bytes)
        if region is None or not self.unique_bytes.holds(unique_bytes):
            return None
        above = region.index == 0 or unique_bytes > region.low_bytes
        return region if above and unique_bytes <= region.high_bytes else None

    def nearest_region(self, unique_bytes: float) -> Region | None:
        """Return the region that holds so many bytes, or the one next to them; None without any."""
        for region in self._regions:
            if unique_bytes <= region.high_bytes:
                return region
        return self._regions[-1] if self._regions else None

    def is_surveyed(self, region: int) -> bool:
        """Whether a region has a family of curves."""
        family = self._families.get(region)
        return family is not None and len(family.curves) > 0

    def boundary_zone(self, unique_bytes: float) -> tuple[float, float] | None:
        """Return the zone of high error that holds so many bytes (CP94 Fig. 24), or None."""
        return next((z for z in self.boundary_zones if z[0] <= unique_bytes <= z[1]), None)

    def outside(self, workload: Workload) -> tuple[Outside, ...]:
        """Return every value of a workload that lies beyond what was measured."""
        found = []
        if not self.unique_bytes.holds(workload.unique_bytes):
            found.append(
                Outside("unique_bytes", workload.unique_bytes, self.unique_bytes, "survey")
            )
        region = self.nearest_region(workload.unique_bytes)
        if region is None:
            return tuple(found)
        for parameter in ("size_mean", "process_num", *FRACTIONS):
            span = self.of(region.index, parameter)
            value = float(getattr(workload, parameter))
            if not span.holds(value):
                found.append(Outside(parameter, value, span, region.name))
        share_max = max(SIZE_SHARE_MAX * workload.unique_bytes, float(region.focal.size_mean))
        if workload.size_mean > share_max and all(o.parameter != "size_mean" for o in found):
            low = self.of(region.index, "size_mean").low
            found.append(
                Outside("size_mean", workload.size_mean, Span(low, share_max), region.name)
            )
        return tuple(found)

    def holds(self, workload: Workload) -> bool:
        """Whether every value of a workload lies inside what was measured."""
        region = self.region_of(workload.unique_bytes)
        return region is not None and self.is_surveyed(region.index) and not self.outside(workload)

    def _surveyed(self) -> list[Region]:
        return [region for region in self._regions if region.index in self._families]


def _hull(spans: list[Span]) -> Span:
    if not spans:
        return Span(math.inf, -math.inf)
    return Span(min(span.low for span in spans), max(span.high for span in spans))


def _known(end: float | None, value: float) -> float:
    return value if end is None else end
