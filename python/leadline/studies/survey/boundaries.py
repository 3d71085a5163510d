"""Boundaries between levels, and the readings that they rest on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from leadline.record import Boundary, Measurement, Workload
from leadline.record.finding import Finding
from leadline.record.wording import format_bytes_ci
from leadline.stats import BoundaryFit, FittedBoundary, fit_boundaries
from leadline.studies.hit_ratio import CountedBoundary, always_held, counted_boundary, throughput

# The measurements of a survey, looked up by workload.


@dataclass
class SurveyReadings:
    """All measurements so far.

    A point that is not valid is kept in `all` (nothing is dropped) but no decision and no
    curve rests on it while a valid one is there.
    """

    all: list[Measurement] = field(default_factory=list)

    def add(self, measurement: Measurement) -> None:
        """Take one more measurement."""
        self.all.append(measurement)

    def at(self, workload: Workload) -> list[Measurement]:
        """Measurements of exactly this workload; the valid ones when there are any."""
        found = [point for point in self.all if point.workload == workload]
        return [point for point in found if point.result.admissible] or found

    def along(self, parameter: str, focal: Workload) -> list[Measurement]:
        """Measurements that differ from `focal` in at most this one parameter, by x."""
        found = [
            point
            for point in self.all
            if point.workload.with_value(parameter, getattr(focal, parameter)) == focal
        ]
        usable = [point for point in found if point.result.admissible] or found
        return sorted(usable, key=lambda point: (value(point, parameter), point.order))

    def replicates(self) -> list[list[Measurement]]:
        """Group the measurements taken of one and the same workload, two or more each."""
        groups: dict[Workload, list[Measurement]] = {}
        for point in self.all:
            if point.result.admissible:
                groups.setdefault(point.workload, []).append(point)
        return [group for group in groups.values() if len(group) > 1]

    def replicate_series(self) -> tuple[list[list[float]], list[list[float]]]:
        """When the replicates of each workload began, in seconds, and what they read, in MB/s."""
        groups = self.replicates()
        return (
            [[point.clock_s for point in group] for group in groups],
            [[throughput(point) for point in group] for group in groups],
        )


def value(point: Measurement, parameter: str) -> float:
    """Where a point lies on the axis of one parameter."""
    return float(getattr(point.workload, parameter))


def curve_of(points: Sequence[Measurement], parameter: str) -> tuple[list[float], list[float]]:
    """The mean throughput at each x, as two sequences ordered by x."""
    at: dict[float, list[float]] = {}
    for point in points:
        at.setdefault(value(point, parameter), []).append(throughput(point))
    xs = sorted(at)
    return xs, [sum(at[x]) / len(at[x]) for x in xs]


# Which boundaries a survey has, and where.
#
# Decided here for both: the strategy, which measures the levels between them, and the explanation,
# which has more readings by then. The end of the page cache is counted where that can be
# (`studies.counted`); every other boundary shows in the throughput alone (`stats.boundaries`).

ONE_BOUNDARY = 2.0
"""Two boundaries within this factor are one (docs/concepts/boundaries.md)."""
DISAGREE = 1.25
"""Counts and throughput that lie further apart than this, their intervals too, are told."""


@dataclass(frozen=True)
class Decided:
    """The boundaries of a curve over unique_bytes."""

    boundaries: tuple[Boundary, ...]
    """By rising bytes."""
    curve: BoundaryFit
    """What the throughput alone says."""
    kept: tuple[int, ...]
    """Which of its boundaries stand; the others are the counted one, seen less well."""
    counted: CountedBoundary | None
    doubt: Finding | None
    """Where counts and throughput say different things, what; else None."""


def decide(points: Sequence[Measurement], *, seed: int, memory_bytes: int | None) -> Decided:
    """Decide the boundaries of a curve.

    Args:
        points: measurements that differ in nothing but unique_bytes.
        seed: of the intervals' bootstrap.
        memory_bytes: memory that can hold page cache; no counted boundary lies beyond it.

    """
    curve = _fit(points, seed)
    counted = counted_boundary(points, seed=seed, memory_bytes=memory_bytes)
    kept = tuple(
        place
        for place, boundary in enumerate(curve.boundaries)
        if counted is None or _apart(boundary, counted.boundary) >= ONE_BOUNDARY
    )
    return _joined(curve, kept, counted, always_held=always_held(points))


def decide_again(
    before: Decided, points: Sequence[Measurement], *, seed: int, memory_bytes: int | None
) -> tuple[Decided, bool]:
    """Place the boundaries that were decided by more readings of the same curve.

    Which boundaries there are stays: the levels between them were measured. Arguments as of
    `decide`.

    Returns:
        The boundaries, and whether the throughput no longer shows those that rest on it; those that
        were decided stand then.

    """
    now = _fit(points, seed, count=len(before.curve.boundaries))
    lost = len(now.boundaries) != len(before.curve.boundaries)
    counted = before.counted and (
        counted_boundary(points, seed=seed, memory_bytes=memory_bytes) or before.counted
    )
    curve = before.curve if lost else now
    again = _joined(curve, before.kept, counted, always_held=always_held(points), now=now)
    contradicted = lost and bool(before.kept)
    if [each.basis for each in again.boundaries] != [each.basis for each in before.boundaries]:
        return replace(before, doubt=again.doubt), contradicted
    return again, contradicted


def _fit(points: Sequence[Measurement], seed: int, count: int | None = None) -> BoundaryFit:
    return fit_boundaries(
        [float(point.workload.unique_bytes) for point in points],
        [throughput(point) for point in points],
        seed=seed,
        count=count,
    )


def _joined(
    curve: BoundaryFit,
    kept: Sequence[int],
    counted: CountedBoundary | None,
    *,
    always_held: bool,
    now: BoundaryFit | None = None,
) -> Decided:
    """Put the kept boundaries and the counted one together.

    `now` is the fit that the count is held against, where later readings no longer show `curve`.
    """
    found = [_boundary(curve.boundaries[place], "throughput") for place in kept]
    seen = _seen(curve, counted)
    if counted is not None:
        ratio = seen.time_ratio if seen else counted.boundary.time_ratio
        found.append(_boundary(replace(counted.boundary, time_ratio=ratio), "counted"))
    boundaries = tuple(sorted(found, key=lambda boundary: boundary.bytes.value))
    now = now or curve
    doubt = _doubt(now, counted, _seen(now, counted), always_held=always_held)
    return Decided(boundaries, curve, tuple(kept), counted, doubt)


def _boundary(fitted: FittedBoundary, basis: Literal["counted", "throughput"]) -> Boundary:
    return Boundary(
        bytes=fitted.bytes,
        shape=fitted.shape,
        time_ratio=fitted.time_ratio,
        evidence_bic=fitted.evidence_bic,
        basis=basis,
    )


def _seen(curve: BoundaryFit, counted: CountedBoundary | None) -> FittedBoundary | None:
    """The counted boundary as the throughput sees it; None where it does not."""
    if counted is None:
        return None
    near = [each for each in curve.boundaries if _apart(each, counted.boundary) < ONE_BOUNDARY]
    return min(near, key=lambda boundary: _apart(boundary, counted.boundary), default=None)


def _doubt(
    curve: BoundaryFit,
    counted: CountedBoundary | None,
    seen: FittedBoundary | None,
    *,
    always_held: bool,
) -> Finding | None:
    if counted is None:
        if not (always_held and curve.boundaries):
            return None
        return Finding.of("no_cache_end", boundary=format_bytes_ci(curve.boundaries[-1].bytes))
    size = counted.boundary.bytes
    if seen is None:
        return Finding.of("boundary_by_count_alone", boundary=format_bytes_ci(size))
    if _apart(seen, counted.boundary) < DISAGREE or _overlap(seen, counted.boundary):
        return None
    way = "fell before" if seen.bytes.value < size.value else "fell only after"
    boundary = format_bytes_ci(seen.bytes)
    return Finding.of("boundaries_apart", way=way, boundary=boundary, counted_bytes=size.value)


def _apart(one: FittedBoundary, other: FittedBoundary) -> float:
    a, b = one.bytes.value, other.bytes.value
    return max(a, b) / min(a, b)


def _overlap(one: FittedBoundary, other: FittedBoundary) -> bool:
    a, b = one.bytes, other.bytes
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return True
    return max(a.low, b.low) <= min(a.high, b.high)
