"""How good are the predictions? The paper's own experiment (CP94 §9), stored and resumable."""

from leadline.studies.validation.begin import (
    Asked,
    begin_validation,
    drawn_ranges,
    require_as_surveyed,
)
from leadline.studies.validation.draw import drawn_workloads, requests
from leadline.studies.validation.errors import ValidationRefused
from leadline.studies.validation.explain import explain_validation
from leadline.studies.validation.run import measure_validation
from leadline.studies.validation.study import ValidationStudy

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
