"""When a throughput axis must be logarithmic; apart from the charts, so that it loads quickly."""

from __future__ import annotations

LOG_THROUGHPUT_RATIO = 25.0
"""Above this ratio of most to least, a linear axis would flatten the slow level onto zero."""


def wants_log(least_mb_s: float, most_mb_s: float) -> bool:
    """Whether levels lie so far apart that only a log axis shows them all."""
    return least_mb_s > 0 and most_mb_s / least_mb_s > LOG_THROUGHPUT_RATIO
