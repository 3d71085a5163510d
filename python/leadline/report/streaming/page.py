"""A streaming study as a page: what it says, the charts of AD98, and every phase as a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import altair as alt

from leadline.record.streaming import Platform, StreamStudy
from leadline.record.wording import say_count
from leadline.report.drawing.embedding import page_parts, render_page
from leadline.report.streaming.catalogue import is_wide, stream_charts
from leadline.report.streaming.table import (
    PHASE_HEADS,
    capacity_rows,
    how_rows,
    not_counted_lines,
    phase_rows,
    verified_rows,
)
from leadline.studies.facts import fact_rows
from leadline.studies.streaming.answer import balance_of

PLATFORM_WORDS: dict[Platform, str] = {
    "process": "one process",
    "threads": "threads",
    "cluster": "a cluster",
}


class ChartGroup(NamedTuple):
    """The charts of one study on the page: those of all phases, then one for each phase."""

    title: str
    wide: tuple[str, ...]
    narrow: tuple[str, ...]


def render_stream_html(study: StreamStudy, others: Sequence[StreamStudy] = ()) -> str:
    """Render the page; like the survey's, it holds its own data and asks nothing of the network.

    `others` follow with their charts alone: the paper has its three platforms side by side.
    """
    said = balance_of(study)
    drawn: dict[str, alt.LayerChart] = {}
    groups: list[ChartGroup] = []
    for number, each in enumerate((study, *others), 1):
        charts = stream_charts(each, said if each is study else balance_of(each))
        own = {name if number == 1 else f"{name}-{number}": one for name, one in charts.items()}
        groups.append(_group(stream_title(each) if others else "Charts", own, each))
        drawn |= own
    return render_page(
        "stream.html.j2",
        study=study,
        title=stream_title(study),
        sentences=study.sentences or said.sentences,
        heads=PHASE_HEADS,
        rows=phase_rows(study, said),
        not_counted=not_counted_lines(said.not_measurable),
        capacities=capacity_rows(study.capacities),
        verified=verified_rows(study),
        how=how_rows(study),
        facts=fact_rows(study.start.facts),
        groups=groups,
        **page_parts(drawn, study, warnings=(*study.start.notes, *study.findings, *said.findings)),
    )


def _group(title: str, names: Iterable[str], study: StreamStudy) -> ChartGroup:
    """One kernel has few phases: none of its charts needs the whole width."""
    several = len({run.options.kernel for run in study.runs}) > 1
    wide = tuple(name for name in names if several and is_wide(name))
    return ChartGroup(title, wide, tuple(name for name in names if name not in wide))


def stream_title(study: StreamStudy) -> str:
    """Write `Sort on atlas: threads, 2 disks`, or `Disk scaling on atlas: threads`."""
    platforms = [
        PLATFORM_WORDS[platform]
        for platform in dict.fromkeys(run.options.platform for run in study.runs)
    ]
    where = f"on {study.start.system}"
    if study.start.purpose == "scaling":
        return f"Disk scaling {where}: {', '.join(platforms) or 'nothing ran'}"
    kernels = ", ".join(dict.fromkeys(run.options.kernel for run in study.runs))
    if not kernels:
        return f"Streaming {where}: nothing ran"
    disks = say_count(max(run.disks for run in study.runs), "disk")
    return f"{kernels.capitalize()} {where}: {', '.join(platforms)}, {disks}"
