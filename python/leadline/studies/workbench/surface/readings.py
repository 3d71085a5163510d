"""What a design was told: peaks as logarithms with their own error."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np

from leadline.record.workbench import PeakRate, Sample
from leadline.studies.workbench.surface.grid import Floats, Grid

SD_LOG_LEAST = 0.005
"""No peak of an open loop is known better: half a percent."""
SD_LOG_UNKNOWN = 0.15
"""Of a peak whose search could state no interval."""


@dataclass
class Readings:
    """Peaks by cell; the order in which they came plays no part."""

    grid: Grid
    peaks: dict[int, PeakRate] = field(default_factory=dict)

    def tell(self, sample: Sample, peak: PeakRate) -> None:
        """Keep a peak.

        Raises:
            GridError: the sample is not in the grid.

        """
        self.peaks[self.grid.cell(sample)] = peak
        self.peaks = dict(sorted(self.peaks.items()))

    @property
    def cells(self) -> list[int]:
        """Cells whose peak is a number, ascending."""
        return [cell for cell, peak in self.peaks.items() if _has_rate(peak)]

    def unasked(self, in_flight: Sequence[Sample]) -> list[int]:
        """Cells that are neither told nor being measured."""
        taken = set(self.peaks) | {self.grid.cell(sample) for sample in in_flight}
        return [cell for cell in range(len(self.grid)) if cell not in taken]

    @property
    def log_rates(self) -> Floats:
        """Of `cells`."""
        return np.array([math.log(_rate(self.peaks[cell])) for cell in self.cells])

    @property
    def sd_logs(self) -> Floats:
        """Of `cells`: what their own intervals say."""
        return np.array([sd_log(self.peaks[cell]) for cell in self.cells])

    @property
    def cost_s(self) -> float:
        """Bench time of all searches."""
        return sum(peak.cost_s for peak in self.peaks.values())


def sd_log(peak: PeakRate) -> float:
    """Standard deviation of the logarithm of a peak, from its interval at its confidence."""
    rate = peak.rate_per_s
    if rate is None or not rate.low or not rate.high or rate.low <= 0:
        return SD_LOG_UNKNOWN
    half = 0.5 * math.log(rate.high / rate.low)
    return max(half / two_sided(peak.confidence), SD_LOG_LEAST)


def two_sided(confidence: float) -> float:
    """Return how many standard deviations a normal interval of this confidence reaches."""
    return NormalDist().inv_cdf(0.5 + confidence / 2)


def _has_rate(peak: PeakRate) -> bool:
    return peak.rate_per_s is not None and peak.rate_per_s.value > 0


def _rate(peak: PeakRate) -> float:
    assert peak.rate_per_s is not None  # noqa: S101 - of cells that have one
    return peak.rate_per_s.value
