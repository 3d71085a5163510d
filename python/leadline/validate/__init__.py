"""How good are the predictions? The paper's own experiment (CP94 §9), stored and resumable."""

from leadline.validate.begin import (
    Asked,
    begin_validation,
    drawn_ranges,
    require_as_surveyed,
)
from leadline.validate.draw import drawn_workloads, requests
from leadline.validate.errors import ValidationRefused
from leadline.validate.explain import explain_validation
from leadline.validate.run import measure_validation
from leadline.validate.same_system import SYSTEM, changed_facts

__all__ = [
    "SYSTEM",
    "Asked",
    "ValidationRefused",
    "begin_validation",
    "changed_facts",
    "drawn_ranges",
    "drawn_workloads",
    "explain_validation",
    "measure_validation",
    "requests",
    "require_as_surveyed",
]
