"""Where a series changed its level, told reading by reading, whatever its distribution is.

After each reading every split of those since the last change is tried with the Mann-Whitney
statistic; the largest decides (Hawkins and Deng, "A Nonparametric Change-Point Control Chart",
Journal of Quality Technology 42, 2010; Ross, Tasoulis and Adams, "Nonparametric Monitoring of Data
Streams for Changes in Location and Scale", Technometrics 53, 2011). Ranks ask nothing of the noise
but that readings at one level are independent: one that is slow to forget gives more alarms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from leadline.record.workload import Interval

WINDOW = 300
"""Readings looked back on: two days of one every ten minutes."""
SIDE_MIN = 5
"""Readings on either side of a change, at least."""
THRESHOLD = 4.75
"""Standard deviations of the statistic that are a change: once in some years for nothing, at a
reading every ten minutes (`bench/monitor.py`)."""
MOMENT = 6.0
"""How much less the statistic's square may be at another moment that could be the right one."""
ENDS = 2.4
"""Standard deviations to the ratio's ends. 1.96 were 95% of a split chosen beforehand; this one was
chosen because it looks largest."""


class Change(NamedTuple):
    """A change of level."""

    at: int
    """Index of the first reading after it, from 0 on from the first that was taken."""
    earliest: int
    """The same of the 95% interval of its moment."""
    latest: int
    ratio: Interval
    """After over before, with its 95% interval (Hodges and Lehmann 1963)."""


class Monitor:
    """Takes readings one after the other."""

    def __init__(self) -> None:
        self._logs: list[float] = []
        self._first = 0
        """Index of the first that is kept."""

    def take(self, reading: float) -> Change | None:
        """Take a reading above zero; return the change that it completes, if it does."""
        self._logs.append(float(np.log(reading)))
        if len(self._logs) > WINDOW:
            del self._logs[0]
            self._first += 1
        if len(self._logs) < 2 * SIDE_MIN:
            return None
        logs = np.array(self._logs)
        squares = _statistic(logs) ** 2
        split = int(squares.argmax())
        if squares[split] < THRESHOLD**2:
            return None
        likely = np.flatnonzero(squares >= squares[split] - MOMENT)
        change = Change(
            self._first + split,
            self._first + int(likely[0]),
            self._first + int(likely[-1]),
            _shift(logs[:split], logs[split:]),
        )
        del self._logs[:split]
        self._first += split
        return change


def _statistic(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the standardized Mann-Whitney statistic of each split, by its first reading after."""
    n = values.size
    before = np.arange(n)
    sums = np.concatenate([[0.0], np.cumsum(rankdata(values))[:-1]])
    _, ties = np.unique(values, return_counts=True)
    untied = 1.0 - float((ties**3 - ties).sum()) / (n**3 - n)
    variance = before * (n - before) * (n + 1) / 12 * untied
    found = np.zeros(n)
    usable = (before >= SIDE_MIN) & (n - before >= SIDE_MIN) & (variance > 0)
    found[usable] = (sums - before * (n + 1) / 2)[usable] / np.sqrt(variance[usable])
    return found


def _shift(before: NDArray[np.float64], after: NDArray[np.float64]) -> Interval:
    """Return the median of all ratios after over before, and which of them its interval ends at."""
    ratios = np.sort(np.exp(np.subtract.outer(after, before)).ravel())
    k, m = before.size, after.size
    cut = max(0, round(k * m / 2 - ENDS * (k * m * (k + m + 1) / 12) ** 0.5))
    return Interval(float(np.median(ratios)), float(ratios[cut]), float(ratios[-1 - cut]), k + m)
