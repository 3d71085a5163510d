"""How fast are these workloads? Measurements that belong to no larger study."""

from leadline.studies.measurement.begin import begin_measurements
from leadline.studies.measurement.plan import (
    MeasurementRefused,
    plan_jobs,
    plan_words,
    plan_workload,
)
from leadline.studies.measurement.run import Measuring, measure_workloads
from leadline.studies.measurement.stored import find_begun, load_measured

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
