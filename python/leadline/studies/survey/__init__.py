"""The self-scaling survey (CP94 §6-8): which points to measure, and what they say."""

from leadline.record import derive_seed
from leadline.studies.survey.explain import explain, explain_told
from leadline.studies.survey.plan import PlanRefused, make_plan
from leadline.studies.survey.strategy import ResumeMismatch, Surveyor
from leadline.studies.survey.study import (
    LEARN_FRAC,
    VIRTUAL_BUDGET_S,
    Asked,
    SurveyStudy,
    begin_survey,
    run_survey,
    usual_budget_s,
)

__all__ = [
    "LEARN_FRAC",
    "VIRTUAL_BUDGET_S",
    "Asked",
    "PlanRefused",
    "ResumeMismatch",
    "SurveyStudy",
    "Surveyor",
    "begin_survey",
    "derive_seed",
    "explain",
    "explain_told",
    "make_plan",
    "run_survey",
    "usual_budget_s",
]
