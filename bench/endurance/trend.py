"""Whether a series grows: Sen's slope with its interval, and a verdict that is stated beforehand.

The first fifth of a course is warm-up: imports, caches, pools of the allocator. What is left is
joined into at most 40 blocks, each told by its median, so that neighbours that hang together count
less often. The slope is the median of the slopes of all pairs of blocks (Theil 1950, Sen 1968); its
95% interval is Sen's, from the variance of Kendall's S with ties. A course grows when the whole
interval lies above 0 and what the slope comes to over all that was looked at is more than a
hundredth of the level: less than that is neither told from a warm-up that lasts, nor a harm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from statistics import median

import msgspec

WARM_UP_FRAC = 0.2
BLOCKS_MAX = 40
GROWTH_FRAC_MAX = 0.01
_Z = 1.959964
"""97.5% of a normal distribution lie below."""


class Trend(msgspec.Struct, frozen=True):
    """What a series does after its warm-up, in its own unit."""

    level: float
    """Its median."""
    growth: float
    """What its slope comes to, from the first look after the warm-up to the last."""
    low: float
    high: float
    n: int
    """Looks after the warm-up."""

    @property
    def grows(self) -> bool:
        """Whether it does, by the rule above."""
        return self.low > 0 and self.growth > GROWTH_FRAC_MAX * abs(self.level)


def trend(values: Sequence[float]) -> Trend:
    """Return the trend of looks at equal distances.

    Args:
        values: in their order, at least three after the warm-up.

    Raises:
        ValueError: there are fewer.

    """
    kept = list(values[math.ceil(WARM_UP_FRAC * len(values)) :])
    if len(kept) < 3:
        raise ValueError(f"{len(kept)} looks after the warm-up tell no trend; 3 are needed")
    size = math.ceil(len(kept) / BLOCKS_MAX)
    blocks = [median(kept[at : at + size]) for at in range(0, len(kept) - size + 1, size)]
    slopes = sorted((b - a) / (j - i) for (i, a), (j, b) in combinations(enumerate(blocks), 2))
    low, high = _interval(slopes, blocks)
    steps = (len(kept) - 1) / size
    return Trend(median(kept), median(slopes) * steps, low * steps, high * steps, len(kept))


def _interval(slopes: Sequence[float], blocks: Sequence[float]) -> tuple[float, float]:
    """Return the slopes between which the true one lies with 95% (Sen 1968, section 6)."""
    n = len(blocks)
    ties = sum(t * (t - 1) * (2 * t + 5) for t in Counter(blocks).values())
    spread = _Z * math.sqrt(max(0, n * (n - 1) * (2 * n + 5) - ties) / 18)
    first = max(0, round((len(slopes) - spread) / 2))
    last = min(len(slopes) - 1, round((len(slopes) + spread) / 2))
    return slopes[first], slopes[last]
