"""What speaks against a prediction of an application."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from leadline.predict.application.levels import Levels
from leadline.record import Interval, Survey
from leadline.record.application import Application, Reuse
from leadline.record.finding import Finding

IN_IO_MIN = 0.05
"""With a smaller share of its time in I/O storage hardly matters to an application."""
FIRST_TOUCHES_MAX = 0.5


def findings_of(application: Application, survey: Survey, levels: Levels) -> Iterator[Finding]:
    """Find it, worst first."""
    found, facts = application.found, application.start.facts
    if facts.below_the_cache:
        yield Finding.of("predicted_below_cache")
    if found.in_io is not None and found.in_io < IN_IO_MIN:
        yield Finding.of("predicted_of_little_io", io_frac=found.in_io)
    if found.reuse.first_touches > FIRST_TOUCHES_MAX:
        yield Finding.of("predicted_first_touches", first_frac=found.reuse.first_touches)
    if any(
        phase.on_their_way is None and phase.workload.process_num is None
        for phase in application.phases
    ):
        yield Finding.of("depth_unknown")
    yield from levels.found
    yield from _about_caches(found.reuse, levels.borders, survey)
    if survey.start.access.direct:
        yield Finding.of("file_cache_not_surveyed")
    for each in found.findings:
        yield msgspec.structs.replace(each, where="application")


def _about_caches(reuse: Reuse, borders: Sequence[Interval], survey: Survey) -> Iterator[Finding]:
    if not borders:
        yield Finding.of("no_border_surveyed", system=survey.start.system)
    for border in borders:
        if reuse.two_lists_misses(border.value) is None:
            yield Finding.of("two_lists_unknown", cache_bytes=border.value)
