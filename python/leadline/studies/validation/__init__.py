"""How good are the predictions? The paper's own experiment (CP94 §9), stored and resumable."""

from leadline.studies.validation.explain import explain_validation
from leadline.studies.validation.plan import (
    Asked,
    ValidationRefused,
    begin_validation,
    drawn_ranges,
    drawn_workloads,
    requests,
    require_as_surveyed,
)
from leadline.studies.validation.run import ValidationStudy, measure_validation

__all__ = [
    "Asked",
    "ValidationRefused",
    "ValidationStudy",
    "begin_validation",
    "drawn_ranges",
    "drawn_workloads",
    "explain_validation",
    "measure_validation",
    "requests",
    "require_as_surveyed",
]
