"""Did the system move since its survey? The focal points measured again tell (METHODS §2)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist

from leadline.record import FocalDrift, Interval, Measurement, ValidationStart, Workload
from leadline.record.findings import compare
from leadline.stats import Noise, group_drift, own_error, pooled_noise, reading_interval
from leadline.studies.validation.draw import ANCHORS, Space


def focal_drifts(
    start: ValidationStart, points: Sequence[Measurement]
) -> tuple[tuple[FocalDrift, ...], Interval | None]:
    """Return the change of each focal point since the survey, and of all of them together.

    Fractions: -0.1 where the system is a tenth slower now. The interval of a ratio is recovered
    from the survey's own and that of the readings here (`record.findings.compare`); all together
    are the mean of the logarithms, weighted by their inverse variance. None without any anchor.
    """
    found, logs = [], []
    for item in start.ranges:
        anchors = [p for p in points if p.stage == ANCHORS and p.workload == item.focal]
        usable = [p for p in anchors if p.result.admissible]
        if not usable:
            continue
        now = reading_interval(
            [_mb_s(point) for point in usable],
            [own_error(point.result.throughput_mb_s) for point in usable],
            region_noise(start, points, item.region),
        )
        change = compare(now, item.surveyed_mb_s)
        if change.low is None or change.high is None:
            continue
        n = now.n + item.surveyed_mb_s.n
        interval = Interval(change.ratio - 1, change.low - 1, change.high - 1, n)
        found.append(FocalDrift(item.region, item.name, interval))
        logs.append((math.log(change.ratio), math.log(change.high / change.low) / 2, n))
    return tuple(found), _together(logs)


def moved(drift: Sequence[FocalDrift], together: Interval | None) -> tuple[FocalDrift, ...] | None:
    """Return the regions that are shown to have moved; None when nothing is shown to have.

    All regions and their mean are asked, so each must exclude 0 by an interval that is wider than
    its own 95 % one (Bonferroni), on the log scale.
    """
    tests = len(drift) + 1
    regions = tuple(item for item in drift if _excludes_zero(item.change_frac, tests))
    whole = together is not None and _excludes_zero(together, tests)
    return regions if whole or regions else None


def _excludes_zero(change: Interval, tests: int) -> bool:
    if change.low is None or change.high is None:
        return False
    normal = NormalDist()
    stretch = normal.inv_cdf(1 - 0.025 / tests) / normal.inv_cdf(0.975)
    # Very few readings bound a change by nothing: the low end is then a fall by all of it.
    middle, low, high = (
        math.log1p(end) if end > -1 else -math.inf
        for end in (change.value, change.low, change.high)
    )
    return middle - stretch * (middle - low) > 0 or middle + stretch * (high - middle) < 0


def drift_within(points: Sequence[Measurement]) -> Interval | None:
    """Return the change from the first point to the last, from all that was measured repeatedly."""
    groups = [group for group in replicates(points) if len(group) > 1]
    return group_drift(
        [[point.clock_s for point in group] for group in groups],
        [[_mb_s(point) for point in group] for group in groups],
    )


def region_noise(start: ValidationStart, points: Sequence[Measurement], region: int) -> Noise:
    """Run-to-run noise in one region, from all that was measured there more than once."""
    space = Space(start.ranges)
    own = [p for p in points if space.at(p.workload.unique_bytes).region == region]
    return pooled_noise([[_mb_s(p) for p in g] for g in replicates(own) if len(g) > 1])


def replicates(points: Sequence[Measurement]) -> list[list[Measurement]]:
    """Group the admissible points by their workload."""
    groups: dict[Workload, list[Measurement]] = {}
    for point in points:
        if point.result.admissible:
            groups.setdefault(point.workload, []).append(point)
    return list(groups.values())


def _together(logs: Sequence[tuple[float, float, int]]) -> Interval | None:
    if not logs:
        return None
    weights = [1 / max(half, 1e-9) ** 2 for _, half, _ in logs]
    total = sum(weights)
    mean = sum(w * log for w, (log, _, _) in zip(weights, logs, strict=True)) / total
    half = total**-0.5
    low, high = math.expm1(mean - half), math.expm1(mean + half)
    return Interval(math.expm1(mean), low, high, sum(n for _, _, n in logs))


def _mb_s(point: Measurement) -> float:
    return max(point.result.throughput_mb_s.value, 1e-6)
