"""Model-free cross-check of the boundaries: best piecewise-constant fit by dynamic programming.

Generic change-point detection misplaces cache sizes (13-60% median error against 1-5% of the
hit-ratio fit, LITERATURE §2.2), because time beyond a cache still rises. It is reported beside
the fitted boundaries and decides nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def change_points(
    unique_bytes: Sequence[float], throughput_mb_s: Sequence[float], levels_max: int = 4
) -> tuple[float, ...]:
    """Return unique_bytes between the segments of the best piecewise-constant ln throughput.

    Every split is tried (jump = 1), segments have at least two readings, and BIC chooses the
    number of segments, at most `levels_max`.
    """
    order = np.argsort(np.asarray(unique_bytes, dtype=np.float64), kind="stable")
    x = np.asarray(unique_bytes, dtype=np.float64)[order]
    y = np.log(np.asarray(throughput_mb_s, dtype=np.float64)[order])
    count = y.size
    if count < 4:
        return ()
    sums, squares = np.cumsum(np.append(0, y)), np.cumsum(np.append(0, y * y))

    def cost(start: int, end: int) -> float:
        spread = squares[end] - squares[start] - (sums[end] - sums[start]) ** 2 / (end - start)
        return float(max(spread, 0.0))

    best: list[dict[int, tuple[float, tuple[int, ...]]]] = [
        {end: (cost(0, end), ()) for end in range(2, count + 1)}
    ]
    for _ in range(1, levels_max):
        grown = {}
        for end in range(4, count + 1):
            options = [
                (before + cost(split, end), (*cuts, split))
                for split, (before, cuts) in best[-1].items()
                if split <= end - 2 and x[split] > x[split - 1]
            ]
            if options:
                grown[end] = min(options)
        best.append(grown)
    scored = [
        (count * np.log(fits[count][0] / count + 1e-4) + 3 * cuts * np.log(count), fits[count][1])
        for cuts, fits in enumerate(best)
        if count in fits
    ]
    return tuple(float(np.sqrt(x[cut - 1] * x[cut])) for cut in min(scored)[1])
