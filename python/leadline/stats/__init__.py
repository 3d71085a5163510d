"""Pure functions on numbers: intervals, boundaries, curves and drift. Seeded, no I/O.

Names are resolved on first use: SciPy takes longer to load than most commands take.

boundaries   fit_boundaries: where each level of the hierarchy ends
held         held_bytes: how much a cache holds, from what reads found in it
placement    next_unique_bytes: where to measure next
pooling      several runs of one workload as one answer
intervals    noise within and between runs, and the intervals of readings
curves       slope, half-way point, good range, still rising
drift        did the sentinel move, slowly or at one moment
monitor      has a series changed its level, told reading by reading
"""

from typing import TYPE_CHECKING

from leadline.lazy_import import names_from
from leadline.stats.change_points import change_points  # at once: its module has the same name

if TYPE_CHECKING:
    from leadline.stats.boundaries import BoundaryFit, FittedBoundary, fit_boundaries
    from leadline.stats.cache_capacity import Held, Lookups, held_bytes
    from leadline.stats.curves import good_range, half_way_x, slope, still_rising
    from leadline.stats.drift import DRIFT_FRAC_MIN, group_drift, group_step
    from leadline.stats.intervals import (
        Noise,
        OwnError,
        own_error,
        pooled_noise,
        reading_interval,
        runs_interval,
        sd_interval,
        student_t,
    )
    from leadline.stats.placement import next_unique_bytes
    from leadline.stats.pooling import pooled_result

_HOMES = {
    "BoundaryFit": "leadline.stats.boundaries",
    "DRIFT_FRAC_MIN": "leadline.stats.drift",
    "FittedBoundary": "leadline.stats.boundaries",
    "Held": "leadline.stats.cache_capacity",
    "Lookups": "leadline.stats.cache_capacity",
    "Noise": "leadline.stats.intervals",
    "OwnError": "leadline.stats.intervals",
    "fit_boundaries": "leadline.stats.boundaries",
    "good_range": "leadline.stats.curves",
    "group_drift": "leadline.stats.drift",
    "group_step": "leadline.stats.drift",
    "half_way_x": "leadline.stats.curves",
    "held_bytes": "leadline.stats.cache_capacity",
    "next_unique_bytes": "leadline.stats.placement",
    "own_error": "leadline.stats.intervals",
    "pooled_noise": "leadline.stats.intervals",
    "pooled_result": "leadline.stats.pooling",
    "reading_interval": "leadline.stats.intervals",
    "runs_interval": "leadline.stats.intervals",
    "sd_interval": "leadline.stats.intervals",
    "slope": "leadline.stats.curves",
    "still_rising": "leadline.stats.curves",
    "student_t": "leadline.stats.intervals",
}

__all__ = [
    "DRIFT_FRAC_MIN",
    "BoundaryFit",
    "FittedBoundary",
    "Held",
    "Lookups",
    "Noise",
    "OwnError",
    "change_points",
    "fit_boundaries",
    "good_range",
    "group_drift",
    "group_step",
    "half_way_x",
    "held_bytes",
    "next_unique_bytes",
    "own_error",
    "pooled_noise",
    "pooled_result",
    "reading_interval",
    "runs_interval",
    "sd_interval",
    "slope",
    "still_rising",
    "student_t",
]


__getattr__ = names_from(__name__, _HOMES)
