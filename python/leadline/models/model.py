"""What every model of a surveyed system offers."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from leadline.errors import LeadlineError
from leadline.record import Boundary, Interval, Measurement, SurveyStart, Workload
from leadline.stats import own_error, pooled_noise

Floats = NDArray[np.float64]


class PredictionRefused(LeadlineError):
    """The survey says nothing of what is asked; the message says what would."""

    exit_code = 2


@dataclass(frozen=True)
class Expected:
    """Throughput of several workloads, on a natural-log scale of MB/s; arrays of (workloads,)."""

    ln_mb_s: Floats
    ln_sd: Floats
    """Of the expected throughput: what is not known of the mean of many runs."""
    noise_ln_sd: Floats
    """Of one run about that mean."""


class Model(Protocol):
    """A fitted model of one system. It knows nothing of ranges: `Predictor` guards those."""

    name: str
    """How it is chosen and shown: "product", "joint", …"""
    n: int
    """Readings it rests on."""
    df: float
    """Degrees of freedom behind its standard deviations."""
    knows_pages: bool
    """Whether it tells requests of whole pages from those of scattered sizes."""

    def expect(self, workloads: Sequence[Workload]) -> Expected:
        """Return what is expected of each workload."""

    def embedded(self) -> dict[str, Any]:
        """Return all a browser needs to predict the same, as plain JSON values."""


# Readings brought together for fitting: what was measured, how noisy, and where levels end.

BOUNDARY_LN_SD_MIN, COUNTED_LN_SD_MIN = 0.05, 0.01
"""A boundary is never taken for better known: the fit moves it as all readings want it. One from
hit ratios is where the cache ends, whatever the throughput does there."""
REGION_DF = 3.0
"""Replicates a region needs until its own noise counts as much as the whole system's."""


@dataclass(frozen=True)
class RegionNoise:
    """Run-to-run noise by region of unique_bytes."""

    overall_ln_sd: float
    edges_bytes: tuple[float, ...]
    """The boundaries between the regions."""
    weights: tuple[float, ...]
    """Variance of each region relative to the overall one."""

    def weight_at(self, workloads: Sequence[Workload]) -> Floats:
        """Return the relative noise variance of each workload."""
        return np.array(self.weights)[self.regions(workloads)]

    def regions(self, workloads: Sequence[Workload]) -> NDArray[np.intp]:
        """Return the place of each workload's region, from the nearest."""
        found = [bisect_right(self.edges_bytes, w.unique_bytes) for w in workloads]
        return np.array(found, dtype=np.intp)


class KnownBoundary(NamedTuple):
    """Where a level ends."""

    ln_bytes: float
    ln_sd: float
    smeared: bool | None
    """Whether more than what lies beyond misses, as hit ratios show; None where none were seen."""


@dataclass(frozen=True)
class Sample:
    """What a model is fitted to; arrays are (readings,)."""

    workloads: tuple[Workload, ...]
    ln_mb_s: Floats
    noise_weight: Floats
    """Variance of each reading relative to the common noise's."""
    noise: RegionNoise
    boundaries: tuple[KnownBoundary, ...]
    scattered: tuple[bool, ...] = ()
    """Whether each reading was chosen anywhere among all, not along a curve; empty says: all."""
    paged: bool = False
    """Whether requests go through a page cache, which is filled by whole pages."""

    def doubting(self, off: Floats, sigmas: float) -> Sample:
        """Return the sample with readings that are off so far counting less; none is dropped.

        Args:
            off: their errors in units of what was expected of them, (readings,).
            sigmas: farther off than that is doubted.

        """
        far = np.maximum(np.abs(off) / sigmas, 1.0)
        return replace(self, noise_weight=self.noise_weight * far**2)


def is_paged(start: SurveyStart) -> bool:
    """Whether a survey's requests went through a page cache."""
    return not start.direct and start.backend != "simulated"


def sample_of(
    points: Sequence[Measurement],
    boundaries: Sequence[Boundary],
    processors: float | None = None,
    *,
    paged: bool = False,
) -> Sample:
    """Bring measurements together.

    Args:
        points: of one system; those not valid are left out while others are there.
        boundaries: where levels end.
        processors: of the machine, where they are known: a reading during which others had more
            of them than usual, or less, counts less.
        paged: see `is_paged`.

    Raises:
        ValueError: no points.

    """
    usable = [point for point in points if point.result.admissible] or list(points)
    if not usable:
        raise ValueError("a model needs measurements")
    edges = tuple(boundary.bytes.value for boundary in boundaries)
    noise = _noise(usable, edges)
    workloads = tuple(point.workload for point in usable)
    within = np.array([_own_sd(point.result.throughput_mb_s) for point in usable])
    disturbed = disturbance_ln_sd(usable, processors)
    # Replicates hold a run's own error already: it adds only where it is the larger part.
    weight = np.maximum(noise.weight_at(workloads), (within / noise.overall_ln_sd) ** 2)
    weight = np.asarray(weight + (disturbed / noise.overall_ln_sd) ** 2)
    return Sample(
        workloads=workloads,
        ln_mb_s=np.log([max(point.result.throughput_mb_s.value, 1e-6) for point in usable]),
        noise_weight=weight,
        noise=noise,
        boundaries=tuple(
            KnownBoundary(float(np.log(each.bytes.value)), _ln_sd(each), _smeared(each))
            for each in boundaries
        ),
        scattered=tuple(point.stage == "learning" for point in usable),
        paged=paged,
    )


def disturbance_ln_sd(points: Sequence[Measurement], processors: float | None) -> Floats:
    """Return how far each reading may be off in ln, for what others took of the processors then.

    With a share f of them gone a workload is slowed by anything from nothing to 1 / (1 - f). What
    others took all the time is the machine as it is; what they took more or less than at the
    median reading is not. Half of that difference stands for a standard deviation.
    """
    if not processors:
        return np.zeros(len(points))
    left = np.log1p([-point.result.lost_share(processors) for point in points])
    return np.asarray(np.abs(left - np.median(left)) / 2)


def _own_sd(reading: Interval) -> float:
    error = own_error(reading)
    return 0.0 if error is None else error.sd_frac


def _noise(points: Sequence[Measurement], edges: tuple[float, ...]) -> RegionNoise:
    groups: dict[Workload, list[float]] = {}
    for point in points:
        groups.setdefault(point.workload, []).append(max(point.result.throughput_mb_s.value, 1e-6))
    overall = pooled_noise(list(groups.values())).sd_frac
    weights = []
    for region in range(len(edges) + 1):
        own = [g for w, g in groups.items() if bisect_right(edges, w.unique_bytes) == region]
        found = pooled_noise(own)
        shrunk = found.df * found.sd_frac**2 + REGION_DF * overall**2
        weights.append(shrunk / (found.df + REGION_DF) / overall**2)
    return RegionNoise(overall, edges, tuple(float(weight) for weight in weights))


def _smeared(boundary: Boundary) -> bool | None:
    return boundary.shape != "uniform" if boundary.basis == "counted" else None


def _ln_sd(boundary: Boundary) -> float:
    low, high = boundary.bytes.low, boundary.bytes.high
    if low is None or high is None or low <= 0:
        return 0.2
    least = COUNTED_LN_SD_MIN if boundary.basis == "counted" else BOUNDARY_LN_SD_MIN
    return max(float(np.log(high / low)) / 3.92, least)
