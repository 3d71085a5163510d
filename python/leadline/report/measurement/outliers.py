"""Outliers among the slices of each run: classified by Tukey's fences and counted, never dropped.

A slice lies outside the inner fences beyond 1.5 interquartile ranges from the quartiles (mild) and
outside the outer fences beyond 3 (severe); Tukey, Exploratory Data Analysis, 1977.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from leadline.record import Measurement

LEAST_SLICES = 8
"""Quartiles of fewer slices say little; such runs are counted as not classified."""


class Outliers(msgspec.Struct, frozen=True):
    """Slices by class over all points, and the points too short to classify."""

    slices: int
    mild: int
    severe: int
    unclassified_points: int


def slice_outliers(points: Sequence[Measurement]) -> Outliers:
    """Classify the throughput of every slice against the other slices of its own run."""
    slices = mild = severe = unclassified = 0
    for point in points:
        rates = np.array(
            [part.bytes / part.seconds for part in point.result.intervals if part.seconds > 0]
        )
        if len(rates) < LEAST_SLICES:
            unclassified += 1
            continue
        low, high = np.percentile(rates, [25, 75])
        beyond = np.maximum(low - rates, rates - high)
        reach = high - low
        out = int(np.sum(beyond > 3.0 * reach))
        severe += out
        mild += int(np.sum(beyond > 1.5 * reach)) - out
        slices += len(rates)
    return Outliers(slices, mild, severe, unclassified)
