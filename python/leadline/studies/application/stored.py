"""Stored applications, as they are told."""

from __future__ import annotations

from leadline.record.application import APPLICATION, Application
from leadline.store import Store, StoreError


def load_application(store: Store, ref: str) -> Application:
    """Return a stored application.

    Raises:
        StoreError: none, or several, go by this reference, or it was killed while it was kept.

    """
    found = store.find(ref, APPLICATION)
    if found.answer is None:
        raise StoreError(
            f"application {found.start.study_id[:8]} was not kept whole: its program was killed "
            f"then; characterise {found.start.trace} again"
        )
    phases = tuple(store.items(found.start.study_id))
    return Application(start=found.start, status=found.status, found=found.answer, phases=phases)
