"""Reading values off a measured curve: slope, half-way point, good range, where it stops rising.

x is taken on a log axis, because sizes and counts span decades, but for fractions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

MB = 1e6

Floats = NDArray[np.float64]


def slope(curve: Sequence[tuple[float, float]]) -> tuple[tuple[float, float], ...]:
    """Slope of throughput (MB/s) over unique_bytes, in MB/s per MB of data (CP94 Fig. 6).

    `curve` holds (unique_bytes, MB/s); repeated x are averaged. Each slope stands at the
    geometric middle of its gap, in bytes.
    """
    x, y = _averaged([place for place, _ in curve], [reading for _, reading in curve])
    middles = np.sqrt(x[1:] * x[:-1])
    slopes = np.diff(y) / (np.diff(x) / MB)
    return tuple((float(at), float(value)) for at, value in zip(middles, slopes, strict=True))


def half_way_x(xs: Sequence[float], throughputs: Sequence[float], *, log: bool = True) -> float:
    """Return the x whose throughput is half-way between the least and the most (CP94 §8).

    The first crossing of a monotone envelope (the running maximum of a rising curve, the running
    minimum of a falling one), so that noise on a plateau moves nothing. A curve of one x, or
    quite flat, gives its middle. `log` interpolates between the x on a log axis.
    """
    x, y = _averaged(xs, throughputs)
    place = _logs(x) if log else x
    target = (y.min() + y.max()) / 2
    if y.min() == y.max():
        middle = (place[0] + place[-1]) / 2
        return float(np.exp(middle) if log else middle)
    rising = int(np.argmin(y)) < int(np.argmax(y))
    envelope = np.maximum.accumulate(y) if rising else np.minimum.accumulate(y)
    at = _first_crossing(place, envelope, float(target), rising=rising)
    return float(np.exp(at) if log else at)


def good_range(
    xs: Sequence[float], ys: Sequence[float], frac: float = 0.75, *, log: bool = True
) -> tuple[float, float]:
    """Return the stretch of x around the maximum with at least `frac` of it (CP94 §7).

    Both ends are interpolated (in ln x unless `log` is false: fractions begin at 0); an end of
    the measured range stays as it is.
    """
    if not 0 < frac <= 1:
        raise ValueError("frac must lie in (0, 1]")
    x, y = _averaged(xs, ys)
    best = int(np.argmax(y))
    target = frac * float(y[best])
    place = _logs(x) if log else x
    back = np.exp if log else float
    below_left = np.flatnonzero(y[:best] < target)
    below_right = np.flatnonzero(y[best:] < target)
    low, high = float(x[0]), float(x[-1])
    if below_left.size:
        at = int(below_left[-1])
        low = float(back(_between(place[at], place[at + 1], y[at], y[at + 1], target)))
    if below_right.size:
        at = best + int(below_right[0]) - 1
        high = float(back(_between(place[at], place[at + 1], y[at], y[at + 1], target)))
    return low, high


def still_rising(
    xs: Sequence[float], ys: Sequence[float], noise: float, gain_min: float = 0.05
) -> bool:
    """Tell whether throughput still rises at the upper end (CP94 §8, ranges scale themselves).

    `noise` is the sd of one reading as a fraction. The last x must beat the best earlier one by
    more than `gain_min` and by twice the noise of the difference.
    """
    x, y = _averaged(xs, ys)
    if x.size < 2:
        return True
    last = int(np.sum(np.asarray(xs, dtype=np.float64) == x[-1]))
    before = int(np.argmax(y[:-1]))
    earlier = int(np.sum(np.asarray(xs, dtype=np.float64) == x[before]))
    margin = 2 * noise * float(np.sqrt(1 / last + 1 / earlier))
    return bool(np.log(y[-1] / y[before]) > max(np.log1p(gain_min), margin))


def _averaged(xs: Sequence[float], ys: Sequence[float]) -> tuple[Floats, Floats]:
    """Sort by x and average the readings at each."""
    x = np.asarray(xs, dtype=np.float64)
    y = np.asarray(ys, dtype=np.float64)
    if x.size == 0 or x.size != y.size:
        raise ValueError("a curve needs one or more x, and one value for each")
    if not (np.isfinite(x).all() and np.isfinite(y).all()):
        raise ValueError("a curve needs finite values")
    places, inverse = np.unique(x, return_inverse=True)
    return places, np.bincount(inverse, y) / np.bincount(inverse)


def _logs(x: Floats) -> Floats:
    if (x <= 0).any():
        raise ValueError("a log axis needs positive x")
    return np.asarray(np.log(x))


def _first_crossing(place: Floats, values: Floats, target: float, *, rising: bool) -> float:
    """Place at which a monotone curve first reaches `target`."""
    reached = values >= target if rising else values <= target
    first = int(np.argmax(reached))
    if first == 0:
        return float(place[0])
    return _between(place[first - 1], place[first], values[first - 1], values[first], target)


def _between(x0: float, x1: float, y0: float, y1: float, target: float) -> float:
    share = (target - y0) / (y1 - y0)
    return float(x0 + share * (x1 - x0))
