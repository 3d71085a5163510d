"""Where one level of a storage hierarchy ends: boundaries in `unique_bytes` (LITERATURE §2).

Several explanations of a curve compete - smooth ones without a boundary, and one to three
boundaries of three shapes - and the Bayesian information criterion picks, with a margin that a
boundary must win by. Intervals come from a residual bootstrap. See docs/concepts/boundaries.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadline.record import Interval
from leadline.stats import hierarchy
from leadline.stats.explanations import (
    EVIDENCE_MARGIN,
    Explanation,
    bic,
    choose,
    explain,
    noise_of,
    parameters_of,
    readings_of,
)
from leadline.stats.hierarchy import SHAPE_OF_CODE, CurveReadings, Floats
from leadline.stats.resampling import bootstrap

_STRETCH = 1.15
"""Widening, in ln C, of the bootstrap's interval: with some 16 readings its plain quantiles cover
the truth in 90-93% of curves (bench/boundaries.py), as residual bootstraps of few points do."""


@dataclass(frozen=True)
class FittedBoundary:
    """One boundary: the effective size of a cache."""

    bytes: Interval
    shape: str
    time_ratio: float
    """Time per byte far beyond the boundary over time per byte before it."""
    evidence_bic: float
    """BIC gained by this boundary over the best explanation without it."""


@dataclass(frozen=True)
class BoundaryFit:
    """The best explanation of a curve over `unique_bytes`, and its rivals."""

    boundaries: tuple[FittedBoundary, ...]
    noise_frac: float
    """Standard deviation of one reading about the fit, as a fraction."""
    model: str
    alternatives: tuple[tuple[str, int, float], ...]
    """(name, boundaries, BIC) of each explanation that competed, best first."""
    explanation: Explanation
    middle: float

    def predict(self, unique_bytes: Floats | Sequence[float]) -> Floats:
        """Return the fitted time per byte in s/MB; 1 / it is MB/s."""
        x = np.log(np.asarray(unique_bytes, dtype=np.float64))
        return np.asarray(np.exp(self.explanation.ln_time(x, self.middle)))


def fit_boundaries(
    unique_bytes: Sequence[float] | Floats,
    throughput_mb_s: Sequence[float] | Floats,
    reading_sd_frac: Sequence[float] | Floats | None = None,
    *,
    seed: int,
    margin_bic: float = EVIDENCE_MARGIN,
    count: int | None = None,
) -> BoundaryFit:
    """Find the boundaries of a curve of throughput over `unique_bytes`, with 95% intervals.

    Repeated x are separate readings. `reading_sd_frac` weighs readings against each other and
    says what noise to expect before any residual is seen. `count` fixes the number of boundaries
    where it was decided earlier and an explanation with that many fits; else evidence decides.

    Raises:
        ValueError: fewer than two readings, or a value that is not positive.

    """
    data, prior_sd = readings_of(unique_bytes, throughput_mb_s, reading_sd_frac)
    rivals, data = explain(data, prior_sd)
    decided = [rival for rival in rivals if rival.boundaries == count]
    best = choose(decided or rivals, margin_bic)
    noise = noise_of(best, data, prior_sd)
    boundaries: tuple[FittedBoundary, ...] = ()
    if best.boundaries:
        evidence = _evidence(best, rivals, data, prior_sd)
        samples = bootstrap(best, rivals, data, noise, np.random.default_rng(seed))
        boundaries = tuple(
            _boundary(best, level, samples[:, level], float(evidence[level]), data)
            for level in range(best.boundaries)
        )
    table = tuple((rival.name, rival.boundaries, rival.bic) for rival in rivals)
    return BoundaryFit(boundaries, noise, best.name, table, best, data.middle)


def _evidence(
    best: Explanation, rivals: Sequence[Explanation], data: CurveReadings, prior_sd: float
) -> Floats:
    """BIC that each boundary gains over the best explanation of the same curve without it."""
    gains = np.empty(best.boundaries)
    fewer = [rival.bic for rival in rivals if rival.boundaries < best.boundaries]
    for level in range(best.boundaries):
        without = min(rival.bic for rival in rivals if rival.boundaries == 0)
        if best.boundaries > 1:
            dropped = [3 + level + block * best.boundaries for block in range(3)]
            theta = np.delete(best.coefficients, dropped)[None, :]
            codes = np.delete(best.codes, level)[None, :]
            cost = hierarchy.refine(data, codes, theta, 30).cost[0]
            parameters = parameters_of(tuple(codes[0]))
            without = float(bic(cost, parameters, data.x.size, prior_sd))
        gains[level] = without - best.bic
    floor = min(fewer) - best.bic
    return np.maximum(gains, floor) if best.boundaries > 1 else gains


def _boundary(
    best: Explanation, level: int, samples: Floats, evidence: float, data: CurveReadings
) -> FittedBoundary:
    at_delta, at_centre, _ = hierarchy.places(best.boundaries)
    delta = np.exp(np.array(best.coefficients[at_delta]) - best.coefficients[0])
    centre = best.coefficients[at_centre][level]
    low, high = centre + _STRETCH * (np.quantile(samples, [0.025, 0.975]) - centre)
    interval = Interval(
        float(np.exp(centre)),
        float(np.exp(min(low, centre))),
        float(np.exp(max(high, centre))),
        int(data.x.size),
    )
    before = 1 + delta[:level].sum()
    return FittedBoundary(
        interval, SHAPE_OF_CODE[best.codes[level]], float(1 + delta[level] / before), evidence
    )
