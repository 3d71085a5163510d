"""Where to put the points of a curve, and how many each curve gets."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping

CURVE_WEIGHTS = {
    "focal": 4.0,
    "size_mean": 5.0,
    "read_frac": 5.0,
    "seq_frac": 5.0,
    "process_num": 5.0,
}
CURVE_ENDS = {"focal": 1, "process_num": 2, "size_mean": 2, "read_frac": 2, "seq_frac": 2}
"""Fewest points of each in a region: a curve without one of its ends says nothing beyond the other,
and a prediction there would be a guess."""


def curve_shares(points: int) -> dict[str, int]:
    """Split a region's points among its four curves and `focal`, the point that they share."""
    return share(points, CURVE_WEIGHTS, CURVE_ENDS)


def spread(
    low: float,
    high: float,
    anchors: Iterable[float],
    count: int,
    *,
    log: bool,
    low_first: bool = False,
) -> list[float]:
    """Choose `count` new x in [low, high]: the ends first, then the middle of the widest gap.

    Args:
        low: least x.
        high: greatest x.
        anchors: x that are measured anyway (the focal point).
        count: how many to add.
        log: whether distance is a ratio rather than a difference.
        low_first: whether the low end comes before the high one, where there is room for one.

    """
    to, back = (math.log, math.exp) if log else (float, float)
    taken = sorted(to(min(max(x, low), high)) for x in anchors)
    ends = (to(low), to(high)) if low_first else (to(high), to(low))
    chosen: list[float] = []
    for _ in range(count):
        new = _widest_gap(ends, taken)
        if new is None:
            break
        taken = sorted([*taken, new])
        chosen.append(min(max(back(new), low), high))
    return chosen


def _widest_gap(ends: tuple[float, float], taken: list[float]) -> float | None:
    close = abs(ends[0] - ends[1]) * 1e-9
    for end in ends:
        if not any(abs(end - x) <= close for x in taken):
            return end
    gaps = [(right - left, -left) for left, right in itertools.pairwise(taken)]
    if not gaps or max(gaps)[0] <= close:
        return None
    width, minus_left = max(gaps)
    return -minus_left + width / 2


def share(total: int, weights: Mapping[str, float], least: Mapping[str, int]) -> dict[str, int]:
    """Split `total` points by weight; largest remainders, ties to the first named.

    None gets fewer than its `least`; where there are not enough for all of those, they are dealt
    out one by one.
    """
    if sum(least.values()) >= total:
        rounds = range(max(least.values(), default=0))
        owed = [name for turn in rounds for name, own in least.items() if own > turn]
        return {name: owed[:total].count(name) for name in weights}
    open_ = dict(weights)
    counts = dict.fromkeys(weights, 0)
    while True:
        found = _by_weight(total - sum(counts.values()), open_)
        short = [name for name, count in found.items() if count < least[name]]
        if not short:
            return counts | found
        for name in short:
            counts[name] = least[name]
            del open_[name]


def _by_weight(total: int, weights: Mapping[str, float]) -> dict[str, int]:
    whole = sum(weights.values())
    exact = {name: total * weight / whole for name, weight in weights.items()}
    counts = {name: math.floor(value) for name, value in exact.items()}
    by_remainder = sorted(exact, key=lambda name: counts[name] - exact[name])
    for name in by_remainder[: total - sum(counts.values())]:
        counts[name] += 1
    return counts
