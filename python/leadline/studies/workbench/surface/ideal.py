"""The ideal configuration: the least of everything that reaches the best rate (SH08 §2.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from leadline.studies.workbench.surface.grid import Floats, Grid


def ideal_cell(
    grid: Grid, log_rate: Floats, covariance: Floats | None, reach: float, apart_frac: float
) -> int | None:
    """Return the ideal cell; None while no cell has a rate.

    A cell reaches the best rate when it is expected within `apart_frac` of it, and what is known
    cannot tell the two apart. Of these the one is ideal that needs the fewest steps along the
    levels of the file, each factor's steps counted as a share of its own; where several need as
    few, the fastest.
    """
    believed = np.isfinite(log_rate)
    if not believed.any():
        return None
    best = int(np.argmax(np.where(believed, log_rate, -np.inf)))
    short = log_rate[best] - log_rate
    reached = believed & (short <= -np.log1p(-apart_frac))
    if covariance is not None:
        reached &= short <= np.maximum(reach * sd_of_difference(covariance, best), 1e-12)
    reached[best] = True
    steps = grid.steps()
    share = (steps / np.maximum(steps.max(axis=0), 1)).sum(axis=1)
    order = np.lexsort((-log_rate, np.round(share, 9)))
    return int(next(cell for cell in order if reached[cell]))


def sd_of_difference(covariance: Floats, cell: int) -> npt.NDArray[np.float64]:
    """Return the standard deviations of one cell's logarithm less each cell's."""
    diagonal = np.diag(covariance)
    variance = diagonal + diagonal[cell] - 2 * covariance[cell]
    return np.asarray(np.sqrt(np.maximum(variance, 0.0)))
