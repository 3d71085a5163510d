"""The file caches of the systems compared: sizes and write policies (CP93 Figs. 4 and 5).

A study of a file cache (`leadline cache`) tells sizes for reads and writes apart; a survey tells
them as far as its mixed curve goes. The newest finished study of the very same system counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from leadline.compare.curves import KnownCache, Named
from leadline.record import CacheStart, Measurement, Status, Survey, SurveyStart, WritePolicy
from leadline.record.comparison import CacheSize
from leadline.record.file_cache import CACHE
from leadline.store import Store
from leadline.studies.cache import find_in_survey
from leadline.studies.cache.sizes import share_of_memory
from leadline.studies.memory import memory_bytes_of


def known_cache(store: Store, survey: Survey, points: Sequence[Measurement]) -> KnownCache:
    """Return what the newest study of the surveyed system found, else what the survey says.

    A study counts when it is finished and ran on the same target in the same way.
    """
    for each in store.list(CACHE):
        if each.target != survey.start.target or each.status is not Status.DONE:
            continue
        study = store.find(each.study_id, CACHE).answer
        if study is not None and _same_way(study.start, survey.start):
            return KnownCache(study.cache, studied=True)
    return KnownCache(find_in_survey(survey, points), studied=False)


def _same_way(study: CacheStart, survey: SurveyStart) -> bool:
    fields = ("system", "access", "system_profile")
    return all(getattr(study, field) == getattr(survey, field) for field in fields)


def cache_sizes(systems: Sequence[Named]) -> tuple[CacheSize, ...]:
    """Return each effective file cache, in bytes and as a share of the memory (CP93 Fig. 4)."""
    return tuple(_cache_size(system) for system in systems)


def _cache_size(system: Named) -> CacheSize:
    start = system.predictor.survey.start
    memory_bytes = memory_bytes_of(start.cache_limit_bytes, start.facts, start.system_profile)
    capped = start.cache_limit_bytes is not None
    if system.cache is None:
        size = system.predictor.survey.cache_bytes
        return CacheSize(
            name=system.name,
            bytes=size,
            memory_bytes=memory_bytes,
            capped=capped,
            share=share_of_memory(size, memory_bytes) if size else None,
        )
    found = system.cache.found
    writes = found.writes if found.writes.apart else None
    return CacheSize(
        name=system.name,
        bytes=found.reads.bytes,
        memory_bytes=memory_bytes,
        capped=capped,
        share=found.reads.memory_frac,
        writes_bytes=writes.bytes if writes else None,
        writes_share=writes.memory_frac if writes else None,
        policy=found.policy,
        evidence=tuple(
            item.sentence for item in found.evidence if item.says is not WritePolicy.UNKNOWN
        ),
        studied=system.cache.studied,
    )
