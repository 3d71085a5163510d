"""A workload in the words of a survey, which knows scattered sizes and one request per process."""

from __future__ import annotations

import math
from dataclasses import dataclass

import msgspec

from leadline.predict.model import PredictionRefused
from leadline.predict.ranges import Ranges
from leadline.record import PROCESSES_MAX, SurveyStart, Workload
from leadline.record.finding import Finding

PAGE_BYTES = 4096
GRANULE_BYTES = 512
"""Places and sizes of a survey's requests are multiples of this."""


@dataclass(frozen=True)
class Spelled:
    """What a survey would call a workload, and what that takes for granted."""

    workload: Workload
    ln_bytes: float
    """ln of the bytes of one request over those of the one it is predicted as."""
    findings: tuple[Finding, ...]


def as_surveyed(workload: Workload, start: SurveyStart, ranges: Ranges) -> Spelled:
    """Spell a workload with what surveys measure.

    Raises:
        PredictionRefused: more requests at once than any survey has.

    """
    found = []
    size_mean = workload.size_mean
    if workload.size_dist not in ("normal", "fixed"):
        found.append(Finding.of("not_surveyed", size_dist=str(workload.size_dist)))
    elif workload.size_dist == "fixed":
        size_mean = _as_many_pages(workload, start, ranges)
        alike = size_mean == workload.size_mean
        found.append(Finding.of("not_surveyed", **({} if alike else {"size_mean": size_mean})))
    processes = _at_once(workload)
    if workload.queue_depth > 1:
        depth = {"queue_depth": workload.queue_depth, "processes": processes}
        found.append(Finding.of("not_surveyed", **depth))
    surveyed = msgspec.structs.replace(
        workload, size_mean=size_mean, process_num=processes, queue_depth=1, size_dist="normal"
    )
    return Spelled(surveyed, math.log(workload.size_mean / size_mean), tuple(found))


def _as_many_pages(workload: Workload, start: SurveyStart, ranges: Ranges) -> int:
    """Mean of the scattered sizes that touch as many pages as an aligned request of one size.

    A request of b bytes at a multiple of 512 touches (b - 512) / 4096 + 1 pages in the mean, one
    of whole pages at a multiple of its size b / 4096. A miss moves pages, so that counts past the
    file cache; inside it the bytes copied count. Sequential requests share the pages at their ends.
    """
    region = ranges.region_of(workload.unique_bytes)
    whole_pages = workload.size_mean % PAGE_BYTES == 0
    by_pages = not start.direct and start.backend != "simulated" and whole_pages
    if region is None or region.index == 0 or not by_pages:
        return workload.size_mean
    extra = (PAGE_BYTES - GRANULE_BYTES) * (1 - workload.seq_frac)
    least = ranges.of(region.index, "size_mean").low
    return min(workload.size_mean, round(max(workload.size_mean - extra, least)))


def _at_once(workload: Workload) -> int:
    """Requests that are out at once."""
    processes = workload.process_num * workload.queue_depth
    if processes > PROCESSES_MAX:
        raise PredictionRefused(
            f"process_num={workload.process_num} with queue_depth={workload.queue_depth} is "
            f"{processes} requests at once, and a survey has at most {PROCESSES_MAX}: "
            "ask for a shallower queue or fewer processes"
        )
    return processes
