"""How much a cache holds, from what reads at random places found in it.

With places drawn uniformly from U bytes of data, the share found is the share of the data that the
cache holds: share x U is what it holds, at every reading that missed something and whatever its
policy. Throughput is not asked: other programs and waiting writes move that, and not this.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from leadline.record import Interval
from leadline.stats.hierarchy import Floats
from leadline.stats.intervals import student_t

CLEAN_SHARE = 0.995
"""From this share on a reading missed nothing: the cache holds all of its data."""
CLEAR_SHARE = 0.8
"""Below it a reading lies clearly beyond what the cache holds, by a factor of 1.25."""
FAR_SD, STALE_SD = 0.01, 0.08
"""How far share x U is off beside chance, as fractions: the kernel's own count of a full cache
moves by 1% between the points of one survey; and pages of larger workloads before stay for a while
in the place of this one's, the more the nearer it is to the boundary (times the share squared): 3%
beyond a full cache of 120 MiB 109 were found, and 50% beyond one of 91 MiB 82, 84, 88, 89, 90 and
92."""
CLEAR_MIN = 2
"""So many readings clearly beyond it, and those nearer are not asked."""
COMMON_SD = 0.01
"""What no number of readings takes away."""
PRIOR_DF = 3.0
"""Weight of these expectations in degrees of freedom."""
FAR = 2.0
"""A reading this many sd off counts less (Huber)."""


@dataclass(frozen=True)
class Lookups:
    """What the reads of one point at random places found."""

    unique_bytes: float
    found_share: float
    """0 to 1, by bytes."""
    count: float
    """Reads looked up, at least one: as many of one size as tell as much, where sizes differ."""


@dataclass(frozen=True)
class Held:
    """What a cache holds."""

    bytes: Interval
    """95%."""
    evidence_bic: float
    """BIC gained over a share that is the same however much data there is."""


def held_bytes(lookups: Sequence[Lookups]) -> Held | None:
    """Find how much a cache holds; None unless readings on both sides of its end show it.

    The estimates of all readings that missed something are averaged in ln bytes, by their variance
    and with a Huber loss. The cache holds no less than the most data of which nothing was missed.
    """
    unique = np.array([each.unique_bytes for each in lookups])
    share = np.array([each.found_share for each in lookups])
    count = np.array([each.count for each in lookups])
    missed = share < CLEAN_SHARE
    # Both are so of no reading at all.
    if missed.all() or not missed.any():
        return None
    clean = float(unique[~missed].max())
    # What missed something of less data than others missed nothing of was disturbed.
    beyond = missed & (unique >= clean)
    if not beyond.any():
        return None
    # A reading near the boundary that misses a little may just not have brought all of its data in.
    clear = beyond & (share <= CLEAR_SHARE)
    beyond = clear if clear.sum() >= CLEAR_MIN else beyond
    ln_held, ln_sd, df = _average(unique[beyond], share[beyond], count[beyond])
    half = student_t(df) * ln_sd
    value = max(float(np.exp(ln_held)), clean)
    low = max(float(np.exp(ln_held - half)), min(clean, value))
    high = max(float(np.exp(ln_held + half)), value * float(np.exp(COMMON_SD)))
    interval = Interval(value, min(low, value), high, int(beyond.sum()))
    told = ~missed | (unique >= clean)
    return Held(interval, _evidence(unique[told], share[told], count[told], value))


def _average(unique: Floats, share: Floats, count: Floats) -> tuple[float, float, float]:
    """Mean of ln(share x U), its sd and the degrees of freedom that rests on."""
    # A reading that found nothing found less than one: it is no proof of an empty cache.
    share = np.maximum(share, 1 / (count + 1))
    estimates = np.log(share * unique)
    chance = (1 - share) / (share * count)
    variance = chance + (FAR_SD + STALE_SD * share**2) ** 2
    # The loss is convex: where the search begins does not matter.
    mean = float(np.median(estimates))
    for _ in range(20):
        off = np.abs(estimates - mean) / np.sqrt(variance)
        weight = np.minimum(1.0, FAR / np.maximum(off, 1e-9)) / variance
        mean = float((weight * estimates).sum() / weight.sum())
    df = PRIOR_DF + estimates.size - 1
    spread = (PRIOR_DF + float((weight * (estimates - mean) ** 2).sum())) / df
    return mean, float(np.sqrt(max(spread, 1.0) / weight.sum() + COMMON_SD**2)), df


def _evidence(unique: Floats, share: Floats, count: Floats, held: float) -> float:
    """BIC of one share for all data, less that of shares that follow the cache's end."""

    def misfit(expected: Floats) -> float:
        # A share is at most one, and nothing that was counted is impossible.
        likely = np.clip(expected, 1e-3, 1 - 1e-3)
        return float(
            -2 * (count * (share * np.log(likely) + (1 - share) * np.log(1 - likely))).sum()
        )

    flat = np.full(share.shape, float((share * count).sum() / count.sum()))
    return misfit(flat) - misfit(held / unique)
