"""Pure functions on numbers: intervals, borders, curves and drift. Seeded, no I/O.

Names are resolved on first use: SciPy takes longer to load than most commands take.

borders      fit_borders: where each level of the hierarchy ends
placement    next_unique_bytes: where to measure next
pooling      several runs of one workload as one answer
intervals    noise within and between runs, and the intervals of readings
curves       slope, half-way point, good range, still rising
drift        did the sentinel move, slowly or at one moment
"""

import importlib
from typing import TYPE_CHECKING, Any

from leadline.stats.change_points import change_points  # at once: its module has the same name

if TYPE_CHECKING:
    from leadline.stats.borders import BorderFit, FittedBorder, fit_borders
    from leadline.stats.curves import good_range, half_way_x, slope, still_rising
    from leadline.stats.drift import DRIFT_FRAC_MIN, group_drift, group_step
    from leadline.stats.intervals import Noise, pooled_noise, reading_interval, student_t
    from leadline.stats.placement import next_unique_bytes
    from leadline.stats.pooling import pooled_result

_HOMES = {
    "BorderFit": "borders",
    "DRIFT_FRAC_MIN": "drift",
    "FittedBorder": "borders",
    "Noise": "intervals",
    "fit_borders": "borders",
    "good_range": "curves",
    "group_drift": "drift",
    "group_step": "drift",
    "half_way_x": "curves",
    "next_unique_bytes": "placement",
    "pooled_noise": "intervals",
    "pooled_result": "pooling",
    "reading_interval": "intervals",
    "slope": "curves",
    "still_rising": "curves",
    "student_t": "intervals",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"leadline.stats.{_HOMES[name]}"), name)
