"""Response times beside throughput along the curves of a survey.

A survey is a closed loop: each worker waits for its request, so these are the times at the rate
that the storage reached with so many requests under way, not at a rate that somebody asked for. A
point has the quantiles of each of its readings; of several the mean is told.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import fmean
from typing import NamedTuple

from leadline.record import Curve, CurvePoint, Measurement, Survey
from leadline.record.wording import PARAMETER_TITLES, format_place, format_rate_ci, format_value
from leadline.units import format_seconds


class PointLatency(NamedTuple):
    """What a point of a curve says beside its throughput; of several readings the mean."""

    mean_us: float
    p50_us: float
    p99_us: float
    iops: float


def latencies(points: Iterable[Measurement]) -> dict[str, PointLatency]:
    """Return what every measurement says of response times, by its id."""
    found = {}
    for point in points:
        result, times = point.result, point.result.latency_us
        found[point.point_id] = PointLatency(times.mean, times.p50, times.p99, result.iops.value)
    return found


def latency_at(point: CurvePoint, known: Mapping[str, PointLatency]) -> PointLatency | None:
    """Return what the readings of a curve's point say together; None where none is known."""
    own = [known[each] for each in point.point_ids if each in known]
    if not own:
        return None
    return PointLatency(*(fmean(column) for column in zip(*own, strict=True)))


def every_curve(survey: Survey) -> tuple[Curve, ...]:
    """Return the curve over the working set, then those of each level."""
    own = (curve for family in survey.families for curve in family.curves)
    return (survey.unique_bytes_curve, *own)


def format_curve(survey: Survey, curve: Curve) -> str:
    """Write what a curve is over, and where: `request size within the page cache`."""
    title = PARAMETER_TITLES[curve.parameter]
    region = next((each for each in survey.regions if each.index == curve.region), None)
    return f"{title}, over all levels" if region is None else f"{title}, {format_place(region)}"


def curve_rows(
    curve: Curve, known: Mapping[str, PointLatency], *, iops: bool = False
) -> list[tuple[str, ...]]:
    """Return a row for each point of a curve.

    Args:
        curve: whose points.
        known: by `latencies`.
        iops: requests per second in place of MB/s.

    """
    rows: list[tuple[str, ...]] = []
    for point in curve.points:
        own = latency_at(point, known)
        rate = format_rate_ci(point.throughput_mb_s)
        if iops:
            rate = "not known" if own is None else f"{own.iops:,.0f}"
        times = ("not known",) * 2
        if own is not None:
            times = (format_seconds(own.p50_us / 1e6), format_seconds(own.p99_us / 1e6))
        rows.append((format_value(curve.parameter, point.x), rate, *times))
    return rows


def curve_heads(curve: Curve, *, iops: bool = False) -> tuple[str, ...]:
    """Return the heads of these rows."""
    rate = "Requests/s" if iops else "Throughput (95% CI)"
    return (PARAMETER_TITLES[curve.parameter], rate, "p50", "p99")
