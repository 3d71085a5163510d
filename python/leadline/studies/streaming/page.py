"""A streaming study as a page: what it says, the charts of AD98, and every phase as a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import altair as alt
import msgspec

from leadline.charts.embedding import page_parts, render_page
from leadline.charts.paged import Sheet, paged_pdf
from leadline.charts.saving import Forms
from leadline.record.balance import Balance, Saturation, StreamBalance
from leadline.record.streaming import Platform, StreamStudy
from leadline.record.wording import format_count
from leadline.record.workload import interval_columns
from leadline.sanitize import to_csv
from leadline.store import Store
from leadline.studies.facts import fact_rows
from leadline.studies.streaming import balance_text as table
from leadline.studies.streaming.answer import balance_of, compared
from leadline.studies.streaming.measured import phase_rows as rows_to_export
from leadline.studies.streaming.run import load_stream
from leadline.studies.streaming.text import (
    PHASE_HEADS,
    capacity_rows,
    how_rows,
    not_counted_lines,
    phase_rows,
    verified_rows,
)
from leadline.studies.streaming.use_charts import balance_charts, is_wide, stream_charts

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
    disks = format_count(max(run.disks for run in study.runs), "disk")
    return f"{kernels.capitalize()} {where}: {', '.join(platforms)}, {disks}"


# Balance as a page (AD98 Fig. 9): the bottleneck, a panel for each phase, every number.


def render_balance_html(systems: Sequence[StreamBalance]) -> str:
    """Render the page; like the survey's, it holds its own data and asks nothing of the network."""
    charts = balance_charts(systems)
    names = list(dict.fromkeys(each.system for each in systems))
    several = len(systems) > 1
    beside = compared(systems)
    told = beside or [text for each in systems for text in each.sentences]
    warnings = [
        msgspec.structs.replace(found, where=each.system) if several else found
        for each in systems
        for found in each.findings
    ]
    return render_page(
        "balance.html.j2",
        title=f"Balance of {' and '.join(names)}",
        several=several,
        systems=table.format_systems(systems),
        lead=told[0] if told else "Nothing was measured.",
        compared=beside[1:],
        sentences=[(each.system, each.sentences) for each in systems],
        heads=table.SATURATION_HEADS,
        rows=table.saturation_rows(systems),
        what_if=table.what_if_rows(systems),
        amdahl=table.amdahl_rows(systems),
        cost_heads=table.COST_HEADS,
        costs=table.cost_rows(systems),
        ratio_heads=table.RATIO_HEADS,
        ratios=table.ratio_rows(systems),
        not_counted=[
            f"{each.system}: {line}" if several else line
            for each in systems
            for line in not_counted_lines(each.not_measurable)
        ],
        **page_parts(charts, list(systems), warnings=warnings),
    )


# Streaming studies and balance as files: the page, the numbers, the charts.

_FORMS = Forms(
    "a streaming study",
    ".html, .csv, .svg, .png or .pdf",
    nothing="nothing was measured that can be drawn; give a .csv or .html file",
)
require_format = _FORMS.require


def save_stream(study: StreamStudy, path: Path, others: Sequence[StreamStudy] = ()) -> None:
    """Write the study; the suffix of `path` decides what.

    .html: the page, with the charts of `others` below its own. .csv: a line for each phase of each
    run, `others` too. .pdf: words and charts on A4. .svg or .png: the charts, disk scaling or a run
    against its bound.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_stream_html(study, others),
        pdf=lambda: _stream_pdf(study),
        csv=lambda: to_csv([row for each in (study, *others) for row in rows_to_export(each)]),
        charts=lambda: stream_charts(study, balance_of(study)),
    )


def save_balance(systems: Sequence[StreamBalance], path: Path) -> None:
    """Write the balance of one system, or of several side by side; the suffix decides what.

    .html: the page. .csv: a line for each resource of each phase. .pdf: words and charts on A4.
    .svg or .png: a panel of each phase.

    Raises:
        ReportError: another suffix, nothing to draw, or the file cannot be written.

    """
    _FORMS.save(
        path,
        html=lambda: render_balance_html(systems),
        pdf=lambda: _balance_pdf(systems),
        csv=lambda: to_csv(_balance_rows(systems)),
        charts=lambda: balance_charts(systems),
    )


def _stream_pdf(study: StreamStudy) -> bytes:
    start, said = study.start, balance_of(study)
    sub = f"{', '.join(start.directories)} · {start.started_at[:10]} · study {start.study_id[:8]}"
    return paged_pdf(
        Sheet(
            stream_title(study),
            sub,
            study.sentences or said.sentences,
            (*study.findings, *said.findings),
            stream_charts(study, said),
            wide=is_wide,
        )
    )


def _balance_pdf(systems: Sequence[StreamBalance]) -> bytes:
    names = list(dict.fromkeys(each.system for each in systems))
    told = [*compared(systems), *(text for each in systems for text in each.sentences)]
    doubts = [found for each in systems for found in each.findings]
    title = f"Balance of {' and '.join(names)}"
    return paged_pdf(Sheet(title, ", ".join(names), told, doubts, balance_charts(systems)))


def _balance_rows(systems: Sequence[StreamBalance]) -> list[dict[str, Any]]:
    return [
        _saturation_row(system, balance, saturation)
        for system in systems
        for balance in system.balances
        for saturation in balance.saturations
    ]


def _saturation_row(
    system: StreamBalance, balance: Balance, saturation: Saturation
) -> dict[str, Any]:
    return {
        "study_id": system.study_id,
        "system": balance.system,
        "kernel": balance.kernel,
        "phase": balance.phase,
        "platform": balance.platform,
        "processors": balance.processors,
        "resource": saturation.resource,
        **interval_columns("mb_s_per_processor", saturation.mb_s_per_processor),
        "at_least": saturation.at_least,
        **interval_columns("use_at_most", saturation.use_at_most),
        "first": saturation.resource == balance.first,
        "why": saturation.why,
    }


def save_study(store: Store, study: StreamStudy, path: Path, beside: Sequence[str]) -> None:
    """Draw a study to a file, with others below it."""
    save_stream(study, path, [load_stream(store, ref) for ref in beside])


def charts_of(study: StreamStudy) -> dict[str, Any]:
    """Return every chart of its page by name, the one to look at first before the others."""
    return stream_charts(study, balance_of(study))
