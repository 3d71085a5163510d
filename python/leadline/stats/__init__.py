"""Pure functions on numbers: intervals, borders, curves and drift. Seeded, no I/O."""

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
from leadline.stats.drift import drift_interval, group_drift
from leadline.stats.intervals import (
    Noise,
    mean_interval,
    median_interval,
    pooled_noise,
    ratio_interval,
    reading_interval,
)
from leadline.stats.placement import next_unique_bytes

__all__ = [
    "BorderFit",
    "FittedBorder",
    "Noise",
    "change_points",
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
    "slope",
    "still_rising",
]
