"""The rival of CP94 Fig. 14: interpolation in an orthogonal sample of the same space."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from leadline.record import Workload
from leadline.studies.validation.draw import Space, grid_axes, grid_workloads


def interpolate(
    space: Space,
    levels: Sequence[int],
    measured_mb_s: Mapping[Workload, float],
    workloads: Sequence[Workload],
) -> list[float] | None:
    """Return the throughput of each workload in MB/s, multilinear in ln throughput.

    The axes are those of the unit cube (`draw.py`), so unique_bytes, size_mean and process_num are
    interpolated over their logarithms. None when a point of the grid was not measured.
    """
    from scipy.interpolate import RegularGridInterpolator  # noqa: PLC0415 - a third of a second

    grid = grid_workloads(space, levels)
    if any(measured_mb_s.get(workload, 0.0) <= 0 for workload in grid):
        return None
    values = np.array([math.log(measured_mb_s[workload]) for workload in grid])
    interpolator = RegularGridInterpolator(grid_axes(levels), values.reshape(tuple(levels)))
    found = interpolator(np.array([space.coordinates(workload) for workload in workloads]))
    return [math.exp(value) for value in found]
