"""Pure functions on numbers: intervals, borders, curves and drift. Seeded, no I/O.

borders      fit_borders: where each level of the hierarchy ends
placement    next_unique_bytes: where to measure next
pooling      several runs of one workload as one answer
intervals    noise within and between runs, and the intervals of readings
curves       slope, half-way point, good range, still rising
drift        did the sentinel move, slowly or at one moment
"""

from leadline.stats.borders import BorderFit, FittedBorder, fit_borders
from leadline.stats.change_points import change_points
from leadline.stats.curves import good_range, half_way_x, slope, still_rising
from leadline.stats.drift import DRIFT_FRAC_MIN, group_drift, group_step
from leadline.stats.intervals import Noise, pooled_noise, reading_interval, student_t
from leadline.stats.placement import next_unique_bytes
from leadline.stats.pooling import pooled_result

__all__ = [
    "DRIFT_FRAC_MIN",
    "BorderFit",
    "FittedBorder",
    "Noise",
    "change_points",
    "fit_borders",
    "good_range",
    "group_drift",
    "group_step",
    "half_way_x",
    "next_unique_bytes",
    "pooled_noise",
    "pooled_result",
    "reading_interval",
    "slope",
    "still_rising",
    "student_t",
]
