"""Workloads spread over the surveyed ranges: the space-filling half of a mixed design."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np

from leadline.predict.ranges import SIZE_SHARE_MAX
from leadline.record import Workload

_BLOCK_BYTES = 4096
_SECTOR_BYTES = 512


@dataclass(frozen=True)
class Box:
    """Where workloads may lie; fractions run from 0 to 1."""

    unique_bytes: tuple[float, float]
    size_mean: tuple[float, float]
    process_num: tuple[float, float]

    def holds(self, workload: Workload) -> bool:
        """Whether `workload` could have been drawn from this box."""
        return (
            self.unique_bytes[0] <= workload.unique_bytes <= self.unique_bytes[1]
            and self.size_mean[0] <= workload.size_mean <= self.size_mean[1]
            and self.process_num[0] <= workload.process_num <= self.process_num[1]
            and not workload.beyond()
        )

    def workload(self, place: tuple[float, ...]) -> Workload:
        """Return the workload at a place of the unit cube, in the order of PARAMETERS.

        Bytes and processes lie evenly on a log axis; a mean size is at most a share of
        `unique_bytes`, so that a request does not span the data it is drawn from.
        """
        unique = _between(self.unique_bytes, place[0])
        unique_bytes = max(_BLOCK_BYTES, round(unique / _BLOCK_BYTES) * _BLOCK_BYTES)
        low, high = self.size_mean
        high = max(low, min(high, SIZE_SHARE_MAX * unique_bytes))
        size = _between((low, high), place[1])
        return Workload(
            unique_bytes=unique_bytes,
            size_mean=max(_SECTOR_BYTES, round(size / _SECTOR_BYTES) * _SECTOR_BYTES),
            read_frac=round(place[2], 3),
            seq_frac=round(place[3], 3),
            process_num=max(1, round(_between(self.process_num, place[4]))),
        )


def spread_out(box: Box, count: int, seed: int) -> list[Workload]:
    """Return scrambled Sobol workloads, the same for a seed."""
    from scipy.stats import qmc  # noqa: PLC0415 - half a second that only learning needs

    sobol = qmc.Sobol(d=5, scramble=True, seed=seed)
    with warnings.catch_warnings():
        # Balance wants a power of two; a design of any size is wanted here.
        warnings.simplefilter("ignore", UserWarning)
        places = sobol.random(count)
    return [box.workload(tuple(place)) for place in np.asarray(places).tolist()]


def _between(ends: tuple[float, float], place: float) -> float:
    low, high = ends
    return float(low * math.exp(place * math.log(high / low)))
