"""The self-scaling survey (CP94 §6-8): which points to measure, and what they say."""

from leadline.record import derive_seed
from leadline.studies.survey.begin import (
    LEARN_FRAC,
    VIRTUAL_BUDGET_S,
    Asked,
    begin_survey,
    choose_cache_limit,
    usual_budget_s,
)
from leadline.studies.survey.explain import explain, explain_told
from leadline.studies.survey.plan import PlanRefused, advised_cache_limit, make_plan
from leadline.studies.survey.run import run_survey
from leadline.studies.survey.strategy import ResumeMismatch, Surveyor
from leadline.studies.survey.study import SurveyStudy

__all__ = [
    "LEARN_FRAC",
    "VIRTUAL_BUDGET_S",
    "Asked",
    "PlanRefused",
    "ResumeMismatch",
    "SurveyStudy",
    "Surveyor",
    "advised_cache_limit",
    "begin_survey",
    "choose_cache_limit",
    "derive_seed",
    "explain",
    "explain_told",
    "make_plan",
    "run_survey",
    "usual_budget_s",
]
