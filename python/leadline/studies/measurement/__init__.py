"""How fast are these workloads? Measurements that belong to no larger study."""

from leadline.studies.measurement.plan import (
    MeasurementRefused,
    begin_measurements,
    find_begun,
    load_measured,
    plan_jobs,
    plan_words,
    plan_workload,
)
from leadline.studies.measurement.run import Measuring, measure_workloads

__all__ = [
    "MeasurementRefused",
    "Measuring",
    "begin_measurements",
    "find_begun",
    "load_measured",
    "measure_workloads",
    "plan_jobs",
    "plan_words",
    "plan_workload",
]
