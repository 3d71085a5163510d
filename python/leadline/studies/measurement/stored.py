"""Measurements as they are told, and those that can go on."""

from __future__ import annotations

from collections.abc import Sequence

from leadline.engine import Target, TargetRefused, bytes_written
from leadline.record.measurement import MEASUREMENT, Measured, MeasurementStart, WorkloadAsked
from leadline.record.wording import join_words, say_workload
from leadline.store import Store
from leadline.studies.resume import find_unfinished

POINTS = ""
"""Group of the measurements; every workload's runs are a group of their own."""


def runs_group(order: int) -> str:
    """Name the group of the runs of the workload with this place in its study."""
    return f"runs of {order}"


def load_measured(store: Store, ref: str) -> Measured:
    """Return stored measurements, finished or not.

    Raises:
        StoreError: no study of measurements, or several, go by this reference.

    """
    found = store.find(ref, MEASUREMENT)
    own = found.start.study_id
    points = store.items(own, POINTS)
    runs = store.items(own, runs_group(len(points)))
    told = found.answer.written_bytes if found.answer else 0
    counted = sum(bytes_written(item.result) for item in (*points, *runs))
    return Measured(found.start, found.status, points, runs, max(told, counted))


def find_begun(store: Store, target: Target, workloads: Sequence[WorkloadAsked]) -> Measured:
    """Return the newest unfinished measurements of these workloads, or of any when none are given.

    Raises:
        TargetRefused: there are none of this target, or only of other workloads.

    """
    system, asked = target.name, _questions(workloads)

    def begun(start: MeasurementStart) -> bool:
        return start.asked is not None

    def meant(start: MeasurementStart) -> bool:
        alike = not asked or _questions(start.workloads) == asked
        return begun(start) and start.target == target.text and alike

    try:
        found = find_unfinished(store, MEASUREMENT, system, target.text, meant=meant)
    except TargetRefused:
        other = find_unfinished(store, MEASUREMENT, system, target.text, meant=begun).start
        said = [each.name or say_workload(each.workload) for each in other.workloads]
        raise TargetRefused(
            f"the unfinished measurement {other.study_id[:8]} of {system!r} runs other workloads: "
            f"{join_words(said)}. Give those, or none, or start a new one without --resume"
        ) from None
    return load_measured(store, found.start.study_id)


def _questions(workloads: Sequence[WorkloadAsked]) -> list[object]:
    """What makes an answer another one's; how long it may take, and how sure it is, do not."""
    return [(each.name, each.workload, each.arrivals, each.streams) for each in workloads]
