"""The file cache of a system: how large for reads and for writes, and what it does with writes.

in_survey  what a survey says of it: pure
find       measurements to findings: pure
sizes      borders of reads alone and of writes alone
policy     write-cancelling or write-through, with the evidence
questions  which point a study measures next
study      ask, measure, store, tell
"""

from leadline.studies.cache.explain import explain_study, find_file_cache, find_in_survey
from leadline.studies.cache.plan import CacheStudyRefused
from leadline.studies.cache.study import (
    CACHE_LIMIT_MOST,
    CacheAsked,
    FileCacheStudy,
    begin_study,
    run_study,
    usual_budget_s,
)

__all__ = [
    "CACHE_LIMIT_MOST",
    "CacheAsked",
    "CacheStudyRefused",
    "FileCacheStudy",
    "begin_study",
    "explain_study",
    "find_file_cache",
    "find_in_survey",
    "run_study",
    "usual_budget_s",
]
