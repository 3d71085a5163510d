"""The self-scaling survey (CP94 §6-8): which points to measure, and what they say."""

from leadline.survey.explain import explain
from leadline.survey.plan import PlanRefused, make_plan
from leadline.survey.run import Progress, run_survey
from leadline.survey.strategy import PointRequest, ResumeMismatch, Surveyor

__all__ = [
    "PlanRefused",
    "PointRequest",
    "Progress",
    "ResumeMismatch",
    "Surveyor",
    "explain",
    "make_plan",
    "run_survey",
]
