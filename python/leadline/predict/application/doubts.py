"""What speaks against a prediction of an application."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from leadline.predict.application.levels import Levels
from leadline.record import Interval, Survey
from leadline.record.application import Application, Reuse
from leadline.units import format_bytes, say_percent

IN_IO_MIN = 0.05
"""With a smaller share of its time in I/O storage hardly matters to an application."""
FIRST_TOUCHES_MAX = 0.5


def warnings_of(application: Application, survey: Survey, levels: Levels) -> Iterator[str]:
    """Say it, worst first."""
    found, facts = application.found, application.start.facts
    if facts.below_the_cache:
        yield (
            "not predictable: its trace is of requests that a file cache let through already, and "
            "they are predicted as if the application made them; trace its system calls"
        )
    if found.in_io is not None and found.in_io < IN_IO_MIN:
        yield (
            f"not predictable: {say_percent(found.in_io)} of its time is I/O, so that its whole "
            "time says nothing of storage"
        )
    if found.reuse.first_touches > FIRST_TOUCHES_MAX:
        yield (
            f"not predictable: {say_percent(found.reuse.first_touches)} of its references are the "
            "first to their page, and all of these are predicted as misses; trace a longer run"
        )
    if any(
        phase.on_their_way is None and phase.workload.process_num is None
        for phase in application.phases
    ):
        yield (
            "not known: how many requests are on their way at once the trace does not say; "
            "predicted with one"
        )
    yield from levels.warnings
    yield from _about_caches(found.reuse, levels.borders, survey)
    if survey.start.access.direct:
        yield (
            "not surveyed: the file cache; the survey's requests went past it (O_DIRECT), and the "
            "application's are predicted as if they did, too"
        )
    for said in found.warnings:
        yield f"application: {said}"


def _about_caches(reuse: Reuse, borders: Sequence[Interval], survey: Survey) -> Iterator[str]:
    if not borders:
        yield (
            f"not surveyed: where a cache of {survey.start.system} ends; the whole of what was "
            "surveyed is one level, and no misses are told apart"
        )
    for border in borders:
        if reuse.two_lists_misses(border.value) is None:
            yield (
                "not known: what Linux's two lists miss of a cache of "
                f"{format_bytes(border.value)}; predicted under LRU alone"
            )
