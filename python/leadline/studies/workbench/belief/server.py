"""What a server is to the model: a few numbers, drawn many at a time, and what is known before.

Every number is a standard normal when nothing is known, mapped to its range by `unpack`. The ranges
are those of real servers as LITERATURE §1.2 and §3 find them: speed that wanders by a few per cent
over seconds to minutes, one or two per cent between trials, now and then a cold start, a service
that slows down under a backlog, a second mode.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

Floats = NDArray[np.float64]

NAMES = (
    "concurrency",
    "base",
    "variability",
    "wander",
    "memory",
    "between",
    "retrograde",
    "cold",
    "warming",
    "tail",
    "two_modes",
    "slow_share",
    "slow_factor",
)
DIMENSIONS = len(NAMES)

_LOG_NORMAL = {
    "concurrency": (4.0, 1.6),
    "base": (0.2, 0.9),
    "variability": (1.35, 0.8),
    "wander": (0.035, 0.8),
    "memory": (18.0, 0.8),
    "between": (0.012, 0.8),
    "retrograde": (0.02, 1.5),
    "cold": (0.1, 1.5),
    "warming": (2.5, 0.6),
    "tail": (0.75, 0.4),
    "slow_factor": (0.3, 0.6),
}
"""Median and standard deviation of the logarithm. `base` is in units of the threshold;
`slow_factor` is how much slower, as a logarithm."""

_TWO_MODES_Z = 1.2
"""Above it a server has two modes: 11.5 % beforehand."""
_SLOW_SHARE = (0.2, 0.8)
"""A mode that is rarer than this would take more trials to see than any search can afford."""
_COLD_MAX = 3.0
_FARTHEST = 5.0
"""Beyond, numbers are as at this many standard deviations."""


@dataclass(frozen=True)
class Servers:
    """Many servers, one in each element."""

    capacity: Floats
    """Requests per second that it completes in an overload, in the mean over trials."""
    base_s: Floats
    """Response time without load."""
    variance_per_s: Floats
    """sigma² at full load: variance of the net input per second, in s²/s."""
    variability: Floats
    """(1 + cv²)/2 of the service."""
    idle_power: Floats
    """The wait is rho to this power shorter than one fast worker's: workers stand idle
    (Sakasegawa 1977: √(2(k+1)) - 1 in all, of which one is in sigma²)."""
    wander: Floats
    memory_s: Floats
    between: Floats
    retrograde: Floats
    """Capacity without a backlog over that in an overload, less 1."""
    cold: Floats
    """How much slower it begins, as a fraction."""
    warming_s: Floats
    tail: Floats
    """Unloaded percentile over unloaded mean, both in units of the exponential's."""
    slow_share: Floats
    slow_log: Floats
    """Logarithm of how much slower the slow mode is; 0: there is none."""


def unpack(normal: Floats, limit_s: float) -> Servers:
    """Map rows of standard normals to servers; `limit_s` is the threshold on the response."""
    normal = np.clip(normal, -_FARTHEST, _FARTHEST)

    def value(name: str) -> Floats:
        median, sd = _LOG_NORMAL[name]
        return np.asarray(median * np.exp(sd * normal[:, NAMES.index(name)]))

    base_s = value("base") * limit_s
    concurrency = value("concurrency")
    crowd = np.clip(concurrency, 1.0, 200.0)
    variability = value("variability")
    has_two = normal[:, NAMES.index("two_modes")] > _TWO_MODES_Z
    low, high = _SLOW_SHARE
    return Servers(
        capacity=concurrency / base_s,
        base_s=base_s,
        variance_per_s=2 * base_s * variability / crowd,
        variability=variability,
        idle_power=np.sqrt(2 * (crowd + 1)) - 2,
        wander=value("wander"),
        memory_s=value("memory"),
        between=value("between"),
        retrograde=value("retrograde"),
        cold=np.minimum(value("cold"), _COLD_MAX),
        warming_s=value("warming"),
        tail=value("tail"),
        slow_share=low + (high - low) * ndtr(normal[:, NAMES.index("slow_share")]),
        slow_log=np.where(has_two, value("slow_factor"), 0.0),
    )


def toggled(normal: Floats, random: np.random.Generator) -> tuple[Floats, Floats]:
    """Offer servers with one mode a second one, and take it from those with two.

    The capacity stays, or becomes that of what was or will be the slow mode: the trials so far may
    have been in either. Returns the servers, and the logarithm of how much more probable the
    prior and the way back make them.
    """
    mode, capacity = NAMES.index("two_modes"), NAMES.index("concurrency")
    moved = normal.copy()
    had = normal[:, mode] > _TWO_MODES_Z
    chance = random.random(len(normal))
    single = ndtr(_TWO_MODES_Z)
    moved[:, mode] = ndtri(np.where(had, chance * single, single + chance * (1 - single)))
    median, sd = _LOG_NORMAL["slow_factor"]
    slower_log = median * np.exp(sd * normal[:, NAMES.index("slow_factor")])
    shift = np.where(random.random(len(normal)) < 0.5, slower_log, 0.0)
    moved[:, capacity] += np.where(had, -shift, shift) / _LOG_NORMAL["concurrency"][1]
    odds = np.log((1 - single) / single)
    gain = 0.5 * (normal[:, capacity] ** 2 - moved[:, capacity] ** 2)
    return moved, np.asarray(gain + np.where(had, -odds, odds))
