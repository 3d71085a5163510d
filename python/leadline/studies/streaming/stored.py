"""A stream study as it is told, from what is stored of it."""

from __future__ import annotations

import msgspec

from leadline.record.streaming import STREAM, CapacitiesKnown, RunEnded, StreamStart, StreamStudy
from leadline.record.study import Said
from leadline.store import Store, Stored
from leadline.studies.streaming.keeping import Before
from leadline.studies.streaming.run import explain


def load_stream(store: Store, ref: str) -> StreamStudy:
    """Return a stored study, finished or not.

    Raises:
        StoreError: no stream study, or several, go by this reference.

    """
    found = store.find(ref, STREAM)
    return stream_study(found, store.items(found.start.study_id))


def stream_study(
    found: Stored[StreamStart, Said], items: tuple[CapacitiesKnown | RunEnded, ...]
) -> StreamStudy:
    """Return the study that start, items and answer make together."""
    known = [item for item in items if isinstance(item, CapacitiesKnown)]
    study = StreamStudy(
        start=found.start,
        status=found.status,
        capacities=known[-1].capacities if known else None,
        runs=tuple(item.run for item in items if isinstance(item, RunEnded)),
        findings=known[-1].doubts if known else (),
        wall_s=items[-1].wall_s if items else 0.0,
    )
    if found.answer is not None:
        return msgspec.structs.replace(study, **msgspec.structs.asdict(found.answer))
    return explain(study) if study.runs and study.start.purpose == "run" else study


def kept_before(store: Store, study_id: str) -> Before:
    """Return what earlier sittings of a study kept, to go on with."""
    found, items = store.find(study_id, STREAM), store.items(study_id)
    return Before(stream_study(found, items), len(items))
