"""Pure functions on numbers: intervals, borders, curves and drift. Seeded, no I/O.

borders      fit_borders: where each level of the hierarchy ends
placement    next_unique_bytes: where to measure next
intervals    means, medians, ratios; noise within and between runs
curves       slope, half-way point, good range, still rising
drift        did the sentinel move
"""

from leadline.stats.borders import BorderFit, FittedBorder, fit_borders
from leadline.stats.change_points import change_points
from leadline.stats.curves import (
    good_range,
    half_way_x,
    log_interpolate,
    saturation_x,
    slope,
    still_rising,
)
from leadline.stats.drift import drift_interval, group_drift, sentinel_moved
from leadline.stats.intervals import (
    Noise,
    combine,
    mean_interval,
    median_interval,
    pooled_noise,
    ratio_interval,
    reading_interval,
    student_t,
)
from leadline.stats.placement import next_unique_bytes

__all__ = [
    "BorderFit",
    "FittedBorder",
    "Noise",
    "change_points",
    "combine",
    "drift_interval",
    "fit_borders",
    "good_range",
    "group_drift",
    "half_way_x",
    "log_interpolate",
    "mean_interval",
    "median_interval",
    "next_unique_bytes",
    "pooled_noise",
    "ratio_interval",
    "reading_interval",
    "saturation_x",
    "sentinel_moved",
    "slope",
    "still_rising",
    "student_t",
]
