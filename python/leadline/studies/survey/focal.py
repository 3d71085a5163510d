"""Focal values of sizes and processes: half-way between the least and the most (CP94 section 8)."""

from __future__ import annotations

import math

from leadline.record import Workload
from leadline.stats import half_way_x

FLAT_GAIN = 1.15
"""A curve whose best is less than this factor above its worst has no half-way point to find."""

START = Workload(unique_bytes=2**20, size_mean=32768)
"""Where the search for the focal vector begins; unique_bytes is replaced at once."""


def half_way_of(curves: list[tuple[list[float], list[float]]], parameter: str) -> float:
    """Focal value of one parameter: the half-way values' geometric mean over both ends.

    As it is, not rounded to a grid: it differs a little between two surveys
    of one system, whose focal throughputs are then brought to one workload by their models.
    """
    found = [half_way(xs, ys, float(getattr(START, parameter))) for xs, ys in curves]
    return snap(math.sqrt(math.prod(found)), parameter)


def half_way(xs: list[float], ys: list[float], fallback: float) -> float:
    """Half-way x of a curve (CP94 §8); the fallback when the curve is flat."""
    if max(ys) < FLAT_GAIN * min(ys):
        return fallback
    return half_way_x(xs, ys, log=True)


def snap(x: float, parameter: str) -> float:
    """Round a value of a curve to whole sectors, processes or thousandths."""
    if parameter == "size_mean":
        return float(max(512, round(x / 512) * 512))
    if parameter == "process_num":
        return float(max(1, round(x)))
    return round(x, 3)
