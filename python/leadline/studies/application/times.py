"""What the times of a part say: time in I/O, gaps, and whether requests wait for others."""

from __future__ import annotations

from typing import NamedTuple

from leadline.record.application import Gaps, Loop, TraceFacts
from leadline.record.wording import say_number
from leadline.studies.application.trace import Part
from leadline.units import say_percent

TIMED_MIN = 0.5
"""Of the requests: with fewer durations nothing is said of time in I/O."""
OVERLAPPING_MAX = 0.01
"""Of a process's requests: a few begin before its last has ended where clocks differ."""
DISPERSION_CLOSED, DISPERSION_OPEN = 0.8, 0.95
"""Variance over mean of what a request finds on its way: below 1 a few wait for each other, 1 of a
Poisson process, above of bursts."""
EXPECTED_MIN = 20.0
"""Requests that would find another on its way, were nobody to wait, to say that somebody does."""


class InIO(NamedTuple):
    """Time in which something was on its way."""

    share: float | None
    on_their_way: float | None


def time_in_io(part: Part, facts: TraceFacts) -> InIO:
    """Return the share of time in I/O, and how many were on their way then."""
    seconds = part.to_s - part.from_s
    if not has_durations(part, facts) or seconds <= 0 or part.busy_s <= 0:
        return InIO(None, None)
    called = sum(seconds for _, seconds in part.timed) + sum(each.seconds for each in part.calls)
    all_s = part.device_s or called
    return InIO(min(1.0, part.busy_s / seconds), max(1.0, all_s / part.busy_s))


def has_durations(part: Part, facts: TraceFacts) -> bool:
    """Whether the trace says how long most requests took."""
    if facts.times != "known":
        return False
    timed = sum(calls for calls, _ in part.timed)
    return part.device_s > 0 or timed >= TIMED_MIN * max(1, part.requests)


def gaps_of(part: Part, facts: TraceFacts) -> Gaps | None:
    """Return the times between requests; None where times are not known."""
    found = part.gaps
    if facts.times != "known" or found.count == 0:
        return None
    return Gaps(
        count=found.count,
        mean_s=found.mean_s,
        variation=found.variation,
        p50_s=_quantile(found.bins, 0.5),
        p90_s=_quantile(found.bins, 0.9),
        p99_s=_quantile(found.bins, 0.99),
        histogram=tuple((least * 1e-9, count) for least, count in found.bins),
    )


def _quantile(bins: list[tuple[int, int]], share: float) -> float:
    """Return seconds below which a share lies; within a bin, half an octave, evenly spread."""
    wanted = share * sum(count for _, count in bins)
    for least, count in bins:
        if wanted <= count:
            return (least + (wanted / count) * least / 2) * 1e-9
        wanted -= count
    return bins[-1][0] * 1.5e-9


def closed_or_open(part: Part, facts: TraceFacts) -> tuple[Loop, str]:
    """Say whether requests wait for others, and by what."""
    if not has_durations(part, facts):
        return "cannot tell", "the trace does not say how long requests took"
    if facts.processes_known and part.device_s == 0:
        overlapping = part.gaps.overlapping / max(1, part.gaps.count)
        if overlapping <= OVERLAPPING_MAX:
            return "closed", "no process made a request before its last had ended"
        return "open", (
            f"{say_percent(overlapping)} of the requests were made before their process's last had "
            "ended"
        )
    return _by_what_is_found(part, time_in_io(part, facts).share or 0.0)


def _by_what_is_found(part: Part, busy: float) -> tuple[Loop, str]:
    """Say it by how many others requests find on their way."""
    found = part.outstanding
    would = found.seen * busy
    if found.most == 0 and would > EXPECTED_MIN:
        return "closed", "no request was made while another was on its way"
    if found.mean * found.seen < EXPECTED_MIN:
        return "cannot tell", "too few requests found another on its way"
    dispersion = found.variance / found.mean
    because = (
        f"requests found {say_number(found.mean)} others on their way, with a variance of "
        f"{say_number(found.variance)}"
    )
    if dispersion < DISPERSION_CLOSED:
        return "closed", because
    return ("open" if dispersion > DISPERSION_OPEN else "cannot tell"), because
