"""Several latency targets as one threshold of saturation."""

from __future__ import annotations

import itertools
from collections.abc import Iterable

from leadline.record.workbench import LIMITS_MAX, Threshold, Within


def threshold_of(
    mean_ms: float | None, shares: Iterable[Within], *, width_frac: float = 0.1
) -> Threshold:
    """Return the threshold that every one of these keeps; the highest share leads.

    It is what tables and charts show first: it is most often the one that gives out.

    Raises:
        ValueError: there is none at all, there are more than can be counted, or two contradict
            each other.

    """
    ordered = sorted(shares, key=lambda within: (-within.percentile, within.limit_ms))
    if mean_ms is None and not ordered:
        raise ValueError("there is no target; name one")
    if len(ordered) > LIMITS_MAX:
        raise ValueError(
            f"{len(ordered)} shares are to be within a time; at most {LIMITS_MAX} are counted"
        )
    for higher, lower in itertools.pairwise(ordered):
        if higher.percentile == lower.percentile:
            raise ValueError(f"{higher.percentile:.6g} of the responses has two limits; name one")
        if higher.limit_ms < lower.limit_ms:
            raise ValueError(
                f"{higher.percentile:.6g} of the responses within {higher.limit_ms:g} ms makes "
                f"{lower.percentile:.6g} within {lower.limit_ms:g} ms needless; leave that out"
            )
    first = ordered[0] if ordered else None
    return Threshold(
        mean_ms=mean_ms,
        percentile=None if first is None else first.percentile,
        limit_ms=None if first is None else first.limit_ms,
        width_frac=width_frac,
        also=tuple(ordered[1:]),
    )
