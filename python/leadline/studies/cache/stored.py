"""A study of a file cache, as it is told."""

from __future__ import annotations

from leadline.record import CacheStudy
from leadline.record.file_cache import CACHE
from leadline.store import Store
from leadline.studies.cache.explain import explain_study


def load_study(store: Store, ref: str) -> CacheStudy:
    """Return a stored study; an unfinished one is explained from what it has.

    Raises:
        StoreError: no study, or several, go by this reference.

    """
    found = store.find(ref, CACHE)
    return found.answer or explain_study(found.start, store.items(found.start.study_id))
